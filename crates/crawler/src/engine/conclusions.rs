//! From a finished task to its conclusion: the settlement for the frontier, and the report that follows it.
//!
//! Every function here is pure and runs in the fetch task, so that the loop has little work. What follows from an answer is decided by the table in
//! [`frontier::answer`].

mod pages;
mod robots;
pub(crate) mod sitemaps;

use std::sync::Arc;
use std::time::Duration;

use frontier::{Answer, Entry, Failure, FailureKind, Lease, Link, NotFetched, Origin, Outcome, Purpose, Settlement};
use tokio::time::Instant;
use url::Url;

use crate::config::CrawlConfig;
use crate::engine::Start;
use crate::engine::fetch_task::Fetched;
use crate::event::{Capture, RequestRecord, SitemapRecord};
use crate::fetch::{FetchError, ResourceKind, Response, TargetCookies, TruncationReason};

use pages::Answered;
pub(crate) use pages::PageReport;

/// Maximum number of characters of a `Location` in a message. The server chooses the text, and it may be of any length.
const SHOWN_LOCATION: usize = 200;

/// What a fetch task returns.
pub(crate) type Conclusion = (Settlement, PendingReport);

/// The report of a task, to be sent once its settlement is made.
pub(crate) struct PendingReport {
    pub(crate) entry: Arc<Entry>,
    pub(crate) page: Option<Box<PageReport>>,
    /// The sitemap that was requested, or those that a robots.txt names and that cannot be fetched.
    pub(crate) sitemaps: Vec<SitemapRecord>,
    pub(crate) started: Instant,
    /// What the request was for and how it ended; `None` if there was none. The crawl sets how long it took.
    pub(crate) request: Option<RequestRecord>,
    pub(crate) cookies_dropped: usize,
    pub(crate) capture: Option<Arc<Capture>>,
}

/// Turns what a task has fetched into a settlement and a report.
pub(crate) fn conclude(lease: Lease, started: Start, mut fetched: Fetched, config: &CrawlConfig) -> Conclusion {
    let entry = &lease.entry;
    let request = kind_of(&entry.purpose).map(|kind| request_record(kind, &lease, &fetched.result));
    let result = &mut fetched.result;
    let (settlement, page, sitemaps) = match &entry.purpose {
        Purpose::Page => {
            let fingerprint = fetched.page.fingerprint;
            let (mut settlement, report) = match result {
                Ok(answer) => Answered {
                    lease: &lease,
                    answer,
                    started: started.time_of_day,
                    config,
                }
                .conclude(fetched.page),
                Err(error) => (lease.settle(outcome_of_error(error)), PageReport::default()),
            };
            let options = config.options();
            let is_revisit = options.frontier.freshness.keeps_fresh && entry.is_refresh();
            if lease.wants_fingerprint || options.reports.fingerprints || is_revisit {
                settlement = settlement.with_fingerprint(fingerprint);
            }
            (settlement, Some(Box::new(report)), Vec::new())
        }
        Purpose::Robots(origin) => {
            let (settlement, unusable) = robots::conclude(&lease, origin, result, config);
            (settlement, None, unusable)
        }
        Purpose::Sitemap(origin) => {
            if let Ok(answer) = result
                && answer.exchange.is_none()
            {
                // Only an archive needs the body now, which may be large.
                answer.body = Vec::new();
            }
            let (settlement, record) = sitemaps::conclude(&lease, origin, result, fetched.sitemap, config);
            (settlement, None, vec![record])
        }
        Purpose::Address => {
            let settlement = lease.settle(Outcome::Done).with_address(fetched.address);
            (settlement, None, Vec::new())
        }
    };
    let report = PendingReport {
        started: started.instant,
        request,
        cookies_dropped: result.as_ref().map_or(0, |answer| answer.cookies_dropped),
        capture: Capture::from_result(&entry.url, started.time_of_day, fetched.result),
        entry: lease.entry,
        page,
        sitemaps,
    };
    (settlement, report)
}

