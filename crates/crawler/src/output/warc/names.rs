//! The names of the files of an archive.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns whether the records of a file with this name are compressed.
pub(super) fn is_compressed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().ends_with(".gz")
}

/// `pages.warc.gz` and 1 give `pages-00001.warc.gz`.
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, ending) = split_ending(&name);
    path.with_file_name(OsString::from(format!("{stem}-{number:05}{ending}")))
}

/// Splits the name of an archive before its ending.
fn split_ending(name: &str) -> (&str, &str) {
    let endings = [".warc.gz", ".gz", ".warc"];
    let ending = endings
        .into_iter()
        .find(|ending| name.to_ascii_lowercase().ends_with(ending));
    name.split_at(name.len() - ending.map_or(0, str::len))
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
