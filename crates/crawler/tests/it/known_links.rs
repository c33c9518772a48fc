//! Crawls that know the pages of an earlier one: only changed pages are sent again, and no page is missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::memory_file::MemoryFile;
use crate::scripted::{self, Scripted};
use crawler::output::pages::Pages;
use crawler::output::{Format, Sink};
use crawler::{CrawlOptions, KnownLinks, Request, Response, Summary};
use frontier::{Canonicalizer, Link, Reach, Refusal, Validators};
use serde_json::Value;

/// A site whose pages have versions, and redirects, by path.
#[derive(Clone, Default)]
struct Site {
    pages: BTreeMap<&'static str, (&'static str, String)>,
    redirects: BTreeMap<&'static str, &'static str>,
}

impl Site {
    fn with(mut self, path: &'static str, version: &'static str, body: &str) -> Self {
        self.pages.insert(path, (version, body.to_owned()));
        self
    }

    fn moved(mut self, from: &'static str, to: &'static str) -> Self {
        self.redirects.insert(from, to);
        self
    }

    fn without_redirects(mut self) -> Self {
        self.redirects.clear();
        self
    }

    fn answer(&self, path: &str, known: Option<&Validators>) -> Response {
        if let Some(to) = self.redirects.get(path) {
            return scripted::redirect(to);
        }
        let Some((version, body)) = self.pages.get(path) else {
            return scripted::status(404);
        };
        // Half of the pages have a date, the others a tag.
        let has_tag = path.len().is_multiple_of(2);
        let validators = Validators {
            etag: has_tag.then(|| format!("\"{version}\"")),
            last_modified: (!has_tag).then(|| format!("the date of {version}")),
        };
        if known == Some(&validators) {
            return scripted::status(304);
        }
        Response {
            status: 200,
            body: body.as_bytes().to_vec(),
            validators,
            ..Response::default()
        }
    }
}

struct Run {
    summary: Summary,
    asked: Vec<String>,
    pages: MemoryFile,
}

impl Run {
    /// Returns the status of each path in the output.
    fn statuses(&self) -> BTreeMap<String, u64> {
        let path = |page: &Value| page["url"].as_str().unwrap().replace("http://a.example", "");
        self.pages
            .lines()
            .iter()
            .map(|page| (path(page), page["status"].as_u64().unwrap()))
            .collect()
    }
}

fn crawl(site: &Site, earlier: &str) -> Run {
    crawl_part(site, u64::MAX, earlier)
}

/// Crawls a part of the site: the first `pages` pages.
fn crawl_part(site: &Site, pages: u64, earlier: &str) -> Run {
    let site = site.clone();
    let reply = move |request: &Request| site.answer(request.url.path(), request.validators.as_ref());
    let limit = |options: &mut CrawlOptions| options.frontier.limits.max_pages = Some(pages);
    crawl_with("http://a.example/", limit, earlier, reply)
}

