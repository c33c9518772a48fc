//! From text to links: those that a browser without scripts would find in a page.
//!
//! Source of the rules: the WHATWG HTML and URL standards. `tests/data/links` holds test cases, and a script that
//! compares them with a browser.
//!
//! [`extract`] follows the standard's tokenizer in one pass, and takes links in the order of the source. It builds no tree.
//!
//! # Differences from a browser
//!
//! Scripts do not run, so `<noscript>` holds markup. Any `<template shadowrootmode>` is a shadow root, wherever it stands. A page that refreshes
//! itself without a target has no link to itself. Also different is what a browser sees only after tree construction has moved,
//! dropped or repeated elements. No page of seven manuals, 50 771 in all, has such markup:
//! - A link between the cells of a table moves in front of the table. Here it keeps its place among the links.
//! - A `<frameset>` may replace the body before it, with its links, and content that precedes one prevents it. Here both the links
//!   and the frames count.
//! - HTML inside `<foreignObject>` and other integration points of SVG and MathML ends the drawing or formula, as other HTML in it does.
//!   An end tag of an element around it does not, nor does `<font color>`, and a `<base>` in it does not count.
//! - The start tag of a column in a `<template>` may hide everything up to the end of the template, its end tag included, and
//!   links in a template may be reopened after it.
//! - A NUL in the name of an element of SVG changes the name.

// From text to links: `tokens` finds the tags (with `eight`, `tag` and `references`), `scan` the elements that have links, and `collector` takes
// their links. One with a spelling that the page has had (`repeats`), or that a page of the same directory has had (`seen_cache`), is left out before it
// is resolved (`resolve`); `list` has each URL once. `assets` and `style` have what a page loads. `meta_charset` reads the same tokens before,
// and `document` makes the tree that fields are selected from.
mod assets;
mod collector;
pub(crate) mod document;
pub(crate) mod eight;
mod list;
mod meta_charset;
mod references;
mod refresh;
mod repeats;
mod resolve;
mod robots_meta;
mod scan;
mod seen_cache;
mod style;
mod tag;
mod text;
mod tokens;

use std::borrow::Cow;
use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8};
use frontier::reference;
use url::Url;

use collector::Collector;
pub(crate) use meta_charset::declared_encoding;
use resolve::Resolver;
pub use robots_meta::RobotsMeta;
pub(crate) use scan::extract_with;
pub use seen_cache::{LinkKey, SeenLinkCache};
pub(crate) use text::ReadText;

/// The default of [`LinkOptions::max_links`].
pub const DEFAULT_MAX_LINKS: usize = 10_000;

/// What to extract from a page.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// Maximum number of different links of a page, 10 000 by default. Their average length is at most 1 KiB.
    pub max_links: usize,
    /// The product token of the crawler. `<meta name=TOKEN …>` is obeyed like `<meta name=robots …>`. Empty by default:
    /// then only `robots` is obeyed.
    pub agent: Cow<'static, str>,
    /// Whether to extract what a page loads, too: images, media, scripts, style sheets, and the files that style sheets
    /// load.
    pub assets: bool,
    /// Links to leave out, because they were seen before. None by default.
    pub known: Option<Arc<SeenLinkCache>>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            max_links: DEFAULT_MAX_LINKS,
            agent: Cow::Borrowed(""),
            assets: false,
            known: None,
        }
    }
}

/// What was found in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extracted {
    /// The links in document order, each URL once.
    pub links: Vec<FoundLink>,
    /// How many links are not among them.
    pub left_out: LeftOut,
    /// The first title, white space collapsed, cut at 512 characters; `None` if it is blank.
    pub title: Option<String>,
    /// The directives in the page's robots meta elements. Links are returned even if these forbid to follow them.
    pub robots: RobotsMeta,
    /// Whether its `<meta http-equiv=refresh>` leads to its own URL.
    pub refreshes_itself: bool,
}

/// How many links of a page are not among those to follow, by reason. But for those that were dropped, each counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Neither `http` nor `https`: `mailto:`, `javascript:`, `tel:`, `ftp:`.
    pub other_scheme: usize,
    /// The text is not a URL, or the URL is longer than 16 KiB.
    pub unresolvable: usize,
    /// The page has more than [`LinkOptions::max_links`].
    pub dropped: usize,
    /// [`LinkOptions::known`] has them.
    pub known: usize,
    /// The page or the link has `nofollow`. [`extract`] leaves none out for that, [`read`](crate::read) does.
    pub nofollow: usize,
}

