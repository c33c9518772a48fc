//! The durable frontier: killed at any moment, it continues where it was.
//!
//! A frontier depends on nothing but its configuration and the calls that have changed it. So a directory holds
//!
//! * a **checkpoint**: the whole state after some call, in parts;
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
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod keys;
mod memory;
mod open;
mod options;
mod recall;
mod record;
mod recording;
mod refresh;
mod removal;
mod repair;
mod replay;
mod seen;
mod shelf;
mod state;
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use crate::store::{LockHolder, StoreError};
use calls::Call;
use checkpoint::{Checkpointer, SIZES, Sizes};
pub use open::{OpenError, Opened};
pub use record::{PageEnd, PageRecord};
pub use refresh::Refreshed;
pub use repair::{RepairOutcome, RepairReport, RepairedTable, Salvaged};
pub(super) use seen::Seen;
use shelf::{SharedStore, StoreShelf};

use super::{Frontier, FrontierError};
use crate::config::FrontierConfig;
use crate::rules::ParseRules;
use crate::store::{Batch, Space};
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
            sync_interval: DEFAULT_SYNC_INTERVAL,
            last_sync: now,
        }
    }

    /// Adds a call to the next row.
    fn add(&mut self, call: &Call<'_>, is_change: bool) -> Result<(), FrontierError> {
        // Calls that change nothing but the time take memory, too.
        self.has_unsaved |= is_change || self.calls.len() > MAX_IDLE_BYTES;
        let calls = std::mem::take(&mut self.calls);
        self.calls = postcard::to_extend(call, calls).map_err(|error| FrontierError::not_saved(&error))?;
        Ok(())
    }

    fn is_sync_due(&self, now: Time) -> bool {
        now.since(self.last_sync) >= self.sync_interval
    }
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
    /// Makes all changes since the last call survive the end of this process, together with a text of the caller's own, in one step:
    /// after a crash there are all of them, or none. [`Opened::attachment`] returns the text of the last step.
    ///
    /// Call it after results were written, and before requests of new leases are sent. Then a crash costs at most the requests that were
    /// in flight. If the interval of [`set_sync_interval`](Self::set_sync_interval) has passed, the changes survive a power cut, too. In
    /// memory it does nothing.
    ///
    /// Cost: a row of the database with the calls since the last one. At times a slice of a checkpoint, and before the first slice a copy
    /// of the whole state in memory.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if the store cannot be written. The frontier is then poisoned: what is in memory may be ahead of the
    /// disk. Open it again when the cause is gone. [`FrontierError::Poisoned`] after such an error, or after a call that panicked.
    pub fn persist(&mut self, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        if self.in_commit {
            return Err(FrontierError::Poisoned);
        }
        self.save_with(|frontier, durable| frontier.write_row(durable, attachment, now))
    }

    /// Writes something. Poisoned until it is written.
    fn save_with(
        &mut self,
        write: impl FnOnce(&mut Self, &mut Durable) -> Result<(), FrontierError>,
    ) -> Result<(), FrontierError> {
        // What could not be read must not be saved.
        if let Err(error) = self.check_shelf() {
            self.in_commit = true;
            return Err(error);
        }
        let Some(mut durable) = self.durable.take() else {
            return Ok(());
        };
        self.in_commit = true;
        let done = write(self, &mut durable);
        self.durable = Some(durable);
        self.in_commit = done.is_err();
        done
    }

    fn write_row(&mut self, durable: &mut Durable, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        self.recall_some(durable, now)?;
        self.tend_layers(durable)?;
        let is_sync_due = durable.is_sync_due(now);
        let is_new = !durable.calls.is_empty() || durable.attachment != attachment;
        if !is_new && !is_sync_due {
            return Ok(());
        }
        let mut batch = Batch::default();
        durable.shelf.write(&mut batch);
        if is_new {
            let row = open::row(attachment, &durable.calls).map_err(|error| FrontierError::not_saved(&error))?;
            durable.checkpointer.count(row.len());
            batch.put(Space::Journal, durable.next_row, row);
            if !durable.records.is_empty() {
                batch.put(Space::Record, durable.next_row, std::mem::take(&mut durable.records));
            }
            durable.calls.clear();
            durable.has_unsaved = false;
            durable.attachment.clear();
            durable.attachment.extend_from_slice(attachment);
            durable.next_row += 1;
        }
        self.share_memory(&durable.config, durable.checkpointer.sizes());
        if durable.checkpointer.is_due() {
            self.begin_checkpoint(durable)?;
        }
        self.write_slice(durable, &mut batch)?;
        if is_sync_due {
            self.set_status(&mut batch, now);
            batch.set_status("store_bytes", durable.store.lock().bytes());
            durable.last_sync = now;
        }
        durable.store.lock().commit(&batch, is_sync_due)?;
        Ok(())
    }

    /// Writes a checkpoint and syncs it, at the end of a run. The next [`open`](Self::open) then makes no call again, and a later version
    /// of this crate can read it if the format of the state is the same. In memory it does nothing.
    ///
    /// # Errors
    ///
    /// Those of [`persist`](Self::persist).
    pub fn checkpoint(&mut self, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        self.persist(attachment, now)?;
        self.checkpoint_saved(now)
    }

    /// Writes a checkpoint. All calls must have been saved, or belong to no row.
    fn checkpoint_saved(&mut self, now: Time) -> Result<(), FrontierError> {
        self.save_with(|frontier, durable| frontier.write_checkpoint(durable, now))
    }

    fn write_checkpoint(&mut self, durable: &mut Durable, now: Time) -> Result<(), FrontierError> {
        self.begin_checkpoint(durable)?;
        let mut batch = Batch::default();
        // What was not written since the frontier was opened.
        durable.shelf.write(&mut batch);
        while durable.checkpointer.is_writing() {
            self.write_slice(durable, &mut batch)?;
            // What a merge of keys reads must be in the store; and the whole checkpoint need not be in memory. The first one is small, and
            // is there wholly or not at all.
            if durable.checkpointer.has_finished() {
                durable.store.lock().commit(&std::mem::take(&mut batch), false)?;
            }
        }
        durable.checkpointer.remove_all(&mut batch);
        durable.shelf.remove_all(&mut batch);
        self.set_status(&mut batch, now);
        durable.store.lock().commit(&batch, true)?;
        durable.last_sync = now;
        Ok(())
    }

    /// Begins a checkpoint of the present state, which all rows so far contain.
    fn begin_checkpoint(&mut self, durable: &mut Durable) -> Result<(), FrontierError> {
        let state = self.encode_state(durable.shelf.next());
        let state = state.map_err(|error| FrontierError::not_saved(&error))?;
        let Durable {
            checkpointer,
            config,
            attachment,
            next_row,
            ..
        } = durable;
        let hosts = self.hosts().table_mut();
        let begun = checkpointer.begin(state, hosts, *next_row - 1, config, attachment);
        begun.map_err(|error| FrontierError::not_saved(&error))?;
        durable.shelf.checkpoint_begun();
        if let Some(keys) = self.sieve.filter().keys() {
            keys.lock().checkpoint_begun(durable.next_row - 1);
        }
        Ok(())
    }

    /// Adds the next slice of the checkpoint that is being written, if any, to a batch, and what is to be written of the keys.
    fn write_slice(&mut self, durable: &mut Durable, batch: &mut Batch) -> Result<(), FrontierError> {
        let mut has_keys = true;
        if let Some(keys) = self.sieve.filter().keys() {
            let mut keys = keys.lock();
            keys.write(batch, durable.next_row - 1)?;
            has_keys = keys.are_written();
        }
        let hosts = self.hosts().table_mut();
        let is_last = durable.checkpointer.write_slice(batch, hosts, has_keys);
        if is_last.map_err(|error| FrontierError::not_saved(&error))? {
            let done = durable.shelf.checkpoint_finished(batch);
            done.map_err(|error| FrontierError::not_saved(&error))?;
            if let Some(keys) = self.sieve.filter().keys() {
                keys.lock().checkpoint_finished();
            }
        }
        Ok(())
    }

    /// Numbers for ordinary tools.
    fn set_status(&self, batch: &mut Batch, now: Time) {
        let report = self.report();
        batch.set_status("updated_milliseconds", now.as_millis());
        batch.set_status("queued_pages", report.queued_pages);
        batch.set_status("leased", report.leased);
        batch.set_status("pages_done", report.pages.done);
        batch.set_status("pages_redirected", report.pages.redirected);
        batch.set_status("pages_rejected", report.pages.rejected);
        batch.set_status("pages_gave_up", report.pages.gave_up);
        batch.set_status("links_offered", report.links.offered());
        batch.set_status("hosts", report.hosts);
        batch.set_status("seen_set_keys", report.saturation.accepted);
    }

    /// Sets how often [`persist`](Self::persist) syncs the store to the medium: what a power cut may cost. Zero for each time. The default
    /// is [`DEFAULT_SYNC_INTERVAL`].
    pub fn set_sync_interval(&mut self, interval: Duration) {
        if let Some(durable) = &mut self.durable {
            durable.sync_interval = interval;
        }
    }

    /// Returns whether the next [`persist`](Self::persist) will sync the store. Sync what belongs to the attachment first.
    pub fn is_sync_due(&self, now: Time) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.is_sync_due(now))
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
    /// robots.txt files that [`RobotsRules::text`](crate::RobotsRules::text) returned.
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
    /// # Errors
    ///
    /// A directory that another process uses, that cannot be read or written, or that is damaged; a configuration that does not fit it.
    pub fn open(dir: &Path, config: FrontierConfig, now: Time, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = crate::store::SqliteStore::open(dir)?;
        open::open(Box::new(store), config, now, &parse, SIZES)
    }

    /// Reads the frontier of a directory, beside the process that runs it, as of its last [`persist`](Self::persist). The copy is in
    /// memory: nothing that is done to it reaches the directory.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged.
    pub fn read(dir: &Path, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = crate::store::SqliteStore::open_read_only(dir)?;
        open::read(Box::new(store), &parse)
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

    /// Fails if a segment of a queue, or a part of the keys, could not be read.
    pub(super) fn check_shelf(&self) -> Result<(), FrontierError> {
        let error = self.durable.as_ref().and_then(|durable| durable.shelf.error());
        let error = error.or_else(|| self.is_durable().then(|| self.keys_error()).flatten());
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns why a part of the keys could not be read, if so.
    fn keys_error(&self) -> Option<StoreError> {
        self.sieve.filter().keys()?.lock().error()
    }
}
