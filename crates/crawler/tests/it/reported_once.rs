//! The outputs report each page and its links once, also after retries, refused links and redirects without a page at their end.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::memory_file::MemoryFile;
use crate::scripted::{self, Scripted};
use crawler::fetch::{BodyExtent, TruncationReason};
use crawler::output::links::LinkGraph;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::{Format, Sink};
use crawler::{Response, Summary};
use frontier::FrontierConfig;
use serde_json::Value;

fn page(body: &str) -> Response {
    scripted::page_of("text/html", body)
}

fn missing() -> Response {
    scripted::status(404)
}

fn moved(to: &str) -> Response {
    scripted::redirect(to)
}

/// Returns a page whose body breaks off.
fn broken_off(body: &str) -> Response {
    Response {
        extent: BodyExtent::Truncated,
        truncation: Some(TruncationReason::Connection),
        ..page(body)
    }
}

struct Run {
    summary: Summary,
    pages: Vec<Value>,
    links: Vec<Value>,
    refused: Vec<Value>,
}

fn run(
    change: impl FnOnce(&mut FrontierConfig),
    reply: impl Fn(&str, usize) -> Response + Send + Sync + 'static,
) -> Run {
    let mut options = scripted::options("http://site.example/");
    options.reports.links = true;
    options.frontier.politeness.delay = Duration::ZERO;
    change(&mut options.frontier);
    let (pages, links, refused) = (MemoryFile::default(), MemoryFile::default(), MemoryFile::default());
    let observers = (
        Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap(),
        LinkGraph::new(Sink::new(links.clone()), Format::JsonLines).unwrap(),
        RefusedReport::new(Sink::new(refused.clone()), Format::JsonLines).unwrap(),
    );
    let script = Scripted::new(move |call| Ok(reply(call.path(), call.earlier)));
    let run = script.crawl_with(options, |crawl| {
        crawl.observe(observers.0).observe(observers.1).observe(observers.2)
    });
    Run {
        summary: run.summary,
        pages: pages.lines(),
        links: links.lines(),
        refused: refused.lines(),
    }
}

fn urls(lines: &[Value], name: &str) -> BTreeSet<String> {
    lines
        .iter()
        .map(|line| line[name].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_links_of_a_page_that_broke_off_at_first_are_reported_once() {
    const BODY: &str = "<a href=/new>n</a><a href=/hidden rel=nofollow>h</a><a href=mailto:me@site.example>m</a>";
    let run = run(
        |_| {},
        |path, before| match path {
            "/" if before == 0 => broken_off(BODY),
            "/" => page(BODY),
            "/new" => page("new"),
            _ => missing(),
        },
    );
    assert_eq!(run.summary.pages, 2, "{}", run.summary);
    let edges: Vec<_> = run.links.iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    // Both attempts have the same two links, and each link has one line.
    assert_eq!(
        urls(&run.links, "to").len(),
        edges.len(),
        "one line for each link of each page: {edges:#?}"
    );
    let first = run
        .pages
        .iter()
        .find(|page| page["url"] == "http://site.example/")
        .unwrap();
    found.push(("links_new", first["links_new"].as_u64().unwrap()));
    found.push(("nofollow", run.summary.unfollowed.nofollow));
    found.push(("other scheme", run.summary.unfollowed.other_scheme));
    assert_eq!(found, [("links_new", 1), ("nofollow", 1), ("other scheme", 1)]);
}

#[test]
fn a_fetched_page_is_not_reported_as_refused_for_a_longer_path_to_it() {
    const MENU: &str = "<a href=/>home</a><a href=/a>a</a>";
    let run = run(
        |frontier| frontier.scope.max_depth = Some(1),
        |path, _| match path {
            "/" | "/a" => page(MENU),
            _ => missing(),
        },
    );
    assert_eq!(run.summary.pages, 2, "{}", run.summary);
    let fetched = urls(&run.pages, "url");
    let refused = urls(&run.refused, "url");
    let both: Vec<_> = fetched.intersection(&refused).collect();
    assert!(
        both.is_empty(),
        "fetched, and reported as refused: {both:?}: {:?}",
        run.refused
    );
    assert_eq!(
        run.summary.report.links.refused.values().sum::<u64>(),
        0,
        "{}",
        run.summary
    );
}

#[test]
fn a_redirect_without_a_page_at_its_end_is_reported_as_failed() {
    let run = run(
        |_| {},
        |path, _| match path {
            "/" => page("<a href=/login>l</a><a href=/there>t</a>"),
            // A site may redirect a page to itself to set a cookie.
            "/login" => moved("/login"),
            "/there" => moved("/back"),
            "/back" => moved("/there"),
            _ => missing(),
        },
    );
    let reported: BTreeSet<_> = urls(&run.pages, "url")
        .union(&urls(&run.refused, "url"))
        .cloned()
        .collect();
    for path in ["login", "there"] {
        let url = format!("http://site.example/{path}");
        assert!(
            reported.contains(&url),
            "{url} is neither fetched nor reported as failed: {reported:?}"
        );
    }
}

#[test]
fn a_body_with_a_reason_to_be_truncated_counts_as_truncated_whatever_its_extent_says() {
    let run = run(
        |frontier| frontier.traps.compare_one_of = std::num::NonZeroU32::MIN,
        |path, _| match path {
            "/" => Response {
                truncation: Some(TruncationReason::Size),
                ..page("the beginning")
            },
            _ => missing(),
        },
    );
    let page = &run.pages[0];
    assert_eq!(
        (page["body"].as_str(), page["truncation"].as_str()),
        (Some("truncated"), Some("size"))
    );
    assert!(page["content_hash"].is_null(), "{page}");
}
