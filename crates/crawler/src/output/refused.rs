//! The URLs that were refused, not followed, not fetched, or failed: one line per URL and reason.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead as _, BufReader, Read};

use frontier::{Entry, Failure, FailureKind, Fate, Link, NotFetched, OwnData, Refusal, Verdict};

use super::columns::{Columns, without_apostrophe};
use super::lines::{Format, Lines, Sink};
use crate::event::LinkRecord;
use crate::event::{Event, Observer, PageRecord, SitemapEnd, SitemapRecord};
use crate::saved_output::SavedOutput;

/// The maximum number of remembered lines, in about 20 MB. A link that is on every page gets one line.
const MAX_REMEMBERED_LINES: usize = 1_000_000;

/// What can be done about a forbidden address.
const PRIVATE_ADDRESS: &str = "the address is not public: allow private addresses, or name the URL as a seed";

/// Writes one JSON object or CSV record per URL that was refused, not followed, not fetched, or failed: `url`, `class`, `reason`, `status`, `referrer`,
/// `depth`, `detail`, `data`.
///
/// | class | reason | when |
/// |---|---|---|
/// | `refused` | the name of a [`Refusal`] | a link was found |
/// | `not_followed` | `nofollow` or `not_crawlable` | a link was found |
/// | `not_fetched` | the name of a [`NotFetched`]; `detail` has the cause, if a failure caused it | the page left the queue without a request |
/// | `failed` | `status` or `throttled`; the field `status` has the HTTP status: 400 or more, or a redirect without a target | the page got its final answer |
/// | `failed` | the name of another [`FailureKind`]; `detail` has the cause | the page has no attempt left, or its origin was given up |
/// | `failed` | `sitemap` | a sitemap could not be fetched or read |
///
/// The words are those of the [summary](crate::summary). The summary counts each page once, and each link as often as it was found. Here a
/// URL and reason has one line, with the first page that links to it; after a million other lines it may be repeated. A URL that the
/// seen-set dropped has no line: the seen-set cannot name such URLs, and the summary has their estimate. Class `not_followed` needs
/// [`ReportOptions::links`](crate::ReportOptions::links).
#[derive(Debug)]
pub struct RefusedReport {
    to: Lines,
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
    data: Option<Cow<'a, str>>,
}

impl RefusedReport {
    /// Writes to a sink.
    ///
    /// A file that is continued is read to its end, so that no line is written again. This takes about a second per gigabyte.
    ///
    /// # Errors
    ///
    /// When a file that is continued cannot be read, or is no such report.
    pub fn new(to: Sink, format: Format) -> io::Result<Self> {
        let (earlier, last) = (to.earlier(), to.continued()?);
        let mut report = Self {
            to: Lines::new(to, format, || Columns::new(&Line::default(), &[]))?,
            written: HashSet::new(),
            hasher: RandomState::new(),
        };
        for earlier in earlier {
            // One that was changed, which the crawl has gone on after, may be no report.
            let _ = report.remember(earlier, format);
        }
        last.map_or(Ok(()), |last| report.remember(last, format))?;
        Ok(report)
    }

