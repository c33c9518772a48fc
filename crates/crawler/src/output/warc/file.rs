//! The files of an archive: one record per gzip member, one file after the other.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use uuid::Uuid;

use super::record::{Record, start_of_file};
use crate::output::OutputFile;
use crate::output::file::{at, folder_of, lock};
use crate::saved_output::SavedFile;

/// The maximum size of the fields of a record, in bytes: far more than any URL in them.
const MAX_FIELD_BYTES: u64 = 1024 * 1024;

/// The files of an archive. The last one is open.
#[derive(Debug)]
pub(super) struct Series {
    first: PathBuf,
    file: OutputFile,
    number: u32,
    max_file_bytes: Option<NonZeroU64>,
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
            file,
            number: 0,
            max_file_bytes,
        })
    }

    /// Opens the first file, as [`open`](Self::open) does, for a crawl that can be continued.
    pub(super) fn open_to_continue(path: &Path, max_file_bytes: Option<NonZeroU64>) -> io::Result<Self> {
        let mut series = Self::open(path, max_file_bytes)?;
        series.file.read_tail()?;
        Ok(series)
    }

    /// Continues after the last record that was saved. Later files of the series are removed: what was not saved is written again.
    ///
    /// `id_of` returns the identifier of the file with a number, by which it is known. Nothing is changed if the series cannot be continued.
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
        let path = match number {
            0 => first.to_owned(),
            number => numbered(first, number),
        };
        let file = OutputFile::open_saved(&path, saved)?;
        let later = later_files(first, number, id_of)?;
        // A crawl that goes on has locked one of them, if not the saved one.
        for path in &later {
            lock(&File::open(path).map_err(|error| at(path, &error))?, path)?;
        }
        let file = file.cut_back()?;
        for path in &later {
            std::fs::remove_file(path).map_err(|error| at(path, &error))?;
        }
        Ok(Self {
            first: first.to_owned(),
            file,
            number,
            max_file_bytes,
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

    pub(super) fn is_full(&self) -> bool {
        self.max_file_bytes.is_some_and(|max| self.file.len() >= max.get())
    }

    /// Makes the next file whose name is free, with the first record that `start` returns for its number and its path.
    ///
    /// The file has its name only when it has this record, also after a loss of power. So a file of the series is always known by it. What was
    /// written before is synced: only the last file of a series can be torn.
    pub(super) fn next(&mut self, mut start: impl FnMut(u32, &Path) -> Record) -> io::Result<()> {
        if self.is_regular() {
            self.file.save(true)?;
        }
        loop {
            self.number = self.number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            let path = numbered(&self.first, self.number);
            if path.try_exists().map_err(|error| at(&path, &error))? {
                continue;
            }
            let record = start(self.number, &path);
            let unfinished = unfinished(&path, record.id());
            self.file = OutputFile::create(&unfinished)?;
            let begun = self.write(&[record.bytes()]).and_then(|()| self.file.publish(&path));
            if begun.is_err() {
                let _ = std::fs::remove_file(&unfinished);
            }
            return begun;
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

/// Returns the files of a series with a higher number than this. The series has gaps where files of others were in the way, and where files were
/// moved since.
fn later_files(first: &Path, number: u32, id_of: impl Fn(u32) -> Uuid) -> io::Result<Vec<PathBuf>> {
    let folder = folder_of(first);
    let mut later = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let entry = entry.map_err(|error| at(folder, &error))?;
        let name = entry.file_name();
        let Some(found) = number_of(first, &name.to_string_lossy()).filter(|found| *found > number) else {
            continue;
        };
        let (path, id) = (numbered(first, found), id_of(found));
        let is_of_series = if name == path.file_name().unwrap_or_default() {
            entry.path().is_file() && starts_with(&path, &start_of_file(id))?
        } else {
            name == unfinished(&path, id).file_name().unwrap_or_default()
        };
        if is_of_series {
            later.push(path.with_file_name(name));
        }
    }
    Ok(later)
}

/// Returns whether the content of a file starts with these bytes.
fn starts_with(path: &Path, start: &[u8]) -> io::Result<bool> {
    let found = start_of(path, start.len()).map_err(|error| at(path, &error))?;
    Ok(found == start)
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
    let (stem, ending) = split_ending(&name);
    path.with_file_name(OsString::from(format!("{stem}-{number:05}{ending}")))
}

/// Returns the number in a name that starts as those of [`numbered`] do.
fn number_of(first: &Path, name: &str) -> Option<u32> {
    let first = first.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix(split_ending(&first).0)?.strip_prefix('-')?;
    let length = rest.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..length)?.parse().ok()
}

/// Splits the name of an archive before its ending.
fn split_ending(name: &str) -> (&str, &str) {
    let endings = [".warc.gz", ".gz", ".warc"];
    let ending = endings
        .into_iter()
        .find(|ending| name.to_ascii_lowercase().ends_with(ending));
    name.split_at(name.len() - ending.map_or(0, str::len))
}

/// The name of a file until its first record is synced.
fn unfinished(path: &Path, id: Uuid) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{id}"));
    path.with_file_name(name)
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
