//! Compares the links of the scanner with those of the tree.

use std::borrow::Cow;

use crawler::page::links::{Extracted, LinkOptions, NeedsTree, extract_with_tree, extract_without_tree};
use encoding_rs::UTF_8;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use url::Url;

#[expect(dead_code, reason = "examples need more of it")]
#[path = "../../../../examples/input/mod.rs"]
mod input;

const OPTIONS: LinkOptions = LinkOptions {
    max_links: 1000,
    agent: Cow::Borrowed("ourbot"),
    assets: false,
};

const WITH_ASSETS: LinkOptions = LinkOptions {
    assets: true,
    ..OPTIONS
};

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

fn scanned(html: &str) -> Result<Extracted, NeedsTree> {
    extract_without_tree(html, UTF_8, &page(), &OPTIONS)
}

/// Checks that both agree on a page, with and without its assets. Returns whether the scanner could decide without a
/// tree.
#[track_caller]
fn agree(html: &str) -> bool {
    agree_on(html, &WITH_ASSETS);
    agree_on(html, &OPTIONS)
}

#[track_caller]
fn agree_on(html: &str, options: &LinkOptions) -> bool {
    let tree = extract_with_tree(html, UTF_8, &page(), options);
    match extract_without_tree(html, UTF_8, &page(), options) {
        Ok(scanned) if !tree.truncated => assert_eq!(scanned, tree, "{html}"),
        Ok(_) => {}
        Err(_) => return false,
    }
    true
}

/// Pieces of markup, by the part of the parser that they stress.
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

const ASSETS: [&str; 43] = [
    "<img src=i1>",
    "<IMG SRCSET='i2, i3 2x'>",
    "<image src=i4>",
    "<img src=' ' srcset=,>",
    "<img src=data:,x>",
    "<img src=1>",
    "<input type=IMAGE src=i5>",
    "<input type=text src=i6>",
    "<picture>",
    "</picture>",
    "<source srcset=i7 src=m1>",
    "<video src=m2 poster=i8>",
    "</video>",
    "<audio src=m3>",
    "<track src=m4>",
    "<embed src=m5>",
    "<object data=m6>",
    "<script src=s1>",
    "<script src=s2></script>",
    "<link rel='StyleSheet' href=c1>",
    "<link rel='alternate stylesheet' href=c2>",
    "<link rel='shortcut icon' href=i9>",
    "<link rel=preload imagesrcset='i10 1x' href=p1>",
    "<style>a{b:url(u1)}",
    "<style>@import 'c3';&lt;\0\r</style>",
    "<style type=text/x>a{b:url(u2)}</style>",
    "<svg><image href=i11 />",
    "<svg><use xlink:href='i12#x'/></svg>",
    "<svg><style>a{b:url(u3)}</style>",
    "<svg><script href=s3>",
    "<p style='background:url(u4)'>",
    "<b style=\"b:url('u5')\">",
    "<a style='b:url(&quot;u6&quot;)' href=1>",
    "<font style=b:url(u7) color=c>",
    "<td style=b:url(u8)>",
    "<iframe src=8 style=b:url(u9)>",
    "<form style=b:url(u10)>",
    "<select style=b:url(u11)>",
    "<noscript style=b:url(u12)>",
    "<template style=b:url(u13)>",
    "<style style=b:url(u14)>a{b:url(u15)}</style>",
    "<option style=b:url(u16)>",
    "<button style=b:url(u17)>",
];

const STRUCTURE: [&str; 58] = [
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
    "<object>",
    "</object>",
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

const TEXT: [&str; 51] = [
    "<script>",
    "</script>",
    "<!--<script ",
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
        3 => prop::sample::select(&ASSETS[..]),
    ]
}

fn markup() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

