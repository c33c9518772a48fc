//! The summary: the numbers at the end of a crawl.
//!
//! One word means one thing here, in the JSON lines, in the lines of [`RefusedReport`](crate::output::refused::RefusedReport) and in the
//! log:
//!
//! | word | unit | what is counted |
//! |---|---|---|
//! | page | URL | a fetched URL that is neither a robots.txt nor a sitemap |
//! | `pages` | page | answered 2xx |
//! | failed | page | the last result is an error: no answer, a body that broke off, a status of 400 or more, redirects without a page at their end, or an origin that was given up while the page was queued |
//! | retry | request | failed, and its URL was queued again |
//! | not fetched | page | left the queue without a request, for instance because robots.txt forbids it |
//! | refused | link | not queued: out of scope, over a budget, or the queue was full |
//! | not followed | link | not offered to the frontier: `nofollow`, over the limit of a page, or not a URL that can be crawled |
//! | seen | link | to a URL that was offered before, or that the seen-set dropped |
//! | dropped | URL | new, but a false positive of the seen-set: an estimate |
//! | left | page | queued or in flight when the crawl was interrupted |
//!
//! Every queued page ends in one way: answered, redirected, failed, not fetched, or left. There are two exceptions. A failed page with
//! a status of 400 or more, or with a body that broke off in all attempts, counts as answered too. A redirect without a page at its end
//! counts as redirected and as failed.

mod answers;
mod counts;
mod missing;
mod remedy;
mod rows;
mod shown;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use frontier::report::LinkCounts;
use frontier::{AwayReport, FailureKind, Frontier, HostReport, NotFetched, Refusal, Report, Time};

pub use answers::BusyHost;
use missing::rounded_up;
pub use missing::{Missing, rounded_down};
pub use remedy::remedy;
pub use rows::{Rows, counted, grouped, listed};
pub use shown::size;
pub(crate) use {answers::AnswerTimes, counts::Counts};

use crate::fetch::TruncationReason;

/// The refusals by a limit, and the options that raise them. The others are the scope of the crawl, which repeated path segments are
/// part of: the URLs of a loop of links have them.
const LIMITS: [(Refusal, &str); 12] = [
    (Refusal::QueueFull, "max_queued"),
    (Refusal::TooManyHosts, "max_hosts"),
    (Refusal::Saturated, "capacity"),
    (Refusal::HostDown, "max_host_downtime"),
    (Refusal::HostBudget, "max_pages_per_host"),
    (Refusal::TooManySitemaps, "max_sitemaps"),
    (Refusal::TooManyQueries, "max_queries_per_path"),
    (Refusal::TooManySubdomains, "max_hosts_per_site"),
    (Refusal::TooManyPorts, ""),
    (Refusal::TooManyHops, "max_hops"),
    (Refusal::UrlTooLong, "max_url_bytes"),
    (Refusal::NearDuplicates, "max_near_duplicates_in_all"),
];

/// Why a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// Nothing was left to fetch.
    Drained,
    /// The page budget was spent.
    BudgetSpent,
    /// The time limit was reached.
    TimeUp,
    /// It was stopped.
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

