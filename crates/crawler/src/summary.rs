//! The summary: the numbers at the end of a crawl.
//!
//! One word means one thing here, in the JSON lines, in the lines of [`RefusedReport`](crate::output::refused::RefusedReport) and in the
//! log:
//!
//! | word | unit | what is counted |
//! |---|---|---|
//! | page | URL | what is fetched for its own sake: neither robots.txt nor a sitemap |
//! | `pages` | page | those that answered 2xx |
//! | failed | page | those whose last result is an error: no answer or not all of one, a status of 400 or more, redirects that lead to no page, or an origin that was given up while they waited |
//! | retry | request | one that failed, and was queued again |
//! | not fetched | page | those that left the queue without a request, such as robots.txt forbids |
//! | refused | link | those that were not queued: by the scope, or for want of room or budget |
//! | not followed | link | those that were not offered to the frontier: `nofollow`, over the cap of a page, or no URL that can be crawled |
//! | seen | link | those to a URL that was offered before, the dropped ones included |
//! | dropped | URL | new ones that the seen-set wrongly took for seen: an estimate |
//! | left | page | those that still waited, or were in flight, when the crawl was interrupted |
//!
//! Every page that was queued ends in one way: answered, redirected, failed, not fetched, or left. Failed pages with a status of 400 or
//! more, or with a body that broke off in all attempts, have an answer as well; a redirect that leads to no page is both.

mod counts;
mod grouped;
mod shown;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use frontier::report::LinkCounts;
use frontier::{FailureKind, HostReport, NotFetched, Refusal, Report};

pub(crate) use counts::Counts;
use grouped::{Counted, rounded_down, rounded_up};

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

/// What a crawl did. The [module](self) says what each word means.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Why it came to its end.
    pub ending: Ending,
    /// From the first request to the last.
    pub elapsed: Duration,
    /// Pages that answered 2xx.
    pub pages: u64,
    /// Pages by the HTTP status of their final answer.
    pub by_status: BTreeMap<u16, u64>,
    /// Bytes of bodies that were read, after decompression.
    pub bytes: u64,
    /// Links that are not followed because they, or their page, say `nofollow`.
    pub links_nofollow: u64,
    /// Links that are not followed because their page has more than the cap.
    pub links_dropped: u64,
    /// Links that are neither `http` nor `https`, once for each page that has them.
    pub links_other_scheme: u64,
    /// Links, and targets of redirects, that are no URL, or too long a one.
    pub links_unresolvable: u64,
    /// Cookies that were too long, or too many for their origin or in all; only if cookies are kept.
    pub cookies_dropped: u64,
    /// Pages that were in flight when a stop ended the crawl at once.
    pub cut_short: u64,
    /// What was read of sitemaps.
    pub sitemaps: SitemapCounts,
    /// Values of selected fields that were left out or shortened.
    pub selected_cut: u64,
    /// Pages that were too costly to select all fields from.
    pub selected_incomplete: u64,
    /// Pages that failed in all their attempts, with a final answer such as a status 500.
    pub gave_up_answered: u64,
    /// The first [path prefixes](frontier::path_prefix) that were closed because of too many near-duplicates; how many
    /// there were in all is in the report.
    pub closed_prefixes: Vec<String>,
    /// Pages that failed, each once, by reason. [`FailureKind::Status`] counts all final statuses of 400 or more; what waited for an
    /// origin that was given up counts by the cause of that.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Requests that failed and were queued again, by reason.
    pub retried: BTreeMap<FailureKind, u64>,
    /// Bodies that were truncated, by reason.
    pub bodies_truncated: BTreeMap<TruncationReason, u64>,
    /// Bodies that were skipped: not HTML, and large or of unknown size.
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
    /// Sitemaps that could not be fetched, or are none.
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

    /// Returns how many pages failed.
    pub fn failed_pages(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Returns how many pages were left: those that still waited, and those that were in flight when a stop ended the crawl at once.
    pub fn pages_left(&self) -> u64 {
        self.report.queued_pages + self.cut_short
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
                left: self.pages_left(),
            });
        }
        if report.pages.lost_with_host > 0 {
            missing.push(Missing::GivenUp {
                pages: report.pages.lost_with_host,
                origins: report.origins_given_up,
            });
        }
        let unanswered = report.pages.gave_up.saturating_sub(self.gave_up_answered);
        if unanswered > 0 {
            missing.push(Missing::Failed { pages: unanswered });
        }
        let closed = report.not_fetched.get(&NotFetched::RobotsUnreachable);
        missing.extend(closed.map(|pages| Missing::RobotsUnreachable { pages: *pages }));
        let saturation = &report.saturation;
        if saturation.lost >= 1.0 {
            missing.push(Missing::Dropped {
                at_least: saturation.lost_at_least(),
                enough: rounded_up((saturation.estimated * 2.0) as u64),
            });
        }
        for (why, option) in [
            (Refusal::QueueFull, "--max-queued"),
            (Refusal::TooManyHosts, "--max-hosts"),
            (Refusal::Saturated, "--capacity"),
            (Refusal::HostDown, "--max-host-downtime"),
        ] {
            let of = |counts: &LinkCounts| counts.refused.get(&why).copied().unwrap_or_default();
            let links = of(&report.links) + of(&report.sitemaps);
            if links > 0 {
                missing.push(Missing::Refused { why, links, option });
            }
        }
        missing
    }

    /// Returns what the seen-set has cost: the reasons among [`missing`](Self::missing) that a larger capacity, or one that grows, would
    /// have prevented.
    pub fn lost_by_seen_set(&self) -> Vec<Missing> {
        let mut lost = self.missing();
        lost.retain(|one| {
            matches!(one, Missing::Dropped { .. })
                || matches!(one, Missing::Refused { why, .. } if *why == Refusal::Saturated)
        });
        lost
    }

    /// Says whether not a single page answered, with any status.
    pub fn is_empty(&self) -> bool {
        self.by_status.is_empty()
    }
}

