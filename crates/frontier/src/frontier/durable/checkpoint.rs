//! Checkpoints: when one is due, and its slices.

use serde::{Deserialize, Serialize};

use super::state::EncodedState;
use crate::config::FrontierConfig;
use crate::store::{Batch, Space};

/// The version of what the calls do. A journal of another version is not read, because the calls might do something else.
pub(super) const LOGIC: u32 = 1;

/// The key of the manifest in [`Space::Meta`].
pub(super) const MANIFEST: u64 = 0;

/// The journal is never shorter than this when a checkpoint is due, in bytes. It bounds the work of opening a small frontier.
const MIN_JOURNAL_BYTES: u64 = 16 << 20;
/// The size of a part, in bytes.
const PART_BYTES: usize = 256 << 10;
/// The parts that are written with one row.
const PARTS_AT_ONCE: usize = 8;

/// What a checkpoint consists of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) logic: u32,
    /// As JSON, so that later versions can add fields.
    pub(super) config: String,
    pub(super) generation: u64,
    /// The last row of the journal that the state contains.
    pub(super) covered: u64,
    /// The parts with the state, then those with the seen-set.
    pub(super) state_parts: u64,
    pub(super) seen_set_parts: u64,
    /// The caller's own text of the last row that the state contains.
    #[serde(with = "serde_bytes")]
    pub(super) attachment: Vec<u8>,
}

impl Manifest {
    /// Returns the key of a part, in [`Space::Checkpoint`].
    pub(super) fn key(generation: u64, part: u64) -> u64 {
        (generation << 32) | part
    }
}

/// Writes checkpoints, one after the other.
#[derive(Debug, Default)]
pub(super) struct Checkpointer {
    generation: u64,
    /// The bytes of the last checkpoint.
    checkpoint_bytes: u64,
    /// The bytes of the journal that no checkpoint contains.
    journal_bytes: u64,
    writing: Option<Writing>,
}

/// A checkpoint that is not written wholly.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    state: EncodedState,
    next_part: u64,
}

impl Writing {
    /// Returns the next part with its key, if any is left.
    fn next(&mut self) -> Option<(u64, &[u8])> {
        let part = self.next_part;
        let (bytes, at) = match part.checked_sub(self.manifest.state_parts) {
            None => (&self.state.state, part),
            Some(at) => (&self.state.seen_set, at),
        };
        let start = usize::try_from(at).ok()?.checked_mul(PART_BYTES)?;
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        self.next_part += 1;
        Some((
            Manifest::key(self.manifest.generation, part),
            &rest[..rest.len().min(PART_BYTES)],
        ))
    }

    fn is_finished(&self) -> bool {
        self.next_part >= self.manifest.state_parts + self.manifest.seen_set_parts
    }
}

impl Checkpointer {
    /// Continues after the checkpoint of a store, and the journal since.
    pub(super) fn resume(&mut self, generation: u64, checkpoint_bytes: u64, journal_bytes: u64) {
        self.generation = generation;
        self.checkpoint_bytes = checkpoint_bytes;
        self.journal_bytes = journal_bytes;
    }

    /// Counts a row of the journal.
    pub(super) fn count(&mut self, bytes: usize) {
        self.journal_bytes += bytes as u64;
    }

    /// Returns whether a checkpoint is due: the journal is as long as the last one.
    pub(super) fn is_due(&self) -> bool {
        self.writing.is_none() && self.journal_bytes >= self.checkpoint_bytes.max(MIN_JOURNAL_BYTES)
    }

    /// Begins a checkpoint of this state, which contains the rows up to `covered`. One that was not finished is dropped.
    pub(super) fn begin(
        &mut self,
        state: EncodedState,
        covered: u64,
        config: &FrontierConfig,
        attachment: &[u8],
    ) -> Result<(), serde_json::Error> {
        self.generation += 1;
        let generation = self.generation;
        let count = |bytes: &[u8]| bytes.len().div_ceil(PART_BYTES) as u64;
        let manifest = Manifest {
            logic: LOGIC,
            config: serde_json::to_string(config)?,
            generation,
            covered,
            state_parts: count(&state.state),
            seen_set_parts: count(&state.seen_set),
            attachment: attachment.to_vec(),
        };
        self.writing = Some(Writing {
            manifest,
            state,
            next_part: 0,
        });
        self.journal_bytes = 0;
        Ok(())
    }

    /// Adds the next slice to a batch; with the last one the manifest, and the removal of what it replaces.
    pub(super) fn write_slice(&mut self, batch: &mut Batch) -> Result<(), postcard::Error> {
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        for _ in 0..PARTS_AT_ONCE {
            let Some((key, part)) = writing.next() else { break };
            batch.put(Space::Checkpoint, key, part);
        }
        if writing.is_finished() {
            let manifest = &writing.manifest;
            batch.put(Space::Meta, MANIFEST, postcard::to_allocvec(manifest)?);
            let first_key = Manifest::key(manifest.generation, 0);
            batch.delete(Space::Checkpoint, 0..=first_key - 1);
            batch.delete(Space::Journal, 0..=manifest.covered);
            self.checkpoint_bytes = writing.state.bytes();
            self.writing = None;
        }
        Ok(())
    }

    /// Adds all that is left to a batch.
    pub(super) fn write_all(&mut self, batch: &mut Batch) -> Result<(), postcard::Error> {
        while self.writing.is_some() {
            self.write_slice(batch)?;
        }
        Ok(())
    }
}
