//! From bytes to the URLs of a sitemap (sitemaps.org protocol 0.9, <https://www.sitemaps.org/protocol.html>).
//!
//! All forms of the protocol are read: XML `urlset` and `sitemapindex`, text with one URL per line, RSS (0.9 to 2.0)
//! and Atom. Each may be compressed with gzip, which is recognized by its first bytes, whatever the headers say.
//!
//! # What it does, and does not
//!
//! The reader is lenient where sitemaps are sloppy. It ignores namespaces, resolves relative URLs and takes a bare `&`
//! literally. From broken markup it keeps the entries before the error. An entry of another format than the root's is read by its own.
//!
//! Any `loc` counts, wherever it stands: in a `sitemap` as a sitemap, in a `url` as a page, elsewhere as what the root element lists.
//! The text of an entry without one counts, and so do the pages of other languages (`xhtml:link`). The base of a feed is its `xml:base`, and
//! what its link with `rel=next` leads to is a further sitemap.
//!
//! It expands no entities but character references and the five of XML, so that no file grows when it is read. It
//! ignores `changefreq` and `priority`, which are hints only. It also ignores images, videos and news.
//!
//! Cost: one pass without a tree. [`SitemapLimits`] bounds the memory.

mod date;
mod plain;
mod unpack;
mod xml;

use frontier::Time;
use frontier::reference;
use indexmap::IndexSet;
use url::Url;

use crate::media_type::{essence, root_of};

pub use date::{format as format_date, parse as parse_date};

/// Default of [`SitemapLimits::max_bytes`]: the maximum that the protocol allows.
pub const DEFAULT_MAX_SITEMAP_BYTES: u64 = 50 * 1024 * 1024;
/// Default of [`SitemapLimits::max_urls`]: the maximum that the protocol allows.
pub const DEFAULT_MAX_SITEMAP_URLS: usize = 50_000;

/// Limits on what is read from one sitemap.
#[derive(Debug, Clone, Copy)]
pub struct SitemapLimits {
    /// Maximum bytes after decompression; the rest is ignored.
    pub max_bytes: u64,
    /// Maximum URLs; further ones are only counted.
    pub max_urls: usize,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self {
            max_bytes: DEFAULT_MAX_SITEMAP_BYTES,
            max_urls: DEFAULT_MAX_SITEMAP_URLS,
        }
    }
}

/// The contents of a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sitemap {
    /// What its root element lists.
    pub lists: Lists,
    /// The URLs in their order. They may be on any host: the caller must check them against a scope.
    pub entries: Vec<SitemapEntry>,
    /// How many URLs were dropped by [`SitemapLimits::max_urls`].
    pub cut: u64,
    /// How many entries have no URL with `http` or `https`.
    pub invalid: u64,
    /// Why the end of the file could not be read, if so: it is too long, broken or truncated.
    pub broken: Option<String>,
}

/// What the URLs of a sitemap are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    /// Pages.
    Pages,
    /// Further sitemaps: the file is a sitemap index.
    Sitemaps,
}

/// One URL of a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapEntry {
    /// The `http` or `https` URL.
    pub url: Url,
    /// The time of its last change, if it can be parsed. A date without a time means its first moment in UTC.
    pub lastmod: Option<Time>,
    /// Whether it is a page or a further sitemap.
    pub lists: Lists,
}

/// Why a file is not a sitemap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotASitemap {
    /// It is empty.
    #[error("the sitemap is empty")]
    Empty,
    /// Its root element is not one of a sitemap.
    #[error("the root element <{0}> is not one of a sitemap: urlset, sitemapindex, rss, RDF, feed")]
    OtherRoot(String),
    /// It starts like XML, but no element can be read.
    #[error("there is no root element: {0}")]
    NoRoot(String),
    /// It is text without any URL.
    #[error("the file is neither XML nor a list of URLs")]
    NoUrls,
}

