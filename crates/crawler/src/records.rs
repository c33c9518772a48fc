//! What observers get to know of pages, requests, commits, sitemaps and links.

pub(crate) mod link;

use std::time::Duration;

use frontier::{Class, FailureKind};
use page::select::Selected;

pub use link::LinkRecord;

use crate::fetch::{BodyExtent, ResourceKind, TruncationReason};

/// One fetched page. Later versions may add fields. [`Pages`](crate::output::pages::Pages) writes the same fields in each line.
///
/// As JSON, every field is always present and always has the same type; `null` stands for `None`.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct PageRecord {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, if redirects led from there to `url`.
    pub redirected_from: Option<String>,
    /// The URL that redirected to `url` in the crawl that [knew](crate::CrawlOptions::links) it.
    pub was_redirected_from: Option<String>,
    /// The HTTP status.
    pub status: u16,
    /// Whether that asks for less traffic.
    #[serde(skip)]
    pub is_throttled: bool,
    /// The depth: how many links the crawl followed from a seed to this page; 0 for a seed.
    pub depth: u32,
    /// The number of last steps that load a part of a page, such as an image or a style sheet; 0 for a page.
    pub embedded: u8,
    /// The page with the first link to it; `None` for a seed.
    pub referrer: Option<String>,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The size of the body as far as it was read, in bytes after decompression.
    pub bytes: u64,
    /// How much of the body was read: `complete`, `truncated` or `skipped`.
    pub body: BodyExtent,
    /// Why the body is truncated: `size`, `time`, `connection` or `coding`; `None` if it is not.
    pub truncation: Option<TruncationReason>,
    /// When the request started: RFC 3339, in UTC, with milliseconds.
    pub fetched_at: String,
    /// The time from the start of the request to the end of the body, in milliseconds.
    pub milliseconds: u64,
    /// The `ETag` header. A later crawl sends it to ask whether the page has changed.
    pub etag: Option<String>,
    /// The `Last-Modified` header, used like `etag`.
    pub last_modified: Option<String>,
    /// The title of an HTML page: white space collapsed, at most 512 characters.
    pub title: Option<String>,
    /// The number of different links on the page, including those with `nofollow` and those beyond the limit.
    pub links_found: usize,
    /// How many of these links were new to the crawl and were queued.
    pub links_new: usize,
    /// How many pages were left after this one, queued or in flight. 0 in the last line of a crawl that ended.
    pub left: u64,
    /// The `lastmod` of the page in the first sitemap that names it: RFC 3339, in UTC.
    pub lastmod: Option<String>,
    /// The selected fields, each with the list of its values; `None` if no field is selected.
    pub selected: Option<Selected>,
    /// Whether nothing, or failures alone, came before of the page in this crawl.
    pub is_new: bool,
    /// Of a page that the crawl fetches again ([`refresh`](crate::CrawlOptions::refresh), or [kept fresh](frontier::FreshnessConfig)): whether it is as it was, by a status 304 or by its
    /// `content_hash`. `None` for the first fetch.
    pub unchanged: Option<bool>,
    /// Whether the page asks not to be indexed, by a robots meta element or an `X-Robots-Tag` header.
    pub noindex: bool,
    /// The XXH3 hash of the body after decompression, 32 hexadecimal digits; `None` if the body is empty or truncated, or the
    /// frontier did not compare the page and [`fingerprints`](crate::ReportOptions::fingerprints) is off.
    pub content_hash: Option<String>,
    /// The simhash of the visible text, 16 hexadecimal digits; `None` where `content_hash` is, and for fewer than 16 words.
    pub simhash: Option<String>,
    /// The first page of the crawl with the same `content_hash`.
    pub duplicate_of: Option<String>,
    /// The first page of the crawl whose simhash differs in at most three bits, if that is another page.
    pub near_duplicate_of: Option<String>,
    /// The file with the body, if an observer [saved](crate::Event::Body) it.
    pub saved_as: Option<String>,
    /// What all spellings of its URL have in common, by the rules of the [canonicalizer](crate::CrawlOptions::canonicalizer): the `key` of the
    /// links that lead to it.
    pub key: String,
    /// The [data](frontier::Link::data) of its link, as text.
    pub data: Option<String>,
}

impl PageRecord {
    /// Returns whether the answer is no page: its status is neither 2xx nor 304. The record of a redirect is one without a target.
    pub fn is_error(&self) -> bool {
        !matches!(self.status, 200..=299 | 304)
    }

    /// The kind of failure that such an answer is.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self.is_throttled {
            true => FailureKind::Throttled,
            false => FailureKind::Status,
        }
    }
}

/// One request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestRecord {
    /// What the answer is used as.
    pub kind: ResourceKind,
    /// The class of what was requested.
    pub class: Class,
    /// The HTTP status; `None` without an answer.
    pub status: Option<u16>,
    /// Why it failed; `None` if it did not. A page with a status of 400 or more has failed, a robots.txt or a sitemap only if it is asked
    /// again.
    pub failure: Option<FailureKind>,
    /// From the start of the request to the end of the body, or to the failure.
    pub took: Duration,
    /// The size of the body as far as it was read, in bytes after decompression.
    pub bytes: u64,
    /// From the end of the last request to the host until this one was leased, as [`frontier::Lease::pause`] says; `None` for its first.
    pub pause: Option<Duration>,
    /// The delay that was owed to the host in that pause.
    pub owed: Duration,
}

impl RequestRecord {
    /// Returns by how many seconds its pause was longer than what was owed. A negative number is a broken promise.
    pub fn slack_seconds(&self) -> Option<f64> {
        self.pause.map(|pause| pause.as_secs_f64() - self.owed.as_secs_f64())
    }
}

/// One sitemap that was requested.
#[derive(Debug, Clone, Default, serde::Serialize)]
#[non_exhaustive]
pub struct SitemapRecord {
    /// The URL that answered.
    pub url: String,
    /// The robots.txt or the sitemap index that names it; `None` for a well-known location that nothing names.
    pub referrer: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The number of URLs of pages in it.
    pub urls: u64,
    /// The number of URLs of other sitemaps in it.
    pub sitemaps: u64,
    /// The number of URLs beyond the limit, which were dropped.
    pub urls_dropped: u64,
    /// The number of entries without an `http` or `https` URL.
    pub urls_invalid: u64,
    /// Why the sitemap could be read only in part; `None` if it was read whole. The entries that were read count.
    pub broken: Option<String>,
    /// How the request ended.
    pub end: SitemapEnd,
    /// Whether it failed without a final answer, such as 404: with none, or in all attempts with one such as 503.
    pub unanswered: bool,
}

/// How the request for a sitemap ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SitemapEnd {
    /// It was read, at least in part.
    #[default]
    Read,
    /// It redirects; the target is requested next.
    Moved,
    /// There is none at this well-known location, and no robots.txt names one there.
    NotThere,
    /// It could not be fetched, or is not a sitemap. The text says why.
    Failed(String),
}
