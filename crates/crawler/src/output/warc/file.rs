//! The files of an archive: one record per gzip member, one file after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use uuid::Uuid;

use super::names::{is_compressed, number_of, numbered, unfinished};
use super::record::{Record, start_of_file};
use crate::output::OutputFile;
use crate::output::file::{at, folder_of};
use crate::saved_output::SavedFile;

/// The maximum size of the fields of a record, in bytes: far more than any URL in them.
const MAX_FIELD_BYTES: u64 = 1024 * 1024;

/// What a gzip member starts with (RFC 1952, section 2.3.1), with deflate as its method.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

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
            can_be_continued: false,
        })
    }

    /// Opens the first file, as [`open`](Self::open) does, for a crawl that can be continued.
    pub(super) fn open_to_continue(path: &Path, max_file_bytes: Option<NonZeroU64>) -> io::Result<Self> {
        let mut series = Self::open(path, max_file_bytes)?;
        series.file.read_tail()?;
        series.can_be_continued = true;
        Ok(series)
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
        if saved.length == 0 && is_of_another(first, id_of(0))? {
            return Self::open_to_continue(first, max_file_bytes);
        }
        let path = match number {
            0 => first.to_owned(),
            number => numbered(first, number),
        };
        let file = OutputFile::open_saved(&path, saved)?;
        let later = later_files(first, number, id_of)?;
        // Opening one takes its lock: a crawl that still writes to the archive has locked one of them, if not the saved one.
        for path in &later {
            drop(OutputFile::append(path)?);
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

    pub(super) fn is_full(&self) -> bool {
        self.max_file_bytes.is_some_and(|max| self.file.len() >= max.get())
    }

    /// Makes the next file whose name is free, with the first record that `start` returns for its number and its path.
    ///
    /// If a later run can continue the series, what was written before is synced: only the last file can be torn. And the first record is synced
    /// before the file gets its name, so that it is known by it also after a loss of power. Before, at most an empty file has the name.
    pub(super) fn next(&mut self, mut start: impl FnMut(u32, &Path) -> Record) -> io::Result<()> {
        if self.can_be_continued {
            self.file.save(true)?;
        }
        loop {
            self.number = self.number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            let path = numbered(&self.first, self.number);
            // Also a link to a file that is not there is in the way.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let record = start(self.number, &path);
            let begun = self.begin(&path, &record);
            match begun {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                begun => return begun,
            }
        }
    }

    fn begin(&mut self, path: &Path, record: &Record) -> io::Result<()> {
        let unfinished = unfinished(&self.first, self.number, record.id());
        // If another process has locked it, it is not ours to remove.
        self.file = OutputFile::create(&unfinished)?;
        let begun = self.finish_beginning(path, record);
        if begun.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        begun
    }

    fn finish_beginning(&mut self, path: &Path, record: &Record) -> io::Result<()> {
        self.write(&[record.bytes()])?;
        if self.can_be_continued {
            self.file.save(true)?;
        }
        self.file.rename_to(path)
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

/// Returns the files of a series with a higher number than this, in the order in which they are to be removed. The series has gaps where files of
/// others were in the way, and where files were moved since.
fn later_files(first: &Path, number: u32, id_of: impl Fn(u32) -> Uuid) -> io::Result<Vec<PathBuf>> {
    let folder = folder_of(first);
    let (mut later, mut begun) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let entry = entry.map_err(|error| at(folder, &error))?;
        let name = entry.file_name();
        let Some(found) = number_of(first, &name.to_string_lossy()).filter(|found| *found > number) else {
            continue;
        };
        let (path, id) = (first.with_file_name(&name), id_of(found));
        let unfinished = unfinished(first, found, id);
        if path == numbered(first, found) {
            // It is empty after a crash just before the unfinished file got this name.
            let start = start_of_file(id);
            if path.is_file() && (starts_with(&path, &start)? || is_empty(&path)? && unfinished.exists()) {
                later.push(path);
            }
        } else if path == unfinished {
            begun.push(path);
        }
    }
    later.append(&mut begun);
    Ok(later)
}

fn is_empty(path: &Path) -> io::Result<bool> {
    let found = path.metadata().map_err(|error| at(path, &error))?;
    Ok(found.len() == 0)
}

/// Returns whether the content of a file starts with these bytes.
fn starts_with(path: &Path, start: &[u8]) -> io::Result<bool> {
    let found = start_of(path, start.len()).map_err(|error| at(path, &error))?;
    Ok(found == start)
}

/// Returns whether there is a file that this series has not begun, if nothing of its first file was saved. A begun one has the identifier, or is what
/// a crash has left of a record before it: its start, and at most zeros.
fn is_of_another(first: &Path, id: Uuid) -> io::Result<bool> {
    if !first.is_file() {
        return Ok(false);
    }
    let start = start_of_file(id);
    let named = |error| at(first, &error);
    let found = start_of(first, start.len()).map_err(named)?;
    if found == start {
        return Ok(false);
    }
    let bytes = bytes_before_zeros(first).map_err(named)?;
    let is_left = match is_compressed(first) {
        // What cannot be read of a member may have been the start.
        true => GZIP.starts_with(bytes.get(..GZIP.len()).unwrap_or(&bytes)) && start.starts_with(&found),
        false => start.starts_with(&bytes),
    };
    Ok(!is_left)
}

/// Returns the first bytes of a file, without zeros at their end.
fn bytes_before_zeros(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FIELD_BYTES).read_to_end(&mut bytes)?;
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(length);
    Ok(bytes)
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

/// Checks that records can be appended to a file: that it is an archive of this kind, and that its last record is whole.
fn check(path: &Path) -> io::Result<()> {
    let refuse = |why: &str| {
        let advice = "it is not overwritten; give another name, or move the file";
        let message = format!("{}: the file exists and {why}: {advice}", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    };
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&GZIP[..2]);
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
