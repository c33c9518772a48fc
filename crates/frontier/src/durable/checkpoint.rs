//! Checkpoints: when one is due, and its slices.
//!
//! A checkpoint has the whole state: the small tables, the seen-set, and all hosts. The commit with its manifest states what it replaces;
//! later ones remove it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::removal::Removal;
use super::sizes::Sizes;
use crate::hosts::HostTable;
use crate::store::{Batch, MAX_KEY, Space};

/// The version of what calls do. Who changes what one does, in `state`, `hosts` or `traps`, raises it: a journal of another version is not read,
/// because its calls would do something else.
pub(crate) const LOGIC: u32 = 19;

/// The key of the manifest in [`Space::Meta`].
pub(crate) const MANIFEST: u64 = 0;

/// The key of what checkpoints have replaced and is not removed yet, in [`Space::Meta`].
pub(super) const REPLACED: u64 = 4;

/// No checkpoint of a store that is read has a greater number.
pub(super) const LAST_GENERATION: u64 = (MAX_KEY >> 32) - 1;

/// What a checkpoint consists of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) logic: u32,
    /// As JSON, so that later versions can add fields.
    pub(super) config: String,
    pub(super) generation: u64,
    /// The last row of the journal that the state contains.
    pub(crate) covered: u64,
    /// The parts with the state, then those with the seen-set, then those with the hosts.
    pub(super) state_parts: u64,
    pub(super) seen_set_parts: u64,
    pub(super) host_parts: u64,
    /// The number of the next segment.
    pub(crate) next_segment: u64,
    /// The caller's own text of the last row that the state contains.
    #[serde(with = "serde_bytes")]
    pub(super) attachment: Vec<u8>,
}

impl Manifest {
    pub(super) fn key(generation: u64, part: u64) -> u64 {
        (generation << 32) | part
    }

    fn keys(&self, first: u64, count: u64) -> Range<u64> {
        Self::key(self.generation, first)..Self::key(self.generation, first + count)
    }

    pub(super) fn keys_of_state(&self) -> Range<u64> {
        self.keys(0, self.state_parts)
    }

    pub(super) fn keys_of_seen_set(&self) -> Range<u64> {
        self.keys(self.state_parts, self.seen_set_parts)
    }

    pub(super) fn keys_of_hosts(&self) -> Range<u64> {
        self.keys(self.state_parts + self.seen_set_parts, self.host_parts)
    }
}

/// Writes checkpoints, one after the other.
#[derive(Debug)]
pub(super) struct Checkpointer {
    sizes: Sizes,
    generation: u64,
    /// The bytes of the last checkpoint.
    last_bytes: u64,
    /// The bytes of the journal that no checkpoint contains.
    journal_bytes: u64,
    /// The checkpoint that the store has, or will have with the next commit.
    last: Option<Manifest>,
    writing: Option<Writing>,
}

/// A checkpoint that is not written wholly.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    /// But for the seen-set, and the hosts, which are copied one after the other.
    state: Vec<u8>,
    seen_set: Vec<u8>,
    /// The bytes of the journal that it contains and the last one does not.
    journal_bytes: u64,
    /// The next part of the state and the seen-set.
    next_part: u64,
    bytes: u64,
    part_bytes: usize,
    /// Whether all but the manifest is written.
    is_written: bool,
}

impl Writing {
    fn next(&mut self) -> Option<(u64, &[u8])> {
        let part = self.next_part;
        let (bytes, at) = match part.checked_sub(self.manifest.state_parts) {
            None => (&self.state, part),
            Some(at) => (&self.seen_set, at),
        };
        let start = usize::try_from(at).ok()?.checked_mul(self.part_bytes)?;
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        self.next_part += 1;
        let key = Manifest::key(self.manifest.generation, part);
        Some((key, &rest[..rest.len().min(self.part_bytes)]))
    }

    fn put_hosts(&mut self, hosts: &[u8], batch: &mut Batch) {
        for part in hosts.chunks(self.part_bytes) {
            let key = self.manifest.keys_of_hosts().end;
            batch.put(Space::Checkpoint, key, part);
            self.manifest.host_parts += 1;
        }
        self.bytes += hosts.len() as u64;
    }
}

