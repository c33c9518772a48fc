//! The summary: the numbers at the end of a crawl.
//!
//! One word means one thing here, in the JSON lines, in the lines of [`RefusedReport`](crate::output::refused::RefusedReport) and in the
//! log:
//!
//! | word | unit | what is counted |
//! |---|---|---|
//! | page | URL | a fetched URL that is neither a robots.txt nor a sitemap |
//! | `pages` | page | answered 2xx |
//! | failed | page | the last result is an error: no answer, a body that broke off, a status of 400 or more, a redirect without a target, redirects without a page at their end, or an origin that was given up while the page was queued |
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
mod host;
mod missing;
mod remedy;
mod rows;
mod shown;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use frontier::report::LinkCounts;
use frontier::{Refusal, Report};

pub(crate) use answers::AnswerTimes;
pub use counts::{ANSWER_SECONDS, AnswerCounts, Counts, FailureCounts, OutputCounts, UnfollowedLinks};
pub(crate) use host::less_ahead;
pub use host::{HostFigures, HostTable};
pub use missing::{Missing, rounded_down};
pub use remedy::remedy;
pub use rows::{Rows, counted, duration, grouped, listed, size};

/// Why a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// An error has ended it, such as that of an output.
    Error,
}

impl Ending {
    /// Returns the name as one word in snake case.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// The name, and what people read.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Drained => ("drained", "nothing left to fetch"),
            Self::BudgetSpent => ("budget_spent", "page budget spent"),
            Self::TimeUp => ("time_up", "time is up"),
            Self::Stopped => ("stopped", "stopped"),
            Self::Error => ("error", "ended by an error"),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().1)
    }
}

/// The result of a crawl, in numbers. The [module](self) defines the words.
///
/// Each second, observers get the one of a crawl that would end now and have nothing left.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// Why it ended.
    pub ending: Ending,
    /// The duration of the crawl, without pauses. The runs of a crawl with a state directory add up.
    pub elapsed: Duration,
    /// The duration of the runs before this one.
    pub elapsed_before: Duration,
    /// What was counted. Its fields are fields of the summary, too.
    pub counts: Counts,
    /// The product token by which robots.txt is read: `*` stands for the groups for all crawlers. `None` if robots.txt is ignored.
    pub robots_name: Option<String>,
    /// The report of the frontier.
    pub report: Report,
    /// The hosts that take most time or hold the crawl up. With more than 10 000 hosts, it is looked at again at the end, each minute, and
    /// after 1, 2, 4 … seconds; else each second.
    pub host_table: Arc<HostTable>,
    /// Whether links between processes that share the crawl were lost with a state directory, in this process or another one.
    pub has_lost_links: bool,
    /// Batches of links that this process has sent again to others.
    pub repeated_batches: u64,
    /// The peak of the resident memory of the process, in bytes; `None` if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
}

impl Deref for Summary {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
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
    /// Sitemaps among the failed ones that something names, and that got no final answer.
    #[serde(default)]
    pub unanswered: u64,
    /// URLs of pages in them.
    pub urls: u64,
    /// URLs beyond the limit of a sitemap.
    pub urls_dropped: u64,
    /// Entries without a URL that can be fetched.
    pub urls_invalid: u64,
}

impl Summary {
    /// Makes a summary without times and hosts. It serves tests of observers, too.
    pub fn new(ending: Ending, counts: Counts, report: Report) -> Self {
        Self {
            ending,
            elapsed: Duration::ZERO,
            elapsed_before: Duration::ZERO,
            counts,
            robots_name: None,
            report,
            host_table: Arc::default(),
            has_lost_links: false,
            repeated_batches: 0,
            peak_memory_bytes: None,
        }
    }

    /// Returns the number of pages that were left: queued for the first time, or in flight when a stop ended the crawl at once.
    pub fn pages_left(&self) -> u64 {
        self.report.queued_pages.saturating_sub(self.report.revisits) + self.cut_short
    }

    /// Returns the number of pages that answered 2xx per second, over the last 20 to 40 seconds.
    pub fn recent_pages_per_second(&self) -> f64 {
        self.recent.pages_per_second(self.elapsed, self.pages)
    }

    /// Returns the mean number of pages per second. The time of pages that were fetched again counts, and they do not.
    pub fn mean_pages_per_second(&self) -> f64 {
        self.pages as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Returns whether a process that shares its crawl has nothing left to fetch, or has spent its page budget: it ends when the others do. One
    /// that keeps its pages fresh does not end by itself.
    pub fn waits_for_others(&self) -> bool {
        self.report.waits_for_others() && self.freshness.is_none()
    }

    /// Returns the links that stand on pages: those of the report without seeds and targets of redirects.
    pub fn found_links(&self) -> LinkCounts {
        let mut links = self.report.links.clone();
        let [queued, seen] = self.links_not_on_pages;
        links.queued = links.queued.saturating_sub(queued);
        links.seen = links.seen.saturating_sub(seen);
        links
    }

    /// Returns what to do about pages that may be there with cookies only, or about a crawl that ended at its first page; `None` if it went on, or
    /// was not let to its end. `name` returns the
    /// name of an option by its field.
    pub fn hint(&self, name: &dyn Fn(&str) -> String) -> Option<String> {
        if self.failures.wants_cookies > 0 {
            let (pages, cookies) = (counted(self.failures.wants_cookies, "page"), name("cookies"));
            return Some(format!(
                "{pages} led back to an earlier URL, and the site sets cookies: {cookies} may help"
            ));
        }
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
            let (include, report) = (name("include"), name("output_include"));
            return Some(format!(
                "no link of the page matches {include}, which pages that lead further must match, too: {report} follows all, and \
                 writes only what matches"
            ));
        }
        if self.unfollowed.nofollow > 0 {
            let option = name("follow_nofollow");
            return Some(format!("the links of the page say nofollow: {option} follows them"));
        }
        let others = self.unfollowed.other_scheme + self.unfollowed.unresolvable;
        let text = match (self.failures.not_html.keys().next(), links.seen) {
            (Some(name), _) => format!("the page is not HTML but {name}, in which no links are looked for"),
            _ if self.answers.bytes == 0 => "the page is empty".to_owned(),
            (None, 0) if others > 0 => "the page has only links that cannot be crawled, such as mailto:".to_owned(),
            (None, 0) => "the page has no links in its HTML: those that JavaScript makes are not found".to_owned(),
            (None, _) => "the page links only to itself: those that JavaScript makes are not found".to_owned(),
        };
        links.refused.is_empty().then_some(text)
    }

    /// Returns whether a page was fetched: it answered 2xx, or 304 because it has not changed.
    pub fn has_pages(&self) -> bool {
        self.pages > 0 || self.by_status.contains_key(&304)
    }

    /// Returns whether no page answered, with any status.
    pub fn is_empty(&self) -> bool {
        self.by_status.is_empty()
    }
}

/// Returns the resident memory of this process in bytes (Linux: `VmRSS` of proc_pid_status(5)); `None` where the system does not say it.
pub fn resident_memory_bytes() -> Option<u64> {
    memory_bytes("VmRSS:")
}

pub(crate) fn peak_memory_bytes() -> Option<u64> {
    memory_bytes("VmHWM:")
}

fn memory_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
