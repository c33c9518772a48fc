//! What each commit writes: segments, a row of the journal, pages, a slice of a checkpoint, and removals.

use std::sync::Arc;

use super::checkpoint::{Checkpointer, LOGIC, Manifest, REPLACED};
use super::keys::SharedKeys;
use super::removal::Removal;
use super::restore::Restored;
use super::seen_set::encode_seen_set;
use super::segments::StoredSegments;
use super::{Durable, EndedPages, Planner, Source, Tags, going_back, journal};
use crate::config::FrontierConfig;
use crate::error::{FrontierError, OpenError};
use crate::state::State;
use crate::store::{Batch, Space};
use crate::time::Time;

impl Durable {
    pub(super) fn new(
        source: Source<'_>,
        segments: Arc<StoredSegments>,
        keys: Option<SharedKeys>,
        config: FrontierConfig,
        now: Time,
    ) -> Self {
        Self {
            planner: config
                .freshness
                .keeps_fresh
                .then(|| Planner::new(config.freshness, now)),
            store: source.store.clone(),
            segments,
            keys,
            config,
            calls: Vec::new(),
            ended: EndedPages::new(),
            tags: Tags::default(),
            has_unsaved: false,
            attachment: Vec::new(),
            next_row: 1,
            checkpointer: Checkpointer::new(source.sizes),
            replaced: Removal::default(),
            last_sync: now,
            is_synced: false,
            begins_with_checkpoint: false,
        }
    }

    /// Continues after the last row of a store.
    pub(super) fn continue_from(&mut self, restored: &Restored) -> Result<(), OpenError> {
        self.next_row = restored.next_row;
        self.attachment.clone_from(&restored.attachment);
        let store = self.store.lock();
        self.tags = Tags::load(&**store)?;
        let last_part = store.last_key(Space::Checkpoint);
        self.checkpointer
            .resume(&restored.manifest, restored.journal_bytes, last_part);
        if let Some(replaced) = store.get(Space::Meta, REPLACED)? {
            self.replaced = postcard::from_bytes(&replaced).map_err(OpenError::damaged)?;
        }
        Ok(())
    }

    /// Commits a batch that has the last row, if any, and syncs it with all earlier ones.
    fn commit_synced(&mut self, mut batch: Batch, now: Time) -> Result<(), FrontierError> {
        let stated = going_back::state_last_row(&mut batch, self.next_row - 1);
        stated.map_err(FrontierError::not_saved)?;
        self.store.lock().commit(&batch, true)?;
        (self.last_sync, self.is_synced) = (now, true);
        Ok(())
    }

    pub(crate) fn check_place(&self) -> Result<(), FrontierError> {
        Ok(self.store.lock().check_place()?)
    }

    /// Writes all calls since the last row in one commit, and syncs it when that is due.
    pub(crate) fn persist(&mut self, state: &mut State, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        let sync = self.save_status().is_sync_due(now);
        self.write_row(state, attachment, now, sync)
    }

    fn write_row(&mut self, state: &mut State, attachment: &[u8], now: Time, sync: bool) -> Result<(), FrontierError> {
        if std::mem::take(&mut self.begins_with_checkpoint) {
            self.attachment = attachment.to_vec();
            self.next_row += 1;
            return self.write_checkpoint(state, now);
        }
        // What could not be read must not be saved.
        self.check_read()?;
        let is_new = !self.calls.is_empty() || !self.ended.is_empty() || self.attachment != attachment;
        if !is_new && (!sync || self.is_synced) {
            return Ok(());
        }
        let mut batch = Batch::default();
        self.segments.write(&mut batch);
        if is_new {
            let row = journal::row(attachment, &self.calls).map_err(FrontierError::not_saved)?;
            self.checkpointer.count(row.len());
            batch.put(Space::Journal, self.next_row, row);
            self.write_pages(self.next_row, &mut batch)
                .map_err(FrontierError::not_saved)?;
            self.calls.clear();
            self.has_unsaved = false;
            self.attachment.clear();
            self.attachment.extend_from_slice(attachment);
            self.next_row += 1;
        }
        state.share_memory(self.checkpointer.sizes().resident_bytes);
        if self.checkpointer.is_due() {
            self.begin_checkpoint(state)?;
        }
        self.remove_replaced(&mut batch);
        self.write_slice(state, &mut batch, sync)?;
        if sync {
            return self.commit_synced(batch, now);
        }
        self.is_synced = false;
        self.store.lock().commit(&batch, false)?;
        Ok(())
    }

