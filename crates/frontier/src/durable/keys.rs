//! The digests of all keys of an exact seen-set: in memory those of the last rows, the others in the store as sorted runs.
//!
//! | where | digests of | written |
//! |---|---|---|
//! | fresh | the rows since the last freeze | – |
//! | frozen | some rows before, sorted | in slices, one with each row |
//! | run | some rows before, or several runs merged | removed when merged into a larger one |
//!
//! A run states the last row whose keys it has. So it depends on no checkpoint: when the journal is replayed from a checkpoint, a run is
//! invisible until its row was made again, and then takes the place of the digests that this made. Fresh digests freeze when there are
//! many, and when a checkpoint begins. So the keys of a checkpoint are those of the runs up to its row.
//!
//! Nothing here decides but by the set of digests. Which of them are in memory, and in which runs, changes no answer.

mod compaction;
pub(crate) mod list;
mod run;
mod writing;

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compaction::Compaction;
use list::END_OF_RUNS;
use run::{Run, RunWriter};

use super::removal::Removal;
use super::segments::SharedStore;
use super::sizes::Sizes;
use crate::state::StoredKeys;
use crate::store::{MAX_KEY, Space, StoreError};

/// The digests, shared by the filter that asks and the frontier that writes.
#[derive(Debug, Clone)]
pub(crate) struct SharedKeys(Arc<Mutex<Keys>>);

impl SharedKeys {
    /// Returns the digests. A panic while they were locked has poisoned the frontier already.
    pub(super) fn lock(&self) -> MutexGuard<'_, Keys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(store: SharedStore, sizes: Sizes) -> Self {
        let mut keys = Keys::new(store, sizes);
        // The first commit writes the empty list: a store without one is damaged.
        keys.is_changed = true;
        Self(Arc::new(Mutex::new(keys)))
    }

    /// Reads what a store has, as of a row. Later runs are visible once their row was made again.
    pub(super) fn load(store: SharedStore, sizes: Sizes, covered: u64) -> Result<Self, StoreError> {
        let list = list::read(&store)?;
        let (next_run, runs) = list.ok_or_else(|| damaged("the list of runs is missing".to_owned()))?;
        let mut keys = Keys::new(store, sizes);
        // Above what a run left that was not finished: that is removed in slices.
        let left = keys.store.lock().last(Space::Digest, MAX_KEY)?;
        keys.next_run = left.map_or(0, |(key, _)| run::number(key) + 1).max(next_run);
        if keys.next_run >= END_OF_RUNS {
            return Err(damaged("a part of the keys has a number that cannot be".to_owned()));
        }
        keys.settled = covered;
        for stored in runs {
            let run = Run::read(stored, &keys.store)?;
            match stored.last_row > covered {
                true => keys.ahead.push(run),
                false => keys.runs.push(run),
            }
        }
        keys.runs.sort_by_key(|run| std::cmp::Reverse(run.stored.count));
        keys.ahead.sort_by_key(|run| std::cmp::Reverse(run.stored.last_row));
        Ok(Self(Arc::new(Mutex::new(keys))))
    }
}

impl StoredKeys for SharedKeys {
    fn contains(&self, digest: u128) -> bool {
        self.lock().contains(digest)
    }

    fn insert(&self, digest: u128, is_surely_new: bool) -> bool {
        let mut keys = self.lock();
        let is_new = is_surely_new || !keys.contains(digest);
        if is_new {
            keys.known.add(digest);
        }
        is_new
    }
}

fn damaged(what: String) -> StoreError {
    StoreError::damaged(Path::new("the store"), what)
}

/// Sorted digests that are being written.
#[derive(Debug)]
struct Frozen {
    digests: Vec<u128>,
    writer: RunWriter,
}

