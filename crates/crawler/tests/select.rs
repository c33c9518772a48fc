//! Selected fields, as a user of Scrapy or of a browser's console expects them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use crawler::page::select::{Field, SelectLimits, Selected, select};

const LIMITS: SelectLimits = SelectLimits {
    values: 1000,
    bytes: 1 << 20,
};

fn selected(html: &str, fields: &[&str], limits: SelectLimits) -> Selected {
    let fields: Vec<Field> = fields.iter().map(|field| field.parse().unwrap()).collect();
    select(html, &fields, limits)
}

#[track_caller]
fn gives(html: &str, selector: &str, expected: &[&str]) {
    let all = selected(html, &[&format!("x={selector}")], LIMITS);
    assert_eq!(
        all.fields,
        [("x".to_owned(), expected.iter().map(ToString::to_string).collect())],
        "{selector}"
    );
    assert!(!all.incomplete);
    assert_eq!(all.cut, 0);
}

const SHOP: &str = r#"<!doctype html><title>Shop</title>
<h1 class="big title">Tea <em>and</em>
  cups</h1>
<ul>
 <li class=item data-id=7><a href="tea?a=1&amp;b=2">Green <b>tea</b></a><span class=price>€ 4<sup>50</sup>each</span></li>
 <li class=item><a href=cup>Cup</a><span class=price> </span><img src=cup.png alt=''></li>
</ul>
<template><p class=price>9</p></template>
<script type="application/ld+json">{"name": "Shop"}</script>"#;

#[test]
fn the_text_of_an_element_is_what_a_reader_sees() {
    gives(SHOP, "h1", &["Tea and cups"]);
    gives(SHOP, "title", &["Shop"]);
    gives(SHOP, "li > a", &["Green tea", "Cup"]);
    gives(SHOP, "ul", &["Green tea€ 450each Cup"]);
    gives(SHOP, "body", &["Tea and cups Green tea€ 450each Cup"]);
    gives(SHOP, "script[type='application/ld+json']", &[r#"{"name": "Shop"}"#]);
    gives("<p>one<p>two<br>three<td>four", "body", &["one two threefour"]);
    gives("<div>a<div>b</div>c</div>", "body > div", &["a b c"]);
    gives("<p>no&nbsp;break", "p", &["no\u{a0}break"]);
}

#[test]
fn text_pieces_and_attributes_are_those_of_the_element_itself() {
    gives(SHOP, ".price::text", &["€ 4", "each"]);
    gives(SHOP, ".price ::text", &["€ 4", "50", "each"]);
    gives(SHOP, "li a::text", &["Green", "Cup"]);
    gives(
        "<div>a<div>b</div>c</div><div>d</div>",
        "div ::text",
        &["a", "b", "c", "d"],
    );
    gives("<p>a<b>b</b>c", "::text", &["a", "b", "c"]);
    gives("<p>a<script>no</script>", "p ::text", &["a", "no"]);
    gives(SHOP, "a::attr(href)", &["tea?a=1&b=2", "cup"]);
    gives(SHOP, "li::attr(data-id)", &["7"]);
    gives(SHOP, "img::attr(src), a::attr(src)", &["cup.png"]);
    gives(SHOP, "h1::attr(class)", &["big title"]);
    gives("<p title=' a  b '>", "p::attr(title)", &[" a  b "]);
}

#[test]
fn selectors_see_the_tree_that_a_browser_builds() {
    gives("<table><tr><td>1", "table > tbody > tr > td", &["1"]);
    gives("<p>a<p>b", "p:nth-child(2)", &["b"]);
    gives("<div class=x>1</div><DIV CLASS=X>2</DIV>", ".x", &["1"]);
    gives("<body><noscript><p>off</p></noscript>", "noscript p", &["off"]);
    gives("<!-- <p>no</p> --><p>yes</p>", "p", &["yes"]);
    gives("<svg><a href=x><title>t</title></a></svg>", "svg title", &["t"]);
    gives("<p>a</p><h1 class=t>b</h1><h2>c</h2>", ":is(h1, h2):not(.t)", &["c"]);
    gives("<div><p>a</p></div><div>b</div>", "div:has(> p)", &["a"]);
    gives("", "html", &[]);
    gives("<i>x</i>", "html, i", &["x", "x"]);
}

#[test]
fn elements_that_html_reopens_keep_their_attributes_where_they_are_written() {
    gives("<p><b class=x>one</b> <b class=y>two</b>", ".y", &["two"]);
    gives(
        "<b class=1><b class=2><b class=3><b class=4>deep",
        "[class='4']",
        &["deep"],
    );
    gives("<font color=red class=f>x</font>", "font::attr(color)", &["red"]);
    gives("<svg><font color=red class=f>x</font>", ".f::attr(color)", &["red"]);
    gives("<svg><b id=b>x</b>", "#b", &["x"]);
    gives("<select><b class=x><option>o", ".x::attr(value)", &[]);
    gives("<p class=p><frameset><b class=x></frameset>", ".x::attr(id)", &[]);
}

#[test]
fn a_page_without_the_field_has_an_empty_list_in_the_order_asked_for() {
    let all = selected("<h1>x</h1>", &["b=h2", "a=h1"], LIMITS);
    assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"b":[],"a":["x"]}"#);
}

#[test]
fn what_is_over_the_caps_is_cut_at_a_character_and_counted() {
    let few = SelectLimits { values: 2, bytes: 7 };
    let all = selected("<p>abc<p>déf<p>x<p>y<p> ", &["x=p"], few);
    assert_eq!(all.fields[0].1, ["abc", "déf"]);
    assert_eq!(all.cut, 2, "x and y; the blank one is no value");
    let short = SelectLimits { values: 9, bytes: 5 };
    let all = selected("<p>abc<p>déf<p>x", &["x=p"], short);
    assert_eq!(all.fields[0].1, ["abc", "d"]);
    assert_eq!(all.cut, 2);
    assert!(!all.incomplete, "the page itself was read to its end");
}

#[test]
fn markup_that_is_made_to_be_costly_costs_its_own_page() {
    let nested = "<div>".repeat(3_000);
    selected(&nested, &["x=div div ~ div :has(p)"], LIMITS);
    let formatting: String = (0..10_000).map(|n| format!("<b id=b{n} class=x>")).collect();
    selected(&formatting, &["x=b.x b"], LIMITS);
    let reopened = format!("{}{}", "<b id=x><i id=y><u id=z>".repeat(300), "<p>text".repeat(10_000));
    selected(&reopened, &["x=#x"], LIMITS);
    let siblings = "<p>".repeat(20_000);
    let all = selected(&siblings, &["x=h1 ~ p", "y=p"], LIMITS);
    assert!(all.incomplete, "twenty thousand times all before");
    let attributes: String = (0..20_000).map(|n| format!(" a{n}")).collect();
    selected(&format!("<p{attributes}>x"), &["x=p"], LIMITS);
    let deep_values = format!("{}x", "<span>".repeat(1_500));
    let all = selected(&deep_values, &["x=span"], LIMITS);
    assert_eq!((all.fields[0].1.len(), all.cut), (1000, 500));
}
