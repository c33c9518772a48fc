//! Records as JSON lines or CSV, written in whole lines.

use std::io::{self, Read as _, Write};

use serde::Serialize;

use super::columns::Columns;
use super::file::OutputFile;
use crate::saved_output::SavedOutput;

/// The buffered lines are written at this size, in bytes, or at a flush.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes records. Each `write` to the inner writer has whole lines.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    to: W,
    format: Format,
    buffer: Vec<u8>,
    /// How to save the inner writer, if a later run can continue it.
    save: Option<Saving<W>>,
}

/// The name of an output, and what saves its writer.
#[derive(Debug)]
struct Saving<W> {
    name: String,
    save: fn(&mut W, &str, bool) -> io::Result<SavedOutput>,
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
            save: None,
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
            save: None,
        })
    }

    /// Writes out the buffer, and returns what a later run needs to continue.
    pub(super) fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        if !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        let Some(saving) = &self.save else {
            return Ok(None);
        };
        (saving.save)(&mut self.to, &saving.name, sync).map(Some)
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

impl Lines<OutputFile> {
    /// Continues a file of JSON lines that may be empty.
    pub(super) fn continue_json(name: &str, file: OutputFile) -> Self {
        let mut lines = Self::json(file);
        lines.save = Some(Saving::of(name));
        lines
    }

    /// Continues a CSV file that may be empty. Only then the header is written.
    pub(super) fn continue_csv(name: &str, file: OutputFile, columns: Columns) -> io::Result<Self> {
        let mut header = Vec::new();
        columns.write_header(&mut header)?;
        if !file.is_empty() {
            let mut start = Vec::new();
            file.reader()?.take(header.len() as u64).read_to_end(&mut start)?;
            if start != header {
                let message = format!(
                    "{}: the columns of the file are others: select the same fields as in its first run",
                    file.path().display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            header.clear();
        }
        Ok(Self {
            to: file,
            format: Format::Csv(columns),
            buffer: header,
            save: Some(Saving::of(name)),
        })
    }

    /// Returns the file as an earlier run has left it.
    pub(super) fn file(&self) -> &OutputFile {
        &self.to
    }
}

impl Saving<OutputFile> {
    fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            save: |file, name, sync| {
                Ok(SavedOutput {
                    name: name.to_owned(),
                    file: file.save(sync)?,
                    extra: String::new(),
                })
            },
        }
    }
}

impl<W: Write> Drop for Lines<W> {
    /// Writes the buffer, for a crawl that ends with an error of another observer. Its own error has no receiver.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
