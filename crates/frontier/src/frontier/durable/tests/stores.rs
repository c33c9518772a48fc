//! Stores that others can look into, and open again.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use super::super::checkpoint::Sizes;
use super::super::keys::KeySizes;
use super::super::open;
use super::common::parse;
use super::pair::Place;
use crate::config::FrontierConfig;
use crate::rules::ParseRules;
use crate::store::{Batch, MemoryStore, Space, Store, StoreError};
use crate::{OpenError, Opened, Time};

/// A checkpoint is due every few rows, and takes several rows to write.
pub(super) const SMALL: Sizes = Sizes {
    min_journal_bytes: 600,
    part_bytes: 500,
    parts_at_once: 1,
    keys: KeySizes {
        digests_of_part: 3,
        fresh_digests: 12,
        parts_at_once: 1,
    },
};

/// Opens a store with small sizes.
pub(super) fn open_store(store: impl Store + 'static, config: FrontierConfig, now: Time) -> Result<Opened, OpenError> {
    let parse: ParseRules = Arc::new(parse);
    open::open(Box::new(store), config, now, &parse, SMALL)
}

/// Reads a store.
pub(super) fn read_store(store: impl Store + 'static) -> Result<Opened, OpenError> {
    let parse: ParseRules = Arc::new(parse);
    open::read(Box::new(store), &parse)
}

/// A store in memory that keeps a copy of itself after each commit. A clone is the same store.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    now: MemoryStore,
    keeps_images: bool,
    images: Vec<MemoryStore>,
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
        }
        Ok(())
    }

    fn range(
        &self,
        space: Space,
        keys: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.0.lock().unwrap().now.range(space, keys, visit)
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.0.lock().unwrap().now.last(space, at_or_below)
    }

    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().now.bytes()
    }
}

impl Place for Recorder {
    fn open(&self, config: FrontierConfig, now: Time) -> Opened {
        open_store(self.clone(), config, now).unwrap()
    }
}
