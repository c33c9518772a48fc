//! What several examples read: the HTML pages of a manual that is installed, or of any folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The manuals of the Debian packages `postgresql-doc-15` and `python3.11-doc`.
const MANUALS: [&str; 2] = [
    "/usr/share/doc/postgresql-doc-15/html",
    "/usr/share/doc/python3.11/html",
];

/// Returns the folder that was given, else the first manual that is installed: those of Debian, or the book of the Rust toolchain.
pub(crate) fn manual(given: Option<String>) -> Option<PathBuf> {
    if let Some(folder) = given {
        return Some(folder.into());
    }
    let debian = MANUALS.into_iter().map(PathBuf::from);
    debian.chain(rust_book()).find(|folder| folder.is_dir())
}

fn rust_book() -> Option<PathBuf> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(said.stdout).ok()?;
    Some(Path::new(sysroot.trim()).join("share/doc/rust/html/book"))
}

/// Lists the `*.html` files below a folder, sorted, so that every run sees them in the same order.
pub(crate) fn pages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // The type of a symbolic link is that of the link: no circle is walked.
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "html") {
                pages.push(entry.path());
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Returns every text between two marks: enough for the tidy HTML of manuals; a crawler needs a real parser.
pub(crate) fn between<'a>(html: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(open)
        .skip(1)
        .filter_map(move |rest| Some(rest.split_once(close)?.0))
}

/// Reads a page, with a mark in place of bytes that are not UTF-8.
pub(crate) fn read(page: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(page)?).into_owned())
}