/// Markup from pieces of one kind, which nest deeper than a mixture would.
fn markup_of(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(pieces),
        2 => prop::sample::select(&LINKS[..]),
        1 => prop::sample::select(&ASSETS[..]),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// The same cases in every run. Set `PROPTEST_CASES=300000` for a long run.
fn config() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_markup_has_the_same_links_with_and_without_a_tree(html in markup()) {
        agree(&html);
    }

    #[test]
    fn broken_tables_and_templates_have_the_same_links_with_and_without_a_tree(html in markup_of(&STRUCTURE)) {
        agree(&html);
    }

    #[test]
    fn broken_drawings_have_the_same_links_with_and_without_a_tree(html in markup_of(&FOREIGN)) {
        agree(&html);
    }

    #[test]
    fn broken_text_and_comments_have_the_same_links_with_and_without_a_tree(html in markup_of(&TEXT)) {
        agree(&html);
    }
}

#[test]
fn the_cases_have_the_same_links_with_and_without_a_tree_and_few_need_one() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/links/cases.json")).unwrap();
    let pages: Vec<&str> = cases.iter().filter_map(|case| case["html"].as_str()).collect();
    let scanned = pages.iter().filter(|html| agree(html)).count();
    assert!(scanned * 10 > pages.len() * 9, "{scanned} of {}", pages.len());
}

#[test]
fn the_pages_of_a_manual_have_the_same_links_with_and_without_a_tree_and_need_none() {
    // Without an installed manual there is nothing to compare. The bench `links` compares whole directories.
    let pages = input::manual(None).and_then(|folder| input::pages(&folder).ok());
    for page in pages.unwrap_or_default().iter().take(40) {
        assert!(agree(&input::read(page).unwrap()), "{} needs a tree", page.display());
    }
}

/// Anchors are resolved in batches of up to 64.
#[test]
fn many_anchors_are_taken_as_if_each_were_taken_at_once() {
    let anchor = |n: usize| match n % 7 {
        0 => format!("<a href={n} rel=nofollow>"),
        1 => format!("<area href=area-{n}>"),
        2 => format!("<a href=//{n}.test:x>"),
        3 => format!("<a href=mailto:{n}>"),
        _ => format!("<a href='{n}?a&amp;b#c'>"),
    };
    let some = |count| (0..count).map(anchor).collect::<String>();
    let links_of = |length: usize, count: usize| -> String {
        (0..count)
            .map(|n| format!("<a href={n}{}>", "x".repeat(length)))
            .collect()
    };
    let numbered = |count: usize, before: &str, behind: &str| -> String {
        (0..count).map(|n| format!("<a href={before}{n}{behind}>")).collect()
    };
    let check = |html: String, limits: &[usize]| {
        for max_links in limits {
            let options = LinkOptions {
                max_links: *max_links,
                ..OPTIONS
            };
            assert!(agree_on(&html, &options), "{html}");
        }
    };
    for count in [1, 63, 64, 65, 130, 300] {
        for some in [some(count), numbered(count, "", "")] {
            for html in [
                format!("{some}{some}"),
                format!("<base href=/first/>{some}{}{some}", links_of(5_000, 1)),
                format!("{some}<base href=/late/>{some}"),
            ] {
                check(html, &[0, 1, 64, 129, 1_000, 2_000]);
            }
        }
    }
    // Behind the limits a link counts as dropped as often as it comes. Anchors wait only if a page may have more than a thousand links.
    for many in [
        some(1_800),
        numbered(1_300, "", ""),
        numbered(1_300, "mailto:", ""),
        numbered(60, "//", &(":x".to_owned() + &"\0".repeat(10_000))),
        links_of(4_000, 130),
        links_of(20_000, 60),
    ] {
        check(many.repeat(2), &[200, 1_030, 1_087, 1_104]);
    }
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
        let extracted = extract_without_tree(&html, UTF_8, &page(), &options).unwrap();
        assert_eq!(extracted.links.len(), 1);
        extracted.dropped
    };
    let once = dropped("");
    assert!((40..1_000).contains(&once), "{once}");
    assert_eq!(dropped(&last), once + 40);
}

