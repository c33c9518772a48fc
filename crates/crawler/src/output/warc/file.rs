//! The files of an archive: one record per gzip member, one file after the other.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use uuid::Uuid;

use super::names::{is_compressed, numbered};
use super::record::{Record, start_of_file};
use crate::output::OutputFile;
use crate::output::file::at;
use crate::saved_output::SavedFile;

/// What a gzip member starts with (RFC 1952, section 2.3.1), with deflate as its method.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

/// How many bytes of a file are read to know who has begun it.
const START_BYTES: u64 = 4096;

/// The files of an archive. The last one is open.
#[derive(Debug)]
pub(super) struct Series {
    first: PathBuf,
    file: OutputFile,
    number: u32,
    max_file_bytes: Option<NonZeroU64>,
    /// Whether a later run can continue it.
    can_be_continued: bool,
}

impl Series {
    /// Makes the first file. One that exists must be empty.
    pub(super) fn create(path: &Path, max_file_bytes: Option<NonZeroU64>, can_be_continued: bool) -> io::Result<Self> {
        let file = OutputFile::append(path)?;
        if !file.is_empty() {
            return Err(not_overwritten(path));
        }
        Ok(Self {
            first: path.to_owned(),
            file,
            number: 0,
            max_file_bytes,
            can_be_continued,
        })
    }

    /// Continues after the last record that was saved. Later files of the series are removed: what was not saved is written again.
    ///
    /// `id_of` returns the identifier of the file with a number, by which it is known. No file is cut or removed if the series cannot be continued.
    pub(super) fn reopen(
        first: &Path,
        max_file_bytes: Option<NonZeroU64>,
        number: u32,
        saved: &SavedFile,
        id_of: impl Fn(u32) -> Uuid,
    ) -> io::Result<Self> {
        if saved.length > 0 && is_compressed(first) != is_compressed(Path::new(&saved.path)) {
            let (kind, must) = match is_compressed(first) {
                true => ("not compressed", "must not"),
                false => ("compressed", "must"),
            };
            let message = format!(
                "{}: the crawl has written an archive that is {kind} (as {}): its name {must} end in .gz",
                first.display(),
                saved.path
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if saved.length == 0 && first.is_file() && !is_begun(first, id_of(0))? {
            return Err(not_overwritten(first));
        }
        let path = match number {
            0 => first.to_owned(),
            number => numbered(first, number),
        };
        let file = OutputFile::reopen(&path, saved)?;
        let mut later = Vec::new();
        for number in number + 1.. {
            let path = numbered(first, number);
            if path.symlink_metadata().is_err() {
                break;
            }
            if path.is_file() && is_begun(&path, id_of(number))? {
                later.push(path);
            }
        }
        // The last one first: a kill leaves no gap, at which the next run would stop.
        for path in later.iter().rev() {
            std::fs::remove_file(path).map_err(|error| at(path, &error))?;
        }
        Ok(Self {
            first: first.to_owned(),
            file,
            number,
            max_file_bytes,
            can_be_continued: true,
        })
    }

    /// Returns what [`reopen`](Self::reopen) needs: the number of the file, and the file.
    pub(super) fn save(&mut self, sync: bool) -> io::Result<(u32, SavedFile)> {
        Ok((self.number, self.file.save(sync)?))
    }

    pub(super) fn is_regular(&self) -> bool {
        self.file.is_regular()
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns whether the last file has no record.
    pub(super) fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.max_file_bytes.is_some_and(|max| self.file.len() >= max.get())
    }

    /// Makes the next file whose name is free, with the first record that `start` returns for its number and its path.
    ///
    /// If a later run can continue the series, the file before and the new one are synced: only the last file can be torn, and it is known by its
    /// first record.
    pub(super) fn next(&mut self, mut start: impl FnMut(u32, &Path) -> Record) -> io::Result<()> {
        if self.can_be_continued {
            self.file.save(true)?;
        }
        self.file = loop {
            self.number = self.number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            match OutputFile::create_new(&numbered(&self.first, self.number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => break created?,
            }
        };
        let record = start(self.number, self.file.path());
        self.write(&[record.bytes()])?;
        if self.can_be_continued {
            self.file.save(true)?;
        }
        Ok(())
    }

    /// Writes all of the records, or none.
    pub(super) fn write(&mut self, records: &[&[u8]]) -> io::Result<()> {
        let bytes = if is_compressed(&self.first) {
            let mut members = Vec::new();
            for record in records {
                let mut member = GzEncoder::new(members, Compression::default());
                member.write_all(record)?;
                members = member.finish()?;
            }
            members
        } else {
            records.concat()
        };
        self.file.write_all(&bytes)
    }
}

fn not_overwritten(path: &Path) -> io::Error {
    let message = format!(
        "{}: the file exists, and is not overwritten: give another name, or move the file",
        path.display()
    );
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

/// Returns whether the series has begun a file: it starts with the identifier, or is what a crash has left of a record before it: its start,
/// and at most zeros.
fn is_begun(path: &Path, id: Uuid) -> io::Result<bool> {
    let start = start_of_file(id);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| at(path, &error))?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    if is_compressed(path) {
        if !GZIP.starts_with(bytes.get(..GZIP.len()).unwrap_or(&bytes)) {
            return Ok(false);
        }
        let mut found = Vec::new();
        // The end of a torn member is an error; what is before it counts.
        let member = MultiGzDecoder::new(bytes.as_slice());
        let _ = member.take(start.len() as u64).read_to_end(&mut found);
        bytes = found;
    }
    bytes.truncate(start.len());
    Ok(start.starts_with(&bytes))
}
