//! The pages: one line per fetched page, with the fields of [`PageRecord`].

use std::io;

use page::select::Field;

use super::columns::Columns;
use super::lines::{Format, Lines, Sink};
use crate::event::{Event, Observer, PageRecord};
use crate::saved_output::SavedOutput;

/// Writes one JSON object or CSV record per page.
///
/// The columns of CSV are the fields of [`PageRecord`], in the same order as in JSON lines. Each selected field has a column `selected.NAME` with
/// the list of its values as JSON.
#[derive(Debug)]
pub struct Pages {
    to: Lines,
}

impl Pages {
    /// Writes to a sink. `selected` are the [`fields`](crate::ReportOptions::fields) of the crawl.
    ///
    /// # Errors
    ///
    /// When a CSV file that is continued cannot be read, or has other columns.
    pub fn new(to: Sink, format: Format, selected: &[Field]) -> io::Result<Self> {
        let to = Lines::new(to, format, || Columns::new(&PageRecord::default(), selected))?;
        Ok(Self { to })
    }
}

impl Observer for Pages {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Page(record) => self.to.push(record),
            Event::Tick(_) | Event::Finished(_) => self.to.flush(),
            _ => Ok(()),
        }
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        self.to.save(sync)
    }
}
