//! Checkpoints: when one is due, and its slices.
//!
//! A checkpoint has the state and the seen-set whole. Its hosts are a whole copy, or they continue those of the checkpoints before, which are
//! kept until a whole copy replaces them all.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::removal::Removal;
use super::sizes::Sizes;
use super::state::EncodedState;
use crate::config::FrontierConfig;
use crate::hosts::{Copied, HostTable};
use crate::store::{Batch, MAX_KEY, Space};

/// The version of what the calls do. A journal of another version is not read, because the calls might do something else.
pub(super) const LOGIC: u32 = 7;

/// The key of the manifest in [`Space::Meta`].
pub(super) const MANIFEST: u64 = 0;

/// No checkpoint of a store that is read has a greater number.
pub(super) const LAST_GENERATION: u64 = (MAX_KEY >> 32) - 1;

/// The number of the first part with names of hosts.
const FIRST_NAMES: u64 = 1 << 31;

/// The parts of a checkpoint that have its hosts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct HostParts {
    pub(super) generation: u64,
    pub(super) first: u64,
    pub(super) count: u64,
    /// The parts with the names of the hosts, which only a repair reads. A whole copy needs none.
    pub(super) names: u64,
}

impl HostParts {
    /// Returns their keys, in [`Space::Checkpoint`].
    pub(super) fn keys(self) -> Range<u64> {
        Manifest::key(self.generation, self.first)..Manifest::key(self.generation, self.first + self.count)
    }

    /// Returns the keys of the names.
    pub(super) fn keys_of_names(self) -> Range<u64> {
        Manifest::key(self.generation, FIRST_NAMES)..Manifest::key(self.generation, FIRST_NAMES + self.names)
    }
}

/// What a checkpoint consists of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) logic: u32,
    /// As JSON, so that later versions can add fields.
    pub(super) config: String,
    pub(super) generation: u64,
    /// The last row of the journal that the state contains.
    pub(super) covered: u64,
    /// The parts with the state, then those with the seen-set, then those with the hosts. Those with names of hosts are apart.
    pub(super) state_parts: u64,
    pub(super) seen_set_parts: u64,
    pub(super) host_parts: u64,
    pub(super) name_parts: u64,
    /// The hosts of earlier checkpoints that this one continues, the whole copy first.
    pub(super) earlier: Vec<HostParts>,
    /// The caller's own text of the last row that the state contains.
    #[serde(with = "serde_bytes")]
    pub(super) attachment: Vec<u8>,
}

impl Manifest {
    /// Returns the key of a part, in [`Space::Checkpoint`].
    pub(super) fn key(generation: u64, part: u64) -> u64 {
        (generation << 32) | part
    }

    fn own_hosts(&self) -> HostParts {
        HostParts {
            generation: self.generation,
            first: self.state_parts + self.seen_set_parts,
            count: self.host_parts,
            names: self.name_parts,
        }
    }

    /// Returns the parts with all hosts: the whole copy, then those that continue it.
    pub(super) fn hosts(&self) -> impl Iterator<Item = HostParts> {
        self.earlier.iter().copied().chain([self.own_hosts()])
    }

    /// Returns the keys of the parts with the seen-set.
    pub(super) fn keys_of_seen_set(&self) -> Range<u64> {
        let key = |part| Self::key(self.generation, part);
        key(self.state_parts)..key(self.state_parts + self.seen_set_parts)
    }

    /// Returns the keys of its own parts with the state and the seen-set.
    fn keys_without_hosts(&self) -> Range<u64> {
        Self::key(self.generation, 0)..Self::key(self.generation, self.state_parts + self.seen_set_parts)
    }

    /// Returns the keys of all parts that it needs, in their order.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = Range<u64>> {
        let of_copy = |copy: HostParts| [copy.keys(), copy.keys_of_names()];
        let earlier = self.earlier.iter().copied().flat_map(of_copy);
        let own = of_copy(self.own_hosts());
        let all = earlier.chain([self.keys_without_hosts()]).chain(own);
        all.filter(|keys| !keys.is_empty())
    }
}

/// Writes checkpoints, one after the other.
#[derive(Debug)]
pub(super) struct Checkpointer {
    sizes: Sizes,
    generation: u64,
    /// The bytes that the next checkpoint has, if it continues the last one: about those of the last one that did.
    expected_bytes: u64,
    /// The bytes of the last whole copy of the hosts, and of those that continue it.
    whole_bytes: u64,
    continued_bytes: u64,
    /// The bytes of the journal that no checkpoint contains.
    journal_bytes: u64,
    /// The last checkpoint.
    last: Option<Manifest>,
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

    /// Adds hosts to a batch, as the parts behind all others, and their names.
    fn put_hosts(&mut self, copied: &Copied, batch: &mut Batch) {
        let manifest = &mut self.manifest;
        for part in copied.hosts.chunks(self.part_bytes) {
            let number = manifest.state_parts + manifest.seen_set_parts + manifest.host_parts;
            batch.put(Space::Checkpoint, Manifest::key(manifest.generation, number), part);
            manifest.host_parts += 1;
        }
        for part in copied.names.chunks(self.part_bytes) {
            let number = FIRST_NAMES + manifest.name_parts;
            batch.put(Space::Checkpoint, Manifest::key(manifest.generation, number), part);
            manifest.name_parts += 1;
        }
        self.bytes += copied.hosts.len() as u64;
    }
}

