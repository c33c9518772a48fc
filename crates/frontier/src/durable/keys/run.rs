//! A run: sorted digests in the store, in parts, with the first digest of each part in memory.
//!
//! | key | value |
//! |---|---|
//! | number · 2³² + part | up to 1024 digests of 16 bytes, little-endian, in order |
//! | number · 2³² + 2³¹ | the first digests of the parts |

use serde::{Deserialize, Serialize};

use super::damaged;
use crate::durable::removal::Removal;
use crate::durable::segments::SharedStore;
use crate::store::{Batch, Space, StoreError};

/// The bytes of a digest in the store.
const BYTES: usize = 16;
/// The number of the value with first digests.
const FIRST_FENCES: u64 = 1 << 31;

pub(super) fn key(run: u64, part: u64) -> u64 {
    (run << 32) | part
}

pub(super) fn number(key: u64) -> u64 {
    key >> 32
}

/// A run, as the list of them has it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct StoredRun {
    pub(super) number: u64,
    pub(super) parts: u64,
    /// Its digests.
    pub(super) count: u64,
    /// The last row whose keys it has.
    pub(super) last_row: u64,
}

/// A run that is complete.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) stored: StoredRun,
    /// The first digest of each part.
    fences: Vec<u128>,
}

impl Run {
    /// Reads the first digests of a run.
    pub(super) fn read(stored: StoredRun, store: &SharedStore) -> Result<Self, StoreError> {
        let mut fences = Vec::new();
        let keys = key(stored.number, FIRST_FENCES)..=key(stored.number + 1, 0) - 1;
        store.lock().range(Space::Digest, keys, &mut |_, value| {
            fences.extend(digests(&value));
            Ok(())
        })?;
        if fences.len() as u64 != stored.parts || !fences.is_sorted() {
            let what = format!("run {} of the keys has other parts than were written", stored.number);
            return Err(damaged(what));
        }
        Ok(Self { stored, fences })
    }

    /// Checks that all its parts are there.
    pub(super) fn check(&self, store: &SharedStore) -> Result<(), StoreError> {
        let (mut parts, mut count) = (0, 0);
        let Some(last) = self.stored.parts.checked_sub(1) else {
            return Ok(());
        };
        let number = self.stored.number;
        let keys = key(number, 0)..=key(number, last);
        store.lock().range(Space::Digest, keys, &mut |_, value| {
            parts += 1;
            count += (value.len() / BYTES) as u64;
            Ok(())
        })?;
        if (parts, count) == (self.stored.parts, self.stored.count) {
            Ok(())
        } else {
            Err(damaged(format!("a part of run {number} of the keys is missing")))
        }
    }

    /// Returns whether a digest is in it. Cost: a part is read, unless the digest is below all.
    pub(super) fn contains(&self, digest: u128, store: &SharedStore) -> Result<bool, StoreError> {
        let Some(part) = self.fences.partition_point(|first| *first <= digest).checked_sub(1) else {
            return Ok(false);
        };
        let part = read_part(self.stored.number, part as u64, store)?;
        let (all, _) = part.as_chunks::<BYTES>();
        Ok(all
            .binary_search_by_key(&digest, |one| u128::from_le_bytes(*one))
            .is_ok())
    }
}

pub(super) fn remove(run: u64, parts: u64, removal: &mut Removal) {
    let parts = key(run, 0)..=key(run, parts.saturating_sub(1));
    removal.add(Space::Digest, parts, 1);
    removal.add(Space::Digest, key(run, FIRST_FENCES)..=key(run + 1, 0) - 1, 0);
}

pub(super) fn remove_unfinished(run: u64, store: &SharedStore, removal: &mut Removal) -> Result<(), StoreError> {
    let last = store.lock().last(Space::Digest, key(run, FIRST_FENCES) - 1)?;
    let parts = last.map_or(0, |(last, _)| (last + 1).saturating_sub(key(run, 0)));
    remove(run, parts, removal);
    Ok(())
}

/// Reads a part.
pub(super) fn read_part(run: u64, part: u64, store: &SharedStore) -> Result<Vec<u8>, StoreError> {
    let found = store.lock().get(Space::Digest, key(run, part))?;
    found.ok_or_else(|| damaged(format!("part {part} of run {run} of the keys is missing")))
}

pub(super) fn digests(part: &[u8]) -> impl Iterator<Item = u128> {
    let (all, _) = part.as_chunks::<BYTES>();
    all.iter().map(|one| u128::from_le_bytes(*one))
}

/// Writes a run, in order.
#[derive(Debug)]
pub(super) struct RunWriter {
    run: Run,
    digests_of_part: usize,
    part: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(number: u64, last_row: u64, digests_of_part: usize) -> Self {
        let stored = StoredRun {
            number,
            parts: 0,
            count: 0,
            last_row,
        };
        Self {
            run: Run {
                stored,
                fences: Vec::new(),
            },
            digests_of_part,
            part: Vec::new(),
        }
    }

    /// The digests that were added.
    pub(super) fn count(&self) -> u64 {
        self.run.stored.count
    }

    /// Adds a digest above all others. A part that is full goes to the batch.
    pub(super) fn push(&mut self, digest: u128, batch: &mut Batch) {
        if self.part.is_empty() {
            self.run.fences.push(digest);
        }
        self.part.extend_from_slice(&digest.to_le_bytes());
        self.run.stored.count += 1;
        if self.part.len() == self.digests_of_part * BYTES {
            self.write_part(batch);
        }
    }

    fn write_part(&mut self, batch: &mut Batch) {
        let StoredRun { number, parts, .. } = &mut self.run.stored;
        batch.put(Space::Digest, key(*number, *parts), std::mem::take(&mut self.part));
        *parts += 1;
    }

    /// Writes the rest.
    pub(super) fn finish(mut self, batch: &mut Batch) -> Run {
        if !self.part.is_empty() {
            self.write_part(batch);
        }
        let fences: Vec<u8> = self.run.fences.iter().flat_map(|fence| fence.to_le_bytes()).collect();
        batch.put(Space::Digest, key(self.run.stored.number, FIRST_FENCES), fences);
        self.run
    }
}
