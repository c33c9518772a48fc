//! Records as JSON lines or CSV, written in whole lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::columns::Columns;
use super::file::OutputFile;
use super::series::is_compressed;
use crate::saved_output::SavedOutput;

/// The buffered lines are written at this size, in bytes, or at a flush.
const BUFFER_BYTES: usize = 64 * 1024;

/// The form of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line (<https://jsonlines.org>).
    JsonLines,
    /// CSV (RFC 4180), for spreadsheets and databases. The first record is the header; `null` is an empty cell.
    ///
    /// A spreadsheet runs a cell as a formula if its text starts with `=`, `+`, `-`, `@`, a tab or a carriage return. Titles and headers come
    /// from untrusted sites, so such a text gets an apostrophe in front, as OWASP advises. JSON lines have the exact text.
    Csv,
    /// The same after a byte order mark, without which Excel does not read UTF-8.
    CsvWithMark,
}

/// Where records go. They are written in whole lines, at the latest one second after what they report.
///
/// A file whose name ends in `.gz` is compressed (RFC 1952). Each write is a member of its own, so that a file that is cut between two of them is
/// whole.
pub struct Sink(Target);

enum Target {
    Writer(Box<dyn Write + Send>),
    File(OutputFile),
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Sink");
        if let Target::File(file) = &self.0 {
            shown.field("file", file);
        }
        shown.finish_non_exhaustive()
    }
}

impl Sink {
    /// Writes to `to`, which need not be buffered.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Target::Writer(Box::new(to)))
    }

    /// Writes to a file, or a series of them.
    pub fn file(file: OutputFile) -> Self {
        Self(Target::File(file))
    }

    /// Continues a file, which may be empty, or a series of them. It is [saved](crate::Observer::save) under this name.
    pub fn continuing(name: impl Into<String>, file: OutputFile) -> Self {
        Self::file(file.saved_under(name))
    }

    pub(super) fn continued(&self) -> io::Result<Option<Box<dyn Read>>> {
        match &self.0 {
            Target::File(file) if !file.is_empty() => Ok(Some(self.decoded(file.reader()?))),
            _ => Ok(None),
        }
    }

    pub(super) fn earlier(&self) -> Vec<Box<dyn Read>> {
        match &self.0 {
            Target::File(file) => file.earlier().map(|file| self.decoded(BufReader::new(file))).collect(),
            Target::Writer(_) => Vec::new(),
        }
    }

    fn decoded(&self, file: impl BufRead + 'static) -> Box<dyn Read> {
        match is_compressed(self.path()) {
            true => Box::new(MultiGzDecoder::new(file)),
            false => Box::new(file),
        }
    }

    fn begins_file(&mut self) -> io::Result<bool> {
        match &mut self.0 {
            Target::Writer(_) => Ok(false),
            Target::File(file) => file.make_room().map(|()| file.is_empty()),
        }
    }

    fn path(&self) -> &Path {
        match &self.0 {
            Target::Writer(_) => Path::new("-"),
            Target::File(file) => file.path(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Target::Writer(to) => to,
            Target::File(file) => file,
        }
    }
}

/// Writes records. Each `write` to the sink has whole lines.
#[derive(Debug)]
pub(super) struct Lines {
    to: Sink,
    /// The columns of CSV, and what each file begins with.
    columns: Option<Columns>,
    head: Vec<u8>,
    buffer: Vec<u8>,
}

impl Lines {
    /// Begins to write. A CSV file that is not empty must have the header already; each other one begins with it.
    pub(super) fn new(to: Sink, format: Format, columns: impl FnOnce() -> io::Result<Columns>) -> io::Result<Self> {
        let mut head = Vec::new();
        let columns = match format {
            Format::JsonLines => None,
            Format::Csv | Format::CsvWithMark => {
                if format == Format::CsvWithMark {
                    head.extend("\u{feff}".bytes());
                }
                let columns = columns()?;
                columns.write_header(&mut head)?;
                Some(columns)
            }
        };
        if let Some(written) = to.continued()? {
            let mut start = Vec::new();
            written.take(head.len() as u64).read_to_end(&mut start)?;
            if start != head {
                let message = format!(
                    "{}: the columns of the file are others: select the same fields as in its first run",
                    to.path().display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(Self {
            buffer: match to.0 {
                Target::Writer(_) => head.clone(),
                Target::File(_) => Vec::new(),
            },
            to,
            columns,
            head,
        })
    }

    /// Writes out the buffer, and returns what a later run needs to continue.
    pub(super) fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        if !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        match &mut self.to.0 {
            Target::Writer(_) => Ok(None),
            Target::File(file) => file.save_with(String::new(), sync),
        }
    }

    pub(super) fn push(&mut self, record: &impl Serialize) -> io::Result<()> {
        match &self.columns {
            None => {
                serde_json::to_writer(&mut self.buffer, record)?;
                self.buffer.push(b'\n');
            }
            Some(columns) => columns.write(&mut self.buffer, record)?,
        }
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        // An output without a line has its header, but a later file of a series begins with a line.
        let is_later = matches!(&self.to.0, Target::File(file) if file.number > 0);
        if !self.buffer.is_empty() || !is_later {
            self.write_buffer()?;
        }
        self.to.writer().flush()
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        // After an error the bytes are not written again: the writer may have some of them already.
        let mut buffer = std::mem::take(&mut self.buffer);
        if self.to.begins_file()? {
            buffer.splice(..0, self.head.iter().copied());
        }
        if is_compressed(self.to.path()) && !buffer.is_empty() {
            self.to.writer().write_all(&gzip(&buffer)?)?;
        } else {
            self.to.writer().write_all(&buffer)?;
        }
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }
}

/// Compresses bytes as a gzip member of their own.
pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(bytes)?;
    member.finish()
}

impl Drop for Lines {
    /// Writes the buffer, for a crawl that ends with an error of another observer. Its own error has no receiver.
    fn drop(&mut self) {
        // A file that was only opened stays as it is.
        if !self.buffer.is_empty() || matches!(self.to.0, Target::Writer(_)) {
            let _ = self.flush();
        }
    }
}