/// One reason why a crawl is incomplete. Each names its unit: pages were queued, links and URLs never were.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// The crawl was stopped, its time was up, or its page budget was spent.
    Interrupted {
        /// Which.
        ending: Ending,
        /// Pages that were left: queued, or in flight when a stop ended the crawl at once. Neither robots.txt files nor sitemaps.
        left: u64,
    },
    /// Origins were away for too long, or did nothing but throttle, and were given up.
    GivenUp {
        /// Pages that waited for them, and have failed.
        pages: u64,
        /// Origins that were given up, those included that nothing waited for.
        origins: u64,
    },
    /// Pages got no answer, not all of one, or none but the wish for less traffic, in all their attempts.
    Failed {
        /// Pages.
        pages: u64,
    },
    /// Pages were not fetched because the robots.txt of their origin could not be fetched.
    RobotsUnreachable {
        /// Pages.
        pages: u64,
    },
    /// The seen-set wrongly took new URLs for seen, and dropped them. What only they link to is missing, too.
    Dropped {
        /// A lower bound for the distinct URLs ([`lost_at_least`](sieve::Saturation::lost_at_least)); 0 for a few that are only probable.
        at_least: u64,
        /// A capacity for all URLs that were met, twice over.
        enough: u64,
    },
    /// Links were refused because there was no room for them, or because their origin had been given up.
    Refused {
        /// What was full.
        why: Refusal,
        /// Links. A URL counts once for each page that links to it.
        links: u64,
        /// The option of the command that makes more room.
        option: &'static str,
    },
}

impl fmt::Display for Missing {
    /// What is missing, and in parentheses the option of the command that changes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted { ending, left } => {
                let raise = match ending {
                    Ending::BudgetSpent => " (raise --max-pages)",
                    Ending::TimeUp => " (raise --max-time)",
                    Ending::Drained | Ending::Stopped => "",
                };
                write!(f, "{ending}: {} left{raise}", Counted(*left, "page"))
            }
            Self::GivenUp { pages, origins } => write!(
                f,
                "given up: {} of {} (raise --max-host-downtime, --max-first-downtime or --max-throttles)",
                Counted(*pages, "page"),
                Counted(*origins, "origin")
            ),
            Self::Failed { pages } => {
                let pages = Counted(*pages, "page");
                write!(f, "no whole answer: {pages} (raise --max-attempts or --timeout)")
            }
            Self::RobotsUnreachable { pages } => {
                write!(f, "robots.txt could not be fetched: {}", Counted(*pages, "page"))
            }
            Self::Dropped { at_least, enough } => {
                f.write_str("seen-set: ")?;
                match at_least {
                    0 => f.write_str("probably a few URLs dropped")?,
                    _ => write!(f, "at least {} dropped", Counted(rounded_down(*at_least), "URL"))?,
                }
                write!(f, ", and what only they link to is missing (set --capacity {enough})")
            }
            Self::Refused { why, links, option } => {
                write!(f, "{why}: {} refused (raise {option})", Counted(*links, "link"))
            }
        }
    }
}
