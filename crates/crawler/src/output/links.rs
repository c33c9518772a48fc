//! The link graph: one line per link of each page.

use std::io::{self, Write};

use super::lines::Lines;
use crate::event::{Event, Observer};
use crate::page::link_graph::LinkRecord;

/// Writes one JSON object per link: `from`, `to`, `kind`, `nofollow`, `verdict`.
///
/// `from` and `to` are absolute URLs; a page names a URL once. `kind` is the element that has the link (`anchor`, `area`,
/// `frame`, `iframe`, `next`, `canonical`, `alternate`, `refresh`), or `redirect`. `verdict` is what the crawl made of it:
/// `queued`, `seen`, `nofollow`, `not_crawlable`, or the name of a [`Refusal`](frontier::Refusal). Links beyond
/// [`max_links_per_page`](crate::CrawlOptions::max_links_per_page) are not among them.
///
/// It needs [`report_links`](crate::CrawlOptions::report_links). Nothing is kept but lines of the last second.
#[derive(Debug)]
pub struct LinkGraph<W: Write> {
    to: Lines<W>,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    from: &'a str,
    to: &'a str,
    kind: &'static str,
    nofollow: bool,
    verdict: &'static str,
}

impl<W: Write> LinkGraph<W> {
    /// Writes to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self { to: Lines::new(to) }
    }

    fn write(&mut self, from: &str, edge: &LinkRecord) -> io::Result<()> {
        self.to.push(&Line {
            from,
            to: &edge.to,
            kind: edge.kind,
            nofollow: edge.nofollow,
            verdict: edge.verdict_name(),
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
}
