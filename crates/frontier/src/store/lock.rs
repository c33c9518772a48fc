//! One writer per directory.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::error::StoreError;

const FILE: &str = "lock";

/// The right to write to a directory, until it is dropped or its process ends in any way: the system releases it.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock; a file that a dead process left behind is no obstacle.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
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

/// Who has a directory open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockHolder {
    /// Nobody.
    Nobody,
    /// A process; `None` if it has not written its number yet.
    Process(Option<u32>),
}

impl LockHolder {
    /// Says who has a directory open. For an instant it takes a part of the lock itself.
    pub(crate) fn of(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nobody),
            Err(error) => return Err(StoreError::io(&path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Self::Nobody),
            Err(TryLockError::WouldBlock) => Ok(Self::Process(holder(&path))),
            Err(TryLockError::Error(error)) => Err(StoreError::io(&path, error)),
        }
    }
}

/// Reads who has the lock. It may not have written its number yet.
fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
