//! Assets: which ones are found on a page, and how the crawl treats them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::scripted::{self, Run, Scripted, page_of};
use crawler::Response;
use crawler::page::links::{LinkOptions, LinkSource, extract, extract_from_style_sheet};
use encoding_rs::UTF_8;
use frontier::Refusal;
use serde_json::Value;
use url::{Position, Url};

const OPTIONS: LinkOptions = LinkOptions {
    max_links: 1000,
    agent: Cow::Borrowed("ourbot"),
    assets: true,
};

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

#[test]
fn the_assets_of_a_page_are_what_a_browser_loads() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/links/assets.json")).unwrap();
    assert!(cases.len() > 40);
    for case in &cases {
        let html = case["html"].as_str().unwrap();
        let found = extract(html, UTF_8, &page(), &OPTIONS);
        let embedded = found.links.iter().filter(|link| link.embedded);
        let embedded: BTreeSet<&str> = embedded.map(|link| &link.url[Position::BeforePath..]).collect();
        let loads = case["loads"].as_array().unwrap().iter();
        let loads: BTreeSet<&str> = loads.map(|path| path.as_str().unwrap()).collect();
        assert_eq!(embedded, loads, "{}", case["name"]);
        let links = extract(html, UTF_8, &page(), &LinkOptions::default()).links;
        assert!(links.iter().all(|link| !link.embedded), "{}", case["name"]);
    }
}

#[test]
fn an_asset_that_is_also_linked_stays_an_asset() {
    let html = "<a href=1.png rel=nofollow><img src=1.png></a><link rel=stylesheet href=2><script src=3></script>
        <video src=4></video><p style='b:url(5)'><link rel=manifest href=6>";
    let found = extract(html, UTF_8, &page(), &OPTIONS).links;
    let found_links: Vec<_> = found
        .iter()
        .map(|link| (link.source, link.embedded, link.nofollow))
        .collect();
    assert_eq!(
        found_links,
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
fn fragments_are_not_assets_and_an_alternate_icon_is_one() {
    let html = "<base href=/other/><svg><use href='#icon'/><image xlink:href=' #icon'/></svg>";
    assert_eq!(extract(html, UTF_8, &page(), &OPTIONS).links, []);
    let found = extract("<link rel='alternate icon' href=x>", UTF_8, &page(), &OPTIONS).links;
    assert_eq!((found[0].source, found[0].embedded), (LinkSource::Alternate, true));
}

#[test]
fn a_style_sheet_that_says_nofollow_is_obeyed_like_a_page() {
    let summary = crawl_by(true, u32::MAX, |path| match path {
        "/" => page_of("text/html", "<link rel=stylesheet href=/s>"),
        "/s" => Response {
            robots_tags: vec!["nofollow".to_owned()],
            ..page_of("text/css", "a{b:url(i)}")
        },
        _ => page_of("image/png", ""),
    })
    .summary;
    assert_eq!((summary.pages, summary.links_nofollow), (2, 1));
}

#[test]
fn urls_in_a_style_sheet_are_resolved_on_its_own_url() {
    let sheet = Url::parse("http://site.test/css/main.css").unwrap();
    let found = extract_from_style_sheet("@import 'a.css'; b{c:url(../i/é.png?é)}", &sheet, &OPTIONS).links;
    let urls: Vec<&str> = found.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(
        urls,
        ["http://site.test/css/a.css", "http://site.test/i/%C3%A9.png?%C3%A9"]
    );
}

fn crawl_by(assets: bool, max_depth: u32, reply: impl Fn(&str) -> Response + Send + Sync + 'static) -> Run {
    let mut options = scripted::options("http://a.example/");
    options.assets = assets;
    options.frontier.politeness.ask_robots = false;
    options.frontier.scope.max_depth = Some(max_depth);
    Scripted::new(move |call| Ok(reply(call.path()))).crawl(options)
}

#[test]
fn a_page_is_fetched_with_its_assets_but_no_deeper_pages() {
    for (assets, max_depth, expected) in [
        (true, 0, "/ /1.css /1.png /2.css /3.png /4.png"),
        (true, 1, "/ /1.css /1.png /2.css /3.png /4.png /5.png /page"),
        (false, 1, "/ /page"),
    ] {
        let run = crawl_by(assets, max_depth, |path| match path {
            "/" => page_of(
                "text/html",
                "<link rel=stylesheet href=1.css><a href=page><img srcset='1.png, //elsewhere.example/2.png'></a>",
            ),
            "/1.css" => page_of("text/css; charset=utf-8", "@import '2.css'; a{b:url(3.png)}"),
            "/2.css" => page_of("TEXT/CSS", "a{b:url(4.png)}"),
            "/page" => page_of("text/html", "<img src=5.png><a href=below>"),
            _ => page_of("image/png", ""),
        });
        let mut requested = run.paths();
        requested.sort_unstable();
        assert_eq!(requested.join(" "), expected);
        // Refused: the page below, and the asset outside the scope.
        assert_eq!(
            run.summary.report.links.refused.values().sum::<u64>(),
            1 + u64::from(assets)
        );
    }
}

#[test]
fn an_endless_chain_of_style_sheets_ends() {
    let run = crawl_by(true, u32::MAX, |path| match path.strip_prefix("/css") {
        Some(number) => {
            let next = number.parse::<u32>().unwrap() + 1;
            page_of("text/css", format!("@import 'css{next}';"))
        }
        None => page_of("text/html", "<link rel=stylesheet href=css1>"),
    });
    assert_eq!(run.paths(), ["/", "/css1", "/css2", "/css3", "/css4", "/css5"]);
    assert_eq!(run.summary.report.links.refused[&Refusal::TooDeep], 1);
}

#[test]
fn a_redirected_image_may_be_as_deep_as_the_image_itself() {
    let run = crawl_by(true, 0, |path| match path {
        "/" => scripted::page("<img src=old.png>"),
        "/old.png" => scripted::redirect("/new.png"),
        _ => scripted::page(""),
    });
    assert_eq!(run.summary.pages, 2);
}
