//! An output is a file, or a series of files: their names, and what a later run checks before it continues them.
//!
//! A file that is full ends with a commit that is synced, and the next one is empty until that commit. So no state that a kill or a power cut
//! leads back to lacks a file that has content.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use super::tail::Tail;
use crate::saved_output::SavedFile;

/// Returns whether an output is compressed as gzip (RFC 1952): its name ends in `.gz`.
pub fn is_compressed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().ends_with(".gz")
}

/// The digits of the number in a name, at least.
const DIGITS: usize = 5;

/// Returns the name of a file of a series: `pages.jsonl.gz` and 1 give `pages-00001.jsonl.gz`. The first has the number 0.
pub(super) fn numbered(first: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return first.to_owned();
    }
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let (stem, ending) = name.split_at(ending_of(&name));
    first.with_file_name(OsString::from(format!("{stem}-{number:0DIGITS$}{ending}")))
}

/// Returns the files of a series that are there, in no order. It reads their folder.
pub fn series_of(first: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = folder_of(first).read_dir().into_iter().flatten().flatten();
    let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = ending_of(&name);
    entries.map(|entry| entry.path()).filter(move |path| {
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, ending) = name.split_at(end);
        let between = found.strip_prefix(stem).and_then(|rest| rest.strip_suffix(ending));
        let number = between.and_then(|between| between.strip_prefix('-'));
        found == name || number.is_some_and(|number| number.len() >= DIGITS && number.parse::<u32>().is_ok())
    })
}

pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns where the ending of a name starts, such as `.warc.gz`. A date or a version is no ending.
fn ending_of(name: &str) -> usize {
    let ending_at = |name: &str| {
        let (stem, ending) = name.rsplit_once('.')?;
        let is_ending = ending.starts_with(|first: char| first.is_ascii_alphabetic());
        (is_ending && !stem.is_empty()).then_some(stem.len())
    };
    match name.len().checked_sub(".gz".len()) {
        Some(end) if is_compressed(Path::new(name)) => ending_at(&name[..end]).unwrap_or(end),
        _ => ending_at(name).unwrap_or(name.len()),
    }
}

/// Whether a file may be begun there: there is none, or an empty one.
pub(super) fn is_free(path: &Path) -> bool {
    path.symlink_metadata()
        .map_or(true, |found| found.is_file() && found.len() == 0)
}

/// The number by which the file system knows a file: of one that is empty, [`SavedFile::tail`] has it in place of a hash.
pub(super) fn identity(found: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(found);
    #[cfg(not(unix))]
    return u64::from(found.is_file());
}

/// Adds the path to an error.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl SavedFile {
    /// Checks that the file still has what was saved, and can be [continued](crate::output::OutputFile::reopen). `first` is where the series
    /// is now; with a size of its files, the name of the next one must be free. It changes nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) when the file is missing, shorter than it was, or changed before its saved end;
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a later file is there. The message says what to do. Besides, when the system cannot read it.
    pub fn check(&self, first: &Path, max_bytes: Option<NonZeroU64>) -> io::Result<()> {
        let path = numbered(first, self.number);
        let refuse = |what: String| {
            let known = match self.path == first.display().to_string() {
                true => String::new(),
                false => format!(" name {}, or", numbered(Path::new(&self.path), self.number).display()),
            };
            let message = format!(
                "{}: the crawl has written {} bytes, and {what}:{known} put that file back, or start a new crawl with another state directory",
                path.display(),
                self.length
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.length > 0 => {
                return refuse("the file is missing".to_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(&path)(error)),
            Ok(found) if !found.is_file() => return refuse("this is not a regular file".to_owned()),
            Ok(found) if found.len() < self.length => return refuse(format!("the file has {}", found.len())),
            Ok(found) if self.length == 0 => {
                if found.len() > 0 && identity(&found) != self.tail {
                    return refuse("this is the file of another".to_owned());
                }
            }
            Ok(_) => {
                let tail = File::open(&path).and_then(|mut file| Tail::read(&mut file, self.length));
                if tail.map_err(at(&path))?.hash() != self.tail {
                    return refuse("the file was changed since".to_owned());
                }
            }
        }
        let next = numbered(first, self.number.saturating_add(1));
        if max_bytes.is_some() && !is_free(&next) {
            let message = format!(
                "{}: this file is not of the crawl as its state directory has it, which continues there: move it away or remove it. If the crawl has \
                 begun it, its pages are fetched again",
                next.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(())
    }

    /// Whether the file still has what was saved, as far as its length and its last bytes tell.
    pub(crate) fn is_intact(&self) -> bool {
        self.full_path().exists() && self.check(Path::new(&self.path), None).is_ok()
    }

    /// The file itself, whatever its number.
    pub(crate) fn full_path(&self) -> PathBuf {
        numbered(Path::new(&self.path), self.number)
    }

    /// A file of this output without content: the next in the series that is free.
    pub(crate) fn begun_anew(&self, first: &Path) -> Self {
        let free = (self.number..u32::MAX).find(|number| is_free(&numbered(first, *number)));
        Self {
            path: first.display().to_string(),
            number: free.unwrap_or(u32::MAX),
            ..Self::default()
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
            ("pages.jsonl", "pages-00001.jsonl"),
            ("pages.csv.GZ", "pages-00001.csv.GZ"),
            ("pages.2026-01", "pages.2026-01-00001"),
            ("x.gz", "x-00001.gz"),
            (".gz", "-00001.gz"),
            ("archive", "archive-00001"),
        ] {
            assert_eq!(numbered(Path::new(first), 1), Path::new(second));
            assert_eq!(numbered(Path::new(first), 0), Path::new(first));
        }
    }
}
