//! Text to links: what a browser without scripts would find in a page.
//!
//! Source of the rules: the WHATWG HTML and URL standards. `tests/data/links` holds cases, and a script that asks a
//! browser about them.

mod attributes;
mod document;
mod refresh;
mod resolve;
mod robots_meta;

use std::collections::HashMap;

use encoding_rs::Encoding;
use html5ever::{local_name, ns};
use scraper::{ElementRef, Html};
use url::Url;

use resolve::Resolver;
pub use robots_meta::RobotsMeta;

/// Characters of a title that are kept.
const TITLE_CHARS: usize = 512;

/// Bytes that the links of a page may have on average, if they are as many as may be.
///
/// A base of 16 kB under ten thousand short links is a page of 150 kB with links of 160 MB.
const MEAN_LINK_BYTES: usize = 1024;

/// What to look for in a page.
#[derive(Debug, Clone, Copy)]
pub struct LinkOptions<'a> {
    /// How many different links of a page are kept, if they have 1 KiB on average at most.
    pub max_links: usize,
    /// Our robots product token in lower case: `<meta name=TOKEN …>` speaks to us like `<meta name=robots …>`.
    pub agent: &'a str,
}

/// What was found in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The links in the order of the document, each URL once.
    pub links: Vec<FoundLink>,
    /// How many times a link was met for which `max_links` left no room; they are counted, not kept.
    pub dropped: usize,
    /// The first title, its white space collapsed, at most 512 characters of it; none if it is blank.
    pub title: Option<String>,
    /// What the page's meta elements ask of robots. The links are returned all the same.
    pub robots: RobotsMeta,
    /// Whether the document was so costly to parse that its end was left out.
    pub cut: bool,
}

/// One link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// An absolute `http` or `https` URL without fragment.
    pub url: Url,
    /// The element that the URL was first met in.
    pub source: LinkSource,
    /// Whether every element with this URL says `rel=nofollow`.
    pub nofollow: bool,
}

/// The kind of element that a link was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSource {
    /// `<a href>`, in HTML or in SVG.
    Anchor,
    /// `<area href>` of an image map.
    Area,
    /// `<frame src>` of a frameset.
    Frame,
    /// `<iframe src>`.
    Iframe,
    /// `<link rel=next>`.
    Next,
    /// `<link rel=canonical>`.
    Canonical,
    /// `<link rel=alternate>`, unless it is an alternate style sheet.
    Alternate,
    /// `<meta http-equiv=refresh>` with a target.
    Refresh,
}

/// Finds the links, the title and the robots directives of a page.
///
/// Differences from a browser: scripts do not run, so `<noscript>` is markup; content of `<template>` and of `srcdoc`
/// is not looked into; a page that refreshes itself without naming a target has no link to itself.
///
/// Never fails. Time and memory are bounded by the length of `html` and, for markup made to be costly, by about a
/// second and 300 MB: beyond that the document is cut and says so.
pub fn extract(html: &str, encoding: &'static Encoding, page_url: &Url, options: &LinkOptions<'_>) -> Extracted {
    let (document, cut) = document::parse(html);
    let mut resolver = Resolver::new(page_url, encoding);
    if let Some(href) = elements(&document).find_map(base_href) {
        resolver.rebase(href);
    }
    let mut collector = Collector::new(resolver, options);
    elements(&document).for_each(|element| collector.visit(element));
    Extracted {
        cut,
        ..collector.extracted
    }
}

/// The elements in tree order, without recursion, and without those in templates.
fn elements(document: &Html) -> impl Iterator<Item = ElementRef<'_>> {
    let root = document.tree.root();
    std::iter::successors(Some(root), |node| {
        let is_template =
            ElementRef::wrap(*node).is_some_and(|element| matches!(name(element), Name::Html("template")));
        let child = if is_template { None } else { node.first_child() };
        child.or_else(|| std::iter::successors(Some(*node), |node| node.parent()).find_map(|node| node.next_sibling()))
    })
    .filter_map(ElementRef::wrap)
}

