//! Records as JSON lines or CSV, written in whole lines.

use std::io::{self, Write};

use serde::Serialize;

use super::columns::Columns;

/// The buffered lines are written at this size, in bytes, or at a flush.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes records. Each `write` to the inner writer has whole lines.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    to: W,
    format: Format,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Format {
    /// <https://jsonlines.org>
    Json,
    /// RFC 4180
    Csv(Columns),
}

impl<W: Write> Lines<W> {
    pub(super) fn json(to: W) -> Self {
        Self {
            to,
            format: Format::Json,
            buffer: Vec::new(),
        }
    }

    /// Makes a writer of CSV records, with the header as its first line.
    pub(super) fn csv(to: W, columns: Columns) -> io::Result<Self> {
        let mut buffer = Vec::new();
        columns.write_header(&mut buffer)?;
        Ok(Self {
            to,
            format: Format::Csv(columns),
            buffer,
        })
    }

    pub(super) fn push(&mut self, record: &impl Serialize) -> io::Result<()> {
        match &self.format {
            Format::Json => {
                serde_json::to_writer(&mut self.buffer, record)?;
                self.buffer.push(b'\n');
            }
            Format::Csv(columns) => columns.write(&mut self.buffer, record)?,
        }
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write_buffer()?;
        self.to.flush()
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        // After an error the bytes are not written again: the writer may have some of them already.
        let buffer = std::mem::take(&mut self.buffer);
        self.to.write_all(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Drop for Lines<W> {
    /// Writes the buffer, for a crawl that ends with an error of another observer. Its own error has no receiver.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
