//! The links of difficult pages, compared with those of a browser, and the limits for pages written to be costly.

use std::borrow::Cow;

use data_encoding::BASE64;
use encoding_rs::UTF_8;
use page::charset::decode;
use page::links::{Extracted, FoundLink, LinkOptions, LinkSource, RobotsMeta, extract};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::Value;
use url::Url;

const OPTIONS: LinkOptions = LinkOptions {
    max_links: 1000,
    agent: Cow::Borrowed("ourbot"),
    assets: false,
    known: None,
};

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

fn links_of(html: &str) -> Extracted {
    extract(html, UTF_8, &page(), &OPTIONS)
}

fn urls(extracted: &Extracted) -> Vec<&str> {
    extracted.links.iter().map(|link| link.url.as_str()).collect()
}

/// The list of strings under a key of a case, if it has one.
fn strings<'a>(case: &'a Value, key: &str) -> Option<Vec<&'a str>> {
    case[key]
        .as_array()
        .map(|list| list.iter().map(|item| item.as_str().unwrap()).collect())
}

/// The markup of a case. `PAD` in it is replaced by the number of letters that the case asks for.
fn padded(case: &Value) -> String {
    let pad = case["pad"].as_u64().map_or(0, |pad| usize::try_from(pad).unwrap());
    case["html"].as_str().unwrap().replace("PAD", &"x".repeat(pad))
}

/// Describes how a case fails; `None` if it passes.
fn failure_of(case: &Value) -> Option<String> {
    let body = match case["base64"].as_str() {
        Some(base64) => BASE64.decode(base64.as_bytes()).unwrap(),
        None => padded(case).into_bytes(),
    };
    let content_type = case["content_type"].as_str().unwrap_or("text/html; charset=utf-8");
    let url = case["url"].as_str().map_or_else(page, |url| Url::parse(url).unwrap());
    let decoded = decode(&body, Some(content_type));
    let extracted = extract(&decoded.text, decoded.encoding, &url, &OPTIONS);

    let sources: Vec<String> = extracted
        .links
        .iter()
        .map(|link| format!("{:?}", link.source))
        .collect();
    let nofollow: Vec<&str> = extracted
        .links
        .iter()
        .filter(|link| link.nofollow)
        .map(|link| link.url.as_str())
        .collect();
    let expected_links = strings(case, "links").unwrap();
    let holds = urls(&extracted) == expected_links
        && strings(case, "sources").is_none_or(|expected| sources == expected)
        && strings(case, "nofollow").is_none_or(|expected| nofollow == expected)
        && case
            .get("title")
            .is_none_or(|expected| expected.as_str() == extracted.title.as_deref())
        && case["encoding"]
            .as_str()
            .is_none_or(|expected| expected == decoded.encoding.name());
    let found = || format!("{}\n  expected {expected_links:?}\n  found {extracted:?}", case["name"]);
    (!holds).then(found)
}

/// Cases whose links a browser sees only after it has moved, dropped or repeated elements, or where it takes text for a declaration
/// of the encoding. The documentation of `page::links` and `charset::decode` names these differences.
const DIFFERENCES: [&str; 15] = [
    "a frameset after harmless content replaces it",
    "a frameset after text is ignored",
    "a frame outside a frameset is nothing",
    "HTML inside SVG and MathML",
    "a base put before its table is first in the tree",
    "an early declaration in a script",
    "a caption, a colgroup and a column",
    "content after frameset",
    "nested framesets",
    "a textarea in svg is an element, in its foreignObject text",
    "MathML annotation-xml with and without HTML encoding",
    "svg in MathML's annotation-xml",
    "mglyph and malignmark in MathML text",
    "a font with an attribute breaks out of svg, one without does not",
    "a base in a foreignObject counts",
];

#[test]
fn difficult_pages_have_the_links_that_a_browser_sees_but_for_the_known_differences() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/links/cases.json")).unwrap();
    assert!(cases.len() > 400);
    let is_known = |case: &Value| DIFFERENCES.iter().any(|name| case["name"] == *name);
    let (known, others): (Vec<&Value>, Vec<&Value>) = cases.iter().partition(|case| is_known(case));
    let failures: Vec<String> = others.iter().filter_map(|case| failure_of(case)).collect();
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(known.len(), DIFFERENCES.len());
    for case in known {
        assert!(failure_of(case).is_some(), "{} differs no longer", case["name"]);
    }
}

