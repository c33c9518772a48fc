//! Bytes → what a sitemap lists: the sitemaps.org protocol 0.9 (<https://www.sitemaps.org/protocol.html>).
//!
//! All forms of the protocol are read: the XML `urlset`, the `sitemapindex`, a text file with one URL per line, RSS (0.9 to
//! 2.0) and Atom feeds, each plain or packed with gzip, which shows by its first bytes whatever the headers say.
//!
//! # It is, it is not
//!
//! It is lenient where sitemaps are sloppy: namespaces are not looked at, relative URLs are resolved, a bare `&` stands for
//! itself, and broken markup keeps what came before. It expands no entities but the five of XML and character references, so
//! that no file grows by being read. `changefreq` and `priority` are wishes that nobody is bound by; they are not read, and
//! neither are images, videos, news and the alternates of other languages.
//!
//! Cost: one pass without a tree. What is kept is bounded by [`SitemapLimits`].

mod date;
mod plain;
mod unpack;
mod xml;

use std::io::BufRead;

use frontier::Time;
use url::Url;

use crate::page::links::resolve_reference;

pub(crate) use date::{parse as parse_date, rfc3339};

/// The most of a sitemap that is read, in bytes after unpacking, unless set: what the protocol allows.
pub const DEFAULT_MAX_SITEMAP_BYTES: u64 = 50 * 1024 * 1024;
/// The most URLs that are taken from one sitemap, unless set: what the protocol allows.
pub const DEFAULT_MAX_SITEMAP_URLS: usize = 50_000;

/// Where sitemaps are looked for, one after the other, when robots.txt names none.
pub(crate) const WELL_KNOWN: [&str; 2] = ["/sitemap.xml", "/sitemap_index.xml"];

/// How much of a sitemap is read.
#[derive(Debug, Clone, Copy)]
pub struct SitemapLimits {
    /// Bytes after unpacking; the rest is not looked at.
    pub max_bytes: u64,
    /// URLs; further ones are counted.
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

/// What a sitemap lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sitemap {
    /// What its URLs lead to.
    pub lists: Lists,
    /// The URLs, in their order. They may be of any host; a scope must judge them.
    pub entries: Vec<SitemapEntry>,
    /// URLs beyond the limit.
    pub cut: u64,
    /// Entries that have no URL that HTTP could fetch.
    pub invalid: u64,
    /// Why the end of the file could not be read: it is too long, broken, or cut.
    pub broken: Option<String>,
}

/// What the URLs of a sitemap lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    /// To pages.
    Pages,
    /// To further sitemaps: it is an index.
    Sitemaps,
}

/// One URL of a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapEntry {
    /// The URL, by `http` or `https`.
    pub url: Url,
    /// When it last changed, if that can be read. A date without a time is its first moment in UTC.
    pub lastmod: Option<Time>,
}

/// Why a file is no sitemap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotASitemap {
    /// There is nothing in it.
    #[error("the sitemap is empty")]
    Empty,
    /// It is XML, or HTML, of another kind.
    #[error("its root element <{0}> is none of a sitemap's: urlset, sitemapindex, rss, RDF, feed")]
    OtherRoot(String),
    /// It starts like XML and has no element that could be read.
    #[error("it has no root element: {0}")]
    NoRoot(String),
    /// It is text, and no line of it is a URL.
    #[error("it is neither XML nor a list of URLs")]
    NoUrls,
}

/// Reads a sitemap that was found at `url`. `content_type` is asked for a charset only.
///
/// # Errors
///
/// A file that is no sitemap at all. One that breaks off is read up to there, and says so.
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: &Url,
    limits: &SitemapLimits,
) -> Result<Sitemap, NotASitemap> {
    let mut text = unpack::text(body, content_type, limits.max_bytes);
    let start = text.fill_buf().unwrap_or_default();
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let found = Found::new(url, limits.max_urls);
    let mut sitemap = match first {
        None => return Err(NotASitemap::Empty),
        Some(b'<') => xml::read(&mut text, found)?,
        Some(_) => plain::read(&mut text, found)?,
    };
    if text.was_cut() {
        sitemap.broken = Some(format!("it is longer than {} bytes", limits.max_bytes));
    }
    Ok(sitemap)
}

/// Gathers entries up to the limit.
struct Found<'a> {
    base: &'a Url,
    max_urls: usize,
    entries: Vec<SitemapEntry>,
    cut: u64,
    invalid: u64,
}

impl<'a> Found<'a> {
    fn new(base: &'a Url, max_urls: usize) -> Self {
        Self {
            base,
            max_urls,
            entries: Vec::new(),
            cut: 0,
            invalid: 0,
        }
    }

    /// Takes a URL as it is written, be it relative, and the date beside it.
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
