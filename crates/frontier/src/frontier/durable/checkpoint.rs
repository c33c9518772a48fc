//! Checkpoints: when one is due, and its slices.

use serde::{Deserialize, Serialize};

use super::keys::{KEY_SIZES, KeySizes};
use super::removal::Removal;
use super::state::EncodedState;
use crate::config::{DEFAULT_HOST_MEMORY, FrontierConfig};
use crate::hosts::{HostTable, RowSizes};
use crate::store::{Batch, MAX_KEY, Space};

/// The version of what the calls do. A journal of another version is not read, because the calls might do something else.
pub(super) const LOGIC: u32 = 4;

/// The key of the manifest in [`Space::Meta`].
pub(super) const MANIFEST: u64 = 0;

/// What tests make smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The journal is never shorter than this when a checkpoint is due, in bytes. It bounds the work of opening a small frontier.
    pub(super) min_journal_bytes: u64,
    /// The length of a checkpoint, divided by that of the journal at which the next one is due. The calls of a journal take longer to make
    /// again than a checkpoint of the same length takes to read.
    pub(super) journal_share: u64,
    /// The size of a part, in bytes.
    pub(super) part_bytes: usize,
    /// The parts that are written with one row.
    pub(super) parts_at_once: usize,
    pub(super) keys: KeySizes,
    /// How evicted hosts lie on disk.
    pub(super) rows: RowSizes,
    /// The bytes of hosts in memory, if the configuration has no bound.
    pub(super) resident_bytes: u64,
    /// The bytes of new segments that wait in memory while the calls of the journal are made again.
    pub(super) fresh_bytes: usize,
}

pub(super) const SIZES: Sizes = Sizes {
    min_journal_bytes: 16 << 20,
    journal_share: 4,
    part_bytes: 256 << 10,
    parts_at_once: 8,
    keys: KEY_SIZES,
    rows: RowSizes {
        row_bytes: 16 << 10,
        holes: 4096,
    },
    resident_bytes: DEFAULT_HOST_MEMORY,
    fresh_bytes: 8 << 20,
};

/// What a checkpoint consists of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) logic: u32,
    /// As JSON, so that later versions can add fields.
    pub(super) config: String,
    pub(super) generation: u64,
    /// The last row of the journal that the state contains.
    pub(super) covered: u64,
    /// The parts with the state, then those with the seen-set, then those with the hosts.
    pub(super) state_parts: u64,
    pub(super) seen_set_parts: u64,
    pub(super) host_parts: u64,
    /// The caller's own text of the last row that the state contains.
    #[serde(with = "serde_bytes")]
    pub(super) attachment: Vec<u8>,
}

impl Manifest {
    /// Returns the key of a part, in [`Space::Checkpoint`].
    pub(super) fn key(generation: u64, part: u64) -> u64 {
        (generation << 32) | part
    }

    /// Returns the key behind those of all parts.
    fn end(&self) -> u64 {
        Self::key(
            self.generation,
            self.state_parts + self.seen_set_parts + self.host_parts,
        )
    }
}

/// Writes checkpoints, one after the other.
#[derive(Debug)]
pub(super) struct Checkpointer {
    sizes: Sizes,
    generation: u64,
    /// The bytes of the last checkpoint.
    checkpoint_bytes: u64,
    /// The bytes of the journal that no checkpoint contains.
    journal_bytes: u64,
    /// The keys of the parts of the last checkpoint.
    parts: std::ops::Range<u64>,
    /// The last row of the journal that the last checkpoint contains.
    covered: u64,
    writing: Option<Writing>,
    removal: Removal,
}

/// A checkpoint that is not written wholly.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    state: EncodedState,
    /// The bytes of the journal that it replaces.
    journal_bytes: u64,
    is_begun: bool,
    /// The next part of the state and the seen-set.
    next_part: u64,
    bytes: u64,
    part_bytes: usize,
}

impl Writing {
    /// Returns the next part of the state and the seen-set with its key, if any is left.
    fn next(&mut self) -> Option<(u64, &[u8])> {
        let part = self.next_part;
        let (bytes, at) = match part.checked_sub(self.manifest.state_parts) {
            None => (&self.state.state, part),
            Some(at) => (&self.state.seen_set, at),
        };
        let start = usize::try_from(at).ok()?.checked_mul(self.part_bytes)?;
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        self.next_part += 1;
        let key = Manifest::key(self.manifest.generation, part);
        Some((key, &rest[..rest.len().min(self.part_bytes)]))
    }

    /// Adds hosts to a batch, as the parts behind all others.
    fn put_hosts(&mut self, copied: &[u8], batch: &mut Batch) {
        let manifest = &mut self.manifest;
        for part in copied.chunks(self.part_bytes) {
            let number = manifest.state_parts + manifest.seen_set_parts + manifest.host_parts;
            batch.put(Space::Checkpoint, Manifest::key(manifest.generation, number), part);
            manifest.host_parts += 1;
        }
        self.bytes += copied.len() as u64;
    }
}

