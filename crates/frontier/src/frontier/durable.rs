//! The durable frontier: killed at any moment, it continues where it was.
//!
//! A frontier depends on nothing but its configuration and the calls that have changed it. So a directory holds
//!
//! * a **checkpoint**: the whole state after some call, in parts; hosts that have not changed are in parts of earlier ones;
//! * the **journal**: the calls since, one row for each [`persist`](Frontier::persist);
//! * **records**: what became of each page, for people and tools.
//!
//! [`Frontier::open`] reads the checkpoint and makes the calls of the journal again. Requests that were in flight when the process ended
//! are then queued again, and count as ended at that moment, so that no host is asked too soon.
//!
//! A row has all calls since the row before, with a text of the caller's own, such as the length of its output files. It is written
//! wholly or not at all. When the journal has its share of the length of the checkpoint, the next one is written: the state is copied at
//! once, and the copy goes to the store in slices, one with each row. What it replaces is removed in slices after the last one.

mod calls;
mod checkpoint;
mod due;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod keys;
mod lifted;
mod memory;
mod open;
mod options;
mod parts;
mod record;
mod recording;
mod refresh;
mod removal;
mod repair;
mod replay;
mod restore;
mod retry;
mod saving;
mod seen;
mod seen_set;
mod shelf;
mod sizes;
mod sparse;
mod state;
mod tests;
mod unsynced;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use crate::store::{LockHolder, StoreError};
use calls::Call;
use checkpoint::Checkpointer;
pub use due::Requeued;
pub use error::OpenError;
pub(super) use lifted::RefusedEarlier;
pub use open::Opened;
pub use record::{PageEnd, PageRecord};
pub use refresh::Refreshed;
pub use repair::{RepairOutcome, RepairReport, RepairedTable, Salvaged};
use retry::LastRecords;
pub use retry::Retried;
pub(super) use seen::Seen;
use shelf::{SharedStore, StoreShelf};
use sizes::{SIZES, Sizes};
pub use unsynced::Unsynced;

use super::{Frontier, FrontierError};
use crate::appended::append;
use crate::config::FrontierConfig;
use crate::rules::ParseRules;
use crate::time::Time;