fn crawl_with(
    seed: &str,
    change: impl FnOnce(&mut CrawlOptions),
    earlier: &str,
    reply: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> Run {
    let mut options = scripted::options(seed);
    options.frontier.politeness.ask_robots = false;
    options.links = links(earlier);
    change(&mut options);
    let pages = MemoryFile::default();
    let lines = Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap();
    let script = Scripted::new(move |call| Ok(reply(call.request)));
    let run = script.crawl_with(options, |crawl| crawl.observe(lines));
    let mut asked: Vec<String> = run.paths().into_iter().map(str::to_owned).collect();
    asked.sort();
    Run {
        summary: run.summary,
        asked,
        pages,
    }
}

/// Returns an answer whose validators never change.
fn unchanging(request: &Request, kind: &str, body: &str) -> Response {
    let validators = Validators {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
    };
    if request.validators.as_ref() == Some(&validators) {
        return scripted::status(304);
    }
    Response {
        status: 200,
        content_type: Some(kind.to_owned()),
        body: body.into(),
        validators,
        ..Response::default()
    }
}

fn links(lines: &str) -> Vec<Link> {
    let mut links = KnownLinks::default();
    for line in lines.lines() {
        links.add(line, &Canonicalizer::default()).unwrap();
    }
    links.into_links()
}

fn first_site() -> Site {
    Site::default()
        .with("/", "1", "<a href=/a><a href=/bb><a href=/gone>")
        .with("/a", "1", "<a href=/a/below><a href=/old>")
        .with("/a/below", "1", "")
        .with("/bb", "1", "<a href=/bb/below>")
        .with("/bb/below", "1", "")
        .with("/new", "1", "")
        .moved("/old", "/new")
}

#[test]
fn unchanged_pages_are_requested_and_answered_with_304() {
    let first = crawl(&first_site(), "");
    let second = crawl(&first_site(), &first.pages.text());
    assert_eq!(second.asked, first.asked);
    let expected = [
        ("/", 200),
        ("/a", 304),
        ("/a/below", 304),
        ("/bb", 304),
        ("/bb/below", 304),
        ("/gone", 404),
        ("/new", 304),
    ];
    let expected: BTreeMap<String, u64> = expected.map(|(path, status)| (path.to_owned(), status)).into();
    assert_eq!(second.statuses(), expected);
    assert_eq!(second.summary.by_status[&304], 5);

    // The validators that a 304 omits are kept, so a third crawl gets no bodies either.
    let third = crawl(&first_site(), &second.pages.text());
    assert_eq!(third.statuses(), expected);
}

#[test]
fn changed_pages_are_sent_and_their_new_links_are_followed() {
    let first = crawl(&first_site(), "");
    let changed = first_site()
        .with("/bb/below", "2", "<a href=/fresh>")
        .with("/fresh", "1", "")
        .with("/gone", "1", "<a href=/back>")
        .with("/back", "1", "")
        .with("/elsewhere", "1", "")
        .moved("/old", "/elsewhere");
    let second = crawl(&changed, &first.pages.text());
    let whole = crawl(&changed, "");
    let statuses = second.statuses();
    // All pages that a new crawl finds, and the pages without links to them.
    for path in whole.statuses().keys() {
        assert!(statuses.contains_key(path), "{path}");
    }
    for (path, status) in [
        ("/a", 304),
        ("/bb", 304),
        ("/bb/below", 200),
        ("/fresh", 200),
        ("/gone", 200),
        ("/back", 200),
    ] {
        assert_eq!(statuses[path], status, "{path}");
    }
    assert_eq!((statuses["/elsewhere"], statuses["/new"]), (200, 304));
}

#[test]
fn the_output_of_an_interrupted_crawl_hides_no_page() {
    let site = first_site();
    let whole = crawl(&site, "");
    assert_eq!(whole.pages.lines().last().unwrap()["left"], 0);
    for pages in 1..7 {
        let part = crawl_part(&site, pages, "");
        let again = crawl(&site, &part.pages.text());
        assert!(again.statuses().keys().eq(whole.statuses().keys()), "{pages}");
        assert!(again.summary.missing().is_empty(), "{pages}");
        // Another one that is interrupted, too.
        for other in 1..7 {
            let second = crawl_part(&site, other, &part.pages.text());
            let again = crawl(&site, &second.pages.text());
            assert!(again.statuses().keys().eq(whole.statuses().keys()), "{pages} {other}");
        }
    }
}

#[test]
fn a_truncated_page_is_requested_without_validators() {
    let lines = [
        r#"{"url":"http://a.example/a","status":200,"etag":"\"1\"","truncation":"connection"}"#,
        r#"{"url":"http://a.example/bb","status":200,"last_modified":"the date of 1","truncation":"size"}"#,
        r#"{"url":"http://a.example/c","status":500,"etag":"\"1\""}"#,
        r#"{"url":"http://a.example/d"}"#,
        r#"{"url":"http://a.example/ee","status":200,"last_modified":"the date of 1","truncation":"time"}"#,
    ];
    let site = ["/a", "/bb", "/c", "/d", "/ee"]
        .iter()
        .fold(Site::default().with("/", "1", ""), |site, path| {
            site.with(path, "1", "")
        });
    let run = crawl(&site, &format!("{}\n", lines.join("\n")));
    let statuses = run.statuses();
    assert_eq!((statuses["/a"], statuses["/bb"]), (200, 304));
    assert_eq!((statuses["/c"], statuses["/d"], statuses["/ee"]), (200, 200, 200));
}

#[test]
fn pages_out_of_scope_are_refused() {
    let lines = "{\"url\":\"http://b.example/x\"}\n{\"url\":\"http://a.example/x\"}\n";
    let run = crawl(&Site::default().with("/", "1", ""), lines);
    assert_eq!(run.asked, ["/", "/x"]);
    assert_eq!(run.summary.report.links.refused.values().sum::<u64>(), 1);
}

#[test]
fn pages_in_the_target_folder_of_a_redirected_seed_are_in_scope() {
    let other_folder = |request: &Request| match request.url.path() {
        "/docs/latest/" => scripted::redirect("/docs/v2/"),
        "/docs/v2/" => unchanging(request, "text/html", "<a href=x>"),
        _ => unchanging(request, "text/html", ""),
    };
    let prefix = |options: &mut CrawlOptions| options.frontier.scope.reach = Reach::Prefix;
    let seed = "http://a.example/docs/latest/";
    let first = crawl_with(seed, prefix, "", other_folder);
    let again = &first.pages.text();
    let second = crawl_with(seed, prefix, again, other_folder);
    assert_eq!(second.summary.by_status, [(200, 1), (304, 1)].into());
}

#[test]
fn parts_of_the_previous_pages_are_requested_again() {
    let site = |request: &Request| match request.url.path() {
        "/" => unchanging(request, "text/html", "<a href=/page>"),
        "/page" => unchanging(
            request,
            "text/html",
            "<img src=/1.png><link rel=stylesheet href=/1.css>",
        ),
        "/1.css" => unchanging(request, "text/css", "a{b:url(2.png)}"),
        _ => unchanging(request, "image/png", ""),
    };
    let options = |options: &mut CrawlOptions| {
        options.pages.assets = true;
        options.frontier.scope.max_depth = Some(1);
    };
    let first = crawl_with("http://a.example/", options, "", site);
    let again = &first.pages.text();
    let second = crawl_with("http://a.example/", options, again, site);
    assert_eq!(second.asked, ["/", "/1.css", "/1.png", "/2.png", "/page"]);
    assert_eq!(second.asked, first.asked);
}

#[test]
fn a_redirect_is_kept_from_crawl_to_crawl() {
    let second = crawl(&first_site(), &crawl(&first_site(), "").pages.text());
    let changed = first_site().with("/elsewhere", "1", "").moved("/old", "/elsewhere");
    let third = crawl(&changed, &second.pages.text());
    assert_eq!(third.statuses()["/elsewhere"], 200);
}

#[test]
fn the_lastmod_of_a_sitemap_and_the_validators_that_a_304_omits_are_kept() {
    let sitemap = "<urlset><url><loc>http://a.example/x</loc><lastmod>2024-01-01</lastmod></url></urlset>";
    let whole = Validators {
        etag: Some("\"1\"".to_owned()),
        last_modified: Some("Mon, 01 Jan 2024 00:00:00 GMT".to_owned()),
    };
    let site = move |request: &Request| match (request.url.path(), &request.validators) {
        ("/sitemap.xml", _) => unchanging(request, "application/xml", sitemap),
        ("/x", Some(_)) => Response {
            status: 304,
            validators: Validators {
                last_modified: None,
                ..whole.clone()
            },
            ..Response::default()
        },
        ("/x", None) => Response {
            status: 200,
            validators: whole.clone(),
            ..Response::default()
        },
        _ => unchanging(request, "text/html", ""),
    };
    let sitemaps = |options: &mut CrawlOptions| options.pages.sitemaps = true;
    let first = crawl_with("http://a.example/", sitemaps, "", site.clone());
    let again = &first.pages.text();
    let second = crawl_with("http://a.example/", sitemaps, again, site);
    let lines = second.pages.lines();
    let line = lines.iter().find(|line| line["status"] == 304).unwrap();
    assert_eq!(line["lastmod"], "2024-01-01T00:00:00Z");
    assert_eq!(line["last_modified"], "Mon, 01 Jan 2024 00:00:00 GMT");
}

#[test]
fn a_validator_that_is_very_long_or_no_header_value_is_not_sent() {
    let tags = ["x".repeat(2000), "中".to_owned(), r"a\u0000".to_owned()];
    let lines = tags
        .iter()
        .enumerate()
        .map(|(page, tag)| format!("{{\"url\":\"http://a.example/{page}\",\"status\":200,\"etag\":\"{tag}\"}}\n"));
    let lines = lines.collect::<String>();
    let is_conditional = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&is_conditional);
    let reply = move |request: &Request| {
        *seen.lock().unwrap() |= request.validators.is_some();
        Response::default()
    };
    crawl_with("http://a.example/", |_| {}, &lines, reply);
    assert!(!*is_conditional.lock().unwrap());
}