/// The digests of all accepted keys.
#[derive(Debug)]
pub(super) struct Keys {
    store: SharedStore,
    sizes: Sizes,
    known: Known,
    /// The oldest first.
    frozen: VecDeque<Frozen>,
    /// The largest first.
    runs: Vec<Run>,
    /// While the journal is replayed: those of rows that were not made again yet, the next one last.
    ahead: Vec<Run>,
    next_run: u64,
    /// The last row that the last finished checkpoint contains: the journal before it is never replayed again.
    settled: u64,
    /// At most one of each tier.
    compactions: Vec<Compaction>,
    /// Runs that were merged.
    removal: Removal,
    /// Whether the list of runs is to be written.
    is_changed: bool,
    error: Option<StoreError>,
}

/// The digests that are there without a look-up.
#[derive(Debug)]
struct Known {
    /// Those of the last rows.
    fresh: HashSet<u128>,
    /// Some of the others. Zero is an empty slot.
    verified: Box<[u128]>,
    /// Digests that came since the last row.
    of_row: usize,
}

impl Known {
    fn contains(&self, digest: u128) -> bool {
        let verified = self.verified.get(self.slot(digest));
        verified.is_some_and(|verified| *verified == digest && digest != 0) || self.fresh.contains(&digest)
    }

    fn add(&mut self, digest: u128) {
        self.fresh.insert(digest);
        self.remember(digest);
        self.of_row += 1;
    }

    /// Remembers that a digest is there.
    fn remember(&mut self, digest: u128) {
        let slot = self.slot(digest);
        if let Some(verified) = self.verified.get_mut(slot) {
            *verified = digest;
        }
    }

    fn slot(&self, digest: u128) -> usize {
        (digest as usize) % self.verified.len().max(1)
    }
}

impl Keys {
    fn new(store: SharedStore, sizes: Sizes) -> Self {
        Self {
            store,
            sizes,
            known: Known {
                fresh: HashSet::new(),
                verified: vec![0; sizes.verified].into(),
                of_row: 0,
            },
            frozen: VecDeque::new(),
            runs: Vec::new(),
            ahead: Vec::new(),
            next_run: 0,
            settled: 0,
            compactions: Vec::new(),
            removal: Removal::default(),
            is_changed: false,
            error: None,
        }
    }

    pub(super) fn len(&self) -> u64 {
        let frozen: usize = self.frozen.iter().map(|frozen| frozen.digests.len()).sum();
        let runs: u64 = self.runs.iter().map(|run| run.stored.count).sum();
        (self.known.fresh.len() + frozen) as u64 + runs
    }

    /// Returns whether a digest is there; "yes" if it cannot be looked up, and [`take_error`](Self::take_error) says why.
    ///
    /// Cost: for one that is not in memory a part of 16 KiB of each run, the largest first, until it is found.
    pub(super) fn contains(&mut self, digest: u128) -> bool {
        if self.known.contains(digest) {
            return true;
        }
        match self.look_up(digest) {
            Ok(is_there) => {
                if is_there {
                    self.known.remember(digest);
                }
                is_there
            }
            Err(error) => {
                self.error.get_or_insert(error);
                true
            }
        }
    }

    fn look_up(&self, digest: u128) -> Result<bool, StoreError> {
        let is_frozen = |frozen: &Frozen| frozen.digests.binary_search(&digest).is_ok();
        if self.frozen.iter().any(is_frozen) {
            return Ok(true);
        }
        for run in &self.runs {
            if run.contains(digest, &self.store)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    /// Records that all calls of a row were made again. When a run becomes visible, its keys are those of all rows up to there, and so the fresh ones
    /// are among them.
    pub(super) fn row_was_replayed(&mut self, row: u64) {
        self.known.of_row = 0;
        while let Some(run) = self.ahead.pop_if(|run| run.stored.last_row <= row) {
            self.known.fresh.clear();
            self.insert_run(run);
        }
    }

    /// Records that the journal has ended. Runs of later rows are none, nor are parts of runs that were not finished: the next rows remove
    /// them.
    pub(super) fn journal_has_ended(&mut self) -> Result<(), StoreError> {
        self.is_changed |= !self.ahead.is_empty();
        self.ahead.clear();
        self.remove_leftovers()
    }
}
