//! The seen-set of a durable frontier: a filter, and the digests of the keys that it took.

use sieve::{Digest, Filter, Load, SeenSet};

use super::keys::SharedKeys;

/// A filter; an exact one keeps the digest of each key that it accepts.
///
/// An exact one answers "new" by its filter alone, and looks up each "seen".
#[derive(Debug)]
pub(in crate::frontier) struct Seen {
    filter: SeenSet,
    /// The digests of an exact one.
    keys: Option<SharedKeys>,
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
    /// Makes an exact one of a filter and the digests of its keys.
    pub(super) fn with_keys(filter: SeenSet, keys: SharedKeys) -> Self {
        let accepted = keys.lock().len();
        Self {
            filter,
            keys: Some(keys),
            accepted,
        }
    }

    /// Returns the filter.
    pub(super) fn filter(&self) -> &SeenSet {
        &self.filter
    }

    /// Returns the filter.
    pub(super) fn into_filter(self) -> SeenSet {
        self.filter
    }

    /// Returns the digests, if it is exact.
    pub(super) fn keys(&self) -> Option<&SharedKeys> {
        self.keys.as_ref()
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
        let mut keys = keys.lock();
        // The bits of a key that was taken for seen are set already.
        if !is_new && keys.contains(digest.into()) {
            return false;
        }
        keys.add(digest.into());
        self.accepted += 1;
        true
    }

    fn contains(&self, key: &[u8]) -> bool {
        let digest = self.filter.digest(key).into();
        let keys = self.keys.as_ref();
        self.filter.contains(key) && keys.is_none_or(|keys| keys.lock().contains(digest))
    }

    /// Measures the filter; an exact one is never full nor wrong, whatever its filter is.
    fn load(&self) -> Load {
        if self.keys.is_none() {
            return self.filter.load();
        }
        let mut load = Load::default();
        load.estimated_len = self.accepted as f64;
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
