//! The exact filter.

use std::collections::HashSet;

use crate::filter::{Filter, Load};
use crate::hash::Digest;

/// A filter that stores every key and is never wrong.
///
/// Use it for a small crawl in which no key may be lost. It takes the bytes of each key and about 32 more. It has no capacity, so it
/// never saturates.
#[derive(Debug, Clone, Default)]
pub struct ExactFilter {
    keys: HashSet<Box<[u8]>>,
    key_bytes: u64,
}

impl ExactFilter {
    /// Creates an empty filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Iterates over the keys, in no particular order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }

    /// Returns whether it has no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Filter for ExactFilter {
    type Digest = Digest;

    /// The same for each key: the filter needs the key itself.
    fn digest(&self, _key: &[u8]) -> Digest {
        Digest::default()
    }

    fn insert_digest(&mut self, key: &[u8], _digest: Digest) -> bool {
        if self.keys.contains(key) {
            return false;
        }
        self.key_bytes += key.len() as u64;
        self.keys.insert(key.into())
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    fn load(&self) -> Load {
        // A slot of the table is a pointer, a length and a control byte.
        let slots = self.keys.capacity() as u64 * 17;
        Load {
            estimated: self.keys.len() as f64,
            ones: self.ones(),
            memory_bytes: slots + self.key_bytes,
            ..Load::default()
        }
    }

    fn ones(&self) -> u64 {
        self.keys.len() as u64
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        Some(keys as u64 + 1)
    }
}
