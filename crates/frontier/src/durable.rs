//! What keeps the state of a frontier in a directory: killed at any moment, it continues where it was.
//!
//! A state depends on nothing but its configuration and the calls that have changed it. So a directory holds
//!
//! * a **checkpoint**: the whole state after some call, in parts;
//! * the **journal**: the calls since, one row for each [`persist`](crate::Frontier::persist);
//! * a row for each page that has ended: what became of it, for people and tools, and for what is fetched again.
//!
//! `Frontier::open` reads the checkpoint and makes the calls of the journal again. Requests that were in flight when the process ended
//! are then queued again, and count as ended at that moment, so that no host is asked too soon.
//!
//! A row has all calls since the row before, with a text of the caller's own, such as the length of its output files. It is written
//! wholly or not at all. When the journal is as long as the checkpoint, the next one is written: the state is copied at
//! once, and the copy goes to the store in slices, one with each row. What it replaces is removed in slices, too.

mod again;
pub(crate) mod checkpoint;
mod dated;
mod due;
pub(crate) mod going_back;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod open;
mod options;
pub(crate) mod pages;
mod parts;
mod planning;
mod removal;
pub(crate) mod restore;
mod saving;
pub(crate) mod seen_set;
pub(crate) mod segments;
pub(crate) mod sizes;
mod tests;

use std::sync::Arc;

pub use crate::error::OpenError;
pub use crate::store::{LockHolder, StoreError};
pub use crate::stored_page::{OwnPlan, PageEnd, StoredAnswer, StoredPage, Visits};
pub use again::{QueuedAgain, Refetch};
use checkpoint::Checkpointer;
pub use going_back::{OtherLogic, Unsynced};
use keys::SharedKeys;
use pages::{EndedPages, Tags};
use planning::Planner;
pub use planning::{FreshnessReport, HostFreshness};
use removal::Removal;
use segments::{SharedStore, StoredSegments};
use sizes::Sizes;

use crate::config::FrontierConfig;
use crate::error::FrontierError;
use crate::rules::ParseRules;
use crate::time::Time;

/// What the next [`persist`](crate::Frontier::persist) has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveStatus {
    /// Whether something has changed since the last one.
    pub has_unsaved: bool,
    /// From when on it syncs the store; `None` if all is synced, so that a power cut takes nothing. A program that only waits persists then, too: a
    /// power cut takes what was saved since the last sync.
    pub next_sync: Option<Time>,
    /// The same if something is new by then.
    due: Time,
}

impl SaveStatus {
    /// Returns whether it will sync the store at this time, if anything is new or not synced: the interval has passed, or a checkpoint waits for it.
    /// Sync what belongs to the attachment first: after a power cut, `Directory::discard_unsynced` goes back to such a commit.
    pub fn is_sync_due(self, now: Time) -> bool {
        now >= self.due
    }
}

/// Where a state lies, and how it is read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) store: &'s SharedStore,
    pub(crate) parse: &'s ParseRules,
    pub(crate) sizes: Sizes,
}

/// What makes a frontier durable.
#[derive(Debug)]
pub(crate) struct Durable {
    store: SharedStore,
    segments: Arc<StoredSegments>,
    /// The digests of an exact seen-set.
    keys: Option<SharedKeys>,
    /// The configuration that the journal is written under.
    config: FrontierConfig,
    /// Calls since the last row.
    calls: Vec<u8>,
    ended: EndedPages,
    tags: Tags,
    /// When pages are visited next, if they are kept fresh.
    planner: Option<Planner>,
    /// Whether a call since the last row has changed more than the time.
    has_unsaved: bool,
    /// The caller's own text of the last row.
    attachment: Vec<u8>,
    next_row: u64,
    checkpointer: Checkpointer,
    /// What checkpoints have replaced and is not removed yet.
    replaced: Removal,
    last_sync: Time,
    /// Whether the last commit was synced.
    is_synced: bool,
    /// Whether the next commit is a checkpoint in place of a row, which the rows before must not precede.
    begins_with_checkpoint: bool,
}

impl Durable {
    pub(crate) fn save_status(&self) -> SaveStatus {
        let due = match self.begins_with_checkpoint || self.checkpointer.waits_for_sync() {
            true => Time::EPOCH,
            false => self.last_sync + self.config.sync_interval,
        };
        SaveStatus {
            has_unsaved: self.has_unsaved,
            next_sync: (self.has_unsaved || !self.is_synced).then_some(due),
            due,
        }
    }

    pub(crate) fn sync_next(&mut self) {
        (self.last_sync, self.is_synced) = (Time::EPOCH, false);
    }

    /// Fails if something that decides could not be read.
    fn check_read(&self) -> Result<(), FrontierError> {
        read_error(&self.segments, self.keys.as_ref()).map_or(Ok(()), |error| Err(error.into()))
    }
}

fn read_error(segments: &StoredSegments, keys: Option<&SharedKeys>) -> Option<StoreError> {
    segments.take_error().or_else(|| keys?.lock().take_error())
}
