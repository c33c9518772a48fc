//! From bytes to the URLs of a sitemap (sitemaps.org protocol 0.9, <https://www.sitemaps.org/protocol.html>).
//!
//! All forms of the protocol are read: XML `urlset` and `sitemapindex`, text with one URL per line, RSS (0.9 to 2.0)
//! and Atom. Each may be compressed with gzip, which is recognized by its first bytes, whatever the headers say.
//!
//! # What it does, and does not
//!
//! The reader is lenient where sitemaps are sloppy. It ignores namespaces, resolves relative URLs and takes a bare `&`
//! literally. From broken markup it keeps the entries before the error.
//!
//! It expands no entities but character references and the five of XML, so that no file grows when it is read. It
//! ignores `changefreq` and `priority`, which are hints only. It also ignores images, videos, news and alternate
//! languages.
//!
//! Cost: one pass without a tree. [`SitemapLimits`] bounds the memory.

mod date;
mod plain;
mod unpack;
mod xml;

use frontier::Time;
use url::Url;

use crate::page::links::resolve_reference;

pub(crate) use date::{parse as parse_date, rfc3339};

/// Default of [`SitemapLimits::max_bytes`]: the maximum that the protocol allows.
pub const DEFAULT_MAX_SITEMAP_BYTES: u64 = 50 * 1024 * 1024;
/// Default of [`SitemapLimits::max_urls`]: the maximum that the protocol allows.
pub const DEFAULT_MAX_SITEMAP_URLS: usize = 50_000;

/// Paths that are tried in turn when robots.txt names no sitemap.
pub(crate) const WELL_KNOWN: [&str; 2] = ["/sitemap.xml", "/sitemap_index.xml"];

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
    /// Whether its URLs are pages or further sitemaps.
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
    let file = unpack::text(body, content_type, limits.max_bytes);
    let found = EntryCollector::new(url, limits.max_urls);
    let mut sitemap = match file.text.trim_ascii_start().bytes().next() {
        None => return Err(NotASitemap::Empty),
        Some(b'<') => xml::read(&file.text, found)?,
        Some(_) => plain::read(&file, found)?,
    };
    if file.is_cut {
        sitemap.broken = Some(format!("the sitemap is longer than {} bytes", limits.max_bytes));
    } else if file.broken.is_some() {
        sitemap.broken = file.broken;
    }
    Ok(sitemap)
}

/// Collects entries up to the limit.
struct EntryCollector<'a> {
    base: &'a Url,
    max_urls: usize,
    entries: Vec<SitemapEntry>,
    cut: u64,
    invalid: u64,
}

impl<'a> EntryCollector<'a> {
    fn new(base: &'a Url, max_urls: usize) -> Self {
        Self {
            base,
            max_urls,
            entries: Vec::new(),
            cut: 0,
            invalid: 0,
        }
    }

    /// Adds an entry. The URL may be relative to that of the sitemap.
    fn push(&mut self, location: &str, lastmod: &str) {
        let location = location.trim();
        let url = resolve_reference(self.base, location)
            .ok()
            .filter(|_| !location.is_empty());
        self.push_url(url, lastmod);
    }

    fn push_url(&mut self, url: Option<Url>, lastmod: &str) {
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
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
        });
    }

    fn into_sitemap(self, lists: Lists, broken: Option<String>) -> Sitemap {
        Sitemap {
            lists,
            entries: self.entries,
            cut: self.cut,
            invalid: self.invalid,
            broken,
        }
    }
}
