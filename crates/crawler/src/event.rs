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

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Failure, Fate, Link, NotFetched, Notice, Verdict};

pub use capture::Capture;

pub use crate::records::{LinkRecord, PageRecord, RequestRecord, SitemapEnd, SitemapRecord};

use crate::saved_output::SavedOutput;
use crate::summary::Summary;

/// Something that happened in a crawl.
///
/// What one request leads to comes in this order, each if it applies and is reported: [`Offered`](Self::Offered),
/// [`Requested`](Self::Requested), [`Captured`](Self::Captured), [`Notice`](Self::Notice), [`Sitemap`](Self::Sitemap),
/// [`Links`](Self::Links), [`NotFetched`](Self::NotFetched) or [`Failed`](Self::Failed), [`Body`](Self::Body), [`Page`](Self::Page),
/// [`Content`](Self::Content).
// Those of a request come from `engine/reports.rs`, `Offered` from `engine/seeding.rs` and `engine/sharing.rs`, too; `Committed` from
// `engine/commits.rs`, the others from `engine.rs`. `engine/observers.rs` counts them; `output/`, the crate `watch`, and `outputs.rs` and
// `progress.rs` of the command match on them. A new one is left out there until it is named.
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
        /// The queue entry of the URL.
        entry: &'a Entry,
        /// Why it failed.
        failure: &'a Failure,
        /// Whether the URL is retried.
        fate: Fate,
    },
    /// A request has ended, with an answer or without: each attempt for a page, a robots.txt or a sitemap.
    Requested(&'a RequestRecord),
    /// A queued URL was dropped without a request.
    NotFetched {
        /// The queue entry of the URL.
        entry: &'a Entry,
        /// Why it was dropped.
        why: NotFetched,
        /// The failure of its host or of its robots.txt that caused this, if any.
        cause: Option<&'a Failure>,
    },
    /// A change that an operator should know: an origin is away, is back, or was given up, or a path prefix was closed.
    Notice(&'a Notice),
    /// Links were offered to the frontier: those of one page, seeds, or what other processes sent. Links that the crawl recently found to be seen are only counted, unless
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
    /// An answer of any status to a request for a page, a robots.txt or a sitemap. Reported once per answer. Only reported with [`keep_exchanges`](crate::HttpOptions::keep_exchanges).
    Captured(&'a Arc<Capture>),
    /// The body of a page that answered 2xx, unless it is empty. Reported just before its [`Event::Page`], and only with
    /// [`ReportOptions::bodies`](crate::ReportOptions::bodies).
    Body {
        /// The page, as its [`Event::Page`] will report it.
        page: &'a PageRecord,
        /// The body after decompression, as far as it was read.
        bytes: &'a [u8],
        /// Becomes [`PageRecord::saved_as`], if an observer sets it.
        saved_as: &'a OnceCell<String>,
    },
    /// The state was committed. Only reported with a [state directory](crate::CrawlBuilder::state_dir), up to thousands of times per second.
    Committed {
        /// How long it took, with what the outputs wrote for it.
        took: Duration,
        /// The size of the database afterwards, in bytes. Only set for commits that also survive a loss of power: about one per second.
        database_bytes: Option<u64>,
    },
    /// A second has passed: the summary of a crawl that would end now and have nothing left.
    Tick(&'a Summary),
    /// The crawl has ended.
    Finished(&'a Summary),
}

/// What a crawl does: no event has it, [`StopHandle::phase`](crate::StopHandle::phase) says it.
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
