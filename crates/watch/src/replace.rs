//! Replaces a file as a whole, so that no reader sees half of it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file beside this one, and gives it its name.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    // The node exporter reads all files that end in `.prom`, so this one must not.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = File::create(&new).and_then(|mut file| file.write_all(content));
    let renamed = written.and_then(|()| fs::rename(&new, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&new);
    }
    renamed
}

/// Returns the file that a path leads to: one behind a link is replaced, not the link.
///
/// # Errors
///
/// What is there and is no file, such as a device.
pub(crate) fn replaceable(path: &Path) -> io::Result<std::path::PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&path) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file, so it cannot be replaced")),
        _ => Ok(path),
    }
}
