//! Which assets are found on a page.

use std::borrow::Cow;
use std::collections::BTreeSet;

use encoding_rs::UTF_8;
use page::links::{LinkOptions, LinkSource, extract, extract_from_style_sheet};
use page::{Content, ReadOptions, read};
use serde_json::Value;
use url::{Position, Url};

const OPTIONS: LinkOptions = LinkOptions {
    max_links: 1000,
    agent: Cow::Borrowed("ourbot"),
    assets: true,
    known: None,
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
fn urls_in_a_style_sheet_are_resolved_on_its_own_url() {
    let sheet = Url::parse("http://site.test/css/main.css").unwrap();
    let found = extract_from_style_sheet("@import 'a.css'; b{c:url(../i/é.png?é)}", &sheet, &OPTIONS).links;
    let urls: Vec<&str> = found.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(
        urls,
        ["http://site.test/css/a.css", "http://site.test/i/%C3%A9.png?%C3%A9"]
    );
}

#[test]
fn a_style_sheet_may_be_named_before_the_root_element() {
    let content = Content {
        body: b"<?xml version='1.0'?><?xml-stylesheet type='text/css' href='/s.css'?><?xml-stylesheet href='t.css'?><svg/>",
        content_type: Some("image/svg+xml"),
        ..Content::default()
    };
    let with = |links| ReadOptions {
        links,
        ..ReadOptions::default()
    };
    let found = read(&content, &page(), &with(OPTIONS)).links;
    let found: Vec<_> = found.iter().map(|link| (link.source, link.url.path())).collect();
    let [s, t] = ["/s.css", "/dir/t.css"].map(|path| (LinkSource::StyleSheet, path));
    assert_eq!(found, [s, t]);
    assert_eq!(read(&content, &page(), &with(LinkOptions::default())).links, []);
}