/// The result of a crawl, in numbers. The [module](self) defines the words.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Why it ended.
    pub ending: Ending,
    /// The duration of the crawl. The runs of a crawl with a state directory add up.
    pub elapsed: Duration,
    /// Pages that answered 2xx.
    pub pages: u64,
    /// Pages that answered 2xx per second, over the last 20 to 40 seconds.
    pub recent_pages_per_second: f64,
    /// Pages by the HTTP status of their final answer.
    pub by_status: BTreeMap<u16, u64>,
    /// Bytes of bodies that were read, after decompression.
    pub bytes: u64,
    /// Links that are not followed because they, or their page, say `nofollow`.
    pub links_nofollow: u64,
    /// Links that are not followed because their page has more links than the limit.
    pub links_dropped: u64,
    /// Links that are neither `http` nor `https`, once for each page that has them.
    pub links_other_scheme: u64,
    /// Links and targets of redirects that are not a URL, or a too long one.
    pub links_unresolvable: u64,
    /// Seeds and targets of redirects among the links of the report: queued, and seen before. They stand on no page.
    pub links_not_on_pages: [u64; 2],
    /// Cookies that were dropped: too long, or over the limit of their origin or of the crawl. 0 unless cookies are kept.
    pub cookies_dropped: u64,
    /// Pages that were in flight when a stop ended the crawl at once.
    pub cut_short: u64,
    /// Counts of pages that were fetched again. They are not among the `pages`, nor in `by_status`.
    pub refreshed: RefreshCounts,
    /// Counts of sitemaps and of the URLs in them.
    pub sitemaps: SitemapCounts,
    /// Values of selected fields that were left out or shortened.
    pub selected_cut: u64,
    /// Pages whose selection was stopped because it cost too much.
    pub selected_incomplete: u64,
    /// Pages that failed in all attempts, and have a final answer such as a status 500.
    pub gave_up_answered: u64,
    /// The first [path prefixes](frontier::FrontierConfig::max_near_duplicates) that were closed because of too many near-duplicates. The report has
    /// their total number.
    pub closed_prefixes: Vec<String>,
    /// The first origins that were given up. The report has their total number.
    pub given_up_origins: Vec<String>,
    /// The causes of all origins that were given up.
    pub given_up_causes: BTreeSet<FailureKind>,
    /// Pages that failed, each once, by reason. [`FailureKind::Status`] counts all final statuses of 400 or more. A page whose origin
    /// was given up counts under the failure of the origin.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Requests that failed and were queued again, by reason.
    pub retried: BTreeMap<FailureKind, u64>,
    /// Bodies that were truncated, by reason.
    pub bodies_truncated: BTreeMap<TruncationReason, u64>,
    /// Bodies that were skipped: not HTML, and large or of unknown size.
    pub bodies_skipped: u64,
    /// Pages among the `pages` that were not parsed because they are not HTML, by media type. Further types count as `others`.
    pub not_html: BTreeMap<String, u64>,
    /// The product token by which robots.txt is read: `*` stands for the groups for all crawlers. `None` if robots.txt is ignored.
    pub robots_name: Option<String>,
    /// The report of the frontier.
    pub report: Report,
    /// The requests and pauses of each host; the host with the most requests first.
    pub hosts: Vec<HostReport>,
    /// The hosts with the most waiting entries, then with the most requests, and how they answer.
    pub busiest: Vec<BusyHost>,
    /// Origins that were away at the end, those with the most waiting entries first.
    #[serde(skip)]
    pub away: Vec<AwayReport>,
    /// The time at which the numbers were true.
    pub as_of: Time,
    /// The first failure, which explains a crawl that fetched nothing.
    pub first_failure: Option<String>,
    /// The peak of the resident memory of the process, in bytes; `None` if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
}

/// Counts of pages that were fetched again because their last fetch was old. A page counts once for each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RefreshCounts {
    /// Pages with a final answer.
    pub pages: u64,
    /// Pages among them that have not changed.
    pub unchanged: u64,
    /// Pages among them that are gone: 404 or 410.
    pub gone: u64,
    /// Pages among them that answered with another status of 400 or more, or with a redirect that leads to no page.
    pub failed: u64,
}

/// Counts of the requested sitemaps, and of the URLs in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SitemapCounts {
    /// Sitemaps that were read.
    pub read: u64,
    /// Sitemaps among them that were read only in part: too long, or broken.
    pub broken: u64,
    /// Sitemaps that could not be fetched, or that are not sitemaps.
    pub failed: u64,
    /// URLs of pages in them.
    pub urls: u64,
    /// URLs beyond the limit of a sitemap.
    pub urls_dropped: u64,
    /// Entries without a URL that can be fetched.
    pub urls_invalid: u64,
}

