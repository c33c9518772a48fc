//! From a finished task to its conclusion: the settlement for the frontier, and the report that follows it.
//!
//! Every function here is pure and runs in the fetch task, so that the loop has little work.

mod failures;
mod pages;
mod robots;
pub(crate) mod sitemaps;

use std::sync::Arc;
use std::time::Duration;

use frontier::{CanonicalUrl, Canonicalizer, Entry, Lease, Settlement, Task, Time};
use url::Url;

use crate::config::CrawlConfig;
use crate::engine::fetch_task::Fetched;
use crate::event::SitemapRecord;
use crate::fetch::Capture;
use crate::fetch::{FetchError, Response};
use crate::page::links::resolve_reference;
pub(crate) use pages::PageReport;

/// How long the address of a host is valid before it is looked up again.
const ADDRESS_LIFETIME: Duration = Duration::from_secs(3600);

/// What a fetch task returns.
pub(crate) struct Conclusion {
    pub(crate) settlement: Settlement,
    pub(crate) report: PendingReport,
}

/// A finished task: what it fetched, or the message of its panic.
pub(crate) struct FinishedTask {
    pub(crate) lease: Lease,
    pub(crate) started: Time,
    pub(crate) result: Result<Fetched, String>,
}

/// The report of a task, to be sent once its settlement is made.
pub(crate) struct PendingReport {
    pub(crate) entry: Entry,
    pub(crate) subject: Subject,
    pub(crate) cookies_dropped: usize,
    pub(crate) capture: Option<Arc<Capture>>,
}

/// What the report is about.
pub(crate) enum Subject {
    Page(Box<PageReport>),
    Sitemap(Box<SitemapRecord>),
    /// A robots.txt or an address: the frontier's notices cover it.
    Nothing,
}

/// Turns a finished task into a settlement and a report.
pub(crate) fn conclude(returned: FinishedTask, config: &CrawlConfig) -> Conclusion {
    let task = returned.lease.task();
    let entry = returned.lease.entry;
    let mut fetched = returned
        .result
        .unwrap_or_else(|panic| Fetched::not_parsed(Err(FetchError::Panicked(panic))));
    let (settlement, subject) = match task {
        Task::Page(page) => {
            let is_compared = returned.lease.wants_fingerprint || config.options().fingerprints;
            let (settlement, report) =
                pages::conclude(page, is_compared, &entry, &mut fetched, returned.started, config);
            let settlement = match &fetched.result {
                Ok(answer) => settlement.with_status(answer.status),
                Err(_) => settlement,
            };
            (settlement, Subject::Page(Box::new(report)))
        }
        Task::Robots(task) => (
            robots::conclude(&task, &entry, &fetched.result, config),
            Subject::Nothing,
        ),
        Task::Sitemap(task) => {
            let (settlement, record) = sitemaps::conclude(&task, &entry, &mut fetched, config);
            (settlement, Subject::Sitemap(Box::new(record)))
        }
        Task::Address(task) => (task.settle(fetched.address, ADDRESS_LIFETIME), Subject::Nothing),
    };
    Conclusion {
        settlement,
        report: PendingReport {
            cookies_dropped: fetched.result.as_ref().map_or(0, |answer| answer.cookies_dropped),
            capture: Capture::from_result(&entry.url, returned.started, fetched.result),
            entry,
            subject,
        },
    }
}

/// Resolves a `Location` (RFC 9110, section 10.2.2) by the same rules as the links of a page.
fn redirect_target(entry: &Entry, answer: &Response, canonicalizer: &Canonicalizer) -> Option<CanonicalUrl> {
    let from = Url::parse(&entry.url).ok()?;
    let to = resolve_reference(&from, answer.location.as_deref()?).ok()?;
    canonicalizer.canonicalize(to).ok()
}