#[test]
fn links_beyond_the_maximum_are_counted_and_repeated_ones_are_not() {
    let options = LinkOptions {
        max_links: 2,
        ..OPTIONS
    };
    let html = "<a href=a rel=nofollow><a href=b><a href=c><a href=a><a href=c><a href=d>";
    let extracted = extract(html, UTF_8, &page(), &options);
    assert_eq!(urls(&extracted), ["http://site.test/dir/a", "http://site.test/dir/b"]);
    assert!(!extracted.links[0].nofollow);
    assert_eq!(extracted.left_out.dropped, 3);
}

#[test]
fn a_link_has_the_kind_of_element_it_was_found_in() {
    let expected = FoundLink {
        embedded: false,
        url: Url::parse("http://site.test/x").unwrap(),
        source: LinkSource::Next,
        nofollow: true,
        key: None,
    };
    assert_eq!(links_of("<link rel='next nofollow' href=/x>").links, [expected]);
}

#[test]
fn a_title_is_kept_to_512_characters() {
    let html = format!("<title>  {}\n{}</title>", "é".repeat(500), "x".repeat(500));
    let title = links_of(&html).title.unwrap();
    assert_eq!(title.chars().count(), 512);
    assert!(title.ends_with("é xxxxxxxxxxx"));
}

#[test]
fn robots_meta_elements_count_if_they_address_all_crawlers_or_this_one() {
    for (html, nofollow, noindex) in [
        ("<meta name=robots content='noindex, nofollow'>", true, true),
        ("<META NAME=ROBOTS CONTENT=NONE>", true, true),
        ("<meta name=robots content='noindex nofollow'>", true, true),
        ("<meta name=robots content='noarchive\n\tnofollow;'>", true, false),
        (
            "<meta name=robots content=noindex><body><meta name=OurBot content=nofollow>",
            true,
            true,
        ),
        (
            "<meta name=otherbot content=none><meta name=robots content='all, index'>",
            false,
            false,
        ),
        ("<template><meta name=robots content=none></template>", false, false),
        ("<meta name='' content=nofollow>", false, false),
    ] {
        let found = links_of(&format!("{html}<a href=x>"));
        assert_eq!(found.robots, RobotsMeta { nofollow, noindex }, "{html}");
        assert_eq!(found.links.len(), 1, "a page with nofollow still returns its links");
    }
    let html = "<meta name='' content=nofollow><meta name=ourbot content=noindex><a href=x>x</a><img src=y>";
    let found = extract(html, UTF_8, &page(), &LinkOptions::default());
    assert_eq!(
        found.robots,
        RobotsMeta::default(),
        "by default only directives for all robots are obeyed"
    );
    assert_eq!(found.links.len(), 1, "no assets");
}

/// On this markup an extractor that reads the rest of the text again at each tag or attribute would take practically for ever.
#[test]
fn markup_written_to_be_costly_is_read_to_its_end_in_linear_time() {
    let many = |piece: &str| piece.repeat(3_000_000 / piece.len());
    let repeated = "<!--|<!-->|<!-- > -- >|<svg><![CDATA[|<a href='|<a href=1 |<p a='|<p a='b'|<p a=b |<p a='b'='c' |</p a=\"|<a |<|</|&";
    for html in repeated.split('|').map(many).chain([
        format!("<p {}", many("a='b'")),
        format!("<p {}", many("a='b'=")),
        format!("<a href='{}'>", many("&notin")),
        format!("<title>{}", many("</titl")),
        format!("<script>{}", many("<!--<script")),
        format!("<script><!--{}", many("-")),
        format!("<svg><g>{}", many("</path>")),
    ]) {
        let extracted = links_of(&format!("<a href=0></a>{html}"));
        assert_eq!(extracted.links[0].url.path(), "/dir/0", "{}", &html[..20]);
    }
    let attributes: String = (0..300_000).map(|name| format!(" x{name}='>'")).collect();
    for html in [
        format!("<p{attributes}></p {attributes}>"),
        many("<table><td>"),
        many("<template></template>"),
        many("<div>"),
        many("<svg>") + &many("</svg>"),
        format!("<!-- {attributes} --><p title='{}'>", many("word ")),
    ] {
        let extracted = links_of(&format!("{html}<a href=0></a>"));
        assert_eq!(urls(&extracted), ["http://site.test/dir/0"], "{}", &html[..20]);
    }
}