#[test]
fn pages_on_every_host_in_the_redirect_chain_of_a_seed_are_in_scope() {
    let site = |request: &Request| match request.url.as_str() {
        "http://a.example/" => scripted::redirect("http://b.example/"),
        "http://b.example/" => scripted::redirect("http://c.example/"),
        "http://c.example/" => unchanging(request, "text/html", "<a href=http://b.example/x><a href=/y>"),
        "http://c.example/y" => unchanging(request, "text/html", "<a href=http://b.example/z>"),
        _ => unchanging(request, "text/html", ""),
    };
    let first = crawl_with("http://a.example/", |_| {}, "", site);
    let again = &first.pages.text();
    let second = crawl_with("http://a.example/", |_| {}, again, site);
    assert_eq!(second.asked, ["/", "/", "/", "/x", "/y", "/z"]);
    assert_eq!(second.summary.by_status, [(200, 1), (304, 3)].into());
}

#[test]
fn a_host_that_no_seed_redirects_to_any_more_is_out_of_scope() {
    let before = |request: &Request| match request.url.as_str() {
        "http://a.example/" => scripted::redirect("http://elsewhere.example/"),
        "http://elsewhere.example/" => unchanging(request, "text/html", "<a href=/1>"),
        _ => unchanging(request, "text/html", ""),
    };
    let first = crawl_with("http://a.example/", |_| {}, "", before);
    let again = &first.pages.text();
    let second = crawl_with(
        "http://a.example/",
        |_| {},
        again,
        |request| unchanging(request, "text/html", ""),
    );
    assert_eq!(second.asked, ["/"]);
    assert_eq!(second.summary.report.links.refused[&Refusal::OtherHost], 2);
}

#[test]
fn a_removed_redirect_is_requested_and_not_recorded() {
    let second = crawl(
        &first_site().with("/old", "1", "").without_redirects(),
        &crawl(&first_site(), "").pages.text(),
    );
    let lines = second.pages.lines();
    assert!(lines.iter().all(|line| line["redirected_from"].is_null()));
    let record = |path: &str| {
        lines
            .iter()
            .find(|line| line["url"] == format!("http://a.example{path}"))
    };
    assert_eq!(record("/new").unwrap()["was_redirected_from"], "http://a.example/old");
    assert_eq!(record("/old").unwrap()["status"], 200);
}
