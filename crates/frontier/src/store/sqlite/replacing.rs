//! Another database takes the place of a damaged one, which is kept under another name.
//!
//! The new one is made in a folder of its own. Once it is complete and synced, it gets the name [`REPAIRED`] beside the damaged one. From
//! then on the exchange is only finished, also after a crash, and until then no store is opened there: a log beside a database of which
//! it is not would be read as its own.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::SqliteStore;
use super::format::{self, BESIDE, FILE};
use crate::store::StoreError;
use crate::store::lock::DirectoryLock;

/// The folder in which the new database is made.
const FOLDER: &str = "repair";
/// The new database, once it is complete.
const REPAIRED: &str = "frontier.sqlite.repaired";

/// The right to replace the database of a directory.
#[derive(Debug)]
pub(crate) struct Replacement {
    dir: PathBuf,
    _lock: DirectoryLock,
    /// Whether an earlier exchange was interrupted, and is finished now.
    pub(crate) was_finished: bool,
}

impl Replacement {
    /// Takes the lock of a directory. Finishes an exchange that was interrupted.
    ///
    /// # Errors
    /// [`StoreError::Missing`] without a database; a directory that is in use; files that cannot be moved.
    pub(crate) fn begin(dir: &Path) -> Result<Self, StoreError> {
        if has_none(dir) {
            return Err(StoreError::Missing { dir: dir.to_owned() });
        }
        let mut replacement = Self {
            dir: dir.to_owned(),
            _lock: DirectoryLock::take(dir)?,
            was_finished: false,
        };
        replacement.remove_folder()?;
        if dir.join(REPAIRED).exists() {
            replacement.exchange()?;
            replacement.was_finished = true;
        }
        Ok(replacement)
    }

    /// Checks what reading does not need, but writing. No connection to the database may be open.
    pub(crate) fn check_head(&self) -> Result<(), StoreError> {
        let path = self.dir.join(FILE);
        if path.exists() && !format::is_writable(&path)? {
            return Err(StoreError::damaged(&path, format::NOT_WRITABLE));
        }
        Ok(())
    }

    /// Checks that the database is not that of another program.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`]
    pub(crate) fn check_is_ours(&self) -> Result<(), StoreError> {
        let path = self.dir.join(FILE);
        match path.exists() && format::is_foreign(&path)? {
            true => Err(StoreError::NotAStore { path }),
            false => Ok(()),
        }
    }

    /// Makes an empty store, for what takes the place of the database.
    pub(crate) fn new_store(&self) -> Result<SqliteStore, StoreError> {
        self.remove_folder()?;
        SqliteStore::open(&self.dir.join(FOLDER))
    }

    /// Puts the new store, which must be closed, in the place of the database. Returns the file in which the damaged one is kept.
    pub(crate) fn finish(&self) -> Result<PathBuf, StoreError> {
        let made = self.dir.join(FOLDER).join(FILE);
        let io = |error| StoreError::io(&made, error);
        File::open(&made).and_then(|file| file.sync_all()).map_err(io)?;
        fs::rename(&made, self.dir.join(REPAIRED)).map_err(io)?;
        format::sync_names(&self.dir)?;
        let kept = self.exchange()?;
        self.remove_folder()?;
        Ok(kept)
    }

    /// Moves the damaged files away, the log first, and the new one to its place.
    fn exchange(&self) -> Result<PathBuf, StoreError> {
        let database = self.dir.join(FILE);
        let kept = (1..).map(|number| self.dir.join(format!("{FILE}.damaged-{number}")));
        let kept = kept
            .into_iter()
            .find(|kept| !kept.exists())
            .unwrap_or_else(|| database.clone());
        for end in BESIDE {
            move_if_there(&format::beside(&database, end), &format::beside(&kept, end))?;
        }
        move_if_there(&database, &kept)?;
        format::sync_names(&self.dir)?;
        move_if_there(&self.dir.join(REPAIRED), &database)?;
        format::sync_names(&self.dir)?;
        Ok(kept)
    }

    /// Removes the folder of the new store.
    pub(crate) fn remove_folder(&self) -> Result<(), StoreError> {
        let folder = self.dir.join(FOLDER);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(&folder, error)),
            _ => Ok(()),
        }
    }
}

/// Returns whether a directory has no database, nor what is left of one.
pub(crate) fn has_none(dir: &Path) -> bool {
    let is_there = |name: &str| dir.join(name).exists();
    !is_there(FILE) && !is_there(REPAIRED) && !format::beside(&dir.join(FILE), "-wal").exists()
}

/// Checks that no exchange was interrupted in a directory.
pub(super) fn is_complete(dir: &Path) -> Result<(), StoreError> {
    let repaired = dir.join(REPAIRED);
    match repaired.exists() {
        true => Err(StoreError::damaged(
            &dir.join(FILE),
            "its repair was interrupted: repair it again",
        )),
        false => Ok(()),
    }
}

fn move_if_there(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(from, error)),
        _ => Ok(()),
    }
}
