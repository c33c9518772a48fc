//! The counters of a running crawl.
//!
//! | to | see |
//! |---|---|
//! | count an event | `engine/observers.rs` |
//! | count what no event has | links not followed, cookies, media types: `engine/reports.rs`; what a stop cuts short: `engine.rs`; outputs begun anew: `crawl.rs` |
//! | take back what is fetched again | [`Counts::will_be_fetched`], called by `engine/refreshing.rs` |
//! | show a number | `shown.rs` for all; what is missing: `missing.rs` |
//! | add a field, or change the bounds of one | it is stored: `VERSION` in `state.rs` goes up |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use frontier::{FailureKind, FreshnessReport, Link, NotFetched, Notice, PageEnd, StoredPage, Verdict};

use super::{RefreshCounts, SitemapCounts};
use crate::fetch::{BodyExtent, TruncationReason};
use crate::records::{PageRecord, SitemapEnd, SitemapRecord};

/// The maximum number of closed prefixes, and of origins that were given up, that the summary names.
const NAMES_SHOWN: usize = 5;

/// The most media types that are counted, and the longest name of one, in bytes.
const TYPES_NAMED: usize = 20;
const LONGEST_TYPE: usize = 100;

/// The greatest depth that is counted of its own. Deeper pages count with it.
const DEEPEST: usize = 31;

/// The upper bounds by which times of answers are counted, in seconds.
pub const ANSWER_SECONDS: [f64; 11] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// What a crawl counts, in all its runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Pages that answered 2xx.
    pub pages: u64,
    /// Pages by the HTTP status of their final answer.
    pub by_status: BTreeMap<u16, u64>,
    /// What these answers were like; its bytes and pauses are of all requests.
    pub answers: AnswerCounts,
    /// Links that were not offered to the frontier.
    pub unfollowed: UnfollowedLinks,
    /// Cookies that were dropped: too long, or over the limit of their origin or of the crawl. 0 unless cookies are kept.
    pub cookies_dropped: u64,
    /// Pages that were in flight when a stop ended this run at once: a later run fetches them.
    #[serde(skip)]
    pub cut_short: u64,
    /// Counts of pages that were fetched again. They are not among the `pages`, nor in `by_status`.
    pub refreshed: RefreshCounts,
    /// How fresh its pages were in the last second, if they are [kept fresh](frontier::FreshnessConfig::keeps_fresh).
    pub freshness: Option<FreshnessReport>,
    /// Counts of sitemaps and of the URLs in them.
    pub sitemaps: SitemapCounts,
    /// What the outputs lack.
    pub outputs: OutputCounts,
    /// What failed or was not read, and why.
    pub failures: FailureCounts,
    /// Seeds and targets of redirects among the links of the report: queued, and seen before. They stand on no page.
    pub(super) links_not_on_pages: [u64; 2],
    pub(crate) recent: RecentPace,
}

/// What the final answers of pages were like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnswerCounts {
    /// Pages by depth, from 0; the 32nd number has all deeper ones, too. It ends with the last that is not 0. A page that a later run asks
    /// again counts again, here and by time.
    pub by_depth: Vec<u64>,
    /// The same pages by the time that their answer took: up to each of the [`ANSWER_SECONDS`], and above all. It ends with the last that
    /// is not 0.
    pub by_time: Vec<u64>,
    /// By how many seconds a host was left alone for longer than it was owed, at least; `None` before the second request to a host.
    pub least_slack_seconds: Option<f64>,
    /// Bytes of bodies that were read, after decompression.
    pub bytes: u64,
}

/// Links that were not offered to the frontier.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnfollowedLinks {
    /// Links that are not followed because they, or their page, say `nofollow`.
    pub nofollow: u64,
    /// Links that are not followed because their page has more links than the limit.
    pub dropped: u64,
    /// Links that are neither `http` nor `https`, once for each page that has them.
    pub other_scheme: u64,
    /// Links and targets of redirects that are not a URL, or a too long one.
    pub unresolvable: u64,
}

/// What the outputs lack.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputCounts {
    /// Outputs of earlier runs that were [begun anew](crate::Crawl::begin_output_anew): lines of them are missing.
    pub lost: u64,
    /// Values of selected fields that were left out or shortened.
    pub selected_cut: u64,
    /// Pages whose selection was stopped because it cost too much.
    pub selected_incomplete: u64,
}