#[test]
fn a_document_that_needs_a_tree_has_a_reason() {
    for (html, reason) in [
        ("<frameset><frame src=x>", NeedsTree::Frameset),
        ("<table><td><a href=1></td><a href=2>", NeedsTree::LinkBeforeTable),
        (
            "<table><thead><td><a href=1></thead><a href=2>",
            NeedsTree::LinkBeforeTable,
        ),
        ("<table><td><object></table>", NeedsTree::ObjectLeftOpen),
        ("<template><col><a href=1>", NeedsTree::TableInTemplate),
        ("<template><a href=1><td></template>", NeedsTree::TableInTemplate),
        ("<svg><p>", NeedsTree::HtmlInForeign),
        ("<svg><desc><a href=1>", NeedsTree::HtmlInForeign),
        ("<svg></p>", NeedsTree::HtmlInForeign),
        ("<div><svg></div>", NeedsTree::ForeignCutShort),
    ] {
        assert_eq!(scanned(html), Err(reason), "{html}");
    }
    assert_eq!(
        scanned(&format!("<svg>{}", "<g>".repeat(200))),
        Err(NeedsTree::DeepForeign)
    );
}

#[test]
fn constructs_that_are_common_on_real_pages_need_no_tree() {
    for html in [
        "<svg viewBox='0 0 1 1'><title>An icon</title><path d=x></path><a xlink:href=1><g/></a></svg><a href=2>",
        "<math><mrow><mi>x</mi><mo>=</mo></mrow></math><a href=1>",
        "<table><tr><td><a href=1></td></tr></table><table><form><tr><th><a href=2>",
        "<table><a href=1></a><tr><td><a href=2>",
        "<table><tbody><td><a href=1></thead></th></caption></td></td><th></tr><tr><td><a href=2></table><a href=3>",
        "<script><!--<script></script><a href=1>--></script><a href=2><script><!--</script><a href=3>",
        "<template><tr><td></td></tr></template><template><a href=1></a></template><a href=2>",
        "<a href=1><p><div></a><a href=2></p></div><base href=/late/>",
        "<select><option><a href=1></select></body></html><a href=2>",
    ] {
        assert!(agree(html), "{html} needs a tree");
    }
}

/// On this markup a scanner that reads the rest of the text again at each tag or attribute would take practically for ever.
#[test]
fn markup_written_to_be_costly_is_read_in_linear_time() {
    let many = |piece: &str| piece.repeat(3_000_000 / piece.len());
    for html in [
        many("<!--"),
        many("<!-->"),
        many("<!-- > -- >"),
        many("<svg><![CDATA["),
        many("<a href='"),
        many("<a href=1 "),
        many("<p a='"),
        many("<p a='b'"),
        many("<p a=b "),
        many("<p a='b'='c' "),
        many("</p a=\""),
        format!("<p {}", many("a='b'")),
        format!("<p {}", many("a='b'=")),
        many("<a "),
        many("<"),
        many("</"),
        many("&"),
        format!("<a href='{}'>", many("&notin")),
        format!("<title>{}", many("</titl")),
        format!("<script>{}", many("<!--<script")),
        format!("<script><!--{}", many("-")),
        format!("<svg><g>{}", many("</path>")),
        format!(
            "<p {}>",
            (0..300_000).map(|name| format!("x{name} ")).collect::<String>()
        ),
        many("<table><td>"),
        many("<template>"),
        many("<div>"),
    ] {
        let start = &html[..20];
        let extracted = scanned(&format!("<a href=0></a>{html}"));
        assert_eq!(extracted.unwrap().links[0].url.path(), "/dir/0", "{start}");
    }
}

#[test]
fn errors_that_random_markup_has_found_stay_fixed() {
    for html in [
        "<template><a href=1><applet></template><select>",
        "<template><tr><a href=1><th></template><button><a href='2#f'>",
        "<title>t&amp;<\u{feff}",
        "<table><th><link rel=next href=1><a href=2><applet><col><g>",
    ] {
        agree(html);
    }
}
