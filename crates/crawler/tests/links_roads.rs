//! The two roads from a page to its links, held against each other: the scanner and the tree.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use crawler::links::{Extracted, LinkOptions, NeedsTree, extract_with_tree, extract_without_tree};
use encoding_rs::UTF_8;
use proptest::prelude::*;
use serde_json::Value;
use url::Url;

const OPTIONS: LinkOptions<'_> = LinkOptions {
    max_links: 1000,
    agent: "ourbot",
};

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

fn scanned(html: &str) -> Result<Extracted, NeedsTree> {
    extract_without_tree(html, UTF_8, &page(), &OPTIONS)
}

fn from_tree(html: &str) -> Extracted {
    extract_with_tree(html, UTF_8, &page(), &OPTIONS)
}

/// Checks a page; whether the scanner had an answer of its own.
#[track_caller]
fn agree(html: &str) -> bool {
    let tree = from_tree(html);
    match scanned(html) {
        Ok(scanned) if !tree.cut => assert_eq!(scanned, tree, "{html}"),
        Ok(_) => {}
        Err(_) => return false,
    }
    true
}

/// Pieces of markup, by what they are good at breaking.
const LINKS: [&str; 24] = [
    "<a href=1>",
    "<a href='2#f'>",
    "<A HREF=\"3\" rel=nofollow>",
    "<a href=1 rel='x NoFollow'>",
    "<a name=n>",
    "<a href=4 href=5>",
    "<a\nhref\n=\n6\r\n/>",
    "<a href='?q=&copy=1&amp;b&lt;&#x41;&#150;&notit;&\u{0}\r\n'>",
    "</a>",
    "<area href=7>",
    "<iframe src=8>",
    "</iframe>",
    "<iframe src=9 srcdoc>",
    "<frame src=10>",
    "<link rel=next href=11>",
    "<link rel='alternate' href=12/>",
    "<link rel=stylesheet href=13>",
    "<base href=/b1/>",
    "<base href=//other.test/>",
    "<base target=x>",
    "<meta http-equiv=refresh content='1;url=14'>",
    "<meta name=robots content=nofollow>",
    "<meta charset=utf-8>",
    "<a href='15' rel=nofollow>t</a>",
];

const STRUCTURE: [&str; 56] = [
    "<table>",
    "</table>",
    "<tr>",
    "</tr>",
    "<td>",
    "</td>",
    "<th>",
    "</th>",
    "<tbody>",
    "</tbody>",
    "<thead>",
    "</thead>",
    "<tfoot>",
    "</tfoot>",
    "<caption>",
    "</caption>",
    "<col>",
    "<colgroup>",
    "</colgroup>",
    "<template>",
    "</template>",
    "<select>",
    "</select>",
    "<option>",
    "<optgroup>",
    "<input>",
    "<input type=hidden>",
    "<form>",
    "</form>",
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<b>",
    "</b>",
    "<li>",
    "<button>",
    "<applet>",
    "</applet>",
    "<h1>",
    "</h2>",
    "<nobr>",
    "<span>",
    "</span>",
    "<head>",
    "</head>",
    "<body>",
    "</body>",
    "<html>",
    "</html>",
    "<frameset>",
    "</frameset>",
    "<br/>",
    "</br>",
    "<image>",
    "<noscript>",
];

const FOREIGN: [&str; 34] = [
    "<svg>",
    "</svg>",
    "<svg/>",
    "<math>",
    "</math>",
    "<svg><a href=s1>",
    "<svg><a xlink:href=s2>",
    "<a xlink:href=s3 href=s4/>",
    "<g>",
    "</g>",
    "<path d=x />",
    "<path>",
    "</path>",
    "<title>",
    "</title>",
    "<desc>",
    "</desc>",
    "<foreignObject>",
    "</foreignobject>",
    "<style>",
    "</style>",
    "<script>",
    "</script>",
    "<mi>",
    "</mi>",
    "<mrow>",
    "</mrow>",
    "<annotation-xml>",
    "<annotation-xml encoding=text/html>",
    "<mglyph>",
    "<font>",
    "<font color=c>",
    "<![CDATA[",
    "]]>",
];

const TEXT: [&str; 48] = [
    "<textarea>",
    "</textarea>",
    "<xmp>",
    "</xmp>",
    "<noembed>",
    "</noembed>",
    "<noframes>",
    "</noframes>",
    "<plaintext>",
    "<listing>",
    "<title>t&amp;&Eacute;&nosuch;&#0;",
    "<!--",
    "-->",
    "--!>",
    "<!-->",
    "<!--->",
    "<!",
    "<?x",
    "</",
    "</ x",
    "<!doctype html>",
    "<!DOCTYPE x PUBLIC \"",
    "<",
    ">",
    "/",
    "/>",
    "=",
    "'",
    "\"",
    "-",
    "--",
    "!",
    " ",
    "\t",
    "\r",
    "\n",
    "\u{c}",
    "\0",
    "\u{feff}",
    "é",
    "text",
    "&",
    "&#",
    "&#x",
    "&lt",
    "<p title='",
    "<p title=\"",
    "<p title=",
];

fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => prop::sample::select(&LINKS[..]),
        5 => prop::sample::select(&STRUCTURE[..]),
        2 => prop::sample::select(&FOREIGN[..]),
        2 => prop::sample::select(&TEXT[..]),
    ]
}

fn markup() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

/// Markup that is all of one kind, so that its depths are reached.
fn markup_of(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => prop::sample::select(pieces), 1 => prop::sample::select(&LINKS[..])];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nasty_markup_has_the_same_links_on_both_roads(html in markup()) {
        agree(&html);
    }

    #[test]
    fn broken_tables_and_templates_have_the_same_links_on_both_roads(html in markup_of(&STRUCTURE)) {
        agree(&html);
    }

    #[test]
    fn broken_drawings_have_the_same_links_on_both_roads(html in markup_of(&FOREIGN)) {
        agree(&html);
    }

    #[test]
    fn broken_text_and_comments_have_the_same_links_on_both_roads(html in markup_of(&TEXT)) {
        agree(&html);
    }
}

#[test]
fn the_cases_have_the_same_links_on_both_roads_and_few_need_a_tree() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/links/cases.json")).unwrap();
    let pages: Vec<&str> = cases.iter().filter_map(|case| case["html"].as_str()).collect();
    let scanned = pages.iter().filter(|html| agree(html)).count();
    println!("{scanned} of {}", pages.len());
    assert!(scanned * 10 > pages.len() * 9);
}

#[test]
fn what_random_markup_has_found_stays_found() {
    for html in [
        "<template><a href=1><applet></template><select>",
        "<template><tr><a href=1><th></template><button><a href='2#f'>",
        "<title>t&amp;<\u{feff}",
    ] {
        agree(html);
    }
}
