//! The events of a crawl. Outputs, progress, metrics and logs are observers of them.
//!
//! Most events cost nothing. Four are off by default, and need an option in [`CrawlOptions`](crate::CrawlOptions) or
//! [`HttpOptions`](crate::HttpOptions):
//!
//! | event | option |
//! |---|---|
//! | [`Event::Links`] | [`ReportOptions::links`](crate::ReportOptions::links) |
//! | [`Event::Content`] | [`ReportOptions::content`](crate::ReportOptions::content) |
//! | [`Event::Body`] | [`ReportOptions::bodies`](crate::ReportOptions::bodies) |
//! | [`Event::Captured`] | [`HttpOptions::keep_exchanges`](crate::HttpOptions::keep_exchanges) |

mod capture;
pub(crate) mod link_record;

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Failure, FailureKind, Fate, Link, NotFetched, Notice, Verdict};
use page::select::Selected;

pub use capture::Capture;
pub use link_record::LinkRecord;

use crate::fetch::{BodyExtent, ResourceKind, TruncationReason};
use crate::saved_output::SavedOutput;
use crate::summary::Summary;

/// Something that happened in a crawl.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A page has its final answer, whatever its status.
    Page(&'a PageRecord),
    /// The text and the links of an HTML page that answered 2xx, directly after its [`Page`](Self::Page) event. With
    /// [`assets`](crate::PageOptions::assets) style sheets are reported too. Only reported with
    /// [`ReportOptions::content`](crate::ReportOptions::content).
    Content {
        /// The page.
        page: &'a PageRecord,
        /// Its body, decoded from the character encoding of the page.
        text: &'a str,
        /// All its `http` and `https` links up to [`max_links_per_page`](crate::PageOptions::max_links_per_page), each with its kind and its verdict.
        links: &'a [LinkRecord],
    },
    /// A request failed. `fate` says whether it is retried.
    Failed {
        /// The URL of the request.
        url: &'a str,
        /// The error message.
        why: &'a str,
        /// The kind of the failure.
        kind: FailureKind,
        /// Whether the URL is retried.
        fate: Fate,
        /// The queue entry of the URL.
        entry: &'a Entry,
    },
    /// A request has ended, with an answer or without: each attempt for a page, a robots.txt or a sitemap. Reported before the other events that
    /// follow from it.
    Requested(&'a RequestRecord),
    /// A queued URL was dropped without a request.
    NotFetched {
        /// The URL.
        url: &'a str,
        /// Why it was dropped.
        why: NotFetched,
        /// The failure of its host or of its robots.txt that caused this, if any.
        cause: Option<&'a Failure>,
        /// The queue entry of the URL.
        entry: &'a Entry,
    },
    /// A change that an operator should know: an origin is away, is back, or was given up, or a path prefix was closed.
    Notice(&'a Notice),
    /// The links of one page were offered to the frontier. Links that the crawl recently found to be seen are only counted, unless
    /// [`ReportOptions::links`](crate::ReportOptions::links) or [`ReportOptions::content`](crate::ReportOptions::content) is set.
    Offered {
        /// The links.
        links: &'a [Link],
        /// The verdict on each link.
        verdicts: &'a [Verdict],
    },
    /// A request for a sitemap has ended.
    Sitemap(&'a SitemapRecord),
    /// The links of one answer, each with its verdict; a redirect is a link too. Only reported with
    /// [`ReportOptions::links`](crate::ReportOptions::links).
    Links {
        /// The queue entry of the URL that answered.
        from: &'a Entry,
        /// Its links.
        links: &'a [LinkRecord],
    },
    /// An answer of any status to a request for a page, a robots.txt or a sitemap. Reported once per answer, before the other events
    /// of this answer. Only reported with [`keep_exchanges`](crate::HttpOptions::keep_exchanges).
    Captured(&'a Arc<Capture>),
    /// The body of a page that answered 2xx, unless it is empty. Reported just before its [`Event::Page`], and only with
    /// [`ReportOptions::bodies`](crate::ReportOptions::bodies).
    Body(&'a PageBody<'a>),
    /// The state was committed. Only reported with a [state directory](crate::CrawlBuilder::state_dir), up to thousands of times per second.
    Committed(&'a CommitRecord),
    /// A second has passed: the summary of a crawl that would end now and have nothing left.
    Tick(&'a Summary),
    /// The crawl has ended.
    Finished(&'a Summary),
}

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
    /// Of a page that the crawl fetches again ([`refresh`](crate::CrawlOptions::refresh)): whether it is as it was, by a status 304 or by its
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
    /// The file with the body, if an observer [saved](PageBody::set_saved_as) it.
    pub saved_as: Option<String>,
    /// What all spellings of its URL have in common, by the rules of the [canonicalizer](crate::CrawlOptions::canonicalizer): the `key` of the
    /// links that lead to it.
    pub key: String,
}

impl PageRecord {
    /// Returns whether the answer is no page: its status is neither 2xx nor 304. The record of a redirect is one without a target.
    pub fn is_error(&self) -> bool {
        !matches!(self.status, 200..=299 | 304)
    }
}

/// The body of a page, for observers that store it.
#[derive(Debug)]
pub struct PageBody<'a> {
    /// The page, as [`Event::Page`] will report it.
    pub page: &'a PageRecord,
    /// The body after decompression, as far as it was read.
    pub bytes: &'a [u8],
    saved_as: OnceCell<String>,
}

impl<'a> PageBody<'a> {
    /// Makes the body of a page. It serves tests of observers.
    pub fn new(page: &'a PageRecord, bytes: &'a [u8]) -> Self {
        Self {
            page,
            bytes,
            saved_as: OnceCell::new(),
        }
    }

    /// Sets [`PageRecord::saved_as`]. Later calls have no effect.
    pub fn set_saved_as(&self, path: String) {
        let _ = self.saved_as.set(path);
    }

    /// Returns the path of the first call of [`set_saved_as`](Self::set_saved_as).
    pub fn saved_as(&self) -> Option<&str> {
        self.saved_as.get().map(String::as_str)
    }

    pub(crate) fn into_saved_as(self) -> Option<String> {
        self.saved_as.into_inner()
    }
}

/// One request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestRecord {
    /// What the answer is used as.
    pub kind: ResourceKind,
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

/// One commit to the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CommitRecord {
    /// How long it took, with what the outputs wrote for it.
    pub took: Duration,
    /// The size of the database afterwards, in bytes. Only set for commits that also survive a loss of power: about one per second.
    pub database_bytes: Option<u64>,
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

/// What a crawl does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Phase {
    /// It fetches pages.
    #[default]
    Running,
    /// It was [paused](crate::StopHandle::pause), and requests are still in flight.
    Pausing,
    /// It is paused: nothing is in flight, and everything is committed.
    Paused,
    /// It ends: requests in flight finish, and none starts.
    Stopping,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Pausing, Self::Paused, Self::Stopping];

    /// Returns the name as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
        }
    }
}

/// Receives the events of a crawl. A closure that takes `&Event<'_>` is an observer too: [`Crawl::on_event`](crate::Crawl::on_event) takes
/// one without type annotations.
///
/// ```
/// use std::io;
///
/// use crawler::{CrawlOptions, Event, Observer, ReportOptions};
///
/// /// Prints the length of each page's text, and the targets of its links.
/// struct Indexer;
///
/// impl Observer for Indexer {
///     fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
///         if let Event::Content { page, text, links } = event {
///             println!("{} {:?}: {} characters", page.url, page.title, text.chars().count());
///             for link in *links {
///                 println!("  {} {} {}", link.kind, link.to, link.verdict_name());
///             }
///         }
///         Ok(())
///     }
/// }
///
/// // Without this option no Content event is reported.
/// let reports = ReportOptions { content: true, ..ReportOptions::default() };
/// let options = CrawlOptions { reports, ..CrawlOptions::default() };
/// ```
pub trait Observer: Send {
    /// Receives the next event. The crawl waits until this returns.
    ///
    /// # Errors
    ///
    /// An error stops the crawl: requests in flight finish, and none starts. The observer receives no more events.
    /// Return an error only if the crawl is useless without the observer, as with an output on a full disk.
    fn on(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// Writes out what it has buffered, and returns what it needs to continue from here in a later run. With `sync`, what it has
    /// written survives a loss of power, too.
    ///
    /// A crawl with a state directory calls it before each commit, thousands of times per second, so do nothing if no event has come
    /// since the last call. After a crash, all that was written after the last commit is reported again. The default keeps nothing.
    ///
    /// # Errors
    ///
    /// An error ends the crawl without the commit.
    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        let _ = sync;
        Ok(None)
    }
}

impl<T: FnMut(&Event<'_>) + Send> Observer for T {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        self(event);
        Ok(())
    }
}