/// One link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLink {
    /// An absolute `http` or `https` URL without fragment.
    pub url: Url,
    /// The kind of the first element with this URL.
    pub source: LinkSource,
    /// Whether every element with this URL has `rel=nofollow`.
    pub nofollow: bool,
    /// Whether an element loads it as a part of the page ([`LinkSource::is_asset`]), even if other elements link to it.
    pub embedded: bool,
    /// The key of its first spelling in [`LinkOptions::known`]; `None` if it cannot be there.
    pub key: Option<LinkKey>,
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
    /// `<iframe src>`; also `<object data>` and `<embed src>` of a page, if the crawl fetches no assets.
    Iframe,
    /// `<link rel=next>` or `rel=prev`.
    Next,
    /// `<link rel=canonical>`.
    Canonical,
    /// `<link rel=alternate>`, except alternate style sheets.
    Alternate,
    /// `<link rel=sitemap>`.
    Sitemap,
    /// `<meta http-equiv=refresh>` with a target, or a `Refresh` header.
    Refresh,
    /// An image: `<img>`, `srcset`, `<video poster>`, icons, images in SVG.
    Image,
    /// `<audio>`, `<video>`, `<source>`, `<track>`, `<embed>`, `<object>`.
    Media,
    /// `<script src>`, or a module named by `<link rel=modulepreload>`.
    Script,
    /// `<link rel=stylesheet>`, or an `@import`.
    StyleSheet,
    /// `url()` or `image-set()` in a style sheet or a `style` attribute: mostly images and fonts.
    Style,
    /// `<link rel=preload>`, `<link rel=prefetch>` or `<link rel=manifest>`.
    Preload,
}

impl LinkSource {
    /// Returns the name that output files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Area => "area",
            Self::Frame => "frame",
            Self::Iframe => "iframe",
            Self::Next => "next",
            Self::Canonical => "canonical",
            Self::Alternate => "alternate",
            Self::Sitemap => "sitemap",
            Self::Refresh => "refresh",
            Self::Image => "image",
            Self::Media => "media",
            Self::Script => "script",
            Self::StyleSheet => "style_sheet",
            Self::Style => "style",
            Self::Preload => "preload",
        }
    }

    /// Returns whether the page loads it as a part of itself, rather than linking to it.
    pub fn is_asset(self) -> bool {
        matches!(
            self,
            Self::Image | Self::Media | Self::Script | Self::StyleSheet | Self::Style | Self::Preload
        )
    }
}

/// Extracts the links, the title and the robots directives of a page.
///
/// ```
/// use page::links::{LinkOptions, extract};
/// use encoding_rs::UTF_8;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let html = "<title>Tea</title> <a href=/green>green</a> <a href=mailto:me@example.com>mail</a>";
/// let found = extract(html, UTF_8, &"https://example.com/tea".parse()?, &LinkOptions::default());
/// assert_eq!(found.title.as_deref(), Some("Tea"));
/// assert_eq!(found.links[0].url.as_str(), "https://example.com/green");
/// assert_eq!(found.left_out.other_scheme, 1);
/// # Ok(())
/// # }
/// ```
///
/// `encoding` is the encoding of the page as received, because query strings are written in it.
/// [`charset::decode`](super::charset::decode) returns it together with the text.
///
/// Never fails. Time is linear in the length of `html`, and memory in that of the links.
pub fn extract(html: &str, encoding: &'static Encoding, page_url: &Url, options: &LinkOptions) -> Extracted {
    extract_with(html, encoding, page_url, options, &mut ())
}

/// Extracts what a style sheet loads: other style sheets, images, fonts.
///
/// URLs are resolved on that of the sheet, with queries in UTF-8 (CSS Values and Units Module Level 4, section 4.5).
/// Never fails. Time is linear in the length.
pub fn extract_from_style_sheet(css: &str, url: &Url, options: &LinkOptions) -> Extracted {
    let mut collector = Collector::new(Resolver::new(url, UTF_8), options, css.len());
    assets::visit_style(&mut collector, css);
    collector.into_extracted()
}

/// Parses a `Refresh` header; one without a target leads to the page itself. Browsers obey it like the meta element (HTML standard, 7.4.6, "load a document").
pub(crate) fn refresh_header_link(value: &str, page_url: &Url) -> Option<FoundLink> {
    let mut url = reference::resolve(Some(page_url), refresh::parse(value)?.unwrap_or_default(), None).ok()?;
    url.set_fragment(None);
    matches!(url.scheme(), "http" | "https").then_some(FoundLink {
        url,
        source: LinkSource::Refresh,
        nofollow: false,
        embedded: false,
        key: None,
    })
}
