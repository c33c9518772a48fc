//! Stores that others can look into, and open again.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use super::super::open;
use super::super::sizes::Sizes;
use super::common::parse;
use super::pair::Place;
use crate::config::FrontierConfig;
use crate::rules::ParseRules;
use crate::store::{Batch, MemoryStore, PageOrder, Space, Store, StoreError, Visit, VisitUntil};
use crate::{OpenError, Opened, Time};

/// A checkpoint is due every few rows, and takes several rows to write. Hosts are evicted whenever they can be.
pub(super) const SMALL: Sizes = Sizes {
    min_journal_bytes: 600,
    part_bytes: 500,
    parts_at_once: 1,
    digests_of_part: 3,
    fresh_digests: 12,
    verified: 1 << 20,
    young_at_once: 2,
    group_bytes: 300,
    resident_bytes: 1_500,
    fresh_bytes: 300,
};

/// As [`SMALL`], but all hosts are in memory.
pub(super) const ALL_RESIDENT: Sizes = Sizes {
    resident_bytes: u64::MAX,
    ..SMALL
};

/// Opens a store with small sizes.
pub(super) fn open_store(store: impl Store + 'static, config: FrontierConfig, now: Time) -> Result<Opened, OpenError> {
    open_sized(store, config, now, SMALL)
}

/// Opens a store.
pub(super) fn open_sized(
    store: impl Store + 'static,
    config: FrontierConfig,
    now: Time,
    sizes: Sizes,
) -> Result<Opened, OpenError> {
    let parse: ParseRules = Arc::new(parse);
    Ok(open::open(Box::new(store), config, now, &parse, sizes)?.into())
}

/// Reads a store.
pub(super) fn read_store(store: impl Store + 'static) -> Result<Opened, OpenError> {
    let parse: ParseRules = Arc::new(parse);
    Ok(open::read(Box::new(store), &parse)?.into())
}

/// A store in memory that keeps a copy of itself after each commit. A clone is the same store.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    now: MemoryStore,
    keeps_images: bool,
    images: Vec<MemoryStore>,
    /// Whether each of these commits was synced.
    syncs: Vec<bool>,
}

impl Recorder {
    pub(super) fn keeping_images() -> Self {
        Self::default().and_images()
    }

    /// Keeps images from now on.
    pub(super) fn and_images(self) -> Self {
        self.0.lock().unwrap().keeps_images = true;
        self
    }

    /// The store as a crash at this moment would leave it.
    pub(super) fn image(&self) -> MemoryStore {
        self.0.lock().unwrap().now.clone()
    }

    /// Whether each commit was synced, of those that have an image.
    pub(super) fn syncs(&self) -> Vec<bool> {
        self.0.lock().unwrap().syncs.clone()
    }

    /// The stores after each commit.
    pub(super) fn images(&self) -> Vec<MemoryStore> {
        self.0.lock().unwrap().images.clone()
    }
}

impl From<MemoryStore> for Recorder {
    fn from(now: MemoryStore) -> Self {
        let recorded = Recorded {
            now,
            ..Recorded::default()
        };
        Self(Arc::new(Mutex::new(recorded)))
    }
}

impl Store for Recorder {
    fn commit(&mut self, batch: &Batch, sync: bool) -> Result<(), StoreError> {
        let mut recorded = self.0.lock().unwrap();
        recorded.now.commit(batch, sync)?;
        if recorded.keeps_images {
            let image = recorded.now.clone();
            recorded.images.push(image);
            recorded.syncs.push(sync);
        }
        Ok(())
    }

    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.0.lock().unwrap().now.range(space, keys, visit)
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.0.lock().unwrap().now.last(space, at_or_below)
    }

    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError> {
        self.0.lock().unwrap().now.pages(order, from, visit)
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.0.lock().unwrap().now.last_key(space)
    }
}

/// A store that is opened with these sizes.
pub(super) struct SizedStore(pub(super) Recorder, pub(super) Sizes);

impl Place for SizedStore {
    fn open(&self, config: FrontierConfig, now: Time) -> Opened {
        open_sized(self.0.clone(), config, now, self.1).unwrap()
    }
}
