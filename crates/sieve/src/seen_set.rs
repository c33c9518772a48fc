//! The default filter of a sieve.

use crate::bloom::BloomFilter;
use crate::exact::ExactFilter;
use crate::filter::{Filter, Load};
use crate::hash::{Digest, Hashing};
use crate::scalable::ScalableBloomFilter;
use crate::sizing::{ConfigError, Sizing};

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
    /// Creates a plain filter.
    ///
    /// # Errors
    ///
    /// Memory that cannot be allocated.
    pub fn fixed(sizing: Sizing, hashing: Hashing) -> Result<Self, ConfigError> {
        BloomFilter::with_hashing(sizing, hashing).map(Self::Fixed)
    }

    /// Creates a filter that grows.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::for_rate`], or memory that cannot be allocated.
    pub fn growing(capacity: u64, rate: f64, hashing: Hashing) -> Result<Self, ConfigError> {
        ScalableBloomFilter::with_hashing(capacity, rate, hashing).map(Self::Growing)
    }

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
}

/// Not inlined, so that the caller's code contains the usual filter only.
#[inline(never)]
fn insert_into_layers(filter: &mut ScalableBloomFilter, key: &[u8], digest: Digest) -> bool {
    filter.insert_digest(key, digest)
}

impl SeenSet {
    /// Inserts as [`Filter::insert`] does, of whatever kind the filter is. Not inlined: a push tests for the usual filter first.
    #[inline(never)]
    fn insert_into_any(&mut self, key: &[u8]) -> bool {
        match self {
            Self::Fixed(filter) => Filter::insert(filter, key),
            Self::Growing(filter) => Filter::insert(filter, key),
            Self::Exact(filter) => filter.insert(key),
        }
    }

    /// Returns what [`Filter::ones`] does, not inlined either.
    #[inline(never)]
    fn ones_of_any(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.ones(),
            Self::Growing(filter) => Filter::ones(filter),
            Self::Exact(filter) => filter.ones(),
        }
    }
}

/// An exact filter needs the key, not its digest.
#[inline(never)]
fn insert_exactly(filter: &mut ExactFilter, key: &[u8]) -> bool {
    filter.insert(key)
}

impl Filter for SeenSet {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        match self {
            Self::Fixed(filter) => filter.digest(key),
            Self::Growing(filter) => filter.digest(key),
            Self::Exact(_) => Digest::default(),
        }
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        match self {
            Self::Fixed(filter) => filter.prefetch(digest),
            Self::Growing(filter) => filter.prefetch(digest),
            Self::Exact(_) => {}
        }
    }

    // Inlined always: it has two callers, and a batch of keys is marked 10 % faster without the calls.
    #[inline(always)]
    fn insert_digest(&mut self, key: &[u8], digest: Digest) -> bool {
        match self {
            Self::Fixed(filter) => filter.insert_digest(key, digest),
            Self::Growing(filter) => insert_into_layers(filter, key, digest),
            Self::Exact(filter) => insert_exactly(filter, key),
        }
    }

    /// Chooses the filter once for hashing and marking.
    #[inline(always)]
    fn insert(&mut self, key: &[u8]) -> bool {
        match self {
            Self::Fixed(filter) => Filter::insert(filter, key),
            _ => self.insert_into_any(key),
        }
    }

    #[inline]
    fn digest_batch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, digests: &mut [Digest]) -> usize {
        match self {
            Self::Fixed(filter) => filter.digest_batch(keys, digests),
            Self::Growing(filter) => filter.digest_batch(keys, digests),
            // It needs no digests.
            Self::Exact(_) => digests
                .iter_mut()
                .zip(keys)
                .map(|(digest, _)| *digest = Digest::default())
                .count(),
        }
    }

    #[inline]
    fn insert_batch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, digests: &[Digest], is_new: &mut [bool]) {
        match self {
            Self::Fixed(filter) => filter.insert_batch(keys, digests, is_new),
            Self::Growing(filter) => filter.insert_batch(keys, digests, is_new),
            Self::Exact(filter) => {
                for (key, new) in keys.zip(is_new) {
                    *new = insert_exactly(filter, key);
                }
            }
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Fixed(filter) => filter.contains(key),
            Self::Growing(filter) => filter.contains(key),
            Self::Exact(filter) => filter.contains(key),
        }
    }

    fn load(&self) -> Load {
        match self {
            Self::Fixed(filter) => filter.load(),
            Self::Growing(filter) => filter.load(),
            Self::Exact(filter) => filter.load(),
        }
    }

    #[inline]
    fn ones(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.ones(),
            _ => self.ones_of_any(),
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
        match self {
            Self::Fixed(filter) => filter.ones_above(keys),
            Self::Growing(filter) => filter.ones_above(keys),
            Self::Exact(filter) => filter.ones_above(keys),
        }
    }
}
