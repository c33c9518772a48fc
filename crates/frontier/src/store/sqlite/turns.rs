//! What the thread that commits and the thread of the checkpoints say to each other.
//!
//! Both may work at the same time; two checkpoints may not.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::synced::SyncedView;
use crate::store::StoreError;

#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread of the checkpoints has its connection, or an error. It opens the view, too, for who waits for it first.
    begun: bool,
    view: Option<SyncedView>,
    /// The log has become longer.
    committed: bool,
    /// A commit was synced, and what comes after the last one stays in the log.
    synced: bool,
    stop: bool,
    error: Option<StoreError>,
    checkpoint_is_made: bool,
    /// The pages of the log as they were counted, until somebody asks.
    log_pages: Option<u64>,
}

impl State {
    fn succeeded(&mut self) -> Result<(), StoreError> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// The turn to make a checkpoint. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lock().checkpoint_is_made = false;
        self.0.changed.notify_all();
    }
}

impl Turns {
    /// Says that the thread has begun.
    pub(super) fn begin(&self, view: SyncedView) {
        let mut state = self.lock();
        (state.begun, state.view) = (true, Some(view));
        self.changed.notify_all();
    }

    /// Waits until the thread has begun. Returns the view to the first who asks.
    pub(super) fn has_begun(&self) -> Result<Option<SyncedView>, StoreError> {
        let mut state = self.wait_while(|state| !state.begun);
        state.succeeded()?;
        Ok(state.view.take())
    }

    /// Ends the thread with an error, which answers what is begun next.
    pub(super) fn fail(&self, error: StoreError) {
        let mut state = self.lock();
        (state.begun, state.error) = (true, Some(error));
        self.changed.notify_all();
    }

    /// Returns the pages of the log, if they were counted since the last call; or the error of an earlier checkpoint.
    pub(super) fn log_pages(&self) -> Result<Option<u64>, StoreError> {
        let mut state = self.lock();
        state.succeeded()?;
        Ok(state.log_pages.take())
    }

    /// Begins a checkpoint, when no other is being made.
    pub(super) fn begin_checkpoint(self: &Arc<Self>) -> Result<Turn, StoreError> {
        let mut state = self.wait_while(|state| state.checkpoint_is_made);
        state.succeeded()?;
        state.checkpoint_is_made = true;
        Ok(Turn(Arc::clone(self)))
    }

    /// Says that the log has become longer, and whether the commit was synced.
    pub(super) fn has_committed(&self, synced: bool) {
        let mut state = self.lock();
        state.synced |= synced;
        if !state.committed {
            state.committed = true;
            self.changed.notify_all();
        }
    }

    /// Waits until the log has become longer: `None` if the thread is to stop. Returns whether a commit was ever synced.
    pub(super) fn wait_for_commits(&self) -> Option<bool> {
        let mut state = self.wait_while(|state| !state.committed && !state.stop);
        state.committed = false;
        (!state.stop).then_some(state.synced)
    }

    /// Says how many pages the log has.
    pub(super) fn has_counted(&self, log_pages: u64) {
        self.lock().log_pages = Some(log_pages);
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
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

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
