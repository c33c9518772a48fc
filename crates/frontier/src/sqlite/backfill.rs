//! Moves commits from the log into the database, in a thread of its own, so that commits need not wait for it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, Result};

use super::errors::{is_busy, store_error};
use crate::store::StoreError;

/// The pause between two moves.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Backfill {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The log has become longer.
    has_commits: AtomicBool,
    must_end: AtomicBool,
    error: Mutex<Option<StoreError>>,
}

impl Backfill {
    /// Starts the thread with a connection of its own.
    pub(super) fn start(connection: Connection, database: &Path) -> std::result::Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let (of_thread, path) = (Arc::clone(&shared), database.to_owned());
        let thread = thread::Builder::new()
            .name("backfill".to_owned())
            .spawn(move || run(&connection, &path, &of_thread))
            .map_err(|error| StoreError::io(database, error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Says that the log has become longer.
    pub(super) fn note_commit(&self) {
        self.shared.has_commits.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// Why the thread has ended: what it moved may not be on the disk.
    pub(super) fn check(&self) -> std::result::Result<(), StoreError> {
        let mut error = self.shared.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take().map_or(Ok(()), Err)
    }
}

impl Drop for Backfill {
    fn drop(&mut self) {
        self.shared.must_end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If it has panicked, there is nothing left to do.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, path: &Path, shared: &Shared) {
    while !shared.must_end.load(Ordering::Relaxed) {
        if shared.has_commits.swap(false, Ordering::Relaxed)
            && let Err(error) = move_log(connection)
        {
            // A failed sync is not tried again: the next commit answers with it.
            let error = store_error(path, error);
            *shared.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
        thread::park_timeout(PAUSE);
    }
}

/// Syncs the log, and moves all of it into the database that no reader holds. Returns whether that was all; `None` if another connection does
/// it.
pub(super) fn move_log(connection: &Connection) -> Result<Option<bool>> {
    let moved = connection
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")
        .and_then(|mut statement| {
            statement.query_row([], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
        });
    match moved {
        Ok((0, pages, moved)) => Ok(Some(moved == pages)),
        Ok(_) => Ok(None),
        Err(error) if is_busy(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
