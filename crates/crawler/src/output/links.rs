//! The link graph: one line per link of each page.

use std::io::{self, Write};

use super::OutputFile;
use super::columns::Columns;
use super::lines::Lines;
use crate::event::{Event, Observer};
use crate::page::link_graph::LinkRecord;
use crate::saved_output::SavedOutput;

/// Writes one JSON object or CSV record per link: `from`, `to`, `kind`, `nofollow`, `verdict`.
///
/// `from` and `to` are absolute URLs. All links of one page to one URL are one line. `kind` is the element with the link (`anchor`, `area`,
/// `frame`, `iframe`, `next`, `canonical`, `alternate`, `refresh`), or `redirect`. `verdict` says what the crawl did with the link:
/// `queued`, `seen`, `nofollow`, `not_crawlable`, or the name of a [`Refusal`](frontier::Refusal). Links beyond
/// [`max_links_per_page`](crate::CrawlOptions::max_links_per_page) are left out.
///
/// It needs [`report_links`](crate::CrawlOptions::report_links). It keeps at most the lines of the last second in memory.
#[derive(Debug)]
pub struct LinkGraph<W: Write> {
    to: Lines<W>,
}

#[derive(Default, serde::Serialize)]
struct Line<'a> {
    from: &'a str,
    to: &'a str,
    kind: &'static str,
    nofollow: bool,
    verdict: &'static str,
}

impl<W: Write> LinkGraph<W> {
    /// Writes JSON lines to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self { to: Lines::json(to) }
    }

    /// Writes [CSV](super::csv) to `to`, which need not be buffered.
    ///
    /// # Errors
    ///
    /// None in practice: the header goes into memory, and is written with the first records.
    pub fn csv(to: W) -> io::Result<Self> {
        let columns = Columns::new(&Line::default(), &[])?;
        Ok(Self {
            to: Lines::csv(to, columns)?,
        })
    }

    fn write(&mut self, from: &str, link: &LinkRecord) -> io::Result<()> {
        self.to.push(&Line {
            from,
            to: &link.to,
            kind: link.kind,
            nofollow: link.nofollow,
            verdict: link.verdict_name(),
        })
    }
}

impl LinkGraph<OutputFile> {
    /// Continues a file of JSON lines, which may be empty. It is [saved](Observer::save) under this name.
    pub fn continuing(name: &str, file: OutputFile) -> Self {
        Self {
            to: Lines::continue_json(name, file),
        }
    }

    /// Continues a [CSV](super::csv) file, which may be empty. It is [saved](Observer::save) under this name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or has other columns.
    pub fn continuing_csv(name: &str, file: OutputFile) -> io::Result<Self> {
        let columns = Columns::new(&Line::default(), &[])?;
        Ok(Self {
            to: Lines::continue_csv(name, file, columns)?,
        })
    }
}

impl<W: Write + Send> Observer for LinkGraph<W> {
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