/// Reads a sitemap that was found at `url`. Of `content_type` only the charset counts.
///
/// # Errors
///
/// Fails if the file is not a sitemap at all. A broken sitemap is read up to the error, which [`Sitemap::broken`]
/// describes.
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: &Url,
    limits: &SitemapLimits,
) -> Result<Sitemap, NotASitemap> {
    let (file, broken) = unpack::text(body, content_type, limits.max_bytes);
    let found = EntryCollector {
        base: url.clone(),
        max_urls: limits.max_urls,
        entries: Vec::new(),
        alternates: IndexSet::new(),
        cut: 0,
        invalid: 0,
    };
    // Some files have two byte order marks, or one behind blank lines.
    let text = file.trim_start_matches(is_blank);
    let mut sitemap = match text.bytes().next() {
        None => return Err(NotASitemap::Empty),
        Some(b'<') => xml::read(text, found)?,
        Some(_) => plain::read(text, broken.is_none(), found)?,
    };
    sitemap.broken = broken.or(sitemap.broken);
    Ok(sitemap)
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}')
}

/// Returns whether a body is compressed with gzip.
pub fn is_packed(body: &[u8]) -> bool {
    body.starts_with(b"\x1f\x8b")
}

/// Reads a page that is a sitemap or a feed; `None` if it is none. A text is one if each of its lines is a URL.
pub fn recognize(body: &[u8], content_type: Option<&str>, url: &Url, limits: &SitemapLimits) -> Option<Sitemap> {
    let is_xml = xml::is_root(&root_of(content_type, body));
    let is_packed = is_packed(body);
    let is_text = || content_type.and_then(essence).as_deref() == Some("text/plain");
    if !is_xml && !is_packed && !is_text() {
        return None;
    }
    let found = read(body, content_type, url, limits).ok()?;
    (is_xml || is_packed || found.invalid == 0).then_some(found)
}

/// Collects entries up to the limit.
struct EntryCollector {
    base: Url,
    max_urls: usize,
    entries: Vec<SitemapEntry>,
    /// Pages in other languages. Each of them mostly has an entry, too, which lists them again.
    alternates: IndexSet<Url>,
    cut: u64,
    invalid: u64,
}

impl EntryCollector {
    /// Adds an entry. The URL may be relative to that of the sitemap.
    fn push(&mut self, location: &str, lastmod: &str, lists: Lists) {
        self.push_url(self.resolved(location), lastmod, lists);
    }

    /// Resolves what follows on another base.
    fn rebase(&mut self, base: &str) {
        self.base = self.resolved(base).unwrap_or_else(|| self.base.clone());
    }

    fn resolved(&self, location: &str) -> Option<Url> {
        let location = location.trim_matches(is_blank);
        let url = reference::resolve(Some(&self.base), location, None).ok()?;
        (!location.is_empty()).then_some(url)
    }

    fn push_alternate(&mut self, location: &str) {
        match self.resolved(location).filter(is_http) {
            None => self.invalid += 1,
            Some(url) if self.alternates.len() < self.max_urls => _ = self.alternates.insert(url),
            Some(url) => self.cut += u64::from(!self.alternates.contains(&url)),
        }
    }

    fn push_url(&mut self, url: Option<Url>, lastmod: &str, lists: Lists) {
        let Some(url) = url.filter(is_http) else {
            self.invalid += 1;
            return;
        };
        if self.entries.len() >= self.max_urls {
            self.cut += 1;
            return;
        }
        self.entries.push(SitemapEntry {
            url,
            lastmod: date::parse(lastmod),
            lists,
        });
    }

    fn into_sitemap(mut self, lists: Lists, broken: Option<String>) -> Sitemap {
        for entry in &self.entries {
            self.alternates.swap_remove(&entry.url);
        }
        self.entries.extend(self.alternates.into_iter().map(|url| SitemapEntry {
            url,
            lastmod: None,
            lists: Lists::Pages,
        }));
        Sitemap {
            lists,
            entries: self.entries,
            cut: self.cut,
            invalid: self.invalid,
            broken,
        }
    }
}
