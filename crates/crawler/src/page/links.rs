//! Text to links: what a browser without scripts would find in a page.
//!
//! Source of the rules: the WHATWG HTML and URL standards. `tests/data/links` holds cases, and a script that asks a
//! browser about them.
//!
//! Two roads lead there. A scanner follows the standard's tokenizer in one pass and keeps as little of its tree
//! construction as links depend on: [`extract_without_tree`]. Where that is not enough it says so, and a tree is built:
//! [`extract_with_tree`]. The tests hold each against the other.

mod assets;
mod attributes;
mod collector;
mod construction;
pub(crate) mod document;
mod references;
mod refresh;
mod repeats;
mod resolve;
mod robots_meta;
mod scan;
pub(crate) mod seen_cache;
mod style;
mod tag;
mod tokens;
mod tree;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use collector::Collector;
pub use construction::NeedsTree;
use resolve::Resolver;
pub use resolve::resolve_reference;
pub use robots_meta::RobotsMeta;
pub use scan::extract_without_tree;
pub(crate) use seen_cache::{LinkKey, SeenLinkCache};
pub use tree::extract_with_tree;

/// The default of [`LinkOptions::max_links`].
pub(crate) const DEFAULT_MAX_LINKS: usize = 10_000;

/// What to extract from a page.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The maximum number of different links of a page, 10 000 by default; they may have at most 1 KiB each on average.
    pub max_links: usize,
    /// The product token of the crawler: `<meta name=TOKEN …>` is obeyed like `<meta name=robots …>`. Empty by default: then only
    /// the latter is.
    pub agent: Cow<'static, str>,
    /// Whether to extract what a page loads, too: images, media, scripts, style sheets, and what these name.
    pub assets: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            max_links: DEFAULT_MAX_LINKS,
            agent: Cow::Borrowed(""),
            assets: false,
        }
    }
}

/// What was found in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extracted {
    /// The links in the order of the document, each URL once.
    pub links: Vec<FoundLink>,
    /// How many times a link was met for which `max_links` left no room; they are counted, not kept. With a tree those
    /// count again that the tree has opened a second time.
    pub dropped: usize,
    /// The first title, its white space collapsed, at most 512 characters of it; none if it is blank.
    pub title: Option<String>,
    /// What the page's meta elements ask of robots. The links are returned all the same.
    pub robots: RobotsMeta,
    /// Whether the end of the document was left out, because it was too costly to parse.
    pub truncated: bool,
    /// Links that can be no page to fetch, each counted once, however often it is met.
    pub uncrawlable: Uncrawlable,
}

/// Links that can be no page to fetch, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uncrawlable {
    /// Neither `http` nor `https`: `mailto:`, `javascript:`, `tel:`, `ftp:`.
    pub other_scheme: usize,
    /// What is no URL, or one of more than 16 KiB.
    pub unresolvable: usize,
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
    /// Whether an element loads it as a part of the page ([`LinkSource::is_asset`]), whatever else leads there.
    pub embedded: bool,
}

/// The kind of element that a link was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// `<meta http-equiv=refresh>` with a target, or the header of that name.
    Refresh,
    /// An image: `<img>`, `srcset`, `<video poster>`, icons, images of SVG.
    Image,
    /// `<audio>`, `<video>`, `<source>`, `<track>`, `<embed>`, `<object>`.
    Media,
    /// `<script src>`, or a module named by `<link rel=modulepreload>`.
    Script,
    /// `<link rel=stylesheet>`, or an `@import`.
    StyleSheet,
    /// `url()` and its kin in a style sheet or a `style` attribute: images and fonts mostly.
    Style,
    /// `<link rel=preload>` or `<link rel=manifest>`.
    Preload,
}

