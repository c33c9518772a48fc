//! Moves what was committed from the log into the database, in a thread of its own, so that commits need not wait for it.

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
    committed: bool,
    stop: bool,
    error: Option<StoreError>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Checkpointer {
    /// Starts the thread, on a connection of its own.
    pub(super) fn start(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let (of_thread, file) = (Arc::clone(&shared), path.to_owned());
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || run(&connection, &of_thread, &file))
            .map_err(|error| StoreError::io(path, error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
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
            self.shared.changed.notify_one();
        }
    }

    /// Keeps the thread from making a checkpoint; waits for one that it is making.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.shared.checkpoint)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        lock(&self.shared.state).stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there would be nothing left to do.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, shared: &Shared, path: &Path) {
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
            passive(connection)
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

/// Moves what no reader holds back; waits for nobody.
fn passive(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    statement.query_row([], |_| Ok(()))
}
