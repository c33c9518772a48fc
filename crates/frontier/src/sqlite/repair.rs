//! Another database takes the place of a damaged one, with the rows of it that SQLite can still read.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::format::{self, BESIDE, FILE, unless_missing};
use super::summary::Summary;
use super::{SqliteStore, connect, connect_without_log, is_log_cut_off, log_bytes, value_of};
use crate::store::lock::DirectoryLock;
use crate::store::{Batch, Space, Store as _, StoreError, Visit};

/// The folder in which the new database is made.
const FOLDER: &str = "repair";
/// The bytes that are written in one commit.
const BYTES_AT_ONCE: usize = 8 << 20;

/// The right to repair a directory.
#[derive(Debug)]
pub(crate) struct Repair {
    dir: PathBuf,
    _lock: DirectoryLock,
}

/// One way to read a damaged database: with its log, or as it is without.
#[derive(Debug)]
pub(crate) struct Readable {
    connection: Connection,
    /// Whether all rows are of the same commit.
    pub(crate) is_one_state: bool,
}

impl Repair {
    /// # Errors
    /// [`StoreError::Missing`] without a database; a directory that is in use.
    pub(crate) fn begin(dir: &Path) -> Result<Self, StoreError> {
        if has_none(dir) {
            return Err(StoreError::Missing { dir: dir.to_owned() });
        }
        let repair = Self {
            dir: dir.to_owned(),
            _lock: DirectoryLock::take(dir)?,
        };
        repair.remove_copy()?;
        Ok(repair)
    }

    /// Checks what reading does not need, but writing. No connection to the database may be open.
    pub(crate) fn check_head(&self) -> Result<(), StoreError> {
        let path = self.dir.join(FILE);
        if path.exists() {
            format::check_writable(&path)
        } else {
            Ok(())
        }
    }

    /// Returns the ways to read the database, the better one first. With a log that has lost its end, rows of several commits come together.
    pub(crate) fn readable(&self) -> Vec<Readable> {
        let path = self.dir.join(FILE);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // SQLite deletes the log of an empty file.
        let has_pages = path.metadata().is_ok_and(|file| file.len() > 0);
        let with_log = has_pages.then(|| connect(&path, flags).ok()).flatten();
        let with_log = with_log.map(|connection| Readable {
            is_one_state: !is_log_cut_off(&connection, &path),
            connection,
        });
        let without_log = connect_without_log(&path).map(|connection| Readable {
            connection,
            is_one_state: true,
        });
        let mut all: Vec<_> = with_log.into_iter().chain(without_log).collect();
        all.sort_by_key(|readable| !readable.is_one_state);
        all
    }

    pub(crate) fn new_store(&self) -> Result<SqliteStore, StoreError> {
        self.remove_copy()?;
        SqliteStore::open(&self.dir.join(FOLDER))
    }

    /// Puts the new store, which must be closed, in the place of the database. Returns the file in which the damaged one is kept.
    ///
    /// The log goes first: beside another database it would be read as its own. What a crash in between leaves is refused, or a whole state.
    pub(crate) fn finish(&self) -> Result<PathBuf, StoreError> {
        let made = self.dir.join(FOLDER).join(FILE);
        // SQLite does not say that it could not move a log when it closes.
        if log_bytes(&made) > 0 {
            let source = std::io::Error::other("its log could not be moved into it: is the disk full?");
            return Err(StoreError::io(&made, source));
        }
        let database = self.dir.join(FILE);
        let kept = (1..).map(|number| self.dir.join(format!("{FILE}.damaged-{number}")));
        let kept = kept
            .into_iter()
            .find(|kept| !kept.exists())
            .unwrap_or_else(|| database.clone());
        unless_missing(&kept, fs::hard_link(&database, &kept))?;
        for end in BESIDE {
            let file = format::beside(&database, end);
            unless_missing(&file, fs::rename(&file, format::beside(&kept, end)))?;
        }
        format::sync_names(&self.dir)?;
        fs::rename(&made, &database).map_err(|error| StoreError::io(&made, error))?;
        format::sync_names(&self.dir)?;
        self.remove_copy()?;
        Ok(kept)
    }

    /// Removes the new store.
    pub(crate) fn remove_copy(&self) -> Result<(), StoreError> {
        let folder = self.dir.join(FOLDER);
        unless_missing(&folder, fs::remove_dir_all(&folder))
    }
}

impl Readable {
    /// Copies all rows with a right seal that can be read. Returns how many pages are lost, if that can be known.
    pub(crate) fn copy_to(&self, to: &mut SqliteStore) -> Result<Option<u64>, StoreError> {
        let (mut batch, mut bytes) = (Batch::default(), 0);
        let mut pages = 0;
        // Tags are made anew of the pages.
        for space in Space::ALL.into_iter().filter(|space| *space != Space::Tag) {
            self.visit_rows(space, &mut |key, value| {
                pages += u64::from(space == Space::Page);
                bytes += value.len();
                batch.put(space, key, value);
                if bytes >= BYTES_AT_ONCE {
                    bytes = 0;
                    to.commit(&std::mem::take(&mut batch), false)?;
                }
                Ok(())
            })?;
        }
        to.commit(&batch, true)?;
        let stored = Summary::stored(&self.connection, Space::Page).ok().flatten();
        Ok(stored.and_then(|stored| u64::try_from(stored.rows).ok()?.checked_sub(pages)))
    }

    /// Visits the rows that can be read. Behind a wrong page, the next rows are looked for in steps that double.
    fn visit_rows(&self, space: Space, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let sql = format!("SELECT * FROM {} WHERE key >= ?1 ORDER BY key", space.name());
        let Ok(mut statement) = self.connection.prepare_cached(&sql) else {
            return Ok(());
        };
        let (mut first, mut step) = (0_i64, 1_i64);
        loop {
            let Ok(mut rows) = statement.query([first]) else {
                return Ok(());
            };
            loop {
                let row = match rows.next() {
                    Ok(Some(row)) => row,
                    Ok(None) => return Ok(()),
                    Err(_) => break,
                };
                // In a damaged tree, keys may come in any order.
                let key = row.get::<_, i64>(0).ok().filter(|key| *key >= first);
                let Some(key) = key.filter(|key| *key < i64::MAX) else {
                    break;
                };
                (first, step) = (key + 1, 1);
                if let Ok(value) = value_of(space, key.cast_unsigned(), row, false) {
                    visit(key.cast_unsigned(), value)?;
                }
            }
            let Some(next) = first.checked_add(step) else {
                return Ok(());
            };
            (first, step) = (next, step.saturating_mul(2));
        }
    }
}

pub(crate) fn has_none(dir: &Path) -> bool {
    !dir.join(FILE).exists() && !format::beside(&dir.join(FILE), "-wal").exists()
}