impl Summary {
    /// Makes the summary of a crawl that has fetched nothing. It serves tests of observers.
    pub fn new(ending: Ending, report: Report) -> Self {
        Self {
            peak_memory_bytes: None,
            ..Counts::default().into_summary(ending, Duration::ZERO, report)
        }
    }

    /// Returns the number of pages that failed.
    pub fn failed_pages(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Returns the number of pages that were left: queued, or in flight when a stop ended the crawl at once.
    pub fn pages_left(&self) -> u64 {
        self.report.queued_pages + self.cut_short
    }

    /// Adds what the frontier knows of its hosts.
    pub(crate) fn with_hosts(mut self, answer_times: &AnswerTimes, frontier: &Frontier, as_of: Time) -> Self {
        self.busiest = answer_times.busiest(frontier);
        self.away = frontier.away().collect();
        self.away.sort_by_key(|away| (Reverse(away.waiting), away.since));
        Self { as_of, ..self }
    }

    /// Returns the mean number of pages per second. The time of pages that were fetched again counts, and they do not.
    pub fn mean_pages_per_second(&self) -> f64 {
        self.pages as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Returns the reasons why the crawl is incomplete, or nothing if it is complete. A crawl is complete if every page that its seeds
    /// reach within the scope has a final answer: whatever a limit took away is missing. The seen-set counts as complete below a
    /// [possible loss](sieve::Saturation::may_have_lost).
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
                causes: self.given_up_causes.clone(),
            });
        }
        let unanswered = report.pages.gave_up.saturating_sub(self.gave_up_answered);
        if unanswered > 0 {
            missing.push(Missing::Failed { pages: unanswered });
        }
        let closed = report.not_fetched.get(&NotFetched::RobotsUnreachable);
        missing.extend(closed.map(|pages| Missing::RobotsUnreachable { pages: *pages }));
        let saturation = &report.saturation;
        if saturation.may_have_lost() {
            missing.push(Missing::Dropped {
                at_least: saturation.lost_at_least(),
                enough: rounded_up((saturation.estimated * 2.0) as u64),
            });
        }
        let mut is_lifted = report.refused_earlier;
        for (why, option) in LIMITS {
            let of = |counts: &LinkCounts| counts.refused.get(&why).copied().unwrap_or_default();
            let links = of(&report.links) + of(&report.sitemaps);
            // All origins have been asked again since.
            if why == Refusal::HostDown && report.origins_given_up == 0 {
                is_lifted |= links > 0;
            } else if links > 0 {
                missing.push(Missing::Refused { why, links, option });
            }
        }
        for (why, option) in [
            (NotFetched::NearDuplicates, "max_near_duplicates_in_all"),
            (NotFetched::HostBudget, "max_pages_per_host"),
        ] {
            let pages = report.not_fetched.get(&why);
            missing.extend(pages.map(|pages| Missing::NotFetched {
                why,
                pages: *pages,
                option,
            }));
        }
        let long = self.bodies_truncated.get(&TruncationReason::Size);
        let (links, bodies, sitemaps) = (self.links_dropped, long.copied().unwrap_or_default(), &self.sitemaps);
        let (urls, parts) = (sitemaps.urls_dropped, sitemaps.broken);
        let cut = |kind, why, number, unit, option| Missing::Cut {
            kind,
            why,
            number,
            unit,
            option,
        };
        let cuts = [
            cut(
                "links_dropped",
                "too many links on a page",
                links,
                "link",
                "max_links_per_page",
            ),
            cut("bodies_truncated", "body too long", bodies, "page", "max_body_bytes"),
            cut(
                "sitemap_urls_dropped",
                "too many URLs in a sitemap",
                urls,
                "URL",
                "max_sitemap_urls",
            ),
            cut(
                "sitemaps_broken",
                "sitemap too long or broken",
                parts,
                "sitemap",
                "max_sitemap_bytes",
            ),
        ];
        let has_bitten = |one: &Missing| !matches!(one, Missing::Cut { number: 0, .. });
        missing.extend(cuts.into_iter().filter(has_bitten));
        if is_lifted {
            missing.push(Missing::RefusedEarlier);
        }
        missing
    }

    /// Returns how many pages, links and URLs are lost for whatever reason, with repeats, those of the seen-set as an estimate. What is still
    /// queued does not count; pages without an answer do, though a later run tries them again.
    pub fn lost(&self) -> f64 {
        let lost = |one: &Missing| match one {
            Missing::Dropped { .. } => 0,
            other => other.lost(),
        };
        self.report.saturation.lost + self.missing().iter().map(lost).sum::<u64>() as f64
    }

    /// Returns at least how many pages are lost, those of the seen-set at a confidence of 97 %. Links do not count.
    pub fn lost_at_least(&self) -> u64 {
        self.missing().iter().map(Missing::lost_at_least).sum()
    }

    /// Returns whether pages have no answer, or no whole one: a later run over the same state directory tries them again.
    pub fn has_unanswered(&self) -> bool {
        let is_unanswered = |one: &Missing| {
            matches!(
                one,
                Missing::GivenUp { .. } | Missing::Failed { .. } | Missing::RobotsUnreachable { .. }
            )
        };
        self.missing().iter().any(is_unanswered)
    }

    /// Returns the losses by the seen-set: the reasons among [`missing`](Self::missing) that a larger or a growing capacity prevents.
    pub fn lost_by_seen_set(&self) -> Vec<Missing> {
        let mut lost = self.missing();
        lost.retain(|one| {
            matches!(one, Missing::Dropped { .. })
                || matches!(one, Missing::Refused { why, .. } if *why == Refusal::Saturated)
        });
        lost
    }

    /// Returns the links that stand on pages: those of the report without seeds and targets of redirects.
    pub fn found_links(&self) -> LinkCounts {
        let mut links = self.report.links.clone();
        let [queued, seen] = self.links_not_on_pages;
        links.queued = links.queued.saturating_sub(queued);
        links.seen = links.seen.saturating_sub(seen);
        links
    }

    /// Returns why a crawl may have ended at its first page, and what to do; `None` if it went on, or was not let to its end. `name` returns the
    /// name of an option by its field.
    pub fn hint(&self, name: &dyn Fn(&str) -> String) -> Option<String> {
        let links = self.found_links();
        let is_alone = self.pages == 1 && self.report.pages.done == 1 && self.ending == Ending::Drained;
        if !is_alone || links.queued > 0 || self.sitemaps.urls > 0 {
            return None;
        }
        let is_of_other_site = links.refused.contains_key(&Refusal::OtherSite);
        if !links.refused.is_empty() && links.refused.keys().all(|why| why.is_out_of_reach()) {
            let scope = name("scope.reach");
            let wider = match is_of_other_site {
                true => format!("{scope} any follows them"),
                false => format!("{scope} site follows those to hosts of the same site, {scope} any all"),
            };
            return Some(format!("all links of the page lead out of the scope: {wider}"));
        }
        if !links.refused.is_empty() && links.refused.keys().all(|why| *why == Refusal::NotIncluded) {
            let (include, report) = (name("include"), name("report"));
            return Some(format!(
                "no link of the page matches {include}, which pages that lead further must match, too: {report} follows all, and \
                 writes only what matches"
            ));
        }
        if self.links_nofollow > 0 {
            let option = name("follow_nofollow");
            return Some(format!("the links of the page say nofollow: {option} follows them"));
        }
        let text = "the page has no links in its HTML: those that JavaScript makes are not found";
        (links.offered() == 0).then(|| text.to_owned())
    }

    /// Returns whether a page was fetched: it answered 2xx, or 304 in a recrawl.
    pub fn has_pages(&self) -> bool {
        self.pages > 0 || self.by_status.contains_key(&304)
    }

    /// Returns whether no page answered, with any status.
    pub fn is_empty(&self) -> bool {
        self.by_status.is_empty()
    }
}
