//! The default filter of a sieve.

use crate::bloom::BloomFilter;
use crate::exact::ExactFilter;
use crate::filter::{Filter, Load};
use crate::hash::Digest;
use crate::scalable::ScalableBloomFilter;

/// The default filter of a [`Sieve`](crate::Sieve): a plain Bloom filter, one that grows, or an exact one.
///
/// A program whose user chooses between them at run time needs no type parameter for the filter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SeenSet {
    /// Of a fixed capacity: it wrongly drops more and more keys past it, or refuses them.
    Fixed(BloomFilter),
    /// Growing by layers, each three times as large as the one before: its rate stays, and its memory grows.
    Growing(ScalableBloomFilter),
    /// An exact filter, which stores every key. It cannot be saved: see [`Snapshot`](crate::Snapshot).
    Exact(ExactFilter),
}

impl SeenSet {
    /// Creates an exact filter, which stores every key.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::{SeenSet, Sieve};
    ///
    /// let mut to_visit: Sieve = Sieve::from_parts(SeenSet::exact(), VecDeque::new());
    /// assert!(to_visit.push("https://example.com/") && !to_visit.push("https://example.com/"));
    /// ```
    pub fn exact() -> Self {
        Self::Exact(ExactFilter::new())
    }

    /// Returns the filter, of whatever kind. Not inlined: a push tests for the usual kind first, and does not come here with it.
    #[inline(never)]
    fn any(&self) -> &dyn Filter<Digest = Digest> {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => filter,
            Self::Exact(filter) => filter,
        }
    }

    #[inline(never)]
    fn any_mut(&mut self) -> &mut dyn Filter<Digest = Digest> {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => filter,
            Self::Exact(filter) => filter,
        }
    }
}

impl Filter for SeenSet {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        match self {
            Self::Fixed(filter) => filter.digest(key),
            _ => self.any().digest(key),
        }
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        match self {
            Self::Fixed(filter) => filter.prefetch(digest),
            _ => self.any().prefetch(digest),
        }
    }

    // Inlined always: it has two callers, and a batch of keys is marked 10 % faster without the calls.
    #[inline(always)]
    fn insert_digest(&mut self, key: &[u8], digest: Digest) -> bool {
        match self {
            Self::Fixed(filter) => filter.insert_digest(key, digest),
            _ => self.any_mut().insert_digest(key, digest),
        }
    }

    /// Chooses the filter once for hashing and marking.
    #[inline(always)]
    fn insert(&mut self, key: &[u8]) -> bool {
        match self {
            Self::Fixed(filter) => Filter::insert(filter, key),
            _ => self.any_mut().insert(key),
        }
    }

    #[inline]
    fn digest_batch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, digests: &mut [Digest]) -> usize {
        match self {
            Self::Fixed(filter) => filter.digest_batch(keys, digests),
            Self::Growing(filter) => filter.digest_batch(keys, digests),
            Self::Exact(filter) => filter.digest_batch(keys, digests),
        }
    }

    #[inline]
    fn insert_batch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, digests: &[Digest], is_new: &mut [bool]) {
        match self {
            Self::Fixed(filter) => filter.insert_batch(keys, digests, is_new),
            Self::Growing(filter) => filter.insert_batch(keys, digests, is_new),
            Self::Exact(filter) => filter.insert_batch(keys, digests, is_new),
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.any().contains(key)
    }

    fn load(&self) -> Load {
        self.any().load()
    }

    #[inline]
    fn ones(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.ones(),
            _ => self.any().ones(),
        }
    }

    #[inline]
    fn layers(&self) -> u32 {
        match self {
            Self::Growing(filter) => Filter::layers(filter),
            _ => 1,
        }
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        self.any().ones_above(keys)
    }
}
