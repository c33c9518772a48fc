//! What each commit writes: a row of the journal, and a slice of a checkpoint.

use super::super::{Frontier, FrontierError};
use super::{Durable, calls, unsynced};
use crate::store::{Batch, Space};
use crate::time::Time;

/// The bytes that are reserved for the records of the next row, at most.
const MOST_RESERVED: usize = 64 << 10;

impl Durable {
    /// Commits a batch that has the last row, if any, and syncs it with all earlier ones.
    fn commit_synced(&mut self, mut batch: Batch, now: Time) -> Result<(), FrontierError> {
        let stated = unsynced::state_last_row(&mut batch, self.next_row - 1);
        stated.map_err(|error| FrontierError::not_saved(&error))?;
        self.store.lock().commit(&batch, true)?;
        self.last_sync = now;
        Ok(())
    }
}

impl Frontier {
    /// Makes all changes since the last call survive the end of this process, together with a text of the caller's own, in one step:
    /// after a crash there are all of them, or none. [`Opened::attachment`](super::Opened::attachment) returns the text of the last step.
    ///
    /// Call it after results were written, and before requests of new leases are sent, but for those to hosts without a
    /// [delay](crate::Lease::delay). Then a crash costs at most the requests that were in flight or have ended since the last call. If the
    /// interval of [`set_sync_interval`](Self::set_sync_interval) has passed, or a checkpoint waits for it, the changes survive a
    /// power cut, too: ask [`save_status`](Self::save_status) before. In memory it does nothing.
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
        self.save_with(|frontier, durable| {
            let sync = durable.save_status().is_sync_due(now);
            frontier.write_row(durable, attachment, now, sync)
        })
    }

    /// Writes something. Poisoned until it is written.
    pub(super) fn save_with(
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

    fn write_row(
        &mut self,
        durable: &mut Durable,
        attachment: &[u8],
        now: Time,
        sync: bool,
    ) -> Result<(), FrontierError> {
        let is_new = !durable.calls.is_empty() || durable.attachment != attachment;
        if !is_new && !sync {
            return Ok(());
        }
        let mut batch = Batch::default();
        durable.shelf.write(&mut batch);
        if is_new {
            let row = calls::row(attachment, &durable.calls).map_err(|error| FrontierError::not_saved(&error))?;
            durable.checkpointer.count(row.len());
            batch.put(Space::Journal, durable.next_row, row);
            if !durable.records.is_empty() {
                // The next row will have about as many.
                let next = Vec::with_capacity(durable.records.len().min(MOST_RESERVED));
                batch.put(
                    Space::Record,
                    durable.next_row,
                    std::mem::replace(&mut durable.records, next),
                );
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
        self.write_slice(durable, &mut batch, sync)?;
        if sync {
            self.set_status(&mut batch, now);
            batch.set_status("store_bytes", durable.store.lock().bytes());
            return durable.commit_synced(batch, now);
        }
        durable.store.lock().commit(&batch, false)?;
        Ok(())
    }

    /// Writes a checkpoint and syncs it, at the end of a run. The next `open` then makes no call again, and a later version
    /// of this crate can read it if the format of the state is the same. In memory it does nothing.
    ///
    /// # Errors
    ///
    /// Those of [`persist`](Self::persist).
    pub fn checkpoint(&mut self, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        self.checkpoint_after(attachment, now, || true).map(drop)
    }

    /// Writes a checkpoint as [`checkpoint`](Self::checkpoint) does, but syncs it only after `is_synced`, which is called once,
    /// when there is nothing else left to do: wait there for another thread that syncs what belongs to the attachment. Returns its answer.
    /// If that is `false`, the directory has all changes, but not synced, and the frontier is poisoned.
    ///
    /// # Errors
    ///
    /// Those of [`persist`](Self::persist).
    pub fn checkpoint_after(
        &mut self,
        attachment: &[u8],
        now: Time,
        is_synced: impl FnOnce() -> bool,
    ) -> Result<bool, FrontierError> {
        if self.in_commit {
            return Err(FrontierError::Poisoned);
        }
        self.save_with(|frontier, durable| frontier.write_row(durable, attachment, now, false))?;
        if self.durable.is_none() {
            return Ok(is_synced());
        }
        let mut has_synced = false;
        self.save_with(|frontier, durable| {
            let batch = frontier.encode_checkpoint(durable, now)?;
            has_synced = is_synced();
            match has_synced {
                true => durable.commit_synced(batch, now),
                false => Ok(()),
            }
        })?;
        self.in_commit |= !has_synced;
        Ok(has_synced)
    }

    /// Writes a checkpoint. All calls must have been saved, or belong to no row.
    pub(super) fn checkpoint_saved(&mut self, now: Time) -> Result<(), FrontierError> {
        self.save_with(|frontier, durable| frontier.write_checkpoint(durable, now))
    }

    pub(super) fn write_checkpoint(&mut self, durable: &mut Durable, now: Time) -> Result<(), FrontierError> {
        let batch = self.encode_checkpoint(durable, now)?;
        durable.commit_synced(batch, now)
    }

    /// Begins a checkpoint, and writes all of it but the last commit, which it returns and which must be synced.
    fn encode_checkpoint(&mut self, durable: &mut Durable, now: Time) -> Result<Batch, FrontierError> {
        self.begin_checkpoint(durable)?;
        let mut batch = Batch::default();
        // What was not written since the frontier was opened.
        durable.shelf.write(&mut batch);
        while durable.checkpointer.is_writing() {
            self.write_slice(durable, &mut batch, true)?;
            // What a merge of keys reads must be in the store; and the whole checkpoint need not be in memory. The first one is small, and
            // is there wholly or not at all. The last slice is committed with the removal of what it replaces.
            if durable.checkpointer.has_finished() && durable.checkpointer.is_writing() {
                durable.store.lock().commit(&std::mem::take(&mut batch), false)?;
            }
        }
        self.set_status(&mut batch, now);
        Ok(batch)
    }

    /// Begins a checkpoint of the present state, which all rows so far contain.
    pub(super) fn begin_checkpoint(&mut self, durable: &mut Durable) -> Result<(), FrontierError> {
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

    /// Adds the next slice of the checkpoint that is being written, if any, to a batch, and what is to be written of the keys. A checkpoint
    /// is finished by a batch that is synced.
    pub(super) fn write_slice(
        &mut self,
        durable: &mut Durable,
        batch: &mut Batch,
        sync: bool,
    ) -> Result<(), FrontierError> {
        let mut has_keys = true;
        if let Some(keys) = self.sieve.filter().keys() {
            let mut keys = keys.lock();
            keys.write(batch, durable.next_row - 1)?;
            has_keys = keys.are_written();
        }
        let hosts = self.hosts().table_mut();
        let is_last = durable.checkpointer.write_slice(batch, hosts, has_keys, sync);
        if is_last.map_err(|error| FrontierError::not_saved(&error))? {
            durable.shelf.checkpoint_finished(batch);
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
}
