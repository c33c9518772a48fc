//! Closed segments of queues and rows of evicted hosts, in the store.
//!
//! A segment is written with the row of the call that closed it. Its number is the next one. It is discarded when its last entry is taken,
//! and removed when no checkpoint needs it any more: soon, with some others, if it is younger than the last checkpoint that was begun, because
//! the journal makes it again; else after the first checkpoint that is begun after it was discarded.
//!
//! A run that continues after a crash may evict other hosts, so its segments are others. It removes the young segments of the run before,
//! which nothing needs, but gives their numbers to none of its own.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::removal::Removal;
use crate::hosts::SegmentStore;
use crate::store::{Batch, MAX_KEY, Space, Store, StoreError};

/// About the bytes of a segment, as `packed_entries.rs` closes them: a page of the store.
const SEGMENT_BYTES: u64 = 4 << 10;

/// A store that the frontier writes, and that its queues read.
#[derive(Debug, Clone)]
pub(crate) struct SharedStore(Arc<Mutex<Box<dyn Store>>>);

impl SharedStore {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    /// Returns the store. A panic while it was locked has poisoned the frontier already.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn Store>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The segments of one frontier, in its store.
#[derive(Debug)]
pub(crate) struct StoredSegments {
    store: SharedStore,
    segments: Mutex<Segments>,
}

#[derive(Debug, Default)]
struct Segments {
    next: u64,
    /// Those that are not written yet.
    fresh: BTreeMap<u64, Box<[u8]>>,
    /// Those below this number may be in a checkpoint.
    first_young: u64,
    /// Young ones that were discarded: they are removed together once there are [`young_at_once`](Self::young_at_once).
    discarded_young: Vec<u64>,
    young_at_once: usize,
    /// Old ones that were discarded since the last checkpoint was begun.
    discarded_old: Vec<u64>,
    /// Those that are not needed once the checkpoint is finished that is being written.
    replaced: Vec<u64>,
    /// The greatest number in the store.
    last_stored: Option<u64>,
    /// What is in the store from this number on is of a run that has ended, and of no use.
    useless_from: Option<u64>,
    /// The bytes of those that are not written yet.
    fresh_bytes: usize,
    error: Option<StoreError>,
}

impl StoredSegments {
    /// Makes segments whose next one has this number.
    ///
    /// If the store has one with this number or a greater one, it has the number after it instead: see the head of this file.
    pub(super) fn new(store: SharedStore, next: u64, young_at_once: usize) -> Self {
        let last = store.lock().last_key(Space::Segment);
        let used = last.filter(|last| (next..MAX_KEY / 2).contains(last));
        let segments = Segments {
            next: used.map_or(next, |last| last + 1),
            first_young: next,
            young_at_once,
            useless_from: Some(next),
            last_stored: last,
            ..Segments::default()
        };
        Self {
            store,
            segments: Mutex::new(segments),
        }
    }

    fn segments(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fresh_bytes(&self) -> usize {
        self.segments().fresh_bytes
    }

    pub(super) fn next(&self) -> u64 {
        self.segments().next
    }

    pub(crate) fn take_error(&self) -> Option<StoreError> {
        self.segments().error.take()
    }

    pub(super) fn write(&self, batch: &mut Batch) {
        let mut segments = self.segments();
        let mut young = Vec::new();
        if segments.discarded_young.len() >= segments.young_at_once {
            young = std::mem::take(&mut segments.discarded_young);
        }
        if let Some((last, _)) = segments.fresh.last_key_value() {
            segments.last_stored = Some(*last);
            segments.remove_useless(batch);
        } else {
            // Without a greater number in the store, the greatest would be given again after a crash.
            let last = segments.last_stored;
            let is_last = |number: &mut u64| Some(*number) == last;
            segments.discarded_young.extend(young.extract_if(.., is_last));
        }
        segments.fresh_bytes = 0;
        for (number, segment) in std::mem::take(&mut segments.fresh) {
            batch.put(Space::Segment, number, segment);
        }
        for numbers in neighbours(young) {
            batch.delete(Space::Segment, numbers);
        }
    }

    /// Records that a checkpoint was begun. It needs what was not discarded until now.
    pub(super) fn checkpoint_begun(&self) {
        let mut segments = self.segments();
        segments.first_young = segments.next;
        let discarded = std::mem::take(&mut segments.discarded_old);
        segments.replaced.extend(discarded);
    }

    /// Records that the checkpoint is finished with this batch, and what no checkpoint needs any more.
    pub(super) fn checkpoint_finished(&self, batch: &mut Batch, replaced: &mut Removal) {
        let mut segments = self.segments();
        // The checkpoint has the number that was the next one when it was begun.
        segments.remove_useless(batch);
        let next = segments.first_young;
        let held = segments.discarded_young.extract_if(.., |number| *number < next);
        let mut removed: Vec<_> = held.collect();
        removed.append(&mut segments.replaced);
        for numbers in neighbours(removed) {
            replaced.add(Space::Segment, numbers, SEGMENT_BYTES);
        }
    }
}

fn neighbours(mut numbers: Vec<u64>) -> Vec<RangeInclusive<u64>> {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, other| one + 1 == *other);
    runs.filter_map(|run| Some(*run.first()?..=*run.last()?)).collect()
}

impl Segments {
    fn remove_useless(&mut self, batch: &mut Batch) {
        if let Some(first) = self.useless_from.take() {
            batch.delete(Space::Segment, first..=MAX_KEY);
        }
    }

    fn damaged(&mut self, number: u64, what: &str) {
        let what = format!("segment {number} {what}");
        self.error = Some(StoreError::damaged(Path::new("the store"), what));
    }
}

impl SegmentStore for StoredSegments {
    fn put(&self, segment: Box<[u8]>) -> u64 {
        let mut segments = self.segments();
        let number = segments.next;
        segments.next += 1;
        segments.fresh_bytes += segment.len();
        segments.fresh.insert(number, segment);
        number
    }

    fn discard(&self, number: u64) {
        let mut segments = self.segments();
        if let Some(segment) = segments.fresh.remove(&number) {
            segments.fresh_bytes -= segment.len();
        } else if number >= segments.first_young {
            segments.discarded_young.push(number);
        } else {
            segments.discarded_old.push(number);
        }
    }

    fn set_damaged(&self, number: u64) {
        self.segments().damaged(number, "is not a group of hosts");
    }

    fn read(&self, number: u64) -> Option<Box<[u8]>> {
        let mut segments = self.segments();
        if let Some(fresh) = segments.fresh.get(&number) {
            return Some(fresh.clone());
        }
        let found = self.store.lock().get(Space::Segment, number);
        match found {
            Ok(Some(segment)) => return Some(segment.into_boxed_slice()),
            Ok(None) => segments.damaged(number, "is missing"),
            Err(error) => segments.error = Some(error),
        }
        None
    }

    fn is_broken(&self) -> bool {
        self.segments().error.is_some()
    }
}
