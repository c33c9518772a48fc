//! What pages are made of, if it is asked for: which of it is found, and how it is crawled.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/paused.rs"]
mod paused;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crawler::page::links::{LinkOptions, LinkSource, extract, extract_from_style_sheet};
use crawler::{Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, Request, Response, Summary};
use encoding_rs::UTF_8;
use frontier::{Frontier, FrontierConfig, Refusal};
use serde_json::Value;
use sieve::SeenSet;
use url::{Position, Url};

const OPTIONS: LinkOptions<'_> = LinkOptions {
    max_links: 1000,
    agent: "ourbot",
    assets: true,
};

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

#[test]
fn pages_are_made_of_what_a_browser_loads() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/links/assets.json")).unwrap();
    assert!(cases.len() > 40);
    for case in &cases {
        let html = case["html"].as_str().unwrap();
        let found = extract(html, UTF_8, &page(), &OPTIONS);
        let embedded = found.links.iter().filter(|link| link.embedded);
        let embedded: BTreeSet<&str> = embedded.map(|link| &link.url[Position::BeforePath..]).collect();
        let loads = case["loads"].as_array().unwrap().iter();
        let loads: BTreeSet<&str> = loads.map(|path| path.as_str().unwrap()).collect();
        assert_eq!(embedded, loads, "{}", case["name"]);
        let links = extract(
            html,
            UTF_8,
            &page(),
            &LinkOptions {
                assets: false,
                ..OPTIONS
            },
        )
        .links;
        assert!(links.iter().all(|link| !link.embedded), "{}", case["name"]);
    }
}

#[test]
fn what_is_loaded_says_how_and_a_link_to_it_does_not_hide_it() {
    let html = "<a href=1.png rel=nofollow><img src=1.png></a><link rel=stylesheet href=2><script src=3></script>
        <video src=4></video><p style='b:url(5)'><link rel=manifest href=6>";
    let found = extract(html, UTF_8, &page(), &OPTIONS).links;
    let told: Vec<_> = found
        .iter()
        .map(|link| (link.source, link.embedded, link.nofollow))
        .collect();
    assert_eq!(
        told,
        [
            (LinkSource::Anchor, true, false),
            (LinkSource::StyleSheet, true, false),
            (LinkSource::Script, true, false),
            (LinkSource::Media, true, false),
            (LinkSource::Style, true, false),
            (LinkSource::Preload, true, false),
        ]
    );
}

#[test]
fn a_part_of_the_page_itself_is_not_loaded_and_an_icon_may_be_an_alternative() {
    let html = "<base href=/other/><svg><use href='#icon'/><image xlink:href=' #icon'/></svg>";
    assert_eq!(extract(html, UTF_8, &page(), &OPTIONS).links, []);
    let found = extract("<link rel='alternate icon' href=x>", UTF_8, &page(), &OPTIONS).links;
    assert_eq!((found[0].source, found[0].embedded), (LinkSource::Alternate, true));
}

#[test]
fn a_style_sheet_that_says_nofollow_is_obeyed_like_a_page() {
    struct Strict;
    impl Fetcher for Strict {
        async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
            let (kind, body, tags) = match request.url.path() {
                "/" => ("text/html", "<link rel=stylesheet href=/s>", None),
                "/s" => ("text/css", "a{b:url(i)}", Some("nofollow".to_owned())),
                _ => ("image/png", "", None),
            };
            Ok(Response {
                status: 200,
                content_type: Some(kind.to_owned()),
                body: body.into(),
                robots_tags: tags.into_iter().collect(),
                ..Response::default()
            })
        }
    }
    let summary = crawl_by(Strict, true, u32::MAX);
    assert_eq!((summary.pages, summary.links_nofollow), (2, 1));
}

#[test]
fn what_a_style_sheet_names_lies_beside_it() {
    let sheet = Url::parse("http://site.test/css/main.css").unwrap();
    let found = extract_from_style_sheet("@import 'a.css'; b{c:url(../i/é.png?é)}", &sheet, &OPTIONS).links;
    let urls: Vec<&str> = found.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(
        urls,
        ["http://site.test/css/a.css", "http://site.test/i/%C3%A9.png?%C3%A9"]
    );
}