/// An element's name, which means nothing without its namespace.
enum Name<'a> {
    Html(&'a str),
    Svg(&'a str),
    Other,
}

fn name(element: ElementRef<'_>) -> Name<'_> {
    let name = &element.value().name;
    if name.ns == ns!(html) {
        Name::Html(&name.local)
    } else if name.ns == ns!(svg) {
        Name::Svg(&name.local)
    } else {
        Name::Other
    }
}

fn base_href(element: ElementRef<'_>) -> Option<&str> {
    match name(element) {
        Name::Html("base") => element.attr("href"),
        _ => None,
    }
}

/// Gathers what the elements of one document say.
struct Collector<'a> {
    options: &'a LinkOptions<'a>,
    resolver: Resolver,
    extracted: Extracted,
    /// Where each URL stands among the links.
    positions: HashMap<Url, usize>,
    /// Bytes that further links may have.
    room: usize,
    title_seen: bool,
    base_seen: bool,
    refresh_seen: bool,
}

impl<'a> Collector<'a> {
    fn new(resolver: Resolver, options: &'a LinkOptions<'a>) -> Self {
        Self {
            options,
            resolver,
            extracted: Extracted::default(),
            positions: HashMap::new(),
            room: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            title_seen: false,
            base_seen: false,
            refresh_seen: false,
        }
    }

    fn visit(&mut self, element: ElementRef<'_>) {
        self.base_seen |= base_href(element).is_some();
        match name(element) {
            Name::Html("a") => self.add(element.attr("href"), LinkSource::Anchor, element),
            Name::Html("area") => self.add(element.attr("href"), LinkSource::Area, element),
            Name::Html("frame") => self.add(frame_source(element), LinkSource::Frame, element),
            Name::Html("iframe") => self.add(frame_source(element), LinkSource::Iframe, element),
            Name::Html("link") => self.visit_link(element),
            Name::Html("meta") => self.visit_meta(element),
            Name::Html("title") => self.visit_title(element),
            Name::Svg("a") => self.add(svg_href(element), LinkSource::Anchor, element),
            Name::Html(_) | Name::Svg(_) | Name::Other => {}
        }
    }

    fn visit_link(&mut self, element: ElementRef<'_>) {
        let source = if has_rel(element, "next") {
            LinkSource::Next
        } else if has_rel(element, "canonical") {
            LinkSource::Canonical
        } else if has_rel(element, "alternate") && !has_rel(element, "stylesheet") {
            LinkSource::Alternate
        } else {
            return;
        };
        self.add(element.attr("href").filter(|href| !href.is_empty()), source, element);
    }

    fn visit_meta(&mut self, element: ElementRef<'_>) {
        let content = element.attr("content").unwrap_or_default();
        if let Some(name) = element.attr("name")
            && (name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(self.options.agent))
        {
            self.extracted.robots.merge_content(content);
        }
        if element
            .attr("http-equiv")
            .is_some_and(|pragma| pragma.eq_ignore_ascii_case("refresh"))
        {
            self.visit_refresh(content, element);
        }
    }

    /// The first refresh that can be carried out is the only one that is, and no base after it changes its target.
    fn visit_refresh(&mut self, content: &str, element: ElementRef<'_>) {
        if self.refresh_seen {
            return;
        }
        match refresh::parse(content) {
            None => {}
            Some(None) => self.refresh_seen = true,
            Some(Some(target)) => {
                let url = if self.base_seen {
                    self.resolver.parse(target)
                } else {
                    self.resolver.parse_without_base(target)
                };
                if let Some(url) = url.filter(|url| url.scheme() != "javascript") {
                    self.refresh_seen = true;
                    self.add_url(url, LinkSource::Refresh, element);
                }
            }
        }
    }

    fn visit_title(&mut self, element: ElementRef<'_>) {
        if !self.title_seen {
            self.title_seen = true;
            self.extracted.title = collapsed(element);
        }
    }

    fn add(&mut self, target: Option<&str>, source: LinkSource, element: ElementRef<'_>) {
        if let Some(url) = target.and_then(|target| self.resolver.parse(target)) {
            self.add_url(url, source, element);
        }
    }

    fn add_url(&mut self, mut url: Url, source: LinkSource, element: ElementRef<'_>) {
        if !matches!(url.scheme(), "http" | "https") {
            return;
        }
        url.set_fragment(None);
        let nofollow = has_rel(element, "nofollow");
        let links = &mut self.extracted.links;
        if let Some(known) = self.positions.get(&url).and_then(|position| links.get_mut(*position)) {
            known.nofollow &= nofollow;
        } else if links.len() < self.options.max_links && self.room >= url.as_str().len() {
            self.room -= url.as_str().len();
            self.positions.insert(url.clone(), links.len());
            links.push(FoundLink { url, source, nofollow });
        } else {
            self.extracted.dropped += 1;
        }
    }
}

/// What a frame shows from outside: nothing if its source is empty or it brings its own document.
fn frame_source(element: ElementRef<'_>) -> Option<&str> {
    let brings_own = matches!(name(element), Name::Html("iframe")) && element.attr("srcdoc").is_some();
    element.attr("src").filter(|source| !source.is_empty() && !brings_own)
}

/// The link of an SVG anchor (SVG 2, 16.1.1: a plain `href` goes before `xlink:href`).
fn svg_href(element: ElementRef<'_>) -> Option<&str> {
    element.attr("href").or_else(|| {
        let mut attributes = element.value().attrs.iter();
        attributes
            .find(|(name, _)| name.ns == ns!(xlink) && name.local == local_name!("href"))
            .map(|(_, value)| &**value)
    })
}

fn has_rel(element: ElementRef<'_>, token: &str) -> bool {
    let rel = element.attr("rel").unwrap_or_default();
    rel.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case(token))
}

/// A title's text with its white space collapsed; `None` if nothing is left.
fn collapsed(title: ElementRef<'_>) -> Option<String> {
    let text: String = title.text().collect();
    let mut kept = String::new();
    for (index, word) in text.split_ascii_whitespace().take(TITLE_CHARS).enumerate() {
        if index > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    let kept: String = kept.chars().take(TITLE_CHARS).collect();
    // Only the cut can leave a blank at the end; other white space than ASCII's is the title's own.
    (!kept.is_empty()).then(|| kept.trim_end_matches(' ').to_owned())
}
