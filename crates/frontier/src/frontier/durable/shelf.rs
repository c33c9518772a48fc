//! Closed segments of queues and rows of evicted hosts, in the store.
//!
//! A segment is written with the row of the call that closed it. Its number is the next one. It is discarded when its last entry is taken,
//! and removed when no checkpoint needs it any more: soon, with some others, if it is younger than the last checkpoint that was begun, because the
//! journal makes it again; else after the first checkpoint that is begun after it was discarded, in slices. The numbers of those are stored beside
//! the manifest, so that a crash in between leaves none behind.
//!
//! A run that continues after a crash may evict other hosts, so its segments are others. It removes the young segments of the run before,
//! which nothing needs, but gives their numbers to none of its own: what is left of them in free pages must not be taken for these when the
//! store is repaired.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hosts::Shelf;
use crate::store::{Batch, MAX_KEY, Space, Store, StoreError};

/// The key of the segments that the last checkpoint has replaced, in [`Space::Meta`].
const REPLACED: u64 = 2;

/// The segments that are removed with one row, at least.
const REMOVED_AT_ONCE: usize = 512;

/// A store that the frontier writes and the shelf reads.
#[derive(Debug, Clone)]
pub(super) struct SharedStore(Arc<Mutex<Box<dyn Store>>>);

impl SharedStore {
    pub(super) fn new(store: Box<dyn Store>) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    /// Returns the store. A panic while it was locked has poisoned the frontier already.
    pub(super) fn lock(&self) -> MutexGuard<'_, Box<dyn Store>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The segments of one frontier.
#[derive(Debug)]
pub(super) struct StoreShelf {
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
    /// Those that no checkpoint needs, the next one last.
    removing: Vec<u64>,
    /// How many of them are removed with one row.
    at_once: usize,
    /// The greatest number in the store.
    last_stored: Option<u64>,
    /// What is in the store from this number on is of a run that has ended, and of no use.
    useless_from: Option<u64>,
    /// The bytes of those that are not written yet.
    fresh_bytes: usize,
    error: Option<StoreError>,
}

impl StoreShelf {
    /// Makes a shelf whose next segment has this number.
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

    /// Returns the bytes that the next [`write`](Self::write) writes.
    pub(super) fn fresh_bytes(&self) -> usize {
        self.segments().fresh_bytes
    }

    /// Returns the number of the next segment.
    pub(super) fn next(&self) -> u64 {
        self.segments().next
    }

    /// Takes everything over from another shelf of the same store.
    pub(super) fn continue_from(&self, before: &Self) {
        let mut segments = self.segments();
        *segments = std::mem::take(&mut before.segments());
    }

    /// Returns why a segment could not be read, if so.
    pub(super) fn error(&self) -> Option<StoreError> {
        self.segments().error.take()
    }

    /// Returns whether a segment can be read.
    pub(super) fn has(&self, number: u64) -> Result<bool, StoreError> {
        if self.segments().fresh.contains_key(&number) {
            return Ok(true);
        }
        let found = self.store.lock().last(Space::Segment, number)?;
        Ok(found.is_some_and(|(at, _)| at == number))
    }

    /// Adds new segments to a batch, and the removal of young ones that were discarded, if there are enough.
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
        remove(young, batch);
        segments.remove_some(batch);
    }

    /// Continues to remove what the last checkpoint has replaced.
    ///
    /// # Errors
    ///
    /// The numbers cannot be read.
    pub(super) fn continue_removal(&self) -> Result<(), StoreError> {
        let found = self.store.lock().last(Space::Meta, REPLACED)?;
        let Some((REPLACED, numbers)) = found else {
            return Ok(());
        };
        let damaged = || StoreError::damaged(Path::new("the store"), "the list of replaced segments cannot be read");
        let gaps: Vec<u64> = postcard::from_bytes(&numbers).map_err(|_| damaged())?;
        let numbers = gaps.into_iter().scan(0_u64, |number, gap| {
            *number = number.checked_add(gap)?;
            Some(*number)
        });
        let mut segments = self.segments();
        let first_young = segments.first_young;
        segments.remove_later(numbers.filter(|number| *number < first_young).collect());
        Ok(())
    }

