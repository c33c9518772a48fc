//! A series of files: their names.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

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

/// Returns the files of a series that are there, with their numbers, in no order. It reads their folder.
pub fn series_of(first: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = folder_of(first).read_dir().into_iter().flatten().flatten();
    let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = ending_of(&name);
    entries.map(|entry| entry.path()).filter_map(move |path| {
        let found = path.file_name()?.to_string_lossy();
        let (stem, ending) = name.split_at(end);
        let between = found.strip_prefix(stem)?.strip_suffix(ending)?;
        let number = match between.strip_prefix('-').filter(|number| number.len() >= DIGITS) {
            None if between.is_empty() => 0,
            number => number?.parse().ok()?,
        };
        Some((number, path))
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

/// So that an error names its file.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
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
