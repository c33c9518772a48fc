//! The interface of a [`Sieve`](crate::Sieve) to its filter.

/// A seen-set, which works in a [`Sieve`](crate::Sieve).
///
/// Inserting has two parts, hashing ([`digest`](Self::digest)) and marking ([`insert_digest`](Self::insert_digest)), so that a batch
/// of keys is hashed before the first of them touches memory.
pub trait Filter {
    /// The hash of a key; `()` for a filter that needs the key itself.
    type Digest: Copy + Default;

    /// Hashes a key. Touches no memory of the filter.
    fn digest(&self, key: &[u8]) -> Self::Digest;

    /// Starts to fetch the memory that marking this key will touch. It is a hint without other effects.
    fn prefetch(&self, _digest: Self::Digest) {}

    /// Marks a key as seen, in one test-and-set: `true` if it was new.
    ///
    /// `digest` must be the digest of the same key by the same filter.
    fn insert_digest(&mut self, key: &[u8], digest: Self::Digest) -> bool;

    /// Hashes keys as they come, and starts to fetch the memory of each: the same as [`digest`](Self::digest) and
    /// [`prefetch`](Self::prefetch) of each key. It takes keys until they end or `digests` is full, and returns their number: if that is less
    /// than the room, the keys have ended.
    ///
    /// A filter overrides it to look up once what is the same for all keys. It must not take a key that it has no room for.
    fn digest_batch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, digests: &mut [Self::Digest]) -> usize
    where
        Self: Sized,
    {
        let mut count = 0;
        for (place, key) in digests.iter_mut().zip(keys) {
            *place = self.digest(key);
            self.prefetch(*place);
            count += 1;
        }
        count
    }

    /// Marks a batch of keys as seen, in order: the same as [`insert_digest`](Self::insert_digest) of each key with its digest. It writes
    /// which were new.
    ///
    /// There must be as many `keys`, `digests` and `is_new`: otherwise it may mark too many or too few.
    ///
    /// # Panics
    ///
    /// It may panic if their numbers differ.
    fn insert_batch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, digests: &[Self::Digest], is_new: &mut [bool])
    where
        Self: Sized,
    {
        for ((key, digest), new) in keys.zip(digests).zip(is_new) {
            *new = self.insert_digest(key, *digest);
        }
    }

    /// Returns whether the key was seen, wrongly at the false-positive rate. Marks nothing.
    fn contains(&self, key: &[u8]) -> bool;

    /// Marks a key as seen: `true` if it was new (the polarity of `HashSet::insert`). The same as [`digest`](Self::digest) and
    /// [`insert_digest`](Self::insert_digest) of the key, which a filter may do in one.
    fn insert(&mut self, key: &[u8]) -> bool {
        let digest = self.digest(key);
        self.insert_digest(key, digest)
    }

    /// Measures how full the filter is. Cost: a few logarithms, too much for every push.
    fn load(&self) -> Load;

    /// Returns the number of bits set, or of keys stored. It must grow only when a key is marked. Cost: O(1).
    fn ones(&self) -> u64;

    /// Returns the number of layers, which increases as a filter grows. Cost: O(1).
    fn layers(&self) -> u32 {
        1
    }

    /// The least [`ones`](Self::ones) at which the estimated number of keys exceeds `keys`; `None` if it never does.
    fn ones_above(&self, keys: f64) -> Option<u64>;
}

/// A measurement of how full a filter is.
///
/// Your own filter starts from the default, an empty filter without bits and limit, and sets the fields that it knows:
///
/// ```
/// use std::collections::{BTreeSet, VecDeque};
/// use sieve::{Filter, Load, Sieve};
///
/// #[derive(Default)]
/// struct Ordered(BTreeSet<Vec<u8>>);
///
/// impl Filter for Ordered {
///     type Digest = (); // the key itself is needed
///     fn digest(&self, _key: &[u8]) {}
///     fn insert_digest(&mut self, key: &[u8], (): ()) -> bool {
///         self.0.insert(key.to_vec())
///     }
///     fn contains(&self, key: &[u8]) -> bool {
///         self.0.contains(key)
///     }
///     fn load(&self) -> Load {
///         let mut load = Load::default();
///         load.estimated = self.0.len() as f64;
///         load.ones = self.ones();
///         load
///     }
///     fn ones(&self) -> u64 {
///         self.0.len() as u64
///     }
///     fn ones_above(&self, keys: f64) -> Option<u64> {
///         Some(keys as u64 + 1)
///     }
/// }
///
/// let mut to_visit: Sieve<_, VecDeque<String>> = Sieve::from_parts(Ordered::default(), VecDeque::new());
/// assert!(to_visit.push("https://example.com/") && !to_visit.push("https://example.com/"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Load {
    /// The number of keys that it was configured for; `None` for one without a limit: exact, or forgetting.
    pub capacity: Option<u64>,
    /// The number of keys that it holds at its rate now that it has grown; `None` if it has not.
    pub grown_capacity: Option<u64>,
    /// The estimated number of distinct keys that were *offered*, including those wrongly dropped.
    pub estimated: f64,
    /// The standard deviation of that estimate, in keys.
    pub estimate_noise: f64,
    /// The chance that the next new key is treated as seen, from 0 to 1.
    pub rate: f64,
    /// Bits, m; 0 for a filter without bits.
    pub bits: u64,
    /// Bits that are set, X, or keys stored.
    pub ones: u64,
    /// Probes per key, k, of the newest layer; 0 for a filter without probes.
    pub hashes: u32,
    /// Layers: 1, unless the filter has grown or has generations.
    pub layers: u32,
    /// Whether keys were removed or forgotten. Then the estimate does not say how many keys were accepted in all.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub forgets: bool,
    /// Memory of the filter, in bytes.
    pub memory_bytes: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            capacity: None,
            grown_capacity: None,
            estimated: 0.0,
            estimate_noise: 0.0,
            rate: 0.0,
            bits: 0,
            ones: 0,
            hashes: 0,
            layers: 1,
            forgets: false,
            memory_bytes: 0,
        }
    }
}

impl Load {
    /// Returns the share of bits that are set, from 0 to 1; 0 for a filter without bits.
    pub fn fill(&self) -> f64 {
        if self.bits == 0 {
            0.0
        } else {
            self.ones as f64 / self.bits as f64
        }
    }
}
