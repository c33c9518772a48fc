//! The files of an archive: one record per gzip member, one file after the other.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use serde::{Deserialize, Serialize};

use crate::output::OutputFile;
use crate::saved_output::SavedFile;

/// The maximum size of the fields of a record, in bytes: far more than any URL in them.
const MAX_FIELD_BYTES: u64 = 1024 * 1024;

/// The files of an archive. The last one is open.
#[derive(Debug)]
pub(super) struct Series {
    first: PathBuf,
    path: PathBuf,
    file: OutputFile,
    number: u32,
    max_file_bytes: Option<NonZeroU64>,
    /// The number of the next file, if a later run can continue: it was free when the series was saved.
    reserved: Option<u32>,
}

/// Where a series was, so that a later run can continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedSeries {
    number: u32,
    next: u32,
}

impl Series {
    /// Opens the first file, to append to it if it exists.
    pub(super) fn open(path: &Path, max_file_bytes: Option<NonZeroU64>) -> io::Result<Self> {
        let file = OutputFile::append(path)?;
        if !file.is_empty() {
            check(path)?;
        }
        Ok(Self {
            first: path.to_owned(),
            path: path.to_owned(),
            file,
            number: 0,
            max_file_bytes,
            reserved: None,
        })
    }

    /// Opens the first file, as [`open`](Self::open) does, for a crawl that can be continued.
    pub(super) fn open_to_continue(path: &Path, max_file_bytes: Option<NonZeroU64>) -> io::Result<Self> {
        let mut series = Self::open(path, max_file_bytes)?;
        series.file.read_tail()?;
        series.reserve()?;
        Ok(series)
    }

    /// Continues after the last record that was saved. Later files that were not saved are removed: the first of them starts with the first of
    /// `starts`, and so on.
    pub(super) fn reopen(
        first: &Path,
        max_file_bytes: Option<NonZeroU64>,
        saved: &SavedSeries,
        file: &SavedFile,
        mut starts: impl Iterator<Item = Vec<u8>>,
    ) -> io::Result<Self> {
        let path = match saved.number {
            0 => first.to_owned(),
            number => numbered(first, number),
        };
        let (mut number, mut start) = (saved.next, starts.next());
        while let next = numbered(first, number)
            && let Some(expected) = &start
            && next.exists()
        {
            let found = start_of(&next, expected.len())?;
            // The first name was free. In the place of a later one, what cannot be read may be another program's.
            let may_be_torn = number == saved.next || !found.is_empty() || next.metadata()?.len() == 0;
            if may_be_torn && expected.starts_with(&found) {
                std::fs::remove_file(&next)?;
                start = starts.next();
            }
            number = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
        }
        let mut series = Self {
            first: first.to_owned(),
            file: OutputFile::reopen(&path, file)?,
            path,
            number: saved.number,
            max_file_bytes,
            reserved: None,
        };
        series.reserve()?;
        Ok(series)
    }

    fn reserve(&mut self) -> io::Result<()> {
        let mut number = self.number;
        loop {
            number = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            if !numbered(&self.first, number).try_exists()? {
                self.reserved = Some(number);
                return Ok(());
            }
        }
    }

    /// Returns what [`reopen`](Self::reopen) needs, if the series was opened for that.
    pub(super) fn save(&mut self, sync: bool) -> io::Result<Option<(SavedSeries, SavedFile)>> {
        let Some(next) = self.reserved else {
            return Ok(None);
        };
        let file = self.file.save(sync)?;
        let number = self.number;
        Ok(Some((SavedSeries { number, next }, file)))
    }

