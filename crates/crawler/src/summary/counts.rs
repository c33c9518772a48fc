//! The counters of a running crawl.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use frontier::durable::Requeued;
use frontier::{FailureKind, Fate, Link, NotFetched, Notice, Report, Time, Verdict};

use super::{Ending, RefreshCounts, SitemapCounts, Summary};
use crate::event::{Event, PageRecord, SitemapEnd, SitemapRecord};
use crate::fetch::{BodyExtent, TruncationReason};

impl SitemapCounts {
    fn count(&mut self, record: &SitemapRecord) {
        self.read += u64::from(record.end == SitemapEnd::Read);
        self.failed += u64::from(matches!(record.end, SitemapEnd::Failed(_)));
        self.broken += u64::from(record.broken.is_some());
        self.urls += record.urls;
        self.urls_dropped += record.urls_dropped;
        self.urls_invalid += record.urls_invalid;
    }
}

/// The maximum number of closed prefixes, and of origins that were given up, that the summary names.
const NAMES_SHOWN: usize = 5;

/// The most media types that are counted, and the longest name of one, in bytes.
const TYPES_NAMED: usize = 20;
const LONGEST_TYPE: usize = 100;

/// Counts of all runs of a crawl.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) pages: u64,
    pub(crate) by_status: BTreeMap<u16, u64>,
    pub(crate) bytes: u64,
    pub(crate) links_nofollow: u64,
    pub(crate) links_dropped: u64,
    pub(crate) links_other_scheme: u64,
    pub(crate) links_unresolvable: u64,
    pub(crate) cookies_dropped: u64,
    /// Of this run only: a later run fetches these pages.
    #[serde(skip)]
    pub(crate) cut_short: u64,
    pub(crate) refreshed: RefreshCounts,
    pub(crate) sitemaps: SitemapCounts,
    pub(crate) selected_cut: u64,
    pub(crate) selected_incomplete: u64,
    gave_up_answered: u64,
    closed_prefixes: Vec<String>,
    given_up_origins: Vec<String>,
    given_up_causes: BTreeSet<FailureKind>,
    failed: BTreeMap<FailureKind, u64>,
    retried: BTreeMap<FailureKind, u64>,
    pub(crate) bodies_truncated: BTreeMap<TruncationReason, u64>,
    pub(crate) bodies_skipped: u64,
    not_html: BTreeMap<String, u64>,
    first_failure: Option<FirstFailure>,
    links_not_on_pages: [u64; 2],
    recent: RecentPace,
}

/// The pages and the time at the last two starts of a window, from which the recent rate is counted.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct RecentPace {
    from: (Duration, u64),
    next: (Duration, u64),
}

impl RecentPace {
    /// The length of a window. The recent rate is of the last one or two of them.
    const WINDOW: Duration = Duration::from_secs(20);

    fn note(&mut self, elapsed: Duration, pages: u64) {
        if elapsed >= self.next.0 + Self::WINDOW {
            self.from = self.next;
            self.next = (elapsed, pages);
        }
    }

    fn pages_per_second(&self, elapsed: Duration, pages: u64) -> f64 {
        let seconds = elapsed.saturating_sub(self.from.0).as_secs_f64();
        pages.saturating_sub(self.from.1) as f64 / seconds.max(0.001)
    }
}

/// The failure that explains a crawl that fetched nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FirstFailure {
    why: String,
    /// Whether any other failure explains more, and replaces it: this machine is the cause, or a URL was seen before.
    is_weak: bool,
}

