//! The seen-set: a filter, and of a durable frontier that is exact the digests of the keys that it took.

use std::fmt;
use std::sync::Arc;

use sieve::{Digest, Filter, Load, SeenSet};

/// The digests of all keys that an exact seen-set took, in memory and in a store.
///
/// A digest that cannot be looked up is there, and the owner of the digests learns why.
pub(crate) trait StoredKeys: fmt::Debug + Send + Sync {
    /// Whether a digest is there.
    fn contains(&self, digest: u128) -> bool;

    /// Adds a digest unless it is there. Returns whether it did. It needs no look-up if it is known to be new.
    fn insert(&self, digest: u128, is_surely_new: bool) -> bool;
}

/// A filter; an exact one keeps the digest of each key that it accepts.
///
/// An exact one answers "new" by its filter alone, and looks up each "seen".
#[derive(Debug)]
pub(crate) struct Seen {
    filter: SeenSet,
    /// The digests of an exact one.
    keys: Option<Arc<dyn StoredKeys>>,
    /// The keys of an exact one.
    accepted: u64,
}

impl From<SeenSet> for Seen {
    fn from(filter: SeenSet) -> Self {
        Self {
            filter,
            keys: None,
            accepted: 0,
        }
    }
}

impl Seen {
    pub(crate) fn with_keys(filter: SeenSet, keys: Arc<dyn StoredKeys>, accepted: u64) -> Self {
        Self {
            filter,
            keys: Some(keys),
            accepted,
        }
    }

    pub(crate) fn filter(&self) -> &SeenSet {
        &self.filter
    }

    pub(crate) fn into_filter(self) -> SeenSet {
        self.filter
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }
}

impl Filter for Seen {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.filter.digest(key)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.filter.prefetch(digest);
    }

    #[inline]
    fn insert_digest(&mut self, key: &[u8], digest: Digest) -> bool {
        let is_new = self.filter.insert_digest(key, digest);
        let Some(keys) = &self.keys else { return is_new };
        // The bits of a key that was taken for seen are set already.
        if !keys.insert(digest.into(), is_new) {
            return false;
        }
        self.accepted += 1;
        true
    }

    fn contains(&self, key: &[u8]) -> bool {
        let digest = self.filter.digest(key).into();
        let keys = self.keys.as_ref();
        self.filter.contains(key) && keys.is_none_or(|keys| keys.contains(digest))
    }

    /// Measures the filter; an exact one is never full nor wrong, whatever its filter is.
    fn load(&self) -> Load {
        if self.keys.is_none() {
            return self.filter.load();
        }
        let mut load = Load::default();
        load.estimated = self.accepted as f64;
        load.ones = self.accepted;
        load.memory_bytes = match &self.filter {
            SeenSet::Fixed(filter) => filter.memory_bytes(),
            SeenSet::Growing(filter) => filter.memory_bytes(),
            _ => 0,
        };
        load
    }

    #[inline]
    fn ones(&self) -> u64 {
        if self.keys.is_some() {
            self.accepted
        } else {
            self.filter.ones()
        }
    }

    #[inline]
    fn layers(&self) -> u32 {
        if self.keys.is_some() { 1 } else { self.filter.layers() }
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        if self.keys.is_some() {
            Some(keys as u64 + 1)
        } else {
            self.filter.ones_above(keys)
        }
    }
}
