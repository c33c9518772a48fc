//! Recrawls of files in which pages have several lines, one for each fetch: the last one counts, and no page is missed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::scripted::{self, Call, Scripted, page, redirect, status};
use crawler::PageRecord;
use crawler::recrawl::PreviousCrawl;
use frontier::Validators;

/// Writes a file for one test, and opens it.
fn previous(name: &str, lines: &[&str]) -> PreviousCrawl {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("several-{name}.jsonl"));
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    PreviousCrawl::open(&path).unwrap()
}

/// A line without its `left`, which is as if something was left.
fn line(path: &str, referrer: &str, rest: &str) -> String {
    let referrer = match referrer {
        "" => "null".to_owned(),
        path => format!("\"http://a.example{path}\""),
    };
    format!(r#"{{"url":"http://a.example{path}","status":200,"etag":"1","left":1,"referrer":{referrer}{rest}}}"#)
}

/// The paths of the pages that a recrawl requests whole, in order.
fn whole(name: &str, lines: &[String]) -> Vec<String> {
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut previous = previous(name, &lines);
    let pages = previous.pages().unwrap().map(Result::unwrap);
    let whole = pages.filter(|page| page.etag.is_none());
    whole.map(|page| page.url.replace("http://a.example", "")).collect()
}

/// Recrawls a site of pages with links, whose tags are `"1"`. Some paths redirect.
fn recrawl(
    name: &str,
    lines: &[String],
    site: &[(&'static str, &'static str)],
) -> (Vec<(String, bool)>, Vec<PageRecord>) {
    let site: BTreeMap<_, _> = site.iter().copied().collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&asked);
    let script = Scripted::new(move |call: &Call<'_>| {
        let known = call.request.validators.as_ref();
        log.lock().unwrap().push((call.path().to_owned(), known.is_some()));
        let now = Validators {
            etag: Some("1".to_owned()),
            last_modified: None,
        };
        Ok(match site.get(call.path()) {
            None => status(404),
            Some(to) if to.starts_with('/') => redirect(to),
            Some(_) if known == Some(&now) => status(304),
            Some(body) => crawler::Response {
                validators: now,
                ..page(body)
            },
        })
    });
    let mut options = scripted::options("http://a.example/");
    options.frontier.ask_robots = false;
    let run = script.crawl_with(options, |crawl| crawl.recrawl(previous(name, &lines)).unwrap());
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.sort();
    (asked, run.reports.pages)
}

#[test]
fn a_child_with_two_lines_does_not_stand_for_a_child_without_one() {
    let lines = [
        line("/", "", r#","links_new":1,"children":1"#),
        line("/a", "/", r#","links_new":2,"children":2"#),
        line("/a/b", "/a", ""),
        line("/a/b", "/a", r#","unchanged":true"#),
    ];
    let site = [
        ("/", "<a href=/a>"),
        ("/a", "<a href=/a/b><a href=/a/c>"),
        ("/a/b", ""),
        ("/a/c", ""),
    ];
    let (asked, _) = recrawl("child", &lines, &site);
    let expected = [("/", false), ("/a", false), ("/a/b", true), ("/a/c", false)];
    assert_eq!(asked, expected.map(|(path, is_known)| (path.to_owned(), is_known)));
    // In any order.
    let mut sorted = lines.to_vec();
    sorted.sort_by(|a, b| b.cmp(a));
    assert_eq!(whole("child-sorted", &sorted), ["/a"]);
}

#[test]
fn the_children_that_all_lines_of_a_page_promise_must_have_a_line() {
    // It links to three pages. A refresh found the last one.
    let mut lines = vec![
        line("/a", "", r#","links_new":2,"children":2"#),
        line("/a/b", "/a", ""),
        line("/a/c", "/a", ""),
        line("/a", "", r#","links_new":1,"children":1"#),
    ];
    assert_eq!(whole("promises", &lines), ["/a"]);
    lines.push(line("/a/d", "/a", ""));
    assert!(whole("promises-kept", &lines).is_empty());

    // With the children of the crawl that was repeated, which are in both of its lines.
    lines[0] = line("/a", "", r#","links_new":0,"children":2"#);
    lines[3] = line("/a", "", r#","links_new":1,"children":3"#);
    assert!(whole("promises-repeated", &lines).is_empty());
    lines.pop();
    assert_eq!(whole("promises-repeated-part", &lines), ["/a"]);
}

#[test]
fn the_last_line_of_a_page_has_its_validators() {
    let old = line("/x", "/", "").replace(r#""etag":"1""#, r#""etag":"0""#);
    let (asked, pages) = recrawl("last", &[old.clone(), line("/x", "/", "")], &[("/", ""), ("/x", "")]);
    assert_eq!(asked, [("/".to_owned(), false), ("/x".to_owned(), true)]);
    let statuses: Vec<_> = pages.iter().map(|page| page.status).collect();
    assert_eq!(statuses, [200, 304]);
    // Its last fetch broke off.
    let cut = line("/x", "/", r#","truncation":"connection""#);
    let (asked, _) = recrawl("last-cut", &[old, cut], &[("/", ""), ("/x", "")]);
    assert_eq!(asked, [("/".to_owned(), false), ("/x".to_owned(), false)]);
}

#[test]
fn a_page_that_redirects_at_a_refresh_is_one_child() {
    let redirected = r#","redirected_from":"http://a.example/a/b""#;
    let parent = line("/a", "", r#","links_new":2,"children":2"#);
    // The next refresh requests the target itself.
    let before = line("/a/b", "/a", "");
    let (at_refresh, after) = (line("/a/new", "/a", redirected), line("/a/new", "/a", ""));
    let mut lines = vec![parent, before, at_refresh, after];
    // It may redirect elsewhere now.
    assert_eq!(whole("moved-child", &lines), ["/a", "/a/b"]);
    lines.push(line("/a/c", "/a", ""));
    assert_eq!(whole("moved-child-kept", &lines), ["/a/b"]);
}

#[test]
fn the_redirect_to_a_page_is_requested_again_whichever_of_its_lines_has_it() {
    let lines = [
        line("/new", "/", r#","redirected_from":"http://a.example/old""#),
        line("/new", "/", ""),
    ];
    let site = [("/", ""), ("/old", "/elsewhere"), ("/new", ""), ("/elsewhere", "")];
    let (asked, _) = recrawl("redirect", &lines, &site);
    let expected = [("/", false), ("/elsewhere", false), ("/new", true), ("/old", false)];
    assert_eq!(asked, expected.map(|(path, is_known)| (path.to_owned(), is_known)));
}
