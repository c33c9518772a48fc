//! The link graph: one line per link of each page.

use std::io;

use super::columns::Columns;
use super::lines::{Format, Lines, Sink};
use crate::event::LinkRecord;
use crate::event::{Event, Observer};
use crate::saved_output::SavedOutput;

/// Writes one JSON object or CSV record per link: `from`, `to`, `kind`, `nofollow`, `verdict`, `key`.
///
/// `from` and `to` are absolute URLs. All links of one page to one URL are one line. `kind` is the element with the link (`anchor`, `area`,
/// `frame`, `iframe`, `next`, `canonical`, `alternate`, `refresh`), or `redirect`. `verdict` says what the crawl did with the link:
/// `queued`, `seen`, `nofollow`, `not_crawlable`, or the name of a [`Refusal`](frontier::Refusal). Links beyond
/// [`max_links_per_page`](crate::PageOptions::max_links_per_page) are left out. `key` is that of the page that `to` leads to.
///
/// It needs [`ReportOptions::links`](crate::ReportOptions::links). It keeps at most the lines of the last second in memory.
#[derive(Debug)]
pub struct LinkGraph {
    to: Lines,
}

#[derive(Default, serde::Serialize)]
struct Line<'a> {
    from: &'a str,
    to: &'a str,
    kind: &'static str,
    nofollow: bool,
    verdict: &'static str,
    key: Option<&'a str>,
}

impl LinkGraph {
    /// Writes to a sink.
    ///
    /// # Errors
    ///
    /// When a CSV file that is continued cannot be read, or has other columns.
    pub fn new(to: Sink, format: Format) -> io::Result<Self> {
        let to = Lines::new(to, format, || Columns::new(&Line::default(), &[]))?;
        Ok(Self { to })
    }

    fn write(&mut self, from: &str, link: &LinkRecord) -> io::Result<()> {
        self.to.push(&Line {
            from,
            to: &link.to,
            kind: link.kind,
            nofollow: link.nofollow,
            verdict: link.verdict_name(),
            key: link.key.as_deref(),
        })
    }
}

impl Observer for LinkGraph {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Links { from, links } => links.iter().try_for_each(|link| self.write(&from.url, link)),
            Event::Tick(_) | Event::Finished(_) => self.to.flush(),
            _ => Ok(()),
        }
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        self.to.save(sync)
    }
}
