//! Whose turn it is: commits and checkpoints of one database, from two threads.
//!
//! One commit and one checkpoint may work at a time; the store, which a commit borrows mutably, sees to the first. A checkpoint that needs the log to rest stops commits: the one that is writing ends, and
//! no other begins. So it has its turn even if commits follow each other without a pause, which a lock alone does not promise.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::StoreError;

#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread of the checkpoints has its connection, or an error.
    begun: bool,
    /// There is something to move.
    committed: bool,
    stop: bool,
    error: Option<StoreError>,
    commit_is_writing: bool,
    checkpoint_is_made: bool,
    commits_are_stopped: bool,
}

impl State {
    fn succeeded(&mut self) -> Result<(), StoreError> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// A turn. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    /// Ends it, and says whether somebody may wait for that.
    end: fn(&mut State) -> bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if (self.end)(&mut self.turns.lock()) {
            self.turns.changed.notify_all();
        }
    }
}

impl Turns {
    /// Says that the thread has begun.
    pub(super) fn begin(&self) {
        self.lock().begun = true;
        self.changed.notify_all();
    }

    /// Waits until the thread has begun.
    pub(super) fn has_begun(&self) -> Result<(), StoreError> {
        self.wait_while(|state| !state.begun).succeeded()
    }

    /// Ends the thread with an error, which answers what is begun next.
    pub(super) fn fail(&self, error: StoreError) {
        let mut state = self.lock();
        (state.begun, state.error) = (true, Some(error));
        self.changed.notify_all();
    }

    /// Begins a commit, when none is stopped.
    pub(super) fn begin_commit(self: &Arc<Self>) -> Result<Turn, StoreError> {
        let mut state = self.wait_while(|state| state.commits_are_stopped);
        state.succeeded()?;
        state.commit_is_writing = true;
        // A waking is a call of the system, and most commits have nobody waiting for their end.
        Ok(self.turn(|state| {
            state.commit_is_writing = false;
            state.commits_are_stopped
        }))
    }

    /// Begins a checkpoint, when no other is being made.
    pub(super) fn begin_checkpoint(self: &Arc<Self>) -> Result<Turn, StoreError> {
        let mut state = self.wait_while(|state| state.checkpoint_is_made);
        state.succeeded()?;
        state.checkpoint_is_made = true;
        Ok(self.turn(|state| {
            state.checkpoint_is_made = false;
            true
        }))
    }

    /// Stops commits, and waits for the one that is writing.
    pub(super) fn stop_commits(self: &Arc<Self>) -> Turn {
        self.lock().commits_are_stopped = true;
        let _ended = self.wait_while(|state| state.commit_is_writing);
        self.turn(|state| {
            state.commits_are_stopped = false;
            true
        })
    }

    /// Says that there is something to move.
    pub(super) fn has_committed(&self) {
        let mut state = self.lock();
        if !state.committed {
            state.committed = true;
            self.changed.notify_all();
        }
    }

    /// Waits until there is something to move: `false` if the thread is to stop.
    pub(super) fn wait_for_commits(&self) -> bool {
        let mut state = self.wait_while(|state| !state.committed && !state.stop);
        state.committed = false;
        !state.stop
    }

    /// Waits, unless the thread is to stop.
    pub(super) fn pause(&self, time: Duration) {
        let paused = self.changed.wait_timeout_while(self.lock(), time, |state| !state.stop);
        drop(paused.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the thread stop.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    fn turn(self: &Arc<Self>, end: fn(&mut State) -> bool) -> Turn {
        Turn {
            turns: Arc::clone(self),
            end,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_while(self.lock(), condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn commits_that_follow_each_other_without_a_pause_are_stopped_for_a_checkpoint() {
        let turns = Arc::new(Turns::default());
        let (writes, written) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut between = 0;
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while let Ok(_turn) = turns.begin_commit() {
                    writes.store(true, Ordering::SeqCst);
                    written.fetch_add(1, Ordering::SeqCst);
                    writes.store(false, Ordering::SeqCst);
                }
            });
            for _ in 0..1000 {
                let before = written.load(Ordering::SeqCst);
                while written.load(Ordering::SeqCst) == before {
                    thread::yield_now();
                }
                let _stopped = turns.stop_commits();
                let before = written.load(Ordering::SeqCst);
                thread::yield_now();
                between += u64::from(writes.load(Ordering::SeqCst)) + written.load(Ordering::SeqCst) - before;
            }
            // Also a commit that waits answers with the error.
            let stopped = turns.stop_commits();
            turns.fail(StoreError::damaged(Path::new("a database"), "it is a test"));
            drop(stopped);
            writer.join().unwrap();
        });
        assert_eq!(between, 0);
    }

    #[test]
    fn of_two_checkpoints_the_second_waits_for_the_end_of_the_first() {
        let turns = Arc::new(Turns::default());
        let ended = AtomicBool::new(false);
        let first = turns.begin_checkpoint().unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                let _turn = turns.begin_checkpoint().unwrap();
                ended.load(Ordering::SeqCst)
            });
            thread::yield_now();
            ended.store(true, Ordering::SeqCst);
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
