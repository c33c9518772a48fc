//! `crawler list`: pages by what became of them, as JSON lines.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use crawler::{SavedCrawl, StartError};
use frontier::{Entry, NotFetched, OpenError, PageEnd, Purpose, StoredPage, Time};
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
        SavedCrawl::read_records(dir, &mut |record| {
            if written.is_ok() && is_listed(which, record.end) {
                written = write_line(&mut to, &RecordLine::of(&record));
            }
            // The other records of a long crawl are of no use to anyone.
            if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
                std::process::exit(0);
            }
        })?;
        written?;
    }
    Ok(to.flush()?)
}

/// Returns whether a page is listed that has ended so. Every record is in one list.
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
pub(super) struct RecordLine<'a> {
    url: &'a str,
    /// Only where it differs from the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    end: &'static str,
    reason: Option<&'static str>,
    status: Option<u16>,
    ended_at: String,
    depth: u32,
    attempts: u32,
    referrer: Option<&'a str>,
}

impl<'a> RecordLine<'a> {
    pub(super) fn of(record: &'a StoredPage) -> Self {
        let (end, reason) = record.end.names();
        let of_origin = record
            .cause
            .filter(|_| record.end == PageEnd::NotFetched(NotFetched::HostDown));
        let reason = of_origin.map_or(reason, |cause| Some(cause.name()));
        Self {
            url: &record.url,
            key: record.key.as_deref(),
            end,
            reason,
            status: record.status,
            ended_at: record.time.to_string(),
            depth: record.depth,
            attempts: record.attempts,
            referrer: record.referrer.as_deref(),
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
    referrer: Option<&'a str>,
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
            referrer: entry.metadata.referrer.as_deref(),
        }
    }
}