/// What failed or was not read, and why.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailureCounts {
    /// Pages that failed in all attempts, and have a final answer such as a status 500.
    pub gave_up_answered: u64,
    /// Pages that were throttled to the end.
    pub gave_up_throttled: u64,
    /// The first [path prefixes](frontier::TrapConfig::max_near_duplicates) that were closed because of too many near-duplicates. The report has
    /// their total number.
    pub closed_prefixes: Vec<String>,
    /// The first origins that were given up. The report has their total number.
    pub given_up_origins: Vec<String>,
    /// The causes of all origins that were given up.
    pub given_up_causes: BTreeSet<FailureKind>,
    /// Pages that failed, each once, by reason. [`FailureKind::Status`] counts all final statuses but 2xx, 304 and redirects, and those that throttled. A page whose origin
    /// was given up counts under the failure of the origin.
    pub by_kind: BTreeMap<FailureKind, u64>,
    /// Requests that failed and were queued again, by reason.
    pub retried: BTreeMap<FailureKind, u64>,
    /// Bodies that were truncated, by reason.
    pub bodies_truncated: BTreeMap<TruncationReason, u64>,
    /// Bodies that were skipped: not HTML, and large or of unknown size.
    pub bodies_skipped: u64,
    /// Pages among the `pages` that were not parsed because they are not HTML, by media type. Further types count as `others`.
    pub not_html: BTreeMap<String, u64>,
    /// The first failure, which explains a crawl that fetched nothing.
    pub first_failure: Option<String>,
    /// Whether any other failure explains more, and replaces it: this machine is the cause, or a URL was seen before.
    is_first_failure_weak: bool,
    /// Pages that lead back to themselves and whose site sets cookies, which are not kept: those of this run.
    #[serde(skip)]
    pub wants_cookies: u64,
}

/// The pages and the time at the last two starts of a window, from which the recent rate is counted.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct RecentPace {
    from: (Duration, u64),
    next: (Duration, u64),
}

impl RecentPace {
    /// The length of a window. The recent rate is of the last one or two of them.
    const WINDOW: Duration = Duration::from_secs(20);

    pub(crate) fn note(&mut self, elapsed: Duration, pages: u64) {
        if elapsed >= self.next.0 + Self::WINDOW {
            self.from = self.next;
            self.next = (elapsed, pages);
        }
    }

    pub(super) fn pages_per_second(&self, elapsed: Duration, pages: u64) -> f64 {
        let seconds = elapsed.saturating_sub(self.from.0).as_secs_f64();
        pages.saturating_sub(self.from.1) as f64 / seconds.max(0.001)
    }
}

impl Counts {
    /// Takes back the failure of a page that is fetched again.
    pub(crate) fn will_be_fetched(&mut self, page: &StoredPage) {
        let failures = &mut self.failures;
        let kind = match page.end {
            PageEnd::GaveUp(kind) => kind,
            PageEnd::NotFetched(NotFetched::HostDown) => {
                take_back(&mut failures.by_kind, page.cause.unwrap_or(FailureKind::HostDown));
                return;
            }
            _ => return,
        };
        let answered = match kind {
            FailureKind::Status => Some(&mut failures.gave_up_answered),
            FailureKind::Throttled => Some(&mut failures.gave_up_throttled),
            _ => None,
        };
        let is_refresh = page.was_fetched();
        // The answer to a refresh was not counted.
        if answered.is_none() || !is_refresh {
            take_back(&mut failures.by_kind, kind);
        }
        if let Some(count) = answered {
            *count = count.saturating_sub(1);
        }
        if is_refresh {
            return;
        }
        if let Some(status) = page.answer.status
            && take_back(&mut self.by_status, status)
            && (200..300).contains(&status)
        {
            self.pages = self.pages.saturating_sub(1);
        }
        let cut = &mut failures.bodies_truncated;
        if kind == FailureKind::Incomplete && !take_back(cut, TruncationReason::Connection) {
            take_back(cut, TruncationReason::Time);
        }
    }

    /// Forgets which origins were given up, and what failed first: a new run asks again.
    pub(crate) fn forget_failures_of_origins(&mut self) {
        self.failures.given_up_origins.clear();
        self.failures.given_up_causes.clear();
        self.failures.first_failure = None;
    }

    /// Returns the number of pages that failed.
    pub fn failed_pages(&self) -> u64 {
        self.failures.by_kind.values().sum()
    }

    /// Returns the numbers of [`by_time`](AnswerCounts::by_time), all twelve, each with its upper bound in seconds: none for the last.
    pub fn answer_times(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let bounds = ANSWER_SECONDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.answers.by_time.iter().copied().chain(std::iter::repeat(0)))
    }

    pub(crate) fn count_page(&mut self, record: &PageRecord) {
        self.answers.bytes += record.bytes;
        if let Some(is_unchanged) = record.unchanged {
            self.refreshed.pages += 1;
            self.refreshed.unchanged += u64::from(is_unchanged);
            match record.status {
                404 | 410 => self.refreshed.gone += 1,
                _ if record.is_error() => self.refreshed.failed += 1,
                _ => {}
            }
            return;
        }
        *self.by_status.entry(record.status).or_default() += 1;
        count_at(&mut self.answers.by_depth, (record.depth as usize).min(DEEPEST));
        let seconds = record.milliseconds as f64 / 1000.0;
        let place = ANSWER_SECONDS.partition_point(|bound| *bound < seconds);
        count_at(&mut self.answers.by_time, place);
        self.pages += u64::from((200..300).contains(&record.status));
        if record.is_error() {
            *self.failures.by_kind.entry(record.failure_kind()).or_default() += 1;
        }
        if let Some(selected) = &record.selected {
            self.outputs.selected_cut += selected.cut;
            self.outputs.selected_incomplete += u64::from(selected.incomplete);
        }
        if let Some(reason) = record.truncation {
            *self.failures.bodies_truncated.entry(reason).or_default() += 1;
        }
        self.failures.bodies_skipped += u64::from(record.body == BodyExtent::Skipped);
    }

    pub(crate) fn note_offered(&mut self, links: &[Link], verdicts: &[Verdict]) {
        let offered = links.iter().zip(verdicts);
        for (link, verdict) in offered.filter(|(link, _)| link.seed || link.hops > 0) {
            self.links_not_on_pages[0] += u64::from(*verdict == Verdict::Queued);
            self.links_not_on_pages[1] += u64::from(*verdict == Verdict::Seen);
            match verdict {
                _ if !link.seed => {}
                Verdict::Refused(why) => self.failures.note_first(false, || format!("{}: {why}", link.url)),
                Verdict::Seen if link.hops > 0 => {
                    self.failures.note_first(true, || {
                        format!("{}: a redirect leads to this URL, which was seen before", link.url)
                    });
                }
                Verdict::Seen | Verdict::Queued | Verdict::Elsewhere => {}
            }
        }
    }
}