impl Checkpointer {
    pub(super) fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            generation: 0,
            checkpoint_bytes: 0,
            journal_bytes: 0,
            parts: 0..0,
            covered: 0,
            writing: None,
            removal: Removal::default(),
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Continues after the checkpoint of a store, and the journal since. What they replaced is removed with the next
    /// commit.
    pub(super) fn resume(&mut self, manifest: &Manifest, checkpoint_bytes: u64, journal_bytes: u64) {
        self.generation = manifest.generation;
        self.checkpoint_bytes = checkpoint_bytes;
        self.journal_bytes = journal_bytes;
        self.covered = manifest.covered;
        self.parts = Manifest::key(manifest.generation, 0)..manifest.end();
        if let Some(before) = self.parts.start.checked_sub(1) {
            self.removal.add_whole(Space::Checkpoint, 0..=before);
        }
        self.removal.add_whole(Space::Journal, 0..=manifest.covered);
    }

    /// Counts a row of the journal.
    pub(super) fn count(&mut self, bytes: usize) {
        self.journal_bytes += bytes as u64;
    }

    /// Returns whether a checkpoint is due: the journal has its share of the length of the last one.
    pub(super) fn is_due(&self) -> bool {
        self.writing.is_none()
            && self.journal_bytes
                >= (self.checkpoint_bytes / self.sizes.journal_share).max(self.sizes.min_journal_bytes)
    }

    /// Begins a checkpoint of this state and these hosts, which contain the rows up to `covered`. One that was not finished is dropped.
    pub(super) fn begin(
        &mut self,
        state: EncodedState,
        hosts: &mut HostTable,
        covered: u64,
        config: &FrontierConfig,
        attachment: &[u8],
    ) -> Result<(), serde_json::Error> {
        self.generation += 1;
        let count = |bytes: &[u8]| bytes.len().div_ceil(self.sizes.part_bytes) as u64;
        let manifest = Manifest {
            logic: LOGIC,
            config: serde_json::to_string(config)?,
            generation: self.generation,
            covered,
            state_parts: count(&state.state),
            seen_set_parts: count(&state.seen_set),
            host_parts: 0,
            attachment: attachment.to_vec(),
        };
        hosts.begin_copy();
        self.writing = Some(Writing {
            manifest,
            bytes: state.bytes(),
            journal_bytes: self.journal_bytes,
            state,
            is_begun: false,
            next_part: 0,
            part_bytes: self.sizes.part_bytes,
        });
        self.journal_bytes = 0;
        Ok(())
    }

    /// Returns whether the store has a checkpoint, or will have one with the next commit.
    pub(super) fn has_finished(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns whether a checkpoint is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Adds the next slice to a batch; with the last one the manifest, but not before the runs have all keys. Between two checkpoints, it
    /// adds a part of the removal of what the last one has replaced. Returns whether it was the last slice.
    pub(super) fn write_slice(
        &mut self,
        batch: &mut Batch,
        hosts: &mut HostTable,
        has_keys: bool,
    ) -> Result<bool, postcard::Error> {
        let Some(writing) = &mut self.writing else {
            self.removal.write(batch);
            return Ok(false);
        };
        if !writing.is_begun {
            // Parts of one that was not finished.
            batch.delete(Space::Checkpoint, self.parts.end..=MAX_KEY);
            writing.is_begun = true;
        }
        let most = self.sizes.parts_at_once;
        let mut parts = 0;
        while parts < most {
            let Some((key, part)) = writing.next() else { break };
            batch.put(Space::Checkpoint, key, part);
            parts += 1;
        }
        let (copied, is_last) = hosts.copy_more((most - parts) * self.sizes.part_bytes)?;
        writing.put_hosts(&copied, batch);
        if parts == most || !is_last || !has_keys {
            return Ok(false);
        }
        let manifest = &writing.manifest;
        batch.put(Space::Meta, MANIFEST, postcard::to_allocvec(manifest)?);
        let at_once = (self.sizes.part_bytes * most) as u64;
        if let Some(last) = self.parts.end.checked_sub(1) {
            let part_bytes = self.sizes.part_bytes as u64;
            self.removal
                .add(Space::Checkpoint, self.parts.start..=last, part_bytes, at_once);
        }
        let first_row = self.covered + 1;
        let rows = manifest.covered.saturating_sub(self.covered);
        let row_bytes = writing.journal_bytes.checked_div(rows).unwrap_or_default();
        self.removal
            .add(Space::Journal, first_row..=manifest.covered, row_bytes, at_once);
        self.parts = Manifest::key(manifest.generation, 0)..manifest.end();
        self.covered = manifest.covered;
        self.checkpoint_bytes = writing.bytes;
        self.writing = None;
        Ok(true)
    }

    /// Adds the removal of all that the last checkpoint has replaced.
    pub(super) fn remove_all(&mut self, batch: &mut Batch) {
        while self.removal.write(batch) {}
    }
}