impl Checkpointer {
    pub(super) fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            generation: 0,
            expected_bytes: 0,
            whole_bytes: 0,
            continued_bytes: 0,
            journal_bytes: 0,
            last: None,
            writing: None,
            removal: Removal::default(),
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Continues after the checkpoint of a store, and the journal since. What they replaced is removed with the next
    /// commit.
    ///
    /// `last_part` is the key of the last part in the store. If it is of a checkpoint that was not finished, the next one has a greater
    /// number: what is left of the other in free pages must not be taken for its own when the store is repaired.
    pub(super) fn resume(&mut self, manifest: &Manifest, journal_bytes: u64, last_part: Option<u64>) {
        let last_begun = last_part.map(|key| key >> 32);
        // A damaged key may have any number. After one of the last, no number would be left for the next checkpoints.
        let last_begun = last_begun.filter(|number| *number < LAST_GENERATION / 2);
        self.generation = manifest.generation.max(last_begun.unwrap_or_default());
        self.journal_bytes = journal_bytes;
        let mut from = 0;
        for kept in manifest.all_keys() {
            if from < kept.start {
                self.removal.add_whole(Space::Checkpoint, from..=kept.start - 1);
            }
            from = kept.end;
        }
        self.removal.add_whole(Space::Journal, 0..=manifest.covered);
        // About: its last parts may be shorter. Whole copies of the hosts are not expected.
        let is_continuing = !manifest.earlier.is_empty();
        let host_parts = if is_continuing { manifest.host_parts } else { 0 };
        let parts = manifest.state_parts + manifest.seen_set_parts + host_parts;
        self.expected_bytes = parts.saturating_mul(self.sizes.part_bytes as u64);
        self.last = Some(manifest.clone());
    }

    /// Counts a row of the journal.
    pub(super) fn count(&mut self, bytes: usize) {
        self.journal_bytes += bytes as u64;
    }

    /// Returns whether a checkpoint is due: the journal has its share of the length of one that continues the last. Now and then one is
    /// longer, but not much longer than all those since the last whole one together.
    pub(super) fn is_due(&self) -> bool {
        self.writing.is_none()
            && self.journal_bytes >= (self.expected_bytes / self.sizes.journal_share).max(self.sizes.min_journal_bytes)
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
        // What is being written now is no checkpoint that could be continued.
        let is_whole = self.writing.is_some() || self.is_whole_due();
        let is_whole = hosts.begin_copy(is_whole);
        let continued = self.last.as_ref().filter(|_| !is_whole);
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
            name_parts: 0,
            earlier: continued.map_or_else(Vec::new, |last| last.hosts().collect()),
            attachment: attachment.to_vec(),
        };
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

    /// Returns whether the next copy of the hosts is to be whole.
    fn is_whole_due(&self) -> bool {
        let copies = self.last.as_ref().map_or(0, |last| last.earlier.len() + 1);
        copies >= self.sizes.most_copies || self.continued_bytes >= self.whole_bytes
    }

    /// Returns whether the store has a checkpoint, or will have one with the next commit.
    pub(super) fn has_finished(&self) -> bool {
        self.last.is_some()
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
            let after = self.last.as_ref().map_or(0, |last| last.generation + 1);
            batch.delete(Space::Checkpoint, Manifest::key(after, 0)..=MAX_KEY);
            writing.is_begun = true;
        }
        let most = self.sizes.parts_at_once;
        let mut parts = 0;
        while parts < most {
            let Some((key, part)) = writing.next() else { break };
            batch.put(Space::Checkpoint, key, part);
            parts += 1;
        }
        let copied = hosts.copy_more((most - parts) * self.sizes.part_bytes)?;
        writing.put_hosts(&copied, batch);
        if parts == most || !copied.is_all || !has_keys {
            return Ok(false);
        }
        batch.put(Space::Meta, MANIFEST, postcard::to_allocvec(&writing.manifest)?);
        if let Some(finished) = self.writing.take() {
            self.finish(finished);
        }
        Ok(true)
    }

    /// Takes a checkpoint for the last one, and what it replaces for removed soon.
    fn finish(&mut self, finished: Writing) {
        let Writing {
            manifest,
            state,
            bytes,
            journal_bytes,
            ..
        } = finished;
        let part_bytes = self.sizes.part_bytes as u64;
        let at_once = part_bytes * self.sizes.parts_at_once as u64;
        let covered = self.last.as_ref().map_or(0, |last| last.covered);
        if let Some(last) = &self.last {
            let is_continued = !manifest.earlier.is_empty();
            let replaced = last
                .all_keys()
                .filter(|keys| !is_continued || *keys == last.keys_without_hosts());
            for keys in replaced {
                self.removal
                    .add(Space::Checkpoint, keys.start..=keys.end - 1, part_bytes, at_once);
            }
        }
        let rows = manifest.covered.saturating_sub(covered);
        let row_bytes = journal_bytes.checked_div(rows).unwrap_or_default();
        self.removal
            .add(Space::Journal, covered + 1..=manifest.covered, row_bytes, at_once);
        let host_bytes = bytes - state.bytes();
        if manifest.earlier.is_empty() {
            (self.whole_bytes, self.continued_bytes) = (host_bytes, 0);
        } else {
            self.continued_bytes += host_bytes;
            self.expected_bytes = bytes;
        }
        self.last = Some(manifest);
    }

    /// Adds the removal of all that the last checkpoint has replaced.
    pub(super) fn remove_all(&mut self, batch: &mut Batch) {
        while self.removal.write(batch) {}
    }
}
