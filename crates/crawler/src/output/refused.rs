//! The URLs that were refused, not followed, not fetched, or failed: one line per URL and reason.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use frontier::{Entry, Failure, FailureKind, Fate, Link, NotFetched, Verdict};

use super::columns::Columns;
use super::lines::Lines;
use crate::event::{Event, Observer, PageRecord, SitemapEnd, SitemapRecord};
use crate::page::link_graph::LinkRecord;

/// Lines that are remembered, so that a link on every page has one line: 20 MB of them.
const REMEMBERED: usize = 1_000_000;

/// Writes one JSON object or CSV record per URL that was refused, not followed, not fetched, or failed: `url`, `class`, `reason`, `status`, `referrer`,
/// `depth`, `detail`.
///
/// | class | reason | when |
/// |---|---|---|
/// | `refused` | the name of a [`Refusal`](frontier::Refusal) | a link was found |
/// | `not_followed` | `nofollow` or `not_crawlable` | a link was found |
/// | `not_fetched` | the name of a [`NotFetched`]; `detail` has the cause, where something went wrong | the page left the queue without a request |
/// | `failed` | `status`; the HTTP status of 400 or more stands under `status` | the page had its final answer |
/// | `failed` | the name of another [`FailureKind`]; `detail` has the cause | the page has no attempt left, or its origin was given up while it waited |
/// | `failed` | `sitemap` | a sitemap could not be fetched or read |
///
/// The words are those of the [summary](crate::summary), which counts each page once; links count there as often as they were found. A
/// URL and reason has one line, with the first page that links to it, unless a million others came between. A URL that the seen-set dropped has
/// no line: nobody can know which those are, and the summary has the estimate. Class `not_followed` is written if
/// [`report_links`](crate::CrawlOptions::report_links) is set.
#[derive(Debug)]
pub struct RefusedReport<W: Write> {
    to: Lines<W>,
    /// Hashes of the lines that were written.
    written: HashSet<u64>,
    hasher: RandomState,
}

#[derive(Default, serde::Serialize)]
struct Line<'a> {
    url: &'a str,
    class: &'static str,
    reason: &'static str,
    status: Option<u16>,
    referrer: Option<&'a str>,
    depth: u32,
    detail: Option<&'a str>,
}

impl<W: Write> RefusedReport<W> {
    /// Writes JSON lines to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self::with_lines(Lines::json(to))
    }

    /// Writes [CSV](super::csv) to `to`, which need not be buffered.
    ///
    /// # Errors
    ///
    /// None in practice: the header is written into memory, and goes out with the first records.
    pub fn csv(to: W) -> io::Result<Self> {
        let columns = Columns::new(&Line::default(), &[])?;
        Ok(Self::with_lines(Lines::csv(to, columns)?))
    }

    fn with_lines(to: Lines<W>) -> Self {
        Self {
            to,
            written: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        // A key that no site can know: two lines fall together with a chance of one in 10^7 among a million.
        let name = self.hasher.hash_one((line.url, line.class, line.reason));
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        if !self.written.insert(name) {
            return Ok(());
        }
        self.to.push(line)
    }

    fn refused(&mut self, link: &Link, verdict: &Verdict) -> io::Result<()> {
        let Verdict::Refused(why) = verdict else {
            return Ok(());
        };
        self.write(&Line {
            url: link.url.url().as_str(),
            class: "refused",
            reason: why.name(),
            status: None,
            referrer: link.referrer.as_deref(),
            depth: link.depth,
            detail: None,
        })
    }

    /// Writes a link that was not offered; the others come with their offer.
    fn not_offered(&mut self, from: &Entry, edge: &LinkRecord) -> io::Result<()> {
        if edge.verdict.is_some() {
            return Ok(());
        }
        self.write(&Line {
            url: &edge.to,
            class: "not_followed",
            reason: edge.verdict_name(),
            status: None,
            referrer: Some(&from.url),
            depth: from.depth.saturating_add(1),
            detail: None,
        })
    }

    fn not_fetched(
        &mut self,
        entry: &Entry,
        class: &'static str,
        reason: &'static str,
        detail: Option<&str>,
    ) -> io::Result<()> {
        self.write(&Line {
            url: &entry.url,
            class,
            reason,
            status: None,
            referrer: entry.metadata.referrer.as_deref(),
            depth: entry.depth,
            detail,
        })
    }

    fn dropped(&mut self, entry: &Entry, why: NotFetched, cause: Option<&Failure>) -> io::Result<()> {
        // What waited for an origin that was given up has failed as the origin has.
        let failed = cause
            .filter(|_| why == NotFetched::HostDown)
            .map(|cause| cause.kind.name());
        let (class, reason) = match (why, failed) {
            (NotFetched::HostDown, failed) => ("failed", failed.unwrap_or(why.name())),
            _ => ("not_fetched", why.name()),
        };
        let detail = match (failed, cause) {
            (Some(_), Some(cause)) => Some(format!("{why}: {cause}")),
            (_, cause) => cause.map(|cause| format!("{}: {cause}", cause.kind)),
        };
        self.not_fetched(entry, class, reason, detail.as_deref())
    }

    fn not_read(&mut self, sitemap: &SitemapRecord) -> io::Result<()> {
        let SitemapEnd::Failed(why) = &sitemap.end else {
            return Ok(());
        };
        self.write(&Line {
            url: &sitemap.url,
            class: "failed",
            reason: "sitemap",
            status: sitemap.status,
            referrer: sitemap.referrer.as_deref(),
            depth: 0,
            detail: Some(why),
        })
    }

    fn answered(&mut self, page: &PageRecord) -> io::Result<()> {
        if page.status < 400 {
            return Ok(());
        }
        self.write(&Line {
            url: &page.url,
            class: "failed",
            reason: "status",
            status: Some(page.status),
            referrer: page.referrer.as_deref(),
            depth: page.depth,
            detail: None,
        })
    }
}

impl<W: Write + Send> Observer for RefusedReport<W> {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Offered { links, verdicts } => {
                let mut offers = links.iter().zip(*verdicts);
                offers.try_for_each(|(link, verdict)| self.refused(link, verdict))
            }
            Event::Links { from, links } => links.iter().try_for_each(|link| self.not_offered(from, link)),
            Event::NotFetched { why, cause, entry, .. } => self.dropped(entry, *why, *cause),
            Event::Failed {
                fate: Fate::Requeued { .. } | Fate::Stale,
                ..
            } => Ok(()),
            Event::Failed { why, kind, entry, .. } => match kind {
                // A status of 400 or more comes with the page.
                FailureKind::Status | FailureKind::Throttled => Ok(()),
                FailureKind::AddressForbidden => self.not_fetched(entry, "not_fetched", kind.name(), Some(why)),
                _ => self.not_fetched(entry, "failed", kind.name(), Some(why)),
            },
            Event::Page(page) => self.answered(page),
            Event::Sitemap(sitemap) => self.not_read(sitemap),
            Event::Tick(_) | Event::Finished(_) => self.to.flush(),
            _ => Ok(()),
        }
    }
}