/// Default of [`Frontier::set_sync_interval`].
pub const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Calls that have changed nothing are saved once they take this many bytes.
const MAX_IDLE_BYTES: usize = 64 << 10;

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

    fn is_sync_due(&self, now: Time) -> bool {
        now >= self.next_sync() || self.store.lock().wants_sync()
    }

    fn next_sync(&self) -> Time {
        self.last_sync + self.sync_interval
    }

    /// Fails if something that decides could not be read.
    fn check_read(&self, seen: &Seen) -> Result<(), FrontierError> {
        read_error(&self.shelf, seen).map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Returns why a segment of a queue, a host, or a part of the keys could not be read, if so.
fn read_error(shelf: &StoreShelf, seen: &Seen) -> Option<StoreError> {
    shelf.error().or_else(|| seen.keys()?.lock().error())
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

    /// Returns whether the next [`persist`](Self::persist) will sync the store. Sync what belongs to the attachment first: after a power cut,
    /// [`discard_unsynced`](Self::discard_unsynced) goes back to such a commit.
    pub fn is_sync_due(&self, now: Time) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.is_sync_due(now))
    }

    /// Returns from when on a [`persist`](Self::persist) syncs the store at the latest; `None` in memory.
    pub fn next_sync(&self) -> Option<Time> {
        self.durable.as_ref().map(|durable| durable.next_sync())
    }

    /// Returns whether the frontier was [opened](Self::open) from a directory.
    pub fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    /// Returns whether something has changed since the last [`persist`](Self::persist).
    pub fn has_unsaved(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.has_unsaved)
    }

    /// Opens the frontier of a directory, or creates one there. Entries that were in flight are queued again.
    ///
    /// `config` may differ from that of the run before, except in what the state depends on: capacity, rate, exactness and growth of the
    /// seen-set, reach, politeness per address. The secret of the hash is that of the first run. `parse` makes rules of the texts of
    /// robots.txt files that [`RobotsRules::text`](crate::RobotsRules::text) returned, and makes the same ones as in the run before:
    /// [`stored_config`](Self::stored_config) has the name for it. To read them by another name, open the directory by the stored one first,
    /// and make a [`checkpoint`](Self::checkpoint).
    ///
    /// A changed option takes effect at once: hosts are due by the new delays, pages beyond a lower budget of their host are dropped, and a
    /// higher limit of near-duplicates opens what was closed. What is queued stays queued, also if it is more than a lower
    /// [`max_queued`](FrontierConfig::max_queued), or out of a smaller scope.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, RobotsRules, Time};
    ///
    /// #[derive(Debug)]
    /// struct AllowAll;
    /// impl RobotsRules for AllowAll {
    ///     fn allows(&self, _path: &str) -> bool { true }
    ///     fn text(&self) -> Option<&[u8]> { Some(b"") }
    /// }
    ///
    /// let dir = std::env::temp_dir().join(format!("crawl-{}", std::process::id()));
    /// let open = |now| Frontier::open(&dir, FrontierConfig::default(), now, Arc::new(|_: &[u8]| Arc::new(AllowAll) as _));
    ///
    /// let now = Time::from_millis(1_700_000_000_000);
    /// let mut frontier = open(now)?.frontier;
    /// frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now)?;
    /// frontier.persist(b"my own state", now)?;
    /// drop(frontier); // or the process is killed
    ///
    /// let opened = open(now)?;
    /// assert_eq!(opened.attachment.as_deref(), Some(&b"my own state"[..]));
    /// assert_eq!(opened.frontier.report().queued_pages, 1);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Handle or ignore SIGXFSZ, so that a file at its size limit (RLIMIT_FSIZE) is an error: on Unix, that signal ends the program by default.
    ///
    /// # Errors
    ///
    /// A directory that another process uses, that cannot be read or written, or that is damaged; a configuration that does not fit it.
    pub fn open(dir: &Path, config: FrontierConfig, now: Time, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = crate::store::SqliteStore::open(dir)?;
        let unread_commits = store.unread_commits();
        open::may_begin(&store, unread_commits)?;
        let opened = open::open(Box::new(store), config, now, &parse, SIZES)?;
        Ok(Opened {
            unread_commits,
            ..opened
        })
    }

    /// Reads the frontier of a directory, beside the process that runs it, as of its last [`persist`](Self::persist). The copy is in
    /// memory: nothing that is done to it reaches the directory.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged; [`OpenError::NotBegun`] before the first is saved.
    pub fn read(dir: &Path, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = crate::store::SqliteStore::open_read_only(dir)?;
        open::read(Box::new(store), &parse).map_err(|error| open::unless_log_is_damaged(error, dir))
    }

    /// Reads the configuration of the last run from a directory, without the rest of the state; `None` if there is no frontier.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn stored_config(dir: &Path) -> Result<Option<FrontierConfig>, OpenError> {
        match crate::store::SqliteStore::open_read_only(dir) {
            Ok(store) => Ok(restore::manifest(&store)?.map(|(_, config)| config)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a directory has no frontier, nor what is left of a damaged one: [`open`](Self::open) begins one there.
    pub fn is_missing(dir: &Path) -> bool {
        crate::store::has_none(dir)
    }

    /// Says whether a process has a directory open. It is the state of this moment: the next moment may be different.
    ///
    /// A process that opens the directory at the very instant of this call may be told that it is in use.
    ///
    /// # Errors
    ///
    /// A lock that cannot be read.
    pub fn lock_holder(dir: &Path) -> Result<LockHolder, OpenError> {
        Ok(LockHolder::of(dir)?)
    }

    /// Visits what became of each page, in order.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged.
    pub fn read_records(dir: &Path, visit: &mut dyn FnMut(PageRecord<'_>)) -> Result<(), OpenError> {
        let store = crate::store::SqliteStore::open_read_only(dir)?;
        record::visit(&store, visit)
    }

    /// Fails if a segment of a queue, a host, or a part of the keys could not be read.
    pub(super) fn check_shelf(&self) -> Result<(), FrontierError> {
        let durable = self.durable.as_ref();
        durable.map_or(Ok(()), |durable| durable.check_read(self.sieve.filter()))
    }
}
