//! JSON lines: one object per fetched page, the fields of [`PageRecord`](crate::PageRecord).

use std::io::{self, Write};

use super::OutputFile;
use super::lines::Lines;
use crate::event::{Event, Observer};
use crate::saved_output::SavedOutput;

/// Writes one JSON object per line and page (<https://jsonlines.org>).
///
/// It writes whole lines, at the latest one second after the page was fetched.
#[derive(Debug)]
pub struct JsonLines<W: Write> {
    to: Lines<W>,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self { to: Lines::json(to) }
    }
}

impl JsonLines<OutputFile> {
    /// Continues a file, which may be empty. It is [saved](Observer::save) under this name.
    pub fn continuing(name: &str, file: OutputFile) -> Self {
        Self {
            to: Lines::continue_json(name, file),
        }
    }
}

impl<W: Write + Send> Observer for JsonLines<W> {
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
