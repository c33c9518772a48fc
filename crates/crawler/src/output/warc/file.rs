//! The files of an archive: one record per gzip member, one file after the other.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::output::OutputFile;

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
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_full(&self) -> bool {
        self.max_file_bytes.is_some_and(|max| self.file.len() >= max.get())
    }

    /// Makes the next file whose name is free.
    pub(super) fn next(&mut self) -> io::Result<()> {
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