    /// Records that a checkpoint was begun. It needs what was not discarded until now.
    pub(super) fn checkpoint_begun(&self) {
        let mut segments = self.segments();
        segments.first_young = segments.next;
        let discarded = std::mem::take(&mut segments.discarded_old);
        segments.replaced.extend(discarded);
    }

    /// Records that the checkpoint is finished with this batch. What no checkpoint needs any more is removed with later rows.
    ///
    /// # Errors
    ///
    /// The numbers cannot be written as bytes, which never happens.
    pub(super) fn checkpoint_finished(&self, batch: &mut Batch) -> Result<(), postcard::Error> {
        let mut segments = self.segments();
        // The checkpoint has the number that was the next one when it was begun.
        segments.remove_useless(batch);
        let next = segments.first_young;
        let held: Vec<_> = segments
            .discarded_young
            .extract_if(.., |number| *number < next)
            .collect();
        remove(held, batch);
        let replaced = std::mem::take(&mut segments.replaced);
        segments.remove_later(replaced);
        let mut before = 0;
        let gaps = segments.removing.iter().rev().map(|number| {
            let gap = number - before;
            before = *number;
            gap
        });
        let gaps: Vec<u64> = gaps.collect();
        batch.put(Space::Meta, REPLACED, postcard::to_allocvec(&gaps)?);
        Ok(())
    }

    /// Adds the removal of all that no checkpoint needs to a batch: the one that finishes the last, or a later one.
    pub(super) fn remove_all(&self, batch: &mut Batch) {
        let mut segments = self.segments();
        remove(std::mem::take(&mut segments.removing), batch);
        remove(std::mem::take(&mut segments.discarded_young), batch);
        batch.delete(Space::Meta, REPLACED..=REPLACED);
    }
}

/// Adds the removal of segments to a batch, neighbours at once.
fn remove(mut numbers: Vec<u64>, batch: &mut Batch) {
    numbers.sort_unstable();
    for run in numbers.chunk_by(|one, other| one + 1 == *other) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            batch.delete(Space::Segment, *first..=*last);
        }
    }
}

impl Segments {
    /// Adds segments to those that are removed, enough with each row that they are gone before the next checkpoint.
    fn remove_later(&mut self, numbers: Vec<u64>) {
        self.removing.extend(numbers);
        self.removing.sort_unstable_by(|one, other| other.cmp(one));
        self.at_once = (self.removing.len() / 16).max(REMOVED_AT_ONCE);
    }

    fn remove_useless(&mut self, batch: &mut Batch) {
        if let Some(first) = self.useless_from.take() {
            batch.delete(Space::Segment, first..=MAX_KEY);
        }
    }

    fn remove_some(&mut self, batch: &mut Batch) {
        let left = self.removing.len().saturating_sub(self.at_once);
        remove(self.removing.split_off(left), batch);
    }

    fn discard(&mut self, number: u64) {
        if let Some(segment) = self.fresh.remove(&number) {
            self.fresh_bytes -= segment.len();
        } else if number >= self.first_young {
            self.discarded_young.push(number);
        } else {
            self.discarded_old.push(number);
        }
    }

    fn damaged(&mut self, number: u64, what: &str) {
        let what = format!("segment {number} {what}");
        self.error = Some(StoreError::damaged(Path::new("the store"), what));
    }

    fn find(&mut self, number: u64, store: &SharedStore) -> Option<Box<[u8]>> {
        if let Some(fresh) = self.fresh.get(&number) {
            return Some(fresh.clone());
        }
        let found = store.lock().last(Space::Segment, number);
        match found {
            Ok(Some((at, segment))) if at == number => Some(segment.into_boxed_slice()),
            Ok(_) => {
                self.damaged(number, "is missing");
                None
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

impl Shelf for StoreShelf {
    fn put(&self, segment: Box<[u8]>) -> u64 {
        let mut segments = self.segments();
        let number = segments.next;
        segments.next += 1;
        segments.fresh_bytes += segment.len();
        segments.fresh.insert(number, segment);
        number
    }

    fn discard(&self, number: u64) {
        self.segments().discard(number);
    }

    fn set_damaged(&self, number: u64) {
        self.segments().damaged(number, "is not a row of hosts");
    }

    fn read(&self, number: u64) -> Option<Box<[u8]>> {
        self.segments().find(number, &self.store)
    }

    fn is_broken(&self) -> bool {
        self.segments().error.is_some()
    }
}
