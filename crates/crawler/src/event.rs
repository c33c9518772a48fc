//! What happens in a crawl, told to whoever listens: the single door for output, progress, metrics and logs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Failure, FailureKind, Fate, Link, NotFetched, Notice, Report, Verdict};

use crate::fetch::Capture;
use crate::fetch::{BodyExtent, TruncationReason};
use crate::page::link_graph::LinkRecord;
use crate::page::select::Selected;
use crate::summary::Summary;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A page had its final answer, whatever its status.
    Page(&'a PageRecord),
    /// A request had an answer or an error that is not final, or gave up.
    Failed {
        /// What was asked for.
        url: &'a str,
        /// What went wrong.
        why: &'a str,
        /// The same in one word.
        kind: FailureKind,
        /// What becomes of it.
        fate: Fate,
        /// Where it came from.
        entry: &'a Entry,
    },
    /// No request was made.
    NotFetched {
        /// What would have been asked for.
        url: &'a str,
        /// Why.
        why: NotFetched,
        /// What went wrong, where something did: with its host, or with its robots.txt.
        cause: Option<&'a Failure>,
        /// Where it came from.
        entry: &'a Entry,
    },
    /// Something that an operator should know: a host that went away, that is back, that was given up, and the like.
    Notice(&'a Notice),
    /// Links were offered to the frontier, all of one page at once. Those that it has seen in the same words before are left out,
    /// and counted only, unless [`report_links`](crate::CrawlOptions::report_links) asks for all.
    Offered {
        /// The links.
        links: &'a [Link],
        /// What became of each.
        verdicts: &'a [Verdict],
    },
    /// A sitemap came to an end: it was read, or it will not be.
    Sitemap(&'a SitemapRecord),
    /// The links of one answer, each with what became of it; told if
    /// [`report_links`](crate::CrawlOptions::report_links) is set.
    Links {
        /// What answered.
        from: &'a Entry,
        /// Where its links lead.
        links: &'a [LinkRecord],
    },
    /// A request had an answer of whatever status, for a page or for what a crawler asks for itself; told if
    /// [`keep_exchanges`](crate::CrawlOptions::keep_exchanges) is set, once per answer and before what follows from it.
    Captured(&'a Arc<Capture>),
    /// A second has passed.
    Tick(&'a Progress),
    /// The crawl has ended.
    Finished(&'a Summary),
}

/// One fetched page. As JSON it has all fields, each always of one type, with `null` for what is not there.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct PageRecord {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, when redirects led from there to here.
    pub redirected_from: Option<String>,
    /// The URL from which redirects led here in an earlier crawl that this one repeats; it was asked for again, too.
    pub was_redirected_from: Option<String>,
    /// The HTTP status.
    pub status: u16,
    /// The length of the first path that was found to it, in links; 0 for a seed.
    pub depth: u32,
    /// How many steps in a row lead to it that load it as a part of what came before; 0 for a page.
    pub embedded: u8,
    /// The page that linked to it.
    pub referrer: Option<String>,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// Bytes of the body that were read, after decompression.
    pub bytes: u64,
    /// How much of the body that is: `complete`, `truncated` or `skipped`.
    pub body: BodyExtent,
    /// Why it is not all of it: `size`, `time`, `connection`, `coding` or `markup`.
    pub body_cut: Option<TruncationReason>,
    /// When the request started: RFC 3339, in UTC, with milliseconds.
    pub fetched_at: String,
    /// From the start of the request to the end of the body.
    pub milliseconds: u64,
    /// The `ETag` header, by which a later crawl may ask whether the page has changed.
    pub etag: Option<String>,
    /// The `Last-Modified` header, for the same.
    pub last_modified: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// Links on the page, those with `nofollow` and those beyond the cap included.
    pub links_found: usize,
    /// Links on the page that were new to the crawl.
    pub links_new: usize,
    /// When it last changed, by the word of the sitemap that named it first: RFC 3339, in UTC.
    pub lastmod: Option<String>,
    /// The selected fields, each with the list of its values; `None` if there are none to select.
    pub selected: Option<Selected>,
    /// Whether the page asks not to be shown in an index, by a robots meta element or `X-Robots-Tag`.
    pub noindex: bool,
    /// The XXH3 hash of the body after decompression, 32 hexadecimal digits; none if it is empty or was not read whole.
    pub content_hash: Option<String>,
    /// The simhash of the visible text, 16 hexadecimal digits; `None` if that has fewer than 16 words.
    pub simhash: Option<String>,
    /// The first page with the same bytes.
    pub duplicate_of: Option<String>,
    /// The first page of the cluster whose simhashes differ in at most three bits from its own, if that is another
    /// page.
    pub near_duplicate_of: Option<String>,
}

/// One sitemap that was asked for.
#[derive(Debug, Clone, Default, serde::Serialize)]
#[non_exhaustive]
pub struct SitemapRecord {
    /// The URL that answered.
    pub url: String,
    /// The robots.txt or the sitemap index that names it; `None` when it was looked for at a well-known place.
    pub referrer: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// URLs of pages that were taken from it.
    pub urls: u64,
    /// URLs of further sitemaps that were taken from it.
    pub sitemaps: u64,
    /// URLs beyond the cap.
    pub urls_cut: u64,
    /// Entries without a URL that HTTP could fetch.
    pub urls_invalid: u64,
    /// Why its end could not be read; what came before was.
    pub broken: Option<String>,
    /// What became of it.
    pub end: SitemapEnd,
}

/// What became of a sitemap that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SitemapEnd {
    /// It was read, as far as it could be.
    #[default]
    Read,
    /// It was redirected, and is asked for there.
    Moved,
    /// Nobody had named it, and at this well-known place there is none that may be had.
    NotThere,
    /// It could not be had, or is no sitemap.
    Failed(String),
}

/// How far the crawl is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Pages that answered 2xx.
    pub pages: u64,
    /// Bytes of bodies that were read.
    pub bytes: u64,
    /// The frontier's numbers.
    pub report: Report,
}

impl Progress {
    /// Makes a look at a crawl that has fetched nothing yet, such as to test an observer.
    pub fn new(elapsed: Duration, report: Report) -> Self {
        Self {
            elapsed,
            pages: 0,
            bytes: 0,
            report,
        }
    }
}

/// Listens to a crawl.
pub trait Observer: Send {
    /// Is told of an event, in the order in which they happen.
    ///
    /// # Errors
    ///
    /// An error stops the crawl: what was leased is finished, nothing more is started. Whoever gave it is told no more.
    /// Only an observer whose loss makes the crawl useless, such as a full disk under the output, should give one.
    fn on(&mut self, event: &Event<'_>) -> io::Result<()>;
}

impl<T: FnMut(&Event<'_>) + Send> Observer for T {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        self(event);
        Ok(())
    }
}
