//! The durable frontier: killed at any moment, it continues where it was.
//!
//! A frontier depends on nothing but its configuration and the calls that have changed it. So a directory holds
//!
//! * a **checkpoint**: the whole state after some call, in parts;
//! * the **journal**: the calls since, one row for each [`persist`](Frontier::persist);
//! * **records**: what became of each page, for people and tools.
//!
//! `Frontier::open` reads the checkpoint and makes the calls of the journal again. Requests that were in flight when the process ended
//! are then queued again, and count as ended at that moment, so that no host is asked too soon.
//!
//! A row has all calls since the row before, with a text of the caller's own, such as the length of its output files. It is written
//! wholly or not at all. When the journal has its share of the length of the checkpoint, the next one is written: the state is copied at
//! once, and the copy goes to the store in slices, one with each row. The commit that finishes it removes what it replaces.

mod calls;
mod checkpoint;
#[cfg(feature = "durable")]
mod directory;
mod due;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod keys;
mod memory;
mod open;
mod options;
mod parts;
mod record;
mod recording;
mod refresh;
mod removal;
#[cfg(feature = "durable")]
mod repair;
mod replay;
mod restore;
mod retry;
mod saving;
mod seen;
mod seen_set;
mod shelf;
mod sizes;
mod state;
mod tests;
mod unsynced;

use std::sync::Arc;
use std::time::Duration;

pub use crate::store::{LockHolder, StoreError};
use calls::Call;
use checkpoint::Checkpointer;
#[cfg(feature = "durable")]
pub use directory::Directory;
pub use due::Requeued;
pub use error::OpenError;
pub use open::Opened;
pub use record::{PageEnd, PageRecord};
pub use refresh::Refreshed;
#[cfg(feature = "durable")]
pub use repair::{Exported, RepairOutcome, RepairReport};
use retry::LastRecords;
pub use retry::Retried;
pub(super) use seen::Seen;
use shelf::{SharedStore, StoreShelf};
use sizes::Sizes;
pub use unsynced::Unsynced;

use super::{Frontier, FrontierError};
use crate::appended::append;
use crate::config::FrontierConfig;
use crate::time::Time;

/// Default of [`Frontier::set_sync_interval`].
pub const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Calls that have changed nothing are saved once they take this many bytes.
const MAX_IDLE_BYTES: usize = 64 << 10;

/// What the next [`persist`](Frontier::persist) has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveStatus {
    /// Whether something has changed since the last one.
    pub has_unsaved: bool,
    /// From when on it syncs the store at the latest.
    pub next_sync: Time,
    is_checkpoint_waiting: bool,
}

impl SaveStatus {
    /// Returns whether it will sync the store at this time: the interval has passed, or a checkpoint waits for it. Sync what belongs to the
    /// attachment first: after a power cut, `Directory::discard_unsynced` goes back to such a commit.
    pub fn is_sync_due(self, now: Time) -> bool {
        now >= self.next_sync || self.is_checkpoint_waiting
    }
}

/// What makes a frontier durable.
#[derive(Debug)]
pub(crate) struct Durable {
    store: SharedStore,
    shelf: Arc<StoreShelf>,
    /// The configuration that the journal was written under.
    config: FrontierConfig,
    /// Calls since the last row.
    calls: Vec<u8>,
    /// Records since the last row.
    records: Vec<u8>,
    /// Whether a call since the last row has changed more than the time.
    has_unsaved: bool,
    /// The caller's own text of the last row.
    attachment: Vec<u8>,
    next_row: u64,
    checkpointer: Checkpointer,
    /// For a retry that is not at its end.
    last_records: LastRecords,
    sync_interval: Duration,
    last_sync: Time,
}

impl Durable {
    fn new(store: SharedStore, shelf: Arc<StoreShelf>, config: FrontierConfig, now: Time, sizes: Sizes) -> Self {
        Self {
            store,
            shelf,
            config,
            calls: Vec::new(),
            records: Vec::new(),
            has_unsaved: false,
            attachment: Vec::new(),
            next_row: 1,
            checkpointer: Checkpointer::new(sizes),
            last_records: LastRecords::default(),
            sync_interval: DEFAULT_SYNC_INTERVAL,
            last_sync: now,
        }
    }

    /// Adds a call to the next row.
    fn add(&mut self, call: &Call<'_>, is_change: bool) -> Result<(), FrontierError> {
        // Calls that change nothing but the time take memory, too.
        self.has_unsaved |= is_change || self.calls.len() > MAX_IDLE_BYTES;
        append(call, &mut self.calls).map_err(|error| FrontierError::not_saved(&error))
    }

    fn save_status(&self) -> SaveStatus {
        SaveStatus {
            has_unsaved: self.has_unsaved,
            next_sync: self.last_sync + self.sync_interval,
            is_checkpoint_waiting: self.checkpointer.waits_for_sync(),
        }
    }

    /// Fails if something that decides could not be read.
    fn check_read(&self, seen: &Seen) -> Result<(), FrontierError> {
        read_error(&self.shelf, seen).map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Returns why a segment of a queue, a host, or a part of the keys could not be read, if so.
fn read_error(shelf: &StoreShelf, seen: &Seen) -> Option<StoreError> {
    shelf.take_error().or_else(|| seen.keys()?.lock().take_error())
}

impl From<StoreError> for FrontierError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { .. } => Self::Damaged(error.to_string().into()),
            other => Self::not_saved(&other),
        }
    }
}

impl FrontierError {
    fn not_saved(error: &impl std::fmt::Display) -> Self {
        Self::NotSaved(error.to_string().into())
    }
}

impl Frontier {
    /// Sets how often [`persist`](Self::persist) syncs the store to the medium: what a power cut may cost. Zero for each time. The default
    /// is [`DEFAULT_SYNC_INTERVAL`].
    pub fn set_sync_interval(&mut self, interval: Duration) {
        if let Some(durable) = &mut self.durable {
            durable.sync_interval = interval;
        }
    }

    /// Returns what the next [`persist`](Self::persist) has to do; `None` in memory.
    pub fn save_status(&self) -> Option<SaveStatus> {
        self.durable.as_ref().map(|durable| durable.save_status())
    }

    /// Fails if a segment of a queue, a host, or a part of the keys could not be read.
    pub(super) fn check_shelf(&self) -> Result<(), FrontierError> {
        let durable = self.durable.as_ref();
        durable.map_or(Ok(()), |durable| durable.check_read(self.sieve.filter()))
    }
}
