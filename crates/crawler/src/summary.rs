//! The numbers at the end.

mod shown;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use frontier::{Fate, HostReceipt, Link, Report, ResemblanceCounts, Verdict};

use crate::event::{Event, PageRecord, SitemapEnd, SitemapRecord};
use crate::fetch::{Cut, Extent, FailureKind};

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
    /// Pages that resemble earlier ones.
    pub duplicates: ResemblanceCounts,
    /// The first [path prefixes](frontier::path_prefix) that were closed because of too many near-duplicates; how many
    /// there were in all is in the report.
    pub closed_prefixes: Vec<String>,
    /// Pages that failed for good, by what went wrong last.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Requests that failed and were tried again, by what went wrong.
    pub retried: BTreeMap<FailureKind, u64>,
    /// Bodies that were cut, by the reason.
    pub bodies_cut: BTreeMap<Cut, u64>,
    /// Bodies that were not read: not HTML, and large or of unknown size.
    pub bodies_skipped: u64,
    /// The frontier's numbers.
    pub report: Report,
    /// What each host was asked, and how politely; the most asked first.
    pub hosts: Vec<HostReceipt>,
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
    pub urls_cut: u64,
    /// Entries without a URL that could be fetched.
    pub urls_invalid: u64,
}

impl SitemapCounts {
    fn count(&mut self, record: &SitemapRecord) {
        self.read += u64::from(record.end == SitemapEnd::Read);
        self.failed += u64::from(matches!(record.end, SitemapEnd::Failed(_)));
        self.broken += u64::from(record.broken.is_some());
        self.urls += record.urls;
        self.urls_cut += record.urls_cut;
        self.urls_invalid += record.urls_invalid;
    }
}

impl Summary {
    /// Returns the pages per second.
    pub fn pages_per_second(&self) -> f64 {
        self.pages as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Says whether not a single page answered, with any status.
    pub fn is_empty(&self) -> bool {
        self.by_status.is_empty()
    }
}

/// Closed prefixes that are told by name.
const PREFIXES_SHOWN: usize = 5;

/// Counts while the crawl runs.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) pages: u64,
    pub(crate) by_status: BTreeMap<u16, u64>,
    pub(crate) bytes: u64,
    pub(crate) links_nofollow: u64,
    pub(crate) links_dropped: u64,
    pub(crate) links_other_scheme: u64,
    pub(crate) links_unresolvable: u64,
    pub(crate) cookies_dropped: u64,
    pub(crate) cut_short: u64,
    pub(crate) sitemaps: SitemapCounts,
    pub(crate) selected_cut: u64,
    pub(crate) selected_incomplete: u64,
    pub(crate) closed_prefixes: Vec<String>,
    pub(crate) failed: BTreeMap<FailureKind, u64>,
    pub(crate) retried: BTreeMap<FailureKind, u64>,
    pub(crate) bodies_cut: BTreeMap<Cut, u64>,
    pub(crate) bodies_skipped: u64,
    first_failure: Option<FirstFailure>,
}

/// What is told of a crawl that fetched nothing.
#[derive(Debug)]
struct FirstFailure {
    why: String,
    /// Whether it is a want of this machine: any other is worth more then.
    is_ours: bool,
}

impl Counts {
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        match event {
            Event::Page(record) => self.count_page(record),
            Event::Sitemap(record) => self.sitemaps.count(record),
            Event::Failed {
                url, why, kind, fate, ..
            } => {
                let counts = match fate {
                    Fate::Requeued { .. } => &mut self.retried,
                    Fate::Final | Fate::GaveUp | Fate::Stale => &mut self.failed,
                };
                // Counted as not fetched.
                if *kind != FailureKind::AddressForbidden {
                    *counts.entry(*kind).or_default() += 1;
                }
                let is_ours = *kind == FailureKind::OutOfHandles;
                self.note_failure(is_ours, || format!("{url}: {why}"));
            }
            Event::NotFetched { url, why, .. } => self.note_failure(false, || format!("{url}: {why}")),
            Event::PrefixClosed { prefix, .. } if self.closed_prefixes.len() < PREFIXES_SHOWN => {
                self.closed_prefixes.push((*prefix).to_owned());
            }
            Event::Offered { links, verdicts } => self.note_lost_seeds(links, verdicts),
            _ => {}
        }
    }

    /// What was counted; what others have counted is still to come.
    pub(crate) fn into_summary(self, ending: Ending, report: Report) -> Summary {
        Summary {
            ending,
            elapsed: Duration::ZERO,
            pages: self.pages,
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
            bodies_cut: self.bodies_cut,
            bodies_skipped: self.bodies_skipped,
            sitemaps: self.sitemaps,
            selected_cut: self.selected_cut,
            selected_incomplete: self.selected_incomplete,
            duplicates: ResemblanceCounts::default(),
            closed_prefixes: self.closed_prefixes,
            report,
            hosts: Vec::new(),
            first_failure: self.first_failure.map(|first| first.why),
            peak_memory_bytes: peak_memory_bytes(),
        }
    }

    fn count_page(&mut self, record: &PageRecord) {
        *self.by_status.entry(record.status).or_default() += 1;
        self.pages += u64::from((200..300).contains(&record.status));
        self.bytes += record.bytes;
        if let Some(selected) = &record.selected {
            self.selected_cut += selected.cut;
            self.selected_incomplete += u64::from(selected.incomplete);
        }
        if let Some(cut) = record.body_cut {
            *self.bodies_cut.entry(cut).or_default() += 1;
        }
        self.bodies_skipped += u64::from(record.body == Extent::Skipped);
    }

    /// A seed that is refused, or redirected to where nothing new is, has no page that could say so.
    fn note_lost_seeds(&mut self, links: &[Link], verdicts: &[Verdict]) {
        for (link, verdict) in links.iter().zip(verdicts).filter(|(link, _)| link.seed) {
            match verdict {
                Verdict::Refused(why) => self.note_failure(false, || format!("{}: {why}", link.url)),
                Verdict::Seen if link.hops > 0 => {
                    self.note_failure(false, || {
                        format!("{}: a redirect led back to it, and it was seen before", link.url)
                    });
                }
                Verdict::Seen | Verdict::Queued => {}
            }
        }
    }

    fn note_failure(&mut self, is_ours: bool, why: impl FnOnce() -> String) {
        if self
            .first_failure
            .as_ref()
            .is_none_or(|first| first.is_ours && !is_ours)
        {
            self.first_failure = Some(FirstFailure { why: why(), is_ours });
        }
    }
}

/// Reads the peak of the resident memory, where the system tells (Linux: `VmHWM` of proc(5)).
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
