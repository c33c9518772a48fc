//! Recrawls: only changed pages are sent again, and no page is missed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::memory_file::MemoryFile;
use crate::scripted::{self, Scripted};
use crawler::output::pages::Pages;
use crawler::output::{Format, Sink};
use crawler::recrawl::{PreviousCrawl, RecrawlError};
use crawler::{CrawlOptions, Request, Response, Summary};
use frontier::{Reach, Refusal, Validators};
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

fn crawl(site: &Site, earlier: Option<PreviousCrawl>) -> Run {
    crawl_part(site, u64::MAX, earlier)
}

/// Crawls a part of the site: the first `pages` pages.
fn crawl_part(site: &Site, pages: u64, earlier: Option<PreviousCrawl>) -> Run {
    let site = site.clone();
    let reply = move |request: &Request| site.answer(request.url.path(), request.validators.as_ref());
    let limit = |options: &mut CrawlOptions| options.frontier.max_pages = Some(pages);
    crawl_with("http://a.example/", limit, earlier, reply)
}

fn crawl_with(
    seed: &str,
    change: impl FnOnce(&mut CrawlOptions),
    earlier: Option<PreviousCrawl>,
    reply: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> Run {
    let mut options = scripted::options(seed);
    options.frontier.ask_robots = false;
    change(&mut options);
    let pages = MemoryFile::default();
    let lines = Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap();
    let script = Scripted::new(move |call| Ok(reply(call.request)));
    let run = script.crawl_with(options, |crawl| {
        let crawl = crawl.observe(lines);
        match earlier {
            Some(earlier) => crawl.recrawl(earlier).unwrap(),
            None => crawl,
        }
    });
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

/// Writes a file for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recrawl-{name}.jsonl"));
    std::fs::write(&path, text).unwrap();
    path
}

fn earlier(name: &str, text: &str) -> PreviousCrawl {
    PreviousCrawl::open(&file(name, text)).unwrap()
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
    let first = crawl(&first_site(), None);
    let second = crawl(&first_site(), Some(earlier("same", &first.pages.text())));
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
    let third = crawl(&first_site(), Some(earlier("third", &second.pages.text())));
    assert_eq!(third.statuses(), expected);
}

#[test]
fn changed_pages_are_sent_and_their_new_links_are_followed() {
    let first = crawl(&first_site(), None);
    let changed = first_site()
        .with("/bb/below", "2", "<a href=/fresh>")
        .with("/fresh", "1", "")
        .with("/gone", "1", "<a href=/back>")
        .with("/back", "1", "")
        .with("/elsewhere", "1", "")
        .moved("/old", "/elsewhere");
    let second = crawl(&changed, Some(earlier("changed", &first.pages.text())));
    let whole = crawl(&changed, None);
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
fn a_recrawl_of_an_interrupted_crawl_finds_every_page() {
    let site = first_site();
    let whole = crawl(&site, None);
    assert_eq!(whole.pages.lines().last().unwrap()["left"], 0);
    for pages in 1..7 {
        let part = crawl_part(&site, pages, None);
        let name = format!("part-{pages}");
        let again = crawl(&site, Some(earlier(&name, &part.pages.text())));
        assert!(again.statuses().keys().eq(whole.statuses().keys()), "{pages}");
        assert!(again.summary.missing().is_empty(), "{pages}");
        // A recrawl that is interrupted, too.
        for other in 1..7 {
            let second = crawl_part(&site, other, Some(earlier(&name, &part.pages.text())));
            let name = format!("part-{pages}-{other}");
            let again = crawl(&site, Some(earlier(&name, &second.pages.text())));
            assert!(again.statuses().keys().eq(whole.statuses().keys()), "{pages} {other}");
        }
    }
}

#[test]
fn a_page_with_a_forbidden_link_is_answered_with_304_if_the_crawl_ended() {
    // One of the two children has no line, and nothing was left.
    let lines = [
        r#"{"url":"http://a.example/a","status":200,"last_modified":"the date of 1","links_new":2,"children":2,"left":1}"#,
        r#"{"url":"http://a.example/a/b","status":200,"referrer":"http://a.example/a","links_new":0,"children":0,"left":0}"#,
    ];
    let text = format!("{}\n", lines.join("\n"));
    let known = |name: &str, text: &str| {
        let page = earlier(name, text).pages().unwrap().next().unwrap().unwrap();
        page.last_modified.is_some()
    };
    assert!(known("forbidden", &text));
    assert!(!known("forbidden-left", &text.replace("\"left\":0", "\"left\":1")));
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
    let run = crawl(&site, Some(earlier("cut", &format!("{}\n", lines.join("\n")))));
    let statuses = run.statuses();
    assert_eq!((statuses["/a"], statuses["/bb"]), (200, 304));
    assert_eq!((statuses["/c"], statuses["/d"], statuses["/ee"]), (200, 200, 200));
}

#[test]
fn pages_out_of_scope_and_invalid_urls_are_not_requested() {
    let lines = "{\"url\":\"http://b.example/x\"}\n{\"url\":\"mailto:x\"}\n\n{\"url\":\"no url\"}\n{\"url\":\"http://a.example/x\"}\n";
    let run = crawl(&Site::default().with("/", "1", ""), Some(earlier("scope", lines)));
    assert_eq!(run.asked, ["/", "/x"]);
    assert_eq!(run.summary.report.links.refused.values().sum::<u64>(), 1);
}

#[test]
fn an_invalid_line_is_an_error_with_its_number_and_an_incomplete_last_line_is_skipped() {
    let open = |name, text| PreviousCrawl::open(&file(name, text));
    for (name, text) in [
        ("xml", "{\"url\":\"http://a.example/\"}\n<urlset>\n"),
        ("fields", "{\"url\":\"http://a.example/\"}\n{\"from\":\"x\"}\n"),
        ("types", "{\"url\":\"http://a.example/\"}\n{\"url\":1}\n"),
    ] {
        match open(name, text) {
            Err(error @ RecrawlError::Line { line: 2, .. }) => {
                assert!(error.to_string().contains("line 2 of "), "{error}");
                assert!(
                    error.to_string().contains("a JSON lines file that a crawl wrote"),
                    "{error}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(matches!(
        PreviousCrawl::open(Path::new("/nowhere/x")),
        Err(RecrawlError::Read { .. })
    ));
    let mut torn = open("torn", "{\"url\":\"http://a.example/\"}\n{\"url\":\"http://a.exa").unwrap();
    assert_eq!(torn.pages().unwrap().count(), 1);
    assert_eq!(open("empty", "").unwrap().pages().unwrap().count(), 0);
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
    let first = crawl_with(seed, prefix, None, other_folder);
    let again = Some(earlier("moved-folder", &first.pages.text()));
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
        options.assets = true;
        options.frontier.scope.max_depth = Some(1);
    };
    let first = crawl_with("http://a.example/", options, None, site);
    let again = Some(earlier("assets", &first.pages.text()));
    let second = crawl_with("http://a.example/", options, again, site);
    assert_eq!(second.asked, ["/", "/1.css", "/1.png", "/2.png", "/page"]);
    assert_eq!(second.asked, first.asked);
}

#[test]
fn a_redirect_is_kept_from_crawl_to_crawl() {
    let second = crawl(
        &first_site(),
        Some(earlier("old-1", &crawl(&first_site(), None).pages.text())),
    );
    let changed = first_site().with("/elsewhere", "1", "").moved("/old", "/elsewhere");
    let third = crawl(&changed, Some(earlier("old-2", &second.pages.text())));
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
    let sitemaps = |options: &mut CrawlOptions| options.sitemaps = true;
    let first = crawl_with("http://a.example/", sitemaps, None, site.clone());
    let again = Some(earlier("lastmod", &first.pages.text()));
    let second = crawl_with("http://a.example/", sitemaps, again, site);
    let lines = second.pages.lines();
    let line = lines.iter().find(|line| line["status"] == 304).unwrap();
    assert_eq!(line["lastmod"], "2024-01-01T00:00:00Z");
    assert_eq!(line["last_modified"], "Mon, 01 Jan 2024 00:00:00 GMT");
}

#[test]
fn many_lines_in_a_row_without_a_crawlable_url_do_not_end_the_reading() {
    let mut lines = "{\"url\":\"ftp://a.example/\"}\n".repeat(1000);
    lines.push_str("{\"url\":\"http://a.example/x\"}\n");
    let run = crawl(&Site::default(), Some(earlier("nowhere", &lines)));
    assert_eq!(run.asked, ["/", "/x"]);
}

#[test]
fn a_very_long_validator_is_not_sent() {
    let long = format!(
        "{{\"url\":\"http://a.example/x\",\"status\":200,\"etag\":\"{}\"}}\n",
        "x".repeat(2000)
    );
    let is_conditional = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&is_conditional);
    let reply = move |request: &Request| {
        *seen.lock().unwrap() |= request.validators.is_some();
        Response::default()
    };
    crawl_with("http://a.example/", |_| {}, Some(earlier("long", &long)), reply);
    assert!(!*is_conditional.lock().unwrap());
}

#[test]
fn a_file_that_shrinks_after_the_check_is_an_error() {
    let path = file(
        "shrinks",
        "{\"url\":\"http://a.example/1\"}\n{\"url\":\"http://a.example/2\"}\n",
    );
    let mut earlier = PreviousCrawl::open(&path).unwrap();
    std::fs::write(&path, "{\"url\":\"http://a.example/1\"}\n").unwrap();
    let pages: Vec<_> = earlier.pages().unwrap().collect();
    assert!(matches!(pages[..], [Ok(_), Err(RecrawlError::Changed(_))]), "{pages:?}");
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_twice_is_refused_at_once() {
    let pipe = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recrawl-pipe");
    drop(std::fs::remove_file(&pipe));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/null"), Path::new("/")] {
        assert!(
            matches!(PreviousCrawl::open(path), Err(RecrawlError::NoFile(_))),
            "{path:?}"
        );
    }
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
    let first = crawl_with("http://a.example/", |_| {}, None, site);
    let again = Some(earlier("chain", &first.pages.text()));
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
    let first = crawl_with("http://a.example/", |_| {}, None, before);
    let again = Some(earlier("left", &first.pages.text()));
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
        Some(earlier("gone", &crawl(&first_site(), None).pages.text())),
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