impl LinkSource {
    /// Returns the name for files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Area => "area",
            Self::Frame => "frame",
            Self::Iframe => "iframe",
            Self::Next => "next",
            Self::Canonical => "canonical",
            Self::Alternate => "alternate",
            Self::Refresh => "refresh",
            Self::Image => "image",
            Self::Media => "media",
            Self::Script => "script",
            Self::StyleSheet => "style_sheet",
            Self::Style => "style",
            Self::Preload => "preload",
        }
    }

    /// Whether it is loaded as a part of the page rather than visited from it.
    pub fn is_asset(self) -> bool {
        match self {
            Self::Image | Self::Media | Self::Script | Self::StyleSheet | Self::Style | Self::Preload => true,
            Self::Anchor
            | Self::Area
            | Self::Frame
            | Self::Iframe
            | Self::Next
            | Self::Canonical
            | Self::Alternate
            | Self::Refresh => false,
        }
    }
}

/// Extracts the links, the title and the robots directives of a page.
///
/// ```
/// use crawler::page::links::{LinkOptions, extract};
/// use encoding_rs::UTF_8;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let html = "<title>Tea</title> <a href=/green>green</a> <a href=mailto:me@example.com>mail</a>";
/// let found = extract(html, UTF_8, &"https://example.com/tea".parse()?, &LinkOptions::default());
/// assert_eq!(found.title.as_deref(), Some("Tea"));
/// assert_eq!(found.links[0].url.as_str(), "https://example.com/green");
/// assert_eq!(found.uncrawlable.other_scheme, 1);
/// # Ok(())
/// # }
/// ```
///
/// `encoding` is that of the page as it was received: query strings are encoded in it. [`charset::decode`](super::charset::decode)
/// returns it together with the text.
///
/// Differences from a browser: scripts do not run, so `<noscript>` is markup; content of `<template>` and of `srcdoc`
/// is not looked into; a page that refreshes itself without naming a target has no link to itself.
///
/// Never fails. Time is linear in the length of `html`, and memory is that of the links that are kept, for all pages but
/// those that need a tree ([`NeedsTree`] says which): there both are bounded by about a second and 300 MB, beyond which
/// the document is cut and says so.
pub fn extract(html: &str, encoding: &'static Encoding, page_url: &Url, options: &LinkOptions) -> Extracted {
    extract_without_tree(html, encoding, page_url, options)
        .unwrap_or_else(|_| extract_with_tree(html, encoding, page_url, options))
}

/// What was found in a page, but for links that are known.
#[derive(Debug, Default)]
pub(crate) struct NewLinks {
    pub(crate) extracted: Extracted,
    /// How each link is written, in their order.
    pub(crate) link_keys: Vec<LinkKey>,
    /// Links that are known, each URL once.
    pub(crate) known: usize,
}

/// Finds what [`extract`] finds, but leaves out links to follow that are known in these very words. A tree knows none.
pub(crate) fn extract_new(
    html: &str,
    encoding: &'static Encoding,
    page_url: &Url,
    options: &LinkOptions,
    known: Option<&SeenLinkCache>,
) -> NewLinks {
    scan::extract_new(html, encoding, page_url, options, known).unwrap_or_else(|_| {
        let extracted = extract_with_tree(html, encoding, page_url, options);
        NewLinks {
            link_keys: vec![LinkKey::NONE; extracted.links.len()],
            extracted,
            known: 0,
        }
    })
}

/// Finds what a style sheet loads: other style sheets, images, fonts.
///
/// Its own URL is what theirs are resolved on; their query strings are UTF-8 (CSS Values and Units Module Level 4, section 4.5).
/// Never fails, and takes time linear in the length.
pub fn extract_from_style_sheet(css: &str, url: &Url, options: &LinkOptions) -> Extracted {
    let mut collector = Collector::new(Resolver::new(url, UTF_8), options, None);
    assets::visit_style(&mut collector, css);
    collector.into_extracted()
}

/// Reads a `Refresh` header, which browsers obey like the meta element (HTML standard, 7.4.6, "load a document").
pub(crate) fn of_refresh_header(value: &str, page_url: &Url) -> Option<FoundLink> {
    let mut url = resolve_reference(page_url, refresh::parse(value)??).ok()?;
    url.set_fragment(None);
    matches!(url.scheme(), "http" | "https").then_some(FoundLink {
        url,
        source: LinkSource::Refresh,
        nofollow: false,
        embedded: false,
    })
}
