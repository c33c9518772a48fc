//! `crawler list`: pages by what became of them, as JSON lines.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use crawler::{SavedCrawl, StartError};
use frontier::{Class, Entry, FailureKind, NotFetched, OpenError, OwnData, PageEnd, Purpose, StoredPage, Time};
use serde::Serialize;

use super::StateFailure;
use crate::options::Which;

pub(super) fn run(dir: &Path, which: Which) -> Result<(), StateFailure> {
    let mut to = BufWriter::new(io::stdout().lock());
    if which.waiting {
        let crawl = SavedCrawl::read(dir)?;
        let mut written = Ok(());
        let visited = crawl.frontier.visit_waiting(&mut |mut entry| {
            entry.due = crawl.time_of_day(entry.due);
            written = write_line(&mut to, &WaitingLine::of(&entry));
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        visited.map_err(|error| StartError::from(OpenError::from(error)))?;
        written?;
    } else {
        let mut written = Ok(());
        SavedCrawl::visit_pages(dir, !which.done, &mut |page| {
            if written.is_ok() && is_listed(which, page.end) {
                written = write_line(&mut to, &PageLine::of(&page));
            }
            // The other pages of a long crawl are of no use to anyone.
            if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
                std::process::exit(0);
            }
        })?;
        written?;
    }
    Ok(to.flush()?)
}

/// Returns whether a page is listed that has ended so. Every page is in one list.
fn is_listed(which: Which, end: PageEnd) -> bool {
    match end {
        PageEnd::Done | PageEnd::Redirected => which.done,
        PageEnd::Rejected | PageEnd::GaveUp(_) | PageEnd::NotFetched(NotFetched::HostDown) => which.failed,
        PageEnd::NotFetched(_) => which.not_fetched,
        _ => false,
    }
}

pub(super) fn write_line(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// A page that has ended.
#[derive(Serialize)]
pub(super) struct PageLine<'a> {
    url: &'a str,
    /// Only where it differs from the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    end: &'static str,
    reason: Option<&'static str>,
    #[serde(flatten)]
    last: LastFetch<'a>,
    data: Option<Cow<'a, str>>,
}

/// What is said of the last fetch of a page, or of its last end without one.
#[derive(Debug, Serialize)]
pub(super) struct LastFetch<'a> {
    pub(super) status: Option<u16>,
    pub(super) ended_at: String,
    pub(super) depth: u32,
    pub(super) attempts: u32,
    pub(super) referrer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_visit: Option<String>,
}

impl<'a> PageLine<'a> {
    pub(super) fn of(page: &'a StoredPage) -> Self {
        let (end, reason) = page.end.names();
        Self {
            url: &page.url,
            key: page.key.as_deref(),
            end,
            reason: page.cause.map(FailureKind::name).or(reason),
            last: LastFetch::of(page),
            data: page.data.as_ref().map(OwnData::to_text),
        }
    }
}

impl<'a> LastFetch<'a> {
    pub(super) fn of(page: &'a StoredPage) -> Self {
        Self {
            status: page.answer.status,
            ended_at: page.time.to_string(),
            depth: page.depth,
            attempts: page.attempts,
            referrer: page.referrer.as_deref(),
            next_visit: page.next_visit.map(|time| time.to_string()),
        }
    }
}

/// An entry that waits.
#[derive(Serialize)]
pub(super) struct WaitingLine<'a> {
    url: &'a str,
    /// Only where it differs from the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    purpose: &'static str,
    host: &'a str,
    /// The earliest time, of a retry.
    due: Option<String>,
    depth: u32,
    attempts: u32,
    class: Class,
    referrer: Option<&'a str>,
    data: Option<Cow<'a, str>>,
}

impl<'a> WaitingLine<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        Self {
            url: &entry.url,
            key: entry.key.as_deref(),
            purpose: match entry.purpose {
                Purpose::Page => "page",
                Purpose::Address => "address",
                Purpose::Robots(_) => "robots",
                Purpose::Sitemap(_) => "sitemap",
            },
            host: entry.queue.as_str(),
            due: (entry.due > Time::EPOCH).then(|| entry.due.to_string()),
            depth: entry.depth,
            attempts: entry.attempts,
            class: entry.class,
            referrer: entry.metadata.referrer.as_deref(),
            data: entry.metadata.data.as_ref().map(OwnData::to_text),
        }
    }
}