impl FailureCounts {
    /// Counts a page that was not parsed. Servers choose the names, so only the first ones count of their own.
    pub(crate) fn count_other_type(&mut self, name: String) {
        let is_named = name.len() <= LONGEST_TYPE && self.not_html.len() < TYPES_NAMED;
        let is_known = self.not_html.contains_key(&name);
        let name = if is_known || is_named {
            name
        } else {
            "others".to_owned()
        };
        *self.not_html.entry(name).or_default() += 1;
    }

    pub(crate) fn count_notice(&mut self, notice: &Notice) {
        match notice {
            // A place without a scheme is a whole site, not a path prefix.
            Notice::PrefixClosed { place, .. } if place.contains("://") && self.closed_prefixes.len() < NAMES_SHOWN => {
                self.closed_prefixes.push(place.to_string());
            }
            Notice::GivenUp { origin, cause, .. } => {
                self.given_up_causes.insert(cause.kind);
                let is_shown = self.given_up_origins.iter().any(|shown| shown == origin.as_str());
                if !is_shown && self.given_up_origins.len() < NAMES_SHOWN {
                    self.given_up_origins.push(origin.to_string());
                }
            }
            Notice::Away { origin, cause, .. }
            | Notice::Throttled { origin, cause, .. }
            | Notice::RobotsFailing { origin, cause, .. }
            | Notice::Closed { origin, cause, .. } => {
                self.note_first(false, || format!("{origin}: {cause}"));
            }
            _ => {}
        }
    }

    pub(crate) fn note_first(&mut self, is_weak: bool, why: impl FnOnce() -> String) {
        if self.first_failure.is_none() || self.is_first_failure_weak && !is_weak {
            self.first_failure = Some(why());
            self.is_first_failure_weak = is_weak;
        }
    }
}

pub(super) fn count_of<K: Ord>(counts: &BTreeMap<K, u64>, of: K) -> u64 {
    counts.get(&of).copied().unwrap_or_default()
}

fn count_at(counts: &mut Vec<u64>, place: usize) {
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

/// Takes one out of a count, which has no entry when nothing is left. Returns whether it had one.
fn take_back<K: Ord>(counts: &mut BTreeMap<K, u64>, of: K) -> bool {
    let Some(count) = counts.get_mut(&of) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(&of);
    }
    true
}

impl SitemapCounts {
    pub(crate) fn count(&mut self, record: &SitemapRecord) {
        self.read += u64::from(record.end == SitemapEnd::Read);
        self.failed += u64::from(matches!(record.end, SitemapEnd::Failed(_)));
        self.unanswered += u64::from(record.unanswered);
        self.broken += u64::from(record.broken.is_some());
        self.urls += record.urls;
        self.urls_dropped += record.urls_dropped;
        self.urls_invalid += record.urls_invalid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn pages_count_by_depth_up_to_the_deepest_and_by_time_at_the_first_bound_that_is_not_below() {
        let mut counts = Counts::default();
        for (depth, milliseconds) in [(0, 0), (1, 10), (31, 11), (32, 30_000), (1_000, 30_001)] {
            let page = PageRecord {
                depth,
                milliseconds,
                ..PageRecord::default()
            };
            counts.count(&Event::Page(&page));
        }
        let refreshed = PageRecord {
            unchanged: Some(true),
            ..PageRecord::default()
        };
        counts.count(&Event::Page(&refreshed));
        let at = |counts: &[u64], places: &[usize]| places.iter().map(|place| counts[*place]).collect::<Vec<_>>();
        assert_eq!(
            (counts.answers.by_depth.len(), at(&counts.answers.by_depth, &[0, 1, 31])),
            (32, vec![1, 1, 3])
        );
        assert_eq!(at(&counts.answers.by_time, &[0, 1, 10, 11]), [2, 1, 1, 1]);
        let last = counts.answer_times().last();
        assert_eq!((counts.answer_times().count(), last), (12, Some((None, 1))));
    }
}