impl Checkpointer {
    pub(super) fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            generation: 0,
            last_bytes: 0,
            journal_bytes: 0,
            last: None,
            writing: None,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Continues after the checkpoint of a store, and the journal since.
    ///
    /// `last_part` is the key of the last part in the store. If it is of a checkpoint that was not finished, the next one has a greater number.
    pub(super) fn resume(&mut self, manifest: &Manifest, journal_bytes: u64, last_part: Option<u64>) {
        let last_begun = last_part.map(|key| key >> 32);
        // A damaged key may have any number. After one of the last, no number would be left for the next checkpoints.
        let last_begun = last_begun.filter(|number| *number < LAST_GENERATION / 2);
        self.generation = manifest.generation.max(last_begun.unwrap_or_default());
        self.journal_bytes = journal_bytes;
        // About: its last parts may be shorter.
        let parts = manifest.state_parts + manifest.seen_set_parts + manifest.host_parts;
        self.last_bytes = parts.saturating_mul(self.sizes.part_bytes as u64);
        self.last = Some(manifest.clone());
    }

    pub(super) fn count(&mut self, bytes: usize) {
        self.journal_bytes += bytes as u64;
    }

    pub(super) fn is_due(&self) -> bool {
        self.writing.is_none() && self.journal_bytes >= self.last_bytes.max(self.sizes.min_journal_bytes)
    }

    /// Begins a checkpoint of this state and this seen-set as bytes, which contain the rows that the manifest says. Its numbers are set here.
    /// One that was not finished is dropped.
    pub(super) fn begin(&mut self, manifest: Manifest, state: Vec<u8>, seen_set: Vec<u8>) {
        self.generation += 1;
        let count = |bytes: &[u8]| bytes.len().div_ceil(self.sizes.part_bytes) as u64;
        let manifest = Manifest {
            generation: self.generation,
            state_parts: count(&state),
            seen_set_parts: count(&seen_set),
            host_parts: 0,
            ..manifest
        };
        self.writing = Some(Writing {
            manifest,
            bytes: (state.len() + seen_set.len()) as u64,
            state,
            seen_set,
            journal_bytes: std::mem::take(&mut self.journal_bytes),
            next_part: 0,
            is_written: false,
            part_bytes: self.sizes.part_bytes,
        });
    }

    pub(super) fn has_finished(&self) -> bool {
        self.last.is_some()
    }

    pub(super) fn waits_for_sync(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.is_written)
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Adds the next slice to a batch. The manifest comes after the last one, once the runs have all keys, in a batch that is synced. What the
    /// checkpoint replaces is not needed to go back to that sync: it is added to what is removed. Returns the last row that a checkpoint contains
    /// which is finished with it.
    pub(super) fn write_slice(
        &mut self,
        batch: &mut Batch,
        hosts: &mut HostTable,
        has_keys: bool,
        sync: bool,
        replaced: &mut Removal,
    ) -> Result<Option<u64>, postcard::Error> {
        let Some(mut writing) = self.writing.take() else {
            return Ok(None);
        };
        let most = self.sizes.parts_at_once;
        let mut parts = 0;
        while parts < most {
            let Some((key, part)) = writing.next() else { break };
            batch.put(Space::Checkpoint, key, part);
            parts += 1;
        }
        let (copied, is_all) = hosts.copy_more((most - parts) * self.sizes.part_bytes)?;
        writing.put_hosts(&copied, batch);
        writing.is_written = parts < most && is_all && has_keys;
        if !writing.is_written || !sync {
            self.writing = Some(writing);
            return Ok(None);
        }
        batch.put(Space::Meta, MANIFEST, postcard::to_allocvec(&writing.manifest)?);
        // Of no checkpoint, or of a damaged number.
        batch.delete(Space::Checkpoint, writing.manifest.keys_of_hosts().end..=MAX_KEY);
        self.last_bytes = writing.bytes;
        let covered = writing.manifest.covered;
        let last = self.last.replace(writing.manifest);
        self.replace(last, writing.journal_bytes, replaced);
        Ok(Some(covered))
    }

    fn replace(&self, before: Option<Manifest>, journal_bytes: u64, replaced: &mut Removal) {
        let (Some(before), Some(now)) = (before, &self.last) else {
            return;
        };
        let part_bytes = self.sizes.part_bytes as u64;
        let parts = Manifest::key(before.generation, 0)..=before.keys_of_hosts().end.saturating_sub(1);
        // Also of checkpoints that were not finished.
        let unfinished = before.keys_of_hosts().end..=Manifest::key(now.generation, 0) - 1;
        replaced.add(Space::Checkpoint, parts, part_bytes);
        replaced.add(Space::Checkpoint, unfinished, 0);
        let rows = now.covered.saturating_sub(before.covered);
        let row_bytes = journal_bytes.checked_div(rows).unwrap_or_default().max(1);
        for space in [Space::Journal, Space::Undo] {
            replaced.add(space, before.covered + 1..=now.covered, row_bytes);
        }
    }
}
