//! Moves what was committed from the log into the database, in a thread of its own, so that commits need not wait for it. The thread also
//! does what opening can leave to it: the first synced commit waits for that.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::errors::{is_busy, store_error};
use crate::store::StoreError;

/// The pause between two checkpoints while commits happen.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    /// Held while a commit writes.
    writing: Arc<Mutex<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while a checkpoint is made: two at a time would be refused.
    checkpoint: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the thread has its connection, or an error.
    begun: bool,
    committed: bool,
    stop: bool,
    error: Option<StoreError>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Checkpointer {
    /// Starts the thread, which opens a connection of its own by `begin`. When the log has `long_pages` pages, it makes the next commit write at its
    /// start again.
    pub(super) fn start(
        path: &Path,
        long_pages: u64,
        begin: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let writing = Arc::new(Mutex::default());
        let (of_thread, of_commits, file) = (Arc::clone(&shared), Arc::clone(&writing), path.to_owned());
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || {
                // Who waits for the thread must not wait for ever.
                let begun = catch_unwind(AssertUnwindSafe(begin)).unwrap_or_else(|_| {
                    let panicked = io::Error::other("the thread that moves commits into the database has panicked");
                    Err(StoreError::io(&file, panicked))
                });
                let mut state = lock(&of_thread.state);
                state.begun = true;
                of_thread.changed.notify_all();
                match begun {
                    Ok(connection) => {
                        drop(state);
                        let log = Log {
                            connection,
                            writing: of_commits,
                            long_pages,
                            next_pages: long_pages,
                        };
                        run(log, &of_thread, &file);
                    }
                    Err(error) => state.error = Some(error),
                }
            })
            .map_err(|error| StoreError::io(path, error))?;
        Ok(Self {
            shared,
            writing,
            thread: Some(thread),
        })
    }

    /// Waits until the thread has begun.
    ///
    /// # Errors
    /// What it could not do, then or since.
    pub(super) fn has_begun(&self) -> Result<(), StoreError> {
        let begun = self
            .shared
            .changed
            .wait_while(lock(&self.shared.state), |state| !state.begun);
        let mut state = begun.unwrap_or_else(PoisonError::into_inner);
        state.error.take().map_or(Ok(()), Err)
    }

    /// # Errors
    /// The error of an earlier checkpoint: what it moved may not be on the disk.
    pub(super) fn succeeded(&self) -> Result<(), StoreError> {
        lock(&self.shared.state).error.take().map_or(Ok(()), Err)
    }

    /// Wakes the thread, because there is something to move.
    pub(super) fn wake(&self) {
        let mut state = lock(&self.shared.state);
        if !state.committed {
            state.committed = true;
            self.shared.changed.notify_all();
        }
    }

    /// Returns what a commit holds while it writes: the thread makes none wait but when the log is long, and then for two syncs.
    pub(super) fn writing(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.writing)
    }

    /// Keeps the thread from making a checkpoint; waits for one that it is making.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.shared.checkpoint)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        lock(&self.shared.state).stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic behind its beginning; if it did, there would be nothing left to do.
            let _ = thread.join();
        }
    }
}

fn run(mut log: Log, shared: &Shared, path: &Path) {
    let mut state = lock(&shared.state);
    loop {
        let woken = shared
            .changed
            .wait_while(state, |state| !state.committed && !state.stop);
        state = woken.unwrap_or_else(PoisonError::into_inner);
        if state.stop {
            return;
        }
        state.committed = false;
        drop(state);
        let moved = {
            let _held = lock(&shared.checkpoint);
            log.move_commits()
        };
        state = lock(&shared.state);
        if let Err(error) = moved
            && !is_busy(&error)
        {
            // A failed sync is not tried again: the next commit answers with it.
            state.error = Some(store_error(path, error));
            return;
        }
        let paused = shared.changed.wait_timeout_while(state, PAUSE, |state| !state.stop);
        state = paused.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The log, as the thread sees it.
struct Log {
    connection: Connection,
    writing: Arc<Mutex<()>>,
    long_pages: u64,
    /// The pages at which the log is to begin anew.
    next_pages: u64,
}

impl Log {
    /// Moves what no reader holds back. If the log is long then, moves the rest while no commit writes, so that the next one begins at its
    /// start: the memory of the system has these pages already. While commits follow each other closely, that would never happen by itself.
    fn move_commits(&mut self) -> rusqlite::Result<()> {
        let (_, pages) = self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)")?;
        if pages < self.next_pages {
            return Ok(());
        }
        let _writing = lock(&self.writing);
        // Commits wait for this, so it waits for no reader.
        self.connection.busy_timeout(Duration::ZERO)?;
        let (is_held, pages) = self.checkpoint("PRAGMA wal_checkpoint(RESTART)")?;
        // A reader holds the log: this is tried again when it has grown by as much once more.
        self.next_pages = if is_held {
            pages + self.long_pages
        } else {
            self.long_pages
        };
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
    use super::*;

    #[test]
    fn what_the_thread_cannot_begin_is_said_to_who_waits_for_it_and_to_the_next_commit() {
        let path = Path::new("a database");
        let refused = || Err(StoreError::damaged(Path::new("a database"), "it is a test"));
        let waited = Checkpointer::start(path, 1, refused).unwrap();
        assert!(waited.has_begun().unwrap_err().to_string().contains("it is a test"));
        let mut thread = Checkpointer::start(path, 1, refused).unwrap();
        thread.thread.take().unwrap().join().unwrap();
        assert!(thread.succeeded().unwrap_err().to_string().contains("it is a test"));
        let open = || Connection::open_in_memory().map_err(|error| store_error(Path::new("a database"), error));
        Checkpointer::start(path, 1, open).unwrap().has_begun().unwrap();
        let panicked = Checkpointer::start(path, 1, || panic!("it is a test")).unwrap();
        assert!(panicked.has_begun().unwrap_err().to_string().contains("panicked"));
    }
}
