//! Moves what was synced from the log into the database, in a thread of its own, so that commits need not wait for it, and syncs the log
//! meanwhile, so that the next synced commit waits for less. The thread also does what opening can leave to it: the first synced commit waits for that.
//!
//! What was committed since the last sync stays in the log, because [`SyncedView`] reads what was there before:
//! so it can be [discarded](super::SqliteStore::discard_unsynced) with the end of the log.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::errors::{is_busy, store_error};
use super::format::beside;
use super::synced::SyncedView;
use super::turns::{Turn, Turns};
use crate::store::StoreError;

/// The pause between two checkpoints while commits happen.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    turns: Arc<Turns>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread, which opens a connection of its own by `begin`, and the view. The path must be absolute: the program may change its folder.
    pub(super) fn start(
        database: &Path,
        begin: impl FnOnce(&Path) -> Result<(Connection, SyncedView), StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let turns = Arc::new(Turns::default());
        let (of_thread, file) = (Arc::clone(&turns), database.to_owned());
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || {
                // Who waits for the thread must not wait for ever.
                let begun = catch_unwind(AssertUnwindSafe(|| begin(&file))).unwrap_or_else(|_| {
                    let panicked = io::Error::other("the thread that moves commits into the database has panicked");
                    Err(StoreError::io(&file, panicked))
                });
                match begun {
                    Ok((connection, view)) => {
                        of_thread.begin(view);
                        run(Log::new(connection, &file), &of_thread);
                    }
                    Err(error) => of_thread.fail(error),
                }
            })
            .map_err(|error| StoreError::io(database, error))?;
        Ok(Self {
            turns,
            thread: Some(thread),
        })
    }

    /// Waits until the thread has begun. Returns the view to the first who asks.
    ///
    /// # Errors
    /// What it could not do, then or since.
    pub(super) fn has_begun(&self) -> Result<Option<SyncedView>, StoreError> {
        self.turns.has_begun()
    }

    /// Returns how many pages the log has, if the thread has counted them since the last call.
    ///
    /// # Errors
    /// The error of an earlier checkpoint: what it moved may not be on the disk.
    pub(super) fn log_pages(&self) -> Result<Option<u64>, StoreError> {
        self.turns.log_pages()
    }

    /// Wakes the thread, because the log has become longer. If the commit was synced, a view holds what comes next in the log.
    pub(super) fn wake(&self, synced: bool) {
        self.turns.has_committed(synced);
    }

    /// Keeps the thread from making a checkpoint; waits for one that it is making.
    ///
    /// # Errors
    /// Those of [`log_pages`](Self::log_pages).
    pub(super) fn hold(&self) -> Result<Turn, StoreError> {
        self.turns.begin_checkpoint()
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.turns.stop();
        if let Some(thread) = self.thread.take() {
            // It does not panic behind its beginning; if it did, there would be nothing left to do.
            let _ = thread.join();
        }
    }
}

fn run(mut log: Log, turns: &Arc<Turns>) {
    while let Some(has_synced) = turns.wait_for_commits() {
        // There is no error yet: this thread alone sets one, and ends then.
        let Ok(turn) = turns.begin_checkpoint() else { return };
        let moved = log.move_or_sync(has_synced, turns);
        drop(turn);
        if let Err(error) = moved {
            // A failed sync is not tried again: the next commit answers with it.
            turns.fail(error);
            return;
        }
        turns.pause(PAUSE);
    }
}

/// The log, as the thread sees it.
struct Log {
    connection: Connection,
    database: PathBuf,
    path: PathBuf,
    /// Open from the first sync on, so that an error of a later one is not lost.
    file: Option<File>,
    /// The pages that were moved out of the present log.
    moved: u64,
}

impl Log {
    fn new(connection: Connection, database: &Path) -> Self {
        Self {
            connection,
            database: database.to_owned(),
            path: beside(database, "-wal"),
            file: None,
            moved: 0,
        }
    }

    /// Moves what was synced into the database; if there is nothing to move, syncs the log.
    fn move_or_sync(&mut self, has_synced: bool, turns: &Turns) -> Result<(), StoreError> {
        if has_synced {
            match self.checkpoint() {
                Ok((pages, moved)) => {
                    turns.has_counted(pages);
                    let has_moved = moved != std::mem::replace(&mut self.moved, moved);
                    if has_moved {
                        return Ok(());
                    }
                }
                Err(error) if is_busy(&error) => {}
                Err(error) => return Err(store_error(&self.database, error)),
            }
        }
        self.sync().map_err(|error| StoreError::io(&self.path, error))
    }

    /// Returns how many pages the log has, and how many of them were moved.
    fn checkpoint(&self) -> rusqlite::Result<(u64, u64)> {
        let mut statement = self.connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
        let count =
            |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(|count| count.max(0).cast_unsigned());
        statement.query_row([], |row| Ok((count(row, 1)?, count(row, 2)?)))
    }

    fn sync(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            // Windows syncs only what may be written to.
            none => none.insert(File::options().write(true).open(&self.path)?),
        };
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::super::format::FILE;
    use super::super::{SqliteStore, connect};
    use super::*;
    use crate::store::tests::Folder;

    #[test]
    fn what_the_thread_cannot_begin_is_said_to_who_waits_for_it_and_to_the_next_commit() {
        let path = Path::new("a database");
        let refused = |_: &Path| Err(StoreError::damaged(Path::new("a database"), "it is a test"));
        let waited = Checkpointer::start(path, refused).unwrap();
        assert!(waited.has_begun().unwrap_err().to_string().contains("it is a test"));
        let mut thread = Checkpointer::start(path, refused).unwrap();
        thread.thread.take().unwrap().join().unwrap();
        assert!(thread.log_pages().unwrap_err().to_string().contains("it is a test"));
        let folder = Folder::new();
        drop(SqliteStore::open(&folder).unwrap());
        let open = |database: &Path| {
            let connection = connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            Ok((connection, SyncedView::connect(database)?))
        };
        let begun = Checkpointer::start(&folder.join(FILE), open).unwrap();
        assert!(begun.has_begun().unwrap().is_some());
        let panicked = Checkpointer::start(path, |_| panic!("it is a test")).unwrap();
        assert!(panicked.has_begun().unwrap_err().to_string().contains("panicked"));
    }
}