    /// Reads a report, so that none of its lines is written again.
    fn remember(&mut self, file: impl Read, format: Format) -> io::Result<()> {
        match format {
            Format::JsonLines => {
                let mut lines = BufReader::new(file);
                let mut text = String::new();
                while lines.read_line(&mut text)? > 0 {
                    let line: WrittenLine<'_> = serde_json::from_str(&text)?;
                    self.is_new(&line.url, &line.class, &line.reason);
                    text.clear();
                }
            }
            Format::Csv | Format::CsvWithMark => {
                let mut lines = csv::Reader::from_reader(file);
                let mut record = csv::StringRecord::new();
                while lines.read_record(&mut record)? {
                    let cell = |at| without_apostrophe(record.get(at).unwrap_or_default());
                    self.is_new(cell(0), cell(1), cell(2));
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        match self.is_new(line.url, line.class, line.reason) {
            true => self.to.push(line),
            false => Ok(()),
        }
    }

    fn is_new(&mut self, url: &str, class: &str, reason: &str) -> bool {
        if self.written.len() >= MAX_REMEMBERED_LINES {
            self.written.clear();
        }
        // The key of the hasher is random, so no site can cause collisions. Among a million lines the chance of one is 10^-7.
        self.written.insert(self.hasher.hash_one((url, class, reason)))
    }

    fn refused(&mut self, link: &Link, why: Refusal) -> io::Result<()> {
        self.write(&Line {
            url: link.url.url().as_str(),
            class: "refused",
            reason: why.name(),
            referrer: link.referrer.as_deref(),
            depth: link.depth,
            data: link.data.as_ref().map(OwnData::to_text),
            ..Line::default()
        })
    }

    /// Writes a link that was not offered to the frontier. `Event::Offered` reports the others.
    fn not_offered(&mut self, from: &Entry, link: &LinkRecord) -> io::Result<()> {
        self.write(&Line {
            url: &link.to,
            class: "not_followed",
            reason: link.verdict_name(),
            referrer: Some(&from.url),
            depth: from.depth.saturating_add(1),
            ..Line::default()
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
            data: entry.metadata.data.as_ref().map(OwnData::to_text),
        })
    }

    fn dropped(&mut self, entry: &Entry, why: NotFetched, cause: Option<&Failure>) -> io::Result<()> {
        let (class, reason, detail) = match (why, cause) {
            // A page whose origin was given up has the failure of the origin.
            (NotFetched::HostDown, Some(cause)) => ("failed", cause.kind.name(), Some(format!("{why}: {cause}"))),
            (NotFetched::HostDown, None) => ("failed", why.name(), None),
            (NotFetched::AddressForbidden, None) => ("not_fetched", why.name(), Some(PRIVATE_ADDRESS.to_owned())),
            (_, Some(cause)) => ("not_fetched", why.name(), Some(format!("{}: {cause}", cause.kind))),
            (_, None) => ("not_fetched", why.name(), None),
        };
        self.not_fetched(entry, class, reason, detail.as_deref())
    }

    fn not_read(&mut self, sitemap: &SitemapRecord, why: &str) -> io::Result<()> {
        self.write(&Line {
            url: &sitemap.url,
            class: "failed",
            reason: "sitemap",
            status: sitemap.status,
            referrer: sitemap.referrer.as_deref(),
            depth: 0,
            detail: Some(why),
            data: None,
        })
    }

    fn answered(&mut self, page: &PageRecord) -> io::Result<()> {
        self.write(&Line {
            url: &page.url,
            class: "failed",
            reason: page.failure_kind().name(),
            status: Some(page.status),
            referrer: page.referrer.as_deref(),
            depth: page.depth,
            detail: None,
            data: page.data.as_deref().map(Into::into),
        })
    }
}

/// What makes a line of a file different from the others.
#[derive(serde::Deserialize)]
struct WrittenLine<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    reason: Cow<'a, str>,
}

impl Observer for RefusedReport {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Offered { links, verdicts } => {
                let mut offers = links.iter().zip(*verdicts);
                offers.try_for_each(|(link, verdict)| match verdict {
                    Verdict::Refused(why) => self.refused(link, *why),
                    _ => Ok(()),
                })
            }
            Event::Links { from, links } => {
                let mut links = links.iter().filter(|link| link.verdict.is_none());
                links.try_for_each(|link| self.not_offered(from, link))
            }
            Event::NotFetched { entry, why, cause } => self.dropped(entry, *why, *cause),
            Event::Failed {
                fate: Fate::Requeued { .. } | Fate::Stale,
                ..
            } => Ok(()),
            Event::Failed { entry, failure, .. } => match failure.kind {
                // `Event::Page` reports a status of 400 or more.
                FailureKind::Status | FailureKind::Throttled => Ok(()),
                kind => self.not_fetched(entry, "failed", kind.name(), Some(&failure.message)),
            },
            Event::Page(page) if page.is_error() => self.answered(page),
            Event::Sitemap(sitemap) => match &sitemap.end {
                SitemapEnd::Failed(why) => self.not_read(sitemap, why),
                _ => Ok(()),
            },
            Event::Tick(_) | Event::Finished(_) => self.to.flush(),
            _ => Ok(()),
        }
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        self.to.save(sync)
    }
}
