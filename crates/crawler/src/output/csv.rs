//! CSV (RFC 4180): one record per fetched page, for spreadsheets and databases.
//!
//! The first record is the header. The columns are the fields of [`PageRecord`], in the same order as in JSON
//! lines. A `None` is an empty cell. Each selected field has a column `selected.NAME` with the list of its values as JSON.
//!
//! **Formulas.** A spreadsheet runs a cell as a formula if its text starts with `=`, `+`, `-`, `@`, a tab or a carriage return.
//! Titles and headers come from untrusted sites, so such a text gets an apostrophe in front, as OWASP advises. JSON lines
//! have the exact text.

use std::io::{self, Write};

use super::OutputFile;
use super::columns::Columns;
use super::lines::Lines;
use crate::event::{Event, Observer, PageRecord};
use crate::page::select::Field;
use crate::saved_output::SavedOutput;

/// Writes one CSV record per page.
///
/// It writes whole records, at the latest one second after the page was fetched.
#[derive(Debug)]
pub struct Csv<W: Write> {
    to: Lines<W>,
}

impl<W: Write> Csv<W> {
    /// Writes to `to`, which need not be buffered. `selected` are the [`fields`](crate::CrawlOptions::fields) of the crawl.
    ///
    /// # Errors
    ///
    /// None in practice: the header goes into memory, and is written with the first records.
    pub fn new(to: W, selected: &[Field]) -> io::Result<Self> {
        let columns = Columns::new(&PageRecord::default(), selected)?;
        Ok(Self {
            to: Lines::csv(to, columns)?,
        })
    }
}

impl Csv<OutputFile> {
    /// Continues a file, which may be empty. It is [saved](Observer::save) under this name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or has other columns.
    pub fn continuing(name: &str, file: OutputFile, selected: &[Field]) -> io::Result<Self> {
        let columns = Columns::new(&PageRecord::default(), selected)?;
        Ok(Self {
            to: Lines::continue_csv(name, file, columns)?,
        })
    }
}

impl<W: Write + Send> Observer for Csv<W> {
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
