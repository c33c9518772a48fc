//! JSON lines: one object per fetched page, the fields of [`PageRecord`].

use std::io::{self, BufWriter, Write};

use crate::event::{Event, Observer, PageRecord};

/// Writes one JSON object per line and page (<https://jsonlines.org>).
///
/// A line is handed to the operating system at the latest one second after its page was fetched.
#[derive(Debug)]
pub struct JsonLines<W: Write> {
    to: BufWriter<W>,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `to`, which need not be buffered.
    pub fn new(to: W) -> Self {
        Self { to: BufWriter::new(to) }
    }

    fn write(&mut self, record: &PageRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, record)?;
        self.to.write_all(b"\n")
    }
}

impl<W: Write + Send> Observer for JsonLines<W> {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Page(record) => self.write(record),
            Event::Tick(_) | Event::Finished(_) => self.to.flush(),
            _ => Ok(()),
        }
    }
}