impl Counts {
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        match event {
            Event::Page(record) => self.count_page(record),
            Event::Sitemap(record) => self.sitemaps.count(record),
            Event::Failed {
                url,
                why,
                kind,
                fate,
                entry,
            } => {
                match (fate, kind) {
                    (Fate::Requeued { .. }, _) => *self.retried.entry(*kind).or_default() += 1,
                    (Fate::Stale, _) => {}
                    // Counted with its answer, as every status of 400 or more.
                    (Fate::GaveUp, FailureKind::Status) => self.gave_up_answered += 1,
                    (_, FailureKind::Status | FailureKind::Throttled) => {}
                    // Counted as not fetched.
                    (_, FailureKind::AddressForbidden) => {}
                    // An answer, too: the page was counted with its first one.
                    (Fate::Final, FailureKind::Redirect) if entry.is_refresh() => {
                        self.refreshed.pages += 1;
                        self.refreshed.failed += 1;
                    }
                    (Fate::Final | Fate::GaveUp, _) => *self.failed.entry(*kind).or_default() += 1,
                }
                let is_weak = *kind == FailureKind::OutOfHandles;
                self.note_failure(is_weak, || format!("{url}: {why}"));
            }
            Event::NotFetched { url, why, cause, .. } => {
                if *why == NotFetched::HostDown {
                    let kind = cause.map_or(FailureKind::HostDown, |cause| cause.kind);
                    *self.failed.entry(kind).or_default() += 1;
                }
                self.note_failure(false, || match cause {
                    Some(cause) => format!("{url}: {why}: {cause}"),
                    None => format!("{url}: {why}"),
                });
            }
            Event::Notice(notice) => self.count_notice(notice),
            Event::Offered { links, verdicts } => self.note_offered(links, verdicts),
            Event::Tick(progress) => self.recent.note(progress.elapsed, progress.pages),
            _ => {}
        }
    }

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

    /// Takes back failures of pages that are fetched again.
    pub(crate) fn will_be_fetched(&mut self, pages: &Requeued) {
        let answered = pages.failed.get(&FailureKind::Status).copied().unwrap_or_default();
        let answered_again = pages
            .failed_refreshes
            .get(&FailureKind::Status)
            .copied()
            .unwrap_or_default();
        self.gave_up_answered = self.gave_up_answered.saturating_sub(answered + answered_again);
        for (kind, pages) in &pages.failed {
            // What has an answer was counted with it.
            let kind = if is_answer(*kind) { FailureKind::Status } else { *kind };
            take_back(&mut self.failed, kind, *pages);
        }
        // The answer to a refresh was not counted.
        let unanswered = pages.failed_refreshes.iter().filter(|(kind, _)| !is_answer(**kind));
        for (kind, pages) in unanswered.chain(&pages.dropped) {
            take_back(&mut self.failed, *kind, *pages);
        }
        for (status, pages) in &pages.answers {
            take_back(&mut self.by_status, *status, *pages);
            if (200..300).contains(status) {
                self.pages = self.pages.saturating_sub(*pages);
            }
        }
        let in_part = pages.failed.get(&FailureKind::Incomplete).copied().unwrap_or_default();
        let taken = take_back(&mut self.bodies_truncated, TruncationReason::Connection, in_part);
        take_back(&mut self.bodies_truncated, TruncationReason::Time, in_part - taken);
    }

    /// Forgets which origins were given up, and what failed first: a new run asks again.
    pub(crate) fn forget_failures_of_origins(&mut self) {
        self.given_up_origins.clear();
        self.given_up_causes.clear();
        self.first_failure = None;
    }

    /// Returns the number of pages that failed.
    pub(crate) fn failed_pages(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Returns the pages per second over the last 20 to 40 seconds.
    pub(crate) fn recent_pages_per_second(&self, elapsed: Duration) -> f64 {
        self.recent.pages_per_second(elapsed, self.pages)
    }

    /// Returns a summary of these counters. The caller sets what comes from the frontier's hosts.
    pub(crate) fn into_summary(self, ending: Ending, elapsed: Duration, report: Report) -> Summary {
        Summary {
            ending,
            elapsed,
            pages: self.pages,
            recent_pages_per_second: self.recent_pages_per_second(elapsed),
            links_not_on_pages: self.links_not_on_pages,
            by_status: self.by_status,
            bytes: self.bytes,
            links_nofollow: self.links_nofollow,
            links_dropped: self.links_dropped,
            links_other_scheme: self.links_other_scheme,
            links_unresolvable: self.links_unresolvable,
            cookies_dropped: self.cookies_dropped,
            cut_short: self.cut_short,
            failed: self.failed,
            retried: self.retried,
            bodies_truncated: self.bodies_truncated,
            bodies_skipped: self.bodies_skipped,
            not_html: self.not_html,
            refreshed: self.refreshed,
            sitemaps: self.sitemaps,
            selected_cut: self.selected_cut,
            selected_incomplete: self.selected_incomplete,
            gave_up_answered: self.gave_up_answered,
            closed_prefixes: self.closed_prefixes,
            given_up_origins: self.given_up_origins,
            given_up_causes: self.given_up_causes,
            robots_name: None,
            report,
            hosts: Vec::new(),
            busiest: Vec::new(),
            away: Vec::new(),
            as_of: Time::from_millis(0),
            first_failure: self.first_failure.map(|first| first.why),
            peak_memory_bytes: peak_memory_bytes(),
        }
    }

    fn count_notice(&mut self, notice: &Notice) {
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
            Notice::Away { origin, cause, .. } | Notice::Closed { origin, cause, .. } => {
                self.note_failure(false, || format!("{origin}: {cause}"));
            }
            _ => {}
        }
    }

    fn count_page(&mut self, record: &PageRecord) {
        self.bytes += record.bytes;
        if let Some(is_unchanged) = record.unchanged {
            self.refreshed.pages += 1;
            self.refreshed.unchanged += u64::from(is_unchanged);
            match record.status {
                404 | 410 => self.refreshed.gone += 1,
                400.. => self.refreshed.failed += 1,
                _ => {}
            }
            return;
        }
        *self.by_status.entry(record.status).or_default() += 1;
        self.pages += u64::from((200..300).contains(&record.status));
        if record.status >= 400 {
            *self.failed.entry(FailureKind::Status).or_default() += 1;
        }
        if let Some(selected) = &record.selected {
            self.selected_cut += selected.cut;
            self.selected_incomplete += u64::from(selected.incomplete);
        }
        if let Some(reason) = record.truncation {
            *self.bodies_truncated.entry(reason).or_default() += 1;
        }
        self.bodies_skipped += u64::from(record.body == BodyExtent::Skipped);
    }

    /// Counts links that stand on no page, and notes seeds without a page: refused ones, and those that redirect to a seen URL.
    fn note_offered(&mut self, links: &[Link], verdicts: &[Verdict]) {
        let offered = links.iter().zip(verdicts);
        for (link, verdict) in offered.filter(|(link, _)| link.seed || link.hops > 0) {
            self.links_not_on_pages[0] += u64::from(*verdict == Verdict::Queued);
            self.links_not_on_pages[1] += u64::from(*verdict == Verdict::Seen);
            match verdict {
                _ if !link.seed => {}
                Verdict::Refused(why) => self.note_failure(false, || format!("{}: {why}", link.url)),
                Verdict::Seen if link.hops > 0 => {
                    self.note_failure(true, || {
                        format!("{}: a redirect leads to this URL, which was seen before", link.url)
                    });
                }
                Verdict::Seen | Verdict::Queued => {}
            }
        }
    }

    fn note_failure(&mut self, is_weak: bool, why: impl FnOnce() -> String) {
        if self
            .first_failure
            .as_ref()
            .is_none_or(|first| first.is_weak && !is_weak)
        {
            self.first_failure = Some(FirstFailure { why: why(), is_weak });
        }
    }
}

/// Says whether a failure is an answer, which counts by its status.
fn is_answer(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Status | FailureKind::Throttled)
}

/// Takes a number out of a count, which has no entry when nothing is left. Returns how many it had of it.
fn take_back<K: Ord>(counts: &mut BTreeMap<K, u64>, of: K, number: u64) -> u64 {
    let Some(count) = counts.get_mut(&of) else { return 0 };
    let taken = number.min(*count);
    *count -= taken;
    if *count == 0 {
        counts.remove(&of);
    }
    taken
}

/// Reads the peak of the resident memory, if the system reports it (Linux: `VmHWM` of proc(5)).
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