/// Gives links the data of the entry that they were found in, if the crawl has it so.
fn inherit_data(links: &mut [Link], from: &Entry, config: &CrawlConfig) {
    if config.options().pages.inherit_data {
        links
            .iter_mut()
            .for_each(|link| link.data.clone_from(&from.metadata.data));
    }
}

/// `None` of an address.
pub(crate) fn kind_of(purpose: &Purpose) -> Option<ResourceKind> {
    match purpose {
        Purpose::Page => Some(ResourceKind::Page),
        Purpose::Robots(_) => Some(ResourceKind::Robots),
        Purpose::Sitemap(_) => Some(ResourceKind::Sitemap),
        Purpose::Address => None,
    }
}

fn request_record(kind: ResourceKind, lease: &Lease, result: &Result<Response, FetchError>) -> RequestRecord {
    let failure = match result {
        Ok(answer) => match outcome_of(answer, &lease.entry.purpose) {
            Outcome::Failed { failure, .. } => Some(failure.kind),
            Outcome::Rejected if kind == ResourceKind::Page => Some(FailureKind::Status),
            _ => None,
        },
        Err(error) => Some(error.failure().kind),
    };
    let answer = result.as_ref().ok();
    RequestRecord {
        kind,
        class: lease.entry.class,
        status: answer.map(|answer| answer.status),
        failure,
        took: answer.map_or(Duration::ZERO, |answer| answer.elapsed),
        bytes: answer.map_or(0, |answer| answer.body.len() as u64),
        pause: lease.pause,
        owed: lease.delay,
    }
}

fn head_of(answer: &Response, asked_for: &Purpose) -> Answer {
    Answer {
        status: answer.status,
        location: answer.location.clone(),
        retry_after: answer.retry_after,
        // The fetch task has refused those of pages that nobody asked for.
        conditional: *asked_for == Purpose::Page,
    }
}

/// `None` if its target cannot be crawled.
fn redirect_target(entry: &Entry, answer: &Response, config: &CrawlConfig) -> Option<Link> {
    let target = match answer.status {
        // The page itself, which has set cookies and wants them.
        200..=299 => entry.canonical_url()?,
        _ => head_of(answer, &entry.purpose).target(entry, &config.options().canonicalizer)?,
    };
    Some(Link {
        has_new_cookies: answer.target_cookies == TargetCookies::New,
        ..entry.redirected(target)
    })
}

fn origin_of(entry: &Entry) -> Option<Origin> {
    Origin::of(&Url::parse(&entry.url).ok()?)
}

/// Returns the outcome of an answer. A body that breaks off may be whole at the next request, and the missing part of a robots.txt may
/// forbid.
fn outcome_of(answer: &Response, asked_for: &Purpose) -> Outcome {
    let is_robots = matches!(asked_for, Purpose::Robots(_));
    let lacks = |reason: &TruncationReason| reason.is_temporary() || is_robots && *reason != TruncationReason::Size;
    let reason = answer.truncation.filter(lacks);
    match reason.filter(|_| (200..300).contains(&answer.status)) {
        Some(_) if is_robots => Outcome::failed(Failure::new(FailureKind::Incomplete, "the robots.txt is incomplete")),
        Some(reason) => {
            let why = format!("the body is truncated: {}", reason.name());
            Outcome::failed(Failure::new(FailureKind::Incomplete, why))
        }
        None => head_of(answer, asked_for).outcome(asked_for),
    }
}

fn outcome_of_error(error: &FetchError) -> Outcome {
    match error {
        FetchError::AddressForbidden => Outcome::NotFetched(NotFetched::AddressForbidden),
        error => Outcome::failed(error.failure()),
    }
}

fn bad_redirect(answer: &Response) -> Failure {
    let location = answer.location.as_deref().unwrap_or_default();
    let location: String = location.chars().take(SHOWN_LOCATION).collect();
    let why = format!(
        "status {} redirects to {location:?}, which cannot be crawled",
        answer.status
    );
    Failure::new(FailureKind::Redirect, why)
}
