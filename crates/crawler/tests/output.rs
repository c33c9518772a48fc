//! What is written: links, refusals, selected fields, and files that stay whole whatever happens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/memory_file.rs"]
mod memory_file;
mod scripted;

use std::collections::{BTreeMap, BTreeSet};

use crawler::output::jsonl::JsonLines;
use crawler::output::links::LinkGraph;
use crawler::output::refused::RefusedReport;
use crawler::{FetchError, Response};
use memory_file::MemoryFile;
use scripted::{Call, Reply, Scripted};
use serde_json::{Value, json};

const PAGE: &str = r#"<title>Start</title><h1>One <b>two</b></h1>
<a href=/a>a</a> <a href=/a rel=nofollow>a again</a> <area href=/hidden rel=nofollow>
<link rel=canonical href=/> <a href=/moved>m</a> <a href=/missing>404</a> <a href=/down>down</a> <a href=/refused>r</a>
<a href=/forbidden/x>f</a> <a href=http://other.example/>o</a>"#;

fn site(call: &Call<'_>) -> Reply {
    let page = |code, body: &str| Response {
        status: code,
        ..scripted::page_of("text/html", body)
    };
    Ok(match call.path() {
        _ if call.is_robots() => page(200, "User-agent: *\nDisallow: /forbidden/\n"),
        "/" => page(200, PAGE),
        "/a" => page(
            200,
            "<title> </title><a href=http://other.example/>o</a><a href=/>up</a>",
        ),
        "/moved" => scripted::redirect("/a"),
        "/down" => page(503, "busy"),
        "/refused" => return Err(FetchError::Broken("nonsense".to_owned())),
        _ => page(404, "<h1>not here</h1>"),
    })
}

struct Files {
    pages: Vec<Value>,
    links: Vec<Value>,
    refused: Vec<Value>,
}

fn crawl(fields: &[&str]) -> Files {
    let mut options = scripted::options("http://site.example/");
    options.frontier.retries.max_host_downtime = std::time::Duration::MAX;
    options.frontier.retries.max_first_downtime = std::time::Duration::MAX;
    options.fields = fields.iter().map(|field| field.parse().unwrap()).collect();
    options.report_links = true;
    let (pages, links, refused) = (MemoryFile::default(), MemoryFile::default(), MemoryFile::default());
    let observers = (
        JsonLines::new(pages.clone()),
        LinkGraph::new(links.clone()),
        RefusedReport::new(refused.clone()),
    );
    Scripted::new(site).crawl_with(options, |crawl| {
        crawl.observe(observers.0).observe(observers.1).observe(observers.2)
    });
    Files {
        pages: pages.lines(),
        links: links.lines(),
        refused: refused.lines(),
    }
}

#[test]
fn the_link_graph_has_every_link_with_what_became_of_it() {
    let edges: BTreeSet<_> = crawl(&[])
        .links
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().replace("http://site.example", "");
            let nofollow = line["nofollow"].as_bool().unwrap();
            (text("from"), text("to"), text("kind"), nofollow, text("verdict"))
        })
        .collect();
    let edge = |from: &str, to: &str, kind: &str, nofollow: bool, verdict: &str| {
        (
            from.to_owned(),
            to.to_owned(),
            kind.to_owned(),
            nofollow,
            verdict.to_owned(),
        )
    };
    let other = "http://other.example/";
    assert_eq!(
        edges,
        BTreeSet::from([
            edge("/", "/a", "anchor", false, "queued"),
            edge("/", "/hidden", "area", true, "nofollow"),
            edge("/", "/", "canonical", false, "seen"),
            edge("/", "/moved", "anchor", false, "queued"),
            edge("/", "/missing", "anchor", false, "queued"),
            edge("/", "/down", "anchor", false, "queued"),
            edge("/", "/refused", "anchor", false, "queued"),
            edge("/", "/forbidden/x", "anchor", false, "queued"),
            edge("/", other, "anchor", false, "other_host"),
            edge("/a", other, "anchor", false, "other_host"),
            edge("/a", "/", "anchor", false, "seen"),
            edge("/moved", "/a", "redirect", false, "seen"),
        ])
    );
}

#[test]
fn the_report_names_everything_that_was_not_had_once_with_its_reason() {
    let refused = crawl(&[]).refused;
    let start = "http://site.example/";
    let told: BTreeMap<&str, &Value> = refused
        .iter()
        .map(|line| (line["url"].as_str().unwrap(), line))
        .collect();
    assert_eq!(told.len(), refused.len(), "each once: {refused:?}");
    let expected = [
        ("http://other.example/", "refused", "other_host", json!(null)),
        ("http://site.example/hidden", "not_followed", "nofollow", json!(null)),
        (
            "http://site.example/forbidden/x",
            "not_fetched",
            "robots_forbid",
            json!(null),
        ),
        ("http://site.example/missing", "failed", "status", json!(404)),
        ("http://site.example/down", "failed", "status", json!(503)),
        ("http://site.example/refused", "failed", "broken", json!(null)),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (url, class, reason, status) in expected {
        let line = told[url];
        assert_eq!(
            (&line["class"], &line["reason"], &line["status"]),
            (&json!(class), &json!(reason), &status),
            "{url}"
        );
        assert_eq!((&line["referrer"], &line["depth"]), (&json!(start), &json!(1)), "{url}");
    }
    assert_eq!(told["http://site.example/refused"]["detail"], "broken answer: nonsense");
}

#[test]
fn every_page_has_every_selected_field_as_a_list() {
    let pages = crawl(&["heading=h1", "link=a::attr(href)"]).pages;
    let selected = |path: &str| {
        let url = format!("http://site.example{path}");
        &pages.iter().find(|page| page["url"] == *url).unwrap()["selected"]
    };
    assert_eq!(selected("/")["heading"], json!(["One two"]));
    assert_eq!(selected("/")["link"].as_array().unwrap().len(), 8);
    assert_eq!(
        selected("/a"),
        &json!({"heading": [], "link": ["http://other.example/", "/"]})
    );
    assert_eq!(
        selected("/missing"),
        &json!({"heading": [], "link": []}),
        "only pages that answer 2xx are read"
    );
    assert!(crawl(&[]).pages.iter().all(|page| page["selected"].is_null()));
}

#[test]
fn a_field_of_a_record_is_always_there_and_always_of_one_type() {
    let mut kinds: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let pages = crawl(&["heading=h1"]).pages;
    for page in &pages {
        for (name, value) in page.as_object().unwrap() {
            let kind = match value {
                Value::Null => continue,
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            kinds.entry(name.clone()).or_default().insert(kind);
        }
        assert_eq!(page.as_object().unwrap().len(), pages[0].as_object().unwrap().len());
        let at = page["fetched_at"].as_str().unwrap();
        assert!(
            at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z') && at.as_bytes()[10] == b'T',
            "{at}"
        );
    }
    assert!(kinds.values().all(|kinds| kinds.len() == 1), "{kinds:?}");
}
