//! Moves what was committed from the log into the database, in a thread of its own, so that commits need not wait for it. The thread also
//! does what opening can leave to it: the first synced commit waits for that.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::errors::{is_busy, store_error};
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
    /// Starts the thread, which opens a connection of its own by `begin`. When the log has `long_pages` pages, it makes the next commit write at its
    /// start again.
    pub(super) fn start(
        path: &Path,
        long_pages: u64,
        begin: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let turns = Arc::new(Turns::default());
        let (of_thread, file) = (Arc::clone(&turns), path.to_owned());
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || {
                // Who waits for the thread must not wait for ever.
                let begun = catch_unwind(AssertUnwindSafe(begin)).unwrap_or_else(|_| {
                    let panicked = io::Error::other("the thread that moves commits into the database has panicked");
                    Err(StoreError::io(&file, panicked))
                });
                match begun {
                    Ok(connection) => {
                        of_thread.begin();
                        run(Log::new(connection, long_pages), &of_thread, &file);
                    }
                    Err(error) => of_thread.fail(error),
                }
            })
            .map_err(|error| StoreError::io(path, error))?;
        Ok(Self {
            turns,
            thread: Some(thread),
        })
    }

    /// Waits until the thread has begun.
    ///
    /// # Errors
    /// What it could not do, then or since.
    pub(super) fn has_begun(&self) -> Result<(), StoreError> {
        self.turns.has_begun()
    }

    /// Begins a commit. The thread makes it wait only when the log is long, and then for two syncs; the commit itself makes a third.
    ///
    /// # Errors
    /// The error of an earlier checkpoint: what it moved may not be on the disk.
    pub(super) fn begin_commit(&self) -> Result<Turn, StoreError> {
        self.turns.begin_commit()
    }

    /// Wakes the thread, because there is something to move.
    pub(super) fn wake(&self) {
        self.turns.has_committed();
    }

    /// Keeps the thread from making a checkpoint; waits for one that it is making.
    ///
    /// # Errors
    /// Those of [`begin_commit`](Self::begin_commit).
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

fn run(mut log: Log, turns: &Arc<Turns>, path: &Path) {
    while turns.wait_for_commits() {
        // There is no error yet: this thread alone sets one, and ends then.
        let Ok(turn) = turns.begin_checkpoint() else { return };
        let mut stopped = None;
        let moved = log.move_commits(|| stopped = Some(turns.stop_commits()));
        if let Err(error) = moved
            && !is_busy(&error)
        {
            // A failed sync is not tried again: the next commit answers with it, also one that waits.
            turns.fail(store_error(path, error));
            return;
        }
        drop((stopped, turn));
        turns.pause(PAUSE);
    }
}

/// The log, as the thread sees it.
struct Log {
    connection: Connection,
    long_pages: u64,
    /// The pages that it had when a reader held it, until it is shorter again.
    held_pages: Option<u64>,
}

impl Log {
    fn new(connection: Connection, long_pages: u64) -> Self {
        Self {
            connection,
            long_pages,
            held_pages: None,
        }
    }

    /// Moves what no reader holds back. If the log is long then, stops commits and moves the rest, so that the next one begins at its
    /// start: the memory of the system has these pages already. While commits follow each other closely, that would never happen by itself.
    fn move_commits(&mut self, stop_commits: impl FnOnce()) -> rusqlite::Result<()> {
        let (_, pages) = self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)")?;
        self.held_pages = self.held_pages.filter(|&held| pages >= held);
        // What a reader has held is tried again when it has grown by as much once more.
        if pages < self.held_pages.unwrap_or(0) + self.long_pages {
            return Ok(());
        }
        stop_commits();
        // Commits wait for this, so it waits for no reader.
        self.connection.busy_timeout(Duration::ZERO)?;
        let (is_held, pages) = self.checkpoint("PRAGMA wal_checkpoint(RESTART)")?;
        self.held_pages = is_held.then_some(pages);
        Ok(())
    }

    /// Returns whether a reader was in the way, and how many pages the log has.
    fn checkpoint(&self, sql: &str) -> rusqlite::Result<(bool, u64)> {
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row([], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0).cast_unsigned()))
        })
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
        let refused = || Err(StoreError::damaged(Path::new("a database"), "it is a test"));
        let waited = Checkpointer::start(path, 1, refused).unwrap();
        assert!(waited.has_begun().unwrap_err().to_string().contains("it is a test"));
        let mut thread = Checkpointer::start(path, 1, refused).unwrap();
        thread.thread.take().unwrap().join().unwrap();
        assert!(thread.begin_commit().unwrap_err().to_string().contains("it is a test"));
        let open = || Connection::open_in_memory().map_err(|error| store_error(Path::new("a database"), error));
        Checkpointer::start(path, 1, open).unwrap().has_begun().unwrap();
        let panicked = Checkpointer::start(path, 1, || panic!("it is a test")).unwrap();
        assert!(panicked.has_begun().unwrap_err().to_string().contains("panicked"));
    }

    #[test]
    fn a_log_that_a_reader_has_held_is_no_longer_than_before_when_it_has_begun_anew() {
        let folder = Folder::new();
        drop(SqliteStore::open(&folder).unwrap());
        let open = || connect(&folder.join(FILE), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let (writer, reader) = (open(), open());
        let mut log = Log::new(open(), 100);
        let write = |key: i64, pages: i64| {
            let sql = "INSERT OR REPLACE INTO segment(key, seal, value) VALUES (?1, 0, zeroblob(?2))";
            writer.execute(sql, (key, pages * 4096)).unwrap();
        };
        let mut restarts = || {
            let mut restarts = false;
            log.move_commits(|| restarts = true).unwrap();
            restarts
        };
        write(1, 10);
        assert!(!restarts());
        reader.execute_batch("BEGIN; SELECT * FROM segment").unwrap();
        write(2, 300);
        assert!(restarts());
        assert!(!restarts(), "the reader holds the log: another try is of no use yet");
        write(3, 110);
        assert!(restarts(), "it has grown by as much once more");
        reader.execute_batch("COMMIT").unwrap();
        assert!(!restarts());
        // All is moved, and nobody reads: the log begins anew by itself.
        write(4, 50);
        assert!(!restarts());
        write(5, 60);
        write(6, 60);
        assert!(restarts(), "120 pages are long again");
    }
}
