//! Makes saved files survive a loss of power.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::output::file::at;

/// Syncs the files that were saved below a folder, and with `has_earlier` those that a killed run has left. One call syncs the whole file
/// system, which costs far less than a call for each file.
#[cfg(target_os = "linux")]
pub(super) fn sync_all(folder: &Path, files: &[PathBuf], has_earlier: bool) -> io::Result<()> {
    if files.is_empty() && !has_earlier {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    synced.map_err(at(folder))
}

/// Syncs the files that were saved, and the folders with their names.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_all(_: &Path, files: &[PathBuf], _has_earlier: bool) -> io::Result<()> {
    let mut last_folder = None;
    for file in files {
        File::open(file).and_then(|file| file.sync_all()).map_err(at(file))?;
        if last_folder != file.parent() {
            crate::output::file::sync_folder_of(file)?;
            last_folder = file.parent();
        }
    }
    Ok(())
}