    pub(super) fn is_regular(&self) -> bool {
        self.file.is_regular()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_full(&self) -> bool {
        self.max_file_bytes.is_some_and(|max| self.file.len() >= max.get())
    }

    /// Makes the next file whose name is free.
    ///
    /// A series that a later run can continue has one name for it until it is [saved](Self::save) again.
    pub(super) fn next(&mut self) -> io::Result<()> {
        if let Some(number) = self.reserved {
            let path = numbered(&self.first, number);
            self.file.save(true)?;
            self.file = OutputFile::create_new(&path)?;
            (self.path, self.number) = (path, number);
            return self.reserve();
        }
        loop {
            self.number = self.number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            let path = numbered(&self.first, self.number);
            match OutputFile::create_new(&path) {
                Ok(file) => {
                    (self.path, self.file) = (path, file);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
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

/// Returns the first bytes of the content of a file, as far as a crash has left them.
fn start_of(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut found = Vec::new();
    let length = length as u64;
    if is_compressed(path) {
        // The end of a torn file is an error; what is before it counts.
        let _ = MultiGzDecoder::new(BufReader::new(file))
            .take(length)
            .read_to_end(&mut found);
    } else {
        file.take(length).read_to_end(&mut found)?;
    }
    Ok(found)
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}

/// `pages.warc.gz` and 1 give `pages-00001.warc.gz`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".warc.gz", ".gz", ".warc"];
    let ending = endings
        .into_iter()
        .find(|ending| name.to_ascii_lowercase().ends_with(ending));
    let (stem, ending) = name.split_at(name.len() - ending.map_or(0, str::len));
    path.with_file_name(OsString::from(format!("{stem}-{number:05}{ending}")))
}

/// Checks that records can be appended to a file: that it is an archive of this kind, and that its last record is whole.
fn check(path: &Path) -> io::Result<()> {
    let refuse = |why: &str| {
        let advice = "it is not overwritten; give another name, or move the file";
        let message = format!("{}: the file exists and {why}: {advice}", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    };
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    if is_gzip != is_compressed(path) {
        return refuse(if is_gzip { "is compressed" } else { "is not compressed" });
    }
    if is_gzip {
        let mut inside = MultiGzDecoder::new(file);
        let mut start = [0; 5];
        if inside.read_exact(&mut start).is_err() || &start != b"WARC/" {
            return refuse("is not a WARC file");
        }
        return match io::copy(&mut inside, &mut io::sink()) {
            Ok(_) => Ok(()),
            Err(_) => refuse("its last record is incomplete"),
        };
    }
    if !file.fill_buf()?.starts_with(b"WARC/") {
        return refuse("is not a WARC file");
    }
    match check_records(&mut file) {
        Ok(()) => Ok(()),
        Err(error) if is_broken(&error) => refuse("its last record is incomplete"),
        Err(error) => Err(error),
    }
}

fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
}

/// Reads every record by its length. The last bytes alone prove nothing: the fields of a record end with the same bytes as a record.
fn check_records(file: &mut BufReader<File>) -> io::Result<()> {
    let length = file.get_ref().metadata()?.len();
    while file.stream_position()? < length {
        let block = fields_of_record(file)?;
        let end = block.checked_add(file.stream_position()?).filter(|end| *end <= length);
        file.seek(SeekFrom::Start(end.ok_or(io::ErrorKind::UnexpectedEof)?))?;
        let mut end = [0; 4];
        file.read_exact(&mut end)?;
        if &end != b"\r\n\r\n" {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

/// Reads the version and the named fields of a record (WARC 1.1, section 4); returns the length of its block.
fn fields_of_record(file: &mut impl BufRead) -> io::Result<u64> {
    let mut fields = String::new();
    let mut length = None;
    loop {
        let start = fields.len();
        if file.by_ref().take(MAX_FIELD_BYTES).read_line(&mut fields)? == 0 || fields.len() as u64 > MAX_FIELD_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = fields.get(start..).unwrap_or_default().trim_end_matches(['\r', '\n']);
        if start == 0 && !line.starts_with("WARC/") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if line.is_empty() {
            return length.ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_are_numbered_before_their_ending() {
        for (first, second) in [
            ("a/pages.warc.gz", "a/pages-00001.warc.gz"),
            ("pages.WARC", "pages-00001.WARC"),
            ("x.gz", "x-00001.gz"),
            ("archive", "archive-00001"),
        ] {
            assert_eq!(numbered(Path::new(first), 1), Path::new(second));
        }
    }
}
