//! One writer per directory.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::Path;

use super::error::StoreError;

const FILE: &str = "lock";

/// The right to write to a directory, until it is dropped or its process ends in any way: the system releases it.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock; a file that a dead process left behind is no obstacle.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let io = |error| StoreError::io(&path, error);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked {
                    dir: dir.to_owned(),
                    holder: holder(&path),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// Reads who has the lock. It may not have written its number yet.
fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