    /// Writes a row, and then a checkpoint, which it syncs.
    pub(crate) fn checkpoint(&mut self, state: &mut State, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        let is_row = !self.begins_with_checkpoint;
        self.write_row(state, attachment, now, false)?;
        if is_row {
            self.write_checkpoint(state, now)?;
        }
        Ok(())
    }

    fn remove_replaced(&mut self, batch: &mut Batch) {
        // As much as of a new checkpoint.
        let sizes = self.checkpointer.sizes();
        let bytes = sizes.part_bytes as u64 * sizes.parts_at_once as u64;
        if !self.replaced.is_empty() && !self.replaced.write(batch, bytes) {
            batch.delete(Space::Meta, REPLACED..=REPLACED);
        }
    }

    /// Writes a checkpoint, and removes what it replaces. Calls that have no row are in the state.
    pub(super) fn write_checkpoint(&mut self, state: &mut State, now: Time) -> Result<(), FrontierError> {
        self.check_read()?;
        let mut batch = self.encode_checkpoint(state)?;
        self.write_pages(self.next_row - 1, &mut batch)
            .map_err(FrontierError::not_saved)?;
        self.calls.clear();
        self.has_unsaved = false;
        self.commit_synced(batch, now)?;
        while !self.replaced.is_empty() {
            let mut batch = Batch::default();
            self.remove_replaced(&mut batch);
            self.store.lock().commit(&batch, false)?;
        }
        Ok(())
    }

    /// Begins a checkpoint, and writes all of it but the last commit, which it returns and which must be synced.
    fn encode_checkpoint(&mut self, state: &mut State) -> Result<Batch, FrontierError> {
        self.begin_checkpoint(state)?;
        let mut batch = Batch::default();
        // What was not written since the frontier was opened.
        self.segments.write(&mut batch);
        while self.checkpointer.is_writing() {
            self.write_slice(state, &mut batch, true)?;
            // What a merge of keys reads must be in the store; and the whole checkpoint need not be in memory. The first one is small, and
            // is there wholly or not at all.
            if self.checkpointer.has_finished() && self.checkpointer.is_writing() {
                self.store.lock().commit(&std::mem::take(&mut batch), false)?;
            }
        }
        Ok(batch)
    }

    /// Begins a checkpoint of the present state, which all rows so far contain.
    fn begin_checkpoint(&mut self, state: &mut State) -> Result<(), FrontierError> {
        let encoded = state.encode().map_err(FrontierError::not_saved)?;
        let seen_set = encode_seen_set(state.seen().filter()).map_err(FrontierError::not_saved)?;
        let covered = self.next_row - 1;
        let manifest = Manifest {
            logic: LOGIC,
            config: serde_json::to_string(&self.config).map_err(FrontierError::not_saved)?,
            covered,
            next_segment: self.segments.next(),
            attachment: self.attachment.clone(),
            ..Manifest::default()
        };
        state.host_table().begin_copy();
        self.checkpointer.begin(manifest, encoded, seen_set);
        self.segments.checkpoint_begun();
        if let Some(keys) = &self.keys {
            keys.lock().freeze(covered);
        }
        Ok(())
    }

    /// Adds the next slice of the checkpoint that is being written, if any, to a batch, and what is to be written of the keys. A checkpoint
    /// is finished by a batch that is synced.
    fn write_slice(&mut self, state: &mut State, batch: &mut Batch, sync: bool) -> Result<(), FrontierError> {
        let mut has_keys = true;
        if let Some(keys) = &self.keys {
            let mut keys = keys.lock();
            keys.write(batch, self.next_row - 1)?;
            has_keys = keys.are_written();
        }
        let (hosts, replaced) = (state.host_table(), &mut self.replaced);
        let finished = self.checkpointer.write_slice(batch, hosts, has_keys, sync, replaced);
        if let Some(covered) = finished.map_err(FrontierError::not_saved)? {
            self.segments.checkpoint_finished(batch, replaced);
            let stated = postcard::to_allocvec(replaced).map_err(FrontierError::not_saved)?;
            batch.put(Space::Meta, REPLACED, stated);
            if let Some(keys) = &self.keys {
                keys.lock().checkpoint_finished(covered);
            }
        }
        Ok(())
    }
}
