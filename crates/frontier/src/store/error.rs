//! What can go wrong with a store, and what to do then.

use std::io;
use std::path::{Path, PathBuf};

/// The number of ENOLCK: "no locks available".
const NO_LOCKS: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };

/// Why a store cannot be opened, read or written. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another frontier of this one, has the store open.
    #[error(
        "{} is in use{}: wait until that crawl ends, or choose another directory",
        dir.display(), by(*holder)
    )]
    Locked {
        /// The directory of the store.
        dir: PathBuf,
        /// The process that has it open, if known.
        holder: Option<u32>,
    },
    /// The directory that is open was renamed or removed, or another one is in its place.
    #[error(
        "{} is no longer the directory that was opened: it, or a file of it, was renamed or removed, or another is in its place. Put it back, or \
         give its new name, and repeat the command: what was committed is in it",
        dir.display()
    )]
    Moved {
        /// Where it was.
        dir: PathBuf,
    },
    /// There is no store in the directory.
    #[error("{} holds no crawl: check the name of the directory, or start a crawl there", dir.display())]
    Missing {
        /// The directory that was asked for.
        dir: PathBuf,
    },
    /// The file is no store of a frontier, or its first bytes are damaged.
    #[error(
        "{} is not the store of a frontier, or its head is damaged: choose another directory, or restore the file from a copy",
        path.display()
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The store was written in another version of the format.
    #[error(
        "{} has format {found}, and this program reads format {supported}: let the version that wrote it finish the crawl, or list its pages, and \
         begin again in another directory",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version that this program reads and writes.
        supported: u32,
    },
    /// The store is not what was written.
    #[error("{} is damaged ({what}): restore the directory from a copy, or start again in another one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which table.
        what: String,
    },
    /// The disk has no room, or the file is at its size limit. The commit was not applied; every earlier one is kept.
    #[error(
        "the disk is full at {}, or the file is at its size limit (ulimit -f): make room or raise the limit, then repeat the command. Nothing is lost",
        path.display()
    )]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file cannot be read, written or synced.
    #[error("{} cannot be used: {source}. Check the medium, the permissions and the size limit of files (ulimit -f), then repeat the command", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file system of the directory has no locks, so nothing keeps two crawls out of it.
    #[error(
        "the file system of {} has no locks ({source}): choose a directory on a local disk, or mount the file system with locks",
        dir.display()
    )]
    NoLocks {
        /// The directory of the store.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An earlier commit or sync failed, so that this handle cannot know what is on the disk.
    #[error("an earlier write to the store failed: open it again")]
    Failed,
}

fn by(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

impl StoreError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path }
            }
            _ => Self::Io { path, source },
        }
    }

    /// The error of an attempt to lock a file of a directory.
    pub(crate) fn of_lock(dir: &Path, source: io::Error) -> Self {
        // ENOLCK, and what is not implemented: ENOSYS, EOPNOTSUPP.
        let is_missing = source.kind() == io::ErrorKind::Unsupported || source.raw_os_error() == Some(NO_LOCKS);
        let dir = dir.to_owned();
        if is_missing {
            Self::NoLocks { dir, source }
        } else {
            Self::Io { path: dir, source }
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