/// Answers by a function of the path, in no time, and remembers what was asked for.
struct Script<F> {
    reply: F,
    asked: Arc<Mutex<Vec<String>>>,
}

impl<F: Fn(&str) -> (&'static str, String) + Send + Sync + 'static> Fetcher for Script<F> {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.asked.lock().unwrap().push(request.url.path().to_owned());
        let (kind, body) = (self.reply)(request.url.path());
        Ok(Response {
            status: 200,
            content_type: Some(kind.to_owned()),
            body: body.into_bytes(),
            ..Response::default()
        })
    }
}

fn crawl(
    assets: bool,
    max_depth: u32,
    reply: impl Fn(&str) -> (&'static str, String) + Send + Sync + 'static,
) -> (Vec<String>, Summary) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let script = Script {
        reply,
        asked: Arc::clone(&asked),
    };
    let summary = crawl_by(script, assets, max_depth);
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    (asked, summary)
}

fn crawl_by(fetcher: impl Fetcher, assets: bool, max_depth: u32) -> Summary {
    let mut frontier = FrontierConfig {
        ask_robots: false,
        ..FrontierConfig::default()
    };
    frontier.scope.max_depth = Some(max_depth);
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: frontier.clone(),
        assets,
        ..CrawlOptions::default()
    };
    let frontier = Frontier::with_seen_set(frontier, SeenSet::exact()).unwrap();
    let crawl = Crawl::with(CrawlConfig::new(options).unwrap(), frontier, fetcher);
    paused::runtime().block_on(crawl.run()).unwrap()
}

fn site(path: &str) -> (&'static str, String) {
    let (kind, body) = match path {
        "/" => (
            "text/html",
            "<link rel=stylesheet href=1.css><a href=page><img srcset='1.png, //elsewhere.example/2.png'></a>",
        ),
        "/1.css" => ("text/css; charset=utf-8", "@import '2.css'; a{b:url(3.png)}"),
        "/2.css" => ("TEXT/CSS", "a{b:url(4.png)}"),
        "/page" => ("text/html", "<img src=5.png><a href=below>"),
        _ => ("image/png", ""),
    };
    (kind, body.to_owned())
}

#[test]
fn a_page_is_fetched_with_all_that_it_is_made_of_and_no_page_below() {
    let (mut asked, summary) = crawl(true, 0, site);
    asked.sort();
    assert_eq!(asked, ["/", "/1.css", "/1.png", "/2.css", "/3.png", "/4.png"]);
    // The page below, and what the scope leaves out.
    assert_eq!(summary.report.links.refused.values().sum::<u64>(), 2);

    let (mut asked, _) = crawl(true, 1, site);
    asked.sort();
    assert_eq!(
        asked,
        ["/", "/1.css", "/1.png", "/2.css", "/3.png", "/4.png", "/5.png", "/page"]
    );
}

#[test]
fn nobody_gets_more_than_pages_who_does_not_ask() {
    let (asked, _) = crawl(false, 1, site);
    assert_eq!(asked, ["/", "/page"]);
}

#[test]
fn style_sheets_that_name_further_ones_for_ever_come_to_an_end() {
    let (asked, summary) = crawl(true, u32::MAX, |path| match path.strip_prefix("/css") {
        Some(number) => (
            "text/css",
            format!("@import 'css{}';", number.parse::<u32>().unwrap() + 1),
        ),
        None => ("text/html", "<link rel=stylesheet href=css1>".to_owned()),
    });
    assert_eq!(asked, ["/", "/css1", "/css2", "/css3", "/css4", "/css5"]);
    assert_eq!(summary.report.links.refused[&Refusal::TooDeep], 1);
}

#[test]
fn a_redirected_image_may_lie_as_deep_as_the_image() {
    struct Redirecting;
    impl Fetcher for Redirecting {
        async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
            let (status, location, body) = match request.url.path() {
                "/" => (200, None, "<img src=old.png>"),
                "/old.png" => (301, Some("/new.png".to_owned()), ""),
                _ => (200, None, ""),
            };
            Ok(Response {
                status,
                location,
                body: body.into(),
                ..Response::default()
            })
        }
    }
    assert_eq!(crawl_by(Redirecting, true, 0).pages, 2);
}
