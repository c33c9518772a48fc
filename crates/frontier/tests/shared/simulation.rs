//! A disk in memory that can lose power, for tests of what is built on a durable frontier (feature `simulation`).

use std::ops::RangeInclusive;
#[cfg(feature = "durable")]
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::FrontierConfig;
use crate::durable::OpenError;
#[cfg(feature = "durable")]
use crate::durable::checkpoint::MANIFEST;
use crate::durable::open;
#[cfg(feature = "durable")]
use crate::durable::restore::manifest;
use crate::durable::sizes::{SIZES, Sizes};
use crate::frontier::Opened;
use crate::rules::ParseRules;
#[cfg(feature = "durable")]
use crate::sqlite::SqliteStore;
use crate::store::{Batch, MemoryStore, PageOrder, Space, Store, StoreError, Visit, VisitUntil};
use crate::time::Time;

/// A directory on a disk in memory. A clone is the same directory.
///
/// The end of a process loses nothing of it: drop the frontier, and open it again. A [power cut](Self::cut_power) loses what was not synced.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Commits>>);

#[derive(Debug, Default)]
struct Commits {
    now: MemoryStore,
    /// What lies on the medium.
    synced: MemoryStore,
    since: Vec<Batch>,
}

impl Disk {
    fn commits(&self) -> MutexGuard<'_, Commits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many commits a power cut may lose.
    pub fn unsynced(&self) -> usize {
        self.commits().since.len()
    }

    /// Keeps the first `kept` of the commits that are not synced, and loses the others. No frontier may be open.
    pub fn cut_power(&self, kept: usize) {
        let mut commits = self.commits();
        let kept: Vec<Batch> = commits.since.drain(..).take(kept).collect();
        let mut now = commits.synced.clone();
        for batch in kept {
            now.apply(&batch);
        }
        (commits.now, commits.synced) = (now.clone(), now);
    }

    /// Returns a copy of the directory as it is on the medium.
    pub fn copy(&self) -> Self {
        let synced = self.commits().synced.clone();
        let now = synced.clone();
        let since = Vec::new();
        Self(Arc::new(Mutex::new(Commits { now, synced, since })))
    }

    /// Opens the frontier of the directory, or begins one there, as `Frontier::open` does. Checkpoints are frequent, and little is in memory.
    ///
    /// # Errors
    ///
    /// Those of `Frontier::open`.
    pub fn open(&self, config: FrontierConfig, now: Time, parse: &ParseRules) -> Result<Opened, OpenError> {
        let sizes = Sizes {
            min_journal_bytes: 4 << 10,
            part_bytes: 2 << 10,
            digests_of_part: 8,
            fresh_digests: 16,
            verified: 64,
            young_at_once: 2,
            group_bytes: 1 << 10,
            resident_bytes: 4 << 10,
            fresh_bytes: 1 << 10,
            ..SIZES
        };
        Ok(open::open(Box::new(self.clone()), config, now, parse, sizes)?.into())
    }
}

/// Makes of a directory one that another version of this crate has left, whose journal this one cannot read.
///
/// # Errors
///
/// A directory that is open, or cannot be read or written.
#[cfg(feature = "durable")]
pub fn change_logic(dir: &Path) -> Result<(), OpenError> {
    let mut store = SqliteStore::open(dir)?;
    let Some((mut manifest, _)) = manifest(&store)? else {
        return Ok(());
    };
    manifest.logic += 1;
    let changed = postcard::to_allocvec(&manifest).map_err(OpenError::damaged)?;
    let mut batch = Batch::default();
    batch.put(Space::Meta, MANIFEST, changed);
    Ok(store.commit(&batch, true)?)
}

impl Store for Disk {
    fn commit(&mut self, batch: &Batch, sync: bool) -> Result<(), StoreError> {
        let mut commits = self.commits();
        commits.now.apply(batch);
        if sync {
            commits.synced = commits.now.clone();
            commits.since.clear();
        } else {
            commits.since.push(batch.clone());
        }
        Ok(())
    }

    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.commits().now.range(space, keys, visit)
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.commits().now.last(space, at_or_below)
    }

    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError> {
        self.commits().now.pages(order, from, visit)
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.commits().now.last_key(space)
    }
}
