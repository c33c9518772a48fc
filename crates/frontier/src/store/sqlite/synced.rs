//! The last synced commit, and those that come after it.
//!
//! A program writes outputs beside the store, and a commit says how long they are. A power cut may leave commits whose outputs are lost:
//! the system writes what was not synced in any order. So the store can go back to the last synced commit, before which the outputs were
//! synced. The commits after it are the end of the log, and nothing of them is in the database, so it goes back by making the log shorter.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Result};

use super::end_of_log::empty_log_at_end;
use super::errors::{is_busy, store_error};
use super::format::{FILE, beside};
use super::status::{SYNCED_COMMIT, SYSTEM_START, line, this_system_start};
use super::summary::Summary;
use super::{PAGE_BYTES, SqliteStore, connect, connect_without_log, log, log_bytes};
use crate::store::StoreError;
use crate::store::lock::DirectoryLock;

/// A reader of the last synced commit. No checkpoint moves what a reader does not see, so all that comes later stays in the log.
#[derive(Debug)]
pub(super) struct SyncedView(Connection);

impl SyncedView {
    pub(super) fn connect(path: &Path) -> std::result::Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(Self(connect(path, flags)?))
    }

    /// Begins to read the present state. Nobody may commit meanwhile.
    pub(super) fn begin(&self) -> Result<()> {
        // A transaction begins with the first page that is read.
        self.0.execute_batch("BEGIN; SELECT 1 FROM spaces LIMIT 1")
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.0.is_autocommit() {
            true => Ok(()),
            false => self.0.execute_batch("ROLLBACK"),
        }
    }
}

/// Commits after the last synced one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsyncedCommits {
    pub(crate) count: u64,
    /// Whether the system was started anew since the last synced commit.
    pub(crate) is_system_restarted: bool,
}

impl SqliteStore {
    /// Returns the commits after the last synced one. None, too, if it is not known which one that is: an earlier version did not say.
    pub(crate) fn unsynced_commits(&self) -> std::result::Result<UnsyncedCommits, StoreError> {
        let last = self.last_commit();
        let line = |name| line(&self.connection, name).map_err(|error| self.error(error));
        let synced = line(SYNCED_COMMIT)?.and_then(|number| number.parse().ok());
        let count = last - synced.unwrap_or(last);
        let system_start = line(SYSTEM_START)?;
        Ok(UnsyncedCommits {
            count: u64::try_from(count).unwrap_or(0),
            is_system_restarted: system_start.is_some_and(|then| this_system_start().is_some_and(|now| *now != then)),
        })
    }

    /// Opens a store for reading, if it has a log, without looking at its rows. Without a log, all was synced.
    pub(crate) fn open_with_log(dir: &Path) -> std::result::Result<Option<Self>, StoreError> {
        match log_bytes(&dir.join(FILE)) {
            0 => Ok(None),
            _ => Self::open_unchecked(dir).map(Some),
        }
    }

    /// Removes the commits after the last synced one from a store that nobody has open. Returns how many there were; 0, and leaves the store as it
    /// is, if they are not in the log alone.
    pub(crate) fn discard_unsynced(dir: &Path) -> std::result::Result<u64, StoreError> {
        let _lock = DirectoryLock::take(dir)?;
        // Its end leaves the log as it is.
        let Some(reader) = Self::open_with_log(dir)? else {
            return Ok(0);
        };
        let (path, last) = (reader.path.clone(), reader.last_commit());
        let count = reader.unsynced_commits()?.count;
        drop(reader);
        // What another program has moved into the database stays there. It cannot be read alone if a crash has cut off a move of what was synced.
        let moved = connect_without_log(&path).and_then(|database| Summary::last_commit(&database));
        if count == 0 || moved.is_some_and(|moved| moved > last - count.cast_signed()) {
            return Ok(0);
        }
        check_alone(&path)?;
        if !cut_commits(&path, count).map_err(|error| StoreError::io(&beside(&path, "-wal"), error))? {
            return Ok(0);
        }
        let found = Self::open_unchecked(dir)?.last_commit();
        if found + count.cast_signed() != last {
            let what = format!(
                "{count} commits were to be removed from its log, and {} were",
                last - found
            );
            return Err(StoreError::damaged(&path, what));
        }
        Ok(count)
    }
}

/// Fails if another connection is open: it would read a log that is gone.
fn check_alone(path: &Path) -> std::result::Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // The mode comes before all that reads: then the first read locks the database for this connection alone.
    let alone = Connection::open_with_flags(path, flags).and_then(|connection| {
        empty_log_at_end(&connection, false)?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
        connection.query_row("SELECT count(*) FROM spaces", [], |_| Ok(()))
    });
    match alone {
        Err(error) if is_busy(&error) => {
            let why = "another program reads it, such as status or list: end that, then start again";
            Err(StoreError::io(path, io::Error::new(io::ErrorKind::ResourceBusy, why)))
        }
        other => other.map_err(|error| store_error(path, error)),
    }
}

/// Makes the log shorter by its last `count` commits. Returns `false`, and leaves it as it is, if it has fewer.
fn cut_commits(database: &Path, count: u64) -> io::Result<bool> {
    let path = beside(database, "-wal");
    let Some(end) = log::end_without_last(File::open(&path)?, count, PAGE_BYTES)? else {
        return Ok(false);
    };
    let file = File::options().write(true).open(&path)?;
    file.set_len(end)?;
    file.sync_all()?;
    Ok(true)
}
