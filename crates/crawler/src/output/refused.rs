//! What was not fetched, and why: one line per URL and reason.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use frontier::{Entry, Failure, FailureKind, Fate, Link, NotFetched, Verdict};

use super::lines::Lines;
use crate::event::{Event, Observer, PageRecord, SitemapEnd, SitemapRecord};
use crate::page::link_graph::LinkRecord;

/// Lines that are remembered, so that a link on every page is told once: 20 MB of them.
const REMEMBERED: usize = 1_000_000;

/// Writes one JSON object per URL that was refused, not fetched, or failed: `url`, `class`, `reason`, `status`, `referrer`,
/// `depth`, `detail`.
///
/// | class | reason | when |
/// |---|---|---|
/// | `refused` | the name of a [`Refusal`](frontier::Refusal), `nofollow` or `not_crawlable` | the link was met |
/// | `not_fetched` | the name of a [`NotFetched`]; `detail` has the cause, where something went wrong | its turn came |
/// | `failed` | `host_down`; `detail` has the kind and the cause | it waited for an origin that was given up |
/// | `failed` | the name of a [`FailureKind`]; for `status`, the HTTP status of 400 or more stands under `status` | no attempt is left |
/// | `failed` | `sitemap` | it could not be had or read |
///
/// A URL and reason is told once, with the first page that led there, unless a million others came between. A link that was
/// taken for a seen one is not among them: nobody can know which those are; the summary has the estimate. Links that say
/// `nofollow` are told if [`report_links`](crate::CrawlOptions::report_links) is set.
#[derive(Debug)]
pub struct RefusedReport<W: Write> {
    to: Lines<W>,
    told: HashSet<u64>,
    hasher: RandomState,
}

#[derive(serde::Serialize)]
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
    /// Writes to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self {
            to: Lines::new(to),
            told: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        // A key that no site can know: two lines fall together with a chance of one in 10^7 among a million.
        let name = self.hasher.hash_one((line.url, line.class, line.reason));
        if self.told.len() >= REMEMBERED {
            self.told.clear();
        }
        if !self.told.insert(name) {
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

    /// Those that were offered are told with the offer.
    fn not_offered(&mut self, from: &Entry, edge: &LinkRecord) -> io::Result<()> {
        if edge.verdict.is_some() {
            return Ok(());
        }
        self.write(&Line {
            url: &edge.to,
            class: "refused",
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
        let class = if why == NotFetched::HostDown {
            "failed"
        } else {
            "not_fetched"
        };
        let detail = cause.map(|cause| format!("{}: {cause}", cause.kind));
        self.not_fetched(entry, class, why.name(), detail.as_deref())
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
                fate: Fate::Requeued { .. },
                ..
            } => Ok(()),
            Event::Failed { why, kind, entry, .. } => match kind {
                // An answer of whatever status has its own event.
                FailureKind::Status => Ok(()),
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
