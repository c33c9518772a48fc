//! Makes saved files survive a loss of power.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::output::file::at;

/// Syncs the files that were saved below a folder, and with `has_earlier` those that were there before. On Linux one call syncs the whole
/// file system, which costs far less than a call for each file.
#[cfg(target_os = "linux")]
pub(super) fn sync_all(folder: &Path, files: &[PathBuf], has_earlier: bool) -> io::Result<()> {
    if files.is_empty() && !has_earlier {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    synced.map_err(|error| at(folder, &error))
}

/// Syncs the files that were saved, and the folders with their names; with `has_earlier` all that are there.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_all(folder: &Path, files: &[PathBuf], has_earlier: bool) -> io::Result<()> {
    use crate::output::file::sync_folder_of;

    let all = if has_earlier { files_below(folder)? } else { Vec::new() };
    let files = if has_earlier { &all } else { files };
    let mut last_folder = None;
    for file in files {
        let synced = File::open(file).and_then(|file| file.sync_all());
        synced.map_err(|error| at(file, &error))?;
        if last_folder != file.parent() {
            sync_folder_of(file)?;
            last_folder = file.parent();
        }
    }
    Ok(())
}

/// Returns all files below a folder, folder by folder.
#[cfg(not(target_os = "linux"))]
fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(|error| at(&next, &error))? {
            let entry = entry.map_err(|error| at(&next, &error))?;
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    Ok(files)
}