#[test]
fn many_links_and_long_bases_do_not_fill_the_memory() {
    let links = |count| (0..count).map(|n| format!("<a href=?{n}>")).collect::<String>();
    let on_base = |length, links: &str| format!("<base href='/{}'>{links}", "b".repeat(length));
    let found = links_of(&links(100_000));
    assert_eq!((found.links.len(), found.left_out.dropped), (1000, 99_000));
    assert_eq!(
        urls(&links_of(&on_base(1_000_000, &"<a href=x>".repeat(1000)))),
        ["http://site.test/dir/x"]
    );
    assert_eq!(links_of(&format!("<a href={}>", "x".repeat(20_000))).links, []);
    // The last link equals the first one with another spelling. Only resolving it could show that.
    let found = links_of(&on_base(16_000, &(links(100_000) + "<a href='?&#48;'>")));
    assert_eq!(found.links.len() + found.left_out.dropped, 100_001);
    let options = LinkOptions {
        max_links: 10_000,
        ..OPTIONS
    };
    let found = extract(&on_base(16_000, &links(10_000)), UTF_8, &page(), &options);
    let bytes: usize = found.links.iter().map(|link| link.url.as_str().len()).sum();
    assert!(bytes < 12_000_000, "{bytes} bytes of links");
    assert_eq!(found.links.len() + found.left_out.dropped, 10_000);
}

#[test]
fn links_whose_urls_are_too_long_together_count_as_dropped_as_often_as_they_come() {
    let spelling = |n| format!("<a href={}x>", "./".repeat(n));
    let spellings: String = (1..1_400).map(spelling).collect();
    let last: String = (1_360..1_400).map(spelling).collect();
    let options = LinkOptions {
        max_links: 1_100,
        ..OPTIONS
    };
    let dropped = |repeated: &str| {
        let html = format!("<base href=/{}/>{spellings}{repeated}", "b".repeat(16_000));
        let extracted = extract(&html, UTF_8, &page(), &options);
        assert_eq!(extracted.links.len(), 1);
        extracted.left_out.dropped
    };
    let once = dropped("");
    assert!((40..1_000).contains(&once), "{once}");
    assert_eq!(dropped(&last), once + 40);
}

/// Random markup from pieces that reach the corner cases of the parser.
fn markup() -> impl Strategy<Value = String> {
    let pieces = "<a href=x>|</a>|<table>|<td>|</table>|<svg>|</svg>|<math>|<mi>|<template>|</template>|<select>|<option>|<frameset>|\
        <frame src=f>|<title>|</title>|<script>|</script>|<!--|-->|<![CDATA[|]]>|<base href=//b>|<form>|<p>|<b>|</b>|</p>|<noscript>|\
        </body>|<body>|<|/|>|'|\"|=|&amp|\0|é| |<plaintext>|<iframe src=i>|<meta http-equiv=refresh content='0;url=r'>|\
        <foreignObject>|<font color=c>|</br>|<meta charset=gbk>|<meta |--!>";
    let piece = prop::sample::select(pieces.split('|').collect::<Vec<_>>());
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_page_makes_extraction_fail_and_every_link_is_a_distinct_http_url_without_fragment(html in markup()) {
        let extracted = links_of(&html);
        let mut seen = std::collections::HashSet::new();
        for link in &extracted.links {
            prop_assert!(matches!(link.url.scheme(), "http" | "https"));
            prop_assert_eq!(link.url.fragment(), None);
            prop_assert!(seen.insert(link.url.clone()));
        }
    }

    #[test]
    fn no_bytes_and_no_truncated_markup_make_decoding_fail(
        html in markup(), end: usize, body: Vec<u8>, content_type in proptest::option::of(".*"),
    ) {
        let start = html.as_bytes().get(..end % (html.len() + 1)).unwrap_or_default();
        prop_assert!(decode(start, None).encoding.is_ascii_compatible());
        links_of(&decode(&body, content_type.as_deref()).text);
    }
}
