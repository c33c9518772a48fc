//! The numbers at the end.

mod counts;
mod shown;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use frontier::report::LinkCounts;
use frontier::{FailureKind, HostReport, NotFetched, Refusal, Report};

pub(crate) use counts::Counts;

use crate::fetch::TruncationReason;

/// Why a crawl came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// Nothing was left to fetch.
    Drained,
    /// The page budget was spent.
    BudgetSpent,
    /// The time was up.
    TimeUp,
    /// It was asked to stop.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drained => "nothing left to fetch",
            Self::BudgetSpent => "page budget spent",
            Self::TimeUp => "time is up",
            Self::Stopped => "stopped",
        })
    }
}

/// What a crawl did.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Why it came to its end.
    pub ending: Ending,
    /// From the first request to the last.
    pub elapsed: Duration,
    /// Pages that answered 2xx.
    pub pages: u64,
    /// Final answers by HTTP status.
    pub by_status: BTreeMap<u16, u64>,
    /// Bytes of bodies that were read, after decompression.
    pub bytes: u64,
    /// Links that pages said not to follow.
    pub links_nofollow: u64,
    /// Links beyond the cap of a page.
    pub links_dropped: u64,
    /// Links that are neither `http` nor `https`, once for each page that has them.
    pub links_other_scheme: u64,
    /// Links, and targets of redirects, that are no URL, or too long a one.
    pub links_unresolvable: u64,
    /// Cookies that were too long, or too many for their origin or in all; only if cookies are kept.
    pub cookies_dropped: u64,
    /// Leases that were cut short by a stop.
    pub cut_short: u64,
    /// What was read of sitemaps.
    pub sitemaps: SitemapCounts,
    /// Values of selected fields that were left out or shortened.
    pub selected_cut: u64,
    /// Pages that were too costly to select all fields from.
    pub selected_incomplete: u64,
    /// Pages that failed for good, but with an answer, such as a status 500.
    pub gave_up_answered: u64,
    /// The first [path prefixes](frontier::path_prefix) that were closed because of too many near-duplicates; how many
    /// there were in all is in the report.
    pub closed_prefixes: Vec<String>,
    /// Pages that failed for good, by what went wrong last.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Requests that failed and were tried again, by what went wrong.
    pub retried: BTreeMap<FailureKind, u64>,
    /// Bodies that were truncated, by reason.
    pub bodies_truncated: BTreeMap<TruncationReason, u64>,
    /// Bodies that were not read: not HTML, and large or of unknown size.
    pub bodies_skipped: u64,
    /// The frontier's numbers.
    pub report: Report,
    /// What each host was asked, and how politely; the most asked first.
    pub hosts: Vec<HostReport>,
    /// The first thing that went wrong, for a crawl that fetched nothing.
    pub first_failure: Option<String>,
    /// The most memory the process had resident, in bytes, where the system tells.
    pub peak_memory_bytes: Option<u64>,
}

/// What became of the sitemaps that were asked for, and of the URLs in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct SitemapCounts {
    /// Sitemaps that were read.
    pub read: u64,
    /// Sitemaps among them whose end could not be read: too long, or broken.
    pub broken: u64,
    /// Sitemaps that could not be had, or are none.
    pub failed: u64,
    /// URLs of pages in them.
    pub urls: u64,
    /// URLs beyond the cap of a sitemap.
    pub urls_dropped: u64,
    /// Entries without a URL that could be fetched.
    pub urls_invalid: u64,
}

impl Summary {
    /// Makes the summary of a crawl that has fetched nothing, such as to test an observer.
    pub fn new(ending: Ending, report: Report) -> Self {
        Self {
            peak_memory_bytes: None,
            ..Counts::default().into_summary(ending, report)
        }
    }

    /// Returns the pages per second.
    pub fn pages_per_second(&self) -> f64 {
        self.pages as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Returns what is missing, and why; empty if the crawl is complete: all that its seeds lead to, within the scope and the limits on
    /// traps, was fetched or has given a final answer.
    pub fn missing(&self) -> Vec<Missing> {
        let report = &self.report;
        let mut missing = Vec::new();
        if self.ending != Ending::Drained {
            missing.push(Missing::Interrupted {
                ending: self.ending,
                left: report.queued + self.cut_short,
            });
        }
        if report.pages.lost_with_host > 0 {
            missing.push(Missing::GivenUp {
                urls: report.pages.lost_with_host,
                origins: report.origins_given_up,
            });
        }
        let unanswered = report.pages.gave_up.saturating_sub(self.gave_up_answered);
        if unanswered > 0 {
            missing.push(Missing::Failed { urls: unanswered });
        }
        let closed = report.not_fetched.get(&NotFetched::RobotsUnreachable);
        missing.extend(closed.map(|urls| Missing::RobotsUnreachable { urls: *urls }));
        let (lost, rate) = (report.saturation.lost, report.saturation.rate);
        if lost >= 1.0 {
            // A sum of geometric variables with mean f/(1-f): two standard deviations below the estimate.
            let deviation = (lost / (1.0 - rate).max(f64::MIN_POSITIVE)).sqrt();
            missing.push(Missing::Dropped {
                at_least: (lost - 2.0 * deviation).max(1.0) as u64,
            });
        }
        for (why, option) in [
            (Refusal::QueueFull, "--max-queued"),
            (Refusal::TooManyHosts, "--max-hosts"),
            (Refusal::Saturated, "--capacity"),
            (Refusal::HostDead, "--max-host-downtime"),
        ] {
            let of = |counts: &LinkCounts| counts.refused.get(&why).copied().unwrap_or_default();
            let urls = of(&report.links) + of(&report.sitemaps);
            if urls > 0 {
                missing.push(Missing::Refused { why, urls, option });
            }
        }
        missing
    }

    /// Says whether not a single page answered, with any status.
    pub fn is_empty(&self) -> bool {
        self.by_status.is_empty()
    }
}

/// One reason why a crawl is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// It was stopped, its time was up, or its page budget was spent.
    Interrupted {
        /// Which.
        ending: Ending,
        /// URLs that were left.
        left: u64,
    },
    /// Origins were away for too long, and URLs waited for them.
    GivenUp {
        /// The URLs.
        urls: u64,
        /// The origins, those included that nothing waited for.
        origins: u64,
    },
    /// URLs got no answer, or not all of one, in all their attempts.
    Failed {
        /// How many.
        urls: u64,
    },
    /// URLs were not fetched because their robots.txt could not be fetched.
    RobotsUnreachable {
        /// How many.
        urls: u64,
    },
    /// New URLs were wrongly taken for seen, and what only they lead to was never met.
    Dropped {
        /// Two standard deviations below the estimate, and one at least.
        at_least: u64,
    },
    /// Links were refused because there was no room for them, or because their host had been given up.
    Refused {
        /// What was full.
        why: Refusal,
        /// How many links were refused.
        urls: u64,
        /// The option that makes more room.
        option: &'static str,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted { ending, left } => write!(f, "{ending}, {left} URLs left"),
            Self::GivenUp { urls, origins } => write!(f, "given up: {urls} URLs of {origins} hosts"),
            Self::Failed { urls } => write!(f, "no whole answer: {urls} URLs"),
            Self::RobotsUnreachable { urls } => write!(f, "robots.txt not fetched: {urls} URLs"),
            Self::Dropped { at_least } => write!(
                f,
                "seen-set: at least {at_least} URLs dropped, and whatever only they lead to (give a larger --capacity)"
            ),
            Self::Refused { why, urls, option } => write!(f, "{why}: {urls} links refused (give a larger {option})"),
        }
    }
}
