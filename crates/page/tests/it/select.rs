//! Selected fields have the values that a user of Scrapy or of a browser's console expects.

use page::select::{Field, SelectLimits, Selected, select};

const LIMITS: SelectLimits = SelectLimits {
    values: 1000,
    bytes: 1 << 20,
};

fn selected(html: &str, fields: &[&str], limits: SelectLimits) -> Selected {
    let fields: Vec<Field> = fields.iter().map(|field| field.parse().unwrap()).collect();
    select(html, &fields, limits)
}

#[track_caller]
fn assert_values(html: &str, selector: &str, expected: &[&str]) {
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
    assert_values(SHOP, "h1", &["Tea and cups"]);
    assert_values(SHOP, "title", &["Shop"]);
    assert_values(SHOP, "li > a", &["Green tea", "Cup"]);
    assert_values(SHOP, "ul", &["Green tea€ 450each Cup"]);
    assert_values(SHOP, "body", &["Tea and cups Green tea€ 450each Cup"]);
    assert_values(SHOP, "script[type='application/ld+json']", &[r#"{"name": "Shop"}"#]);
    assert_values("<p>one<p>two<br>three<td>four", "body", &["one two threefour"]);
    assert_values("<div>a<div>b</div>c</div>", "body > div", &["a b c"]);
    assert_values("<p>no&nbsp;break", "p", &["no\u{a0}break"]);
}

#[test]
fn text_nodes_and_attributes_are_those_of_the_element_itself() {
    assert_values(SHOP, ".price::text", &["€ 4", "each"]);
    assert_values(SHOP, ".price ::text", &["€ 4", "50", "each"]);
    assert_values(SHOP, "li a::text", &["Green", "Cup"]);
    assert_values(
        "<div>a<div>b</div>c</div><div>d</div>",
        "div ::text",
        &["a", "b", "c", "d"],
    );
    assert_values("<p>a<b>b</b>c", "::text", &["a", "b", "c"]);
    assert_values("<p>a<script>no</script>", "p ::text", &["a", "no"]);
    assert_values(SHOP, "a::attr(href)", &["tea?a=1&b=2", "cup"]);
    assert_values(SHOP, "li::attr(data-id)", &["7"]);
    assert_values(SHOP, "img::attr(src), a::attr(src)", &["cup.png"]);
    assert_values(SHOP, "h1::attr(class)", &["big title"]);
    assert_values("<p title=' a  b '>", "p::attr(title)", &[" a  b "]);
}

#[test]
fn selectors_see_the_tree_that_a_browser_builds() {
    assert_values("<table><tr><td>1", "table > tbody > tr > td", &["1"]);
    assert_values("<p>a<p>b", "p:nth-child(2)", &["b"]);
    assert_values("<div class=x>1</div><DIV CLASS=X>2</DIV>", ".x", &["1"]);
    assert_values("<body><noscript><p>off</p></noscript>", "noscript p", &["off"]);
    assert_values("<!-- <p>no</p> --><p>yes</p>", "p", &["yes"]);
    assert_values("<svg><a href=x><title>t</title></a></svg>", "svg title", &["t"]);
    assert_values("<p>a</p><h1 class=t>b</h1><h2>c</h2>", ":is(h1, h2):not(.t)", &["c"]);
    assert_values("<div><p>a</p></div><div>b</div>", "div:has(> p)", &["a"]);
    assert_values("", "html", &[]);
    assert_values("<i>x</i>", "html, i", &["x", "x"]);
}

#[test]
fn elements_that_html_reopens_have_attributes_only_where_they_are_written() {
    assert_values("<p><b class=x>one</b> <b class=y>two</b>", ".y", &["two"]);
    assert_values(
        "<b class=1><b class=2><b class=3><b class=4>deep",
        "[class='4']",
        &["deep"],
    );
    assert_values("<font color=red class=f>x</font>", "font::attr(color)", &["red"]);
    assert_values("<svg><font color=red class=f>x</font>", ".f::attr(color)", &["red"]);
    assert_values("<svg><b id=b>x</b>", "#b", &["x"]);
    assert_values("<select><b class=x><option>o", ".x::attr(value)", &[]);
    assert_values("<p class=p><frameset><b class=x></frameset>", ".x::attr(id)", &[]);
}

#[test]
fn fields_without_a_match_are_empty_lists_in_the_given_order() {
    let all = selected("<h1>x</h1>", &["b=h2", "a=h1"], LIMITS);
    assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"b":[],"a":["x"]}"#);
}

#[test]
fn values_over_the_limits_are_cut_between_characters_and_counted() {
    let few = SelectLimits { values: 2, bytes: 7 };
    let all = selected("<p>abc<p>déf<p>x<p>y<p> ", &["x=p"], few);
    assert_eq!(all.fields[0].1, ["abc", "déf"]);
    assert_eq!(all.cut, 2, "x and y were left out; blank text is not a value");
    let short = SelectLimits { values: 9, bytes: 5 };
    let all = selected("<p>abc<p>déf<p>x", &["x=p"], short);
    assert_eq!(all.fields[0].1, ["abc", "d"]);
    assert_eq!(all.cut, 2);
    assert!(!all.incomplete, "the whole page was read");
}

#[test]
fn a_selector_that_visits_too_many_elements_makes_its_own_page_incomplete() {
    let all = selected(&"<p>".repeat(20_000), &["x=h1 ~ p", "y=p"], LIMITS);
    assert!(
        all.incomplete,
        "each of twenty thousand elements visits all siblings before it"
    );
    let deep_values = format!("{}x", "<span>".repeat(1_200));
    let all = selected(&deep_values, &["x=span"], LIMITS);
    assert_eq!((all.fields[0].1.len(), all.cut), (1000, 200));
}

#[test]
fn a_page_ends_at_a_tag_with_too_many_attributes() {
    let links = |html: &str| {
        let found = selected(html, &["x=a::attr(href)"], LIMITS);
        (found.fields[0].1.join(" "), found.incomplete)
    };
    let attributes: String = (0..10_000).map(|name| format!(" x{name}='>'")).collect();
    for tag in [
        "<p",
        "<<p",
        "</p",
        "<title></title",
        "<p =\"x",
        "<p x=1\"",
        "<p x = '<a' y",
    ] {
        let html = format!("<a href=before></a>{tag}{attributes}></title><a href=after>");
        assert_eq!(links(&html), ("before".to_owned(), true), "{tag}");
    }
    let opened: String = (0..100).map(|id| format!("<b id={id}><font color={id}>")).collect();
    let plain = attributes.replace("='>'", "");
    for html in [
        format!("<p>{opened}</p>{}<a href=x>", "<p>x</p>".repeat(500)),
        format!("<!-- {plain} --><p title='{plain}'><a href=x>"),
        format!("<script><a {attributes}</script><a href=x>"),
    ] {
        assert_eq!(links(&html), ("x".to_owned(), false), "{}", &html[..20]);
    }
}
