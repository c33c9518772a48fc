//! A filter that forgets old keys, for endless streams.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use crate::bloom::BloomFilter;
use crate::filter::{Filter, Load};
use crate::hash::{Digest, Hashing};
use crate::sizing::{ConfigError, Sizing};

/// A Bloom filter with generations: when the newest is full, the oldest is forgotten.
///
/// Memory and rate stay constant, but **a key may be new again**. With g generations of n keys each, a key is remembered for at least
/// (g − 1)·n and at most g·n further distinct keys, within the noise of the estimate that ends a generation (a few percent at 1000
/// keys). Seeing a key again does not extend this. With one generation, the next key may already find it forgotten.
///
/// Use it for a feed or a stream of events. Do not use it for a frontier, which would fetch pages again.
///
/// Cost: one hash per key, one random access to memory per generation, and clearing the memory of a generation every n keys. Each
/// generation is sized for its share of the total rate. At 1 % that takes 12.6 bits per key with three generations, 15.1 with eight.
///
/// ```
/// use std::num::NonZeroU32;
/// use sieve::RotatingBloomFilter;
///
/// let generations = NonZeroU32::new(3).unwrap();
/// let mut recent = RotatingBloomFilter::new(1000, 0.01, generations)?;
/// assert!(recent.insert(b"event 1"));
/// assert!(!recent.insert(b"event 1"));
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RotatingBloomFilter {
    newest: BloomFilter,
    /// The newest first.
    older: VecDeque<BloomFilter>,
    full_at: u64,
    rotations: u64,
    /// Bits that were set in generations before the newest.
    settled_ones: u64,
}

impl RotatingBloomFilter {
    /// Creates a filter with `generations` of `capacity` keys each, and a total rate of at most `rate`.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::for_rate`], or memory that cannot be allocated.
    pub fn new(capacity: u64, rate: f64, generations: NonZeroU32) -> Result<Self, ConfigError> {
        Self::with_hashing(capacity, rate, generations, Hashing::default())
    }

    /// Creates a filter with a given hash and seed.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn with_hashing(
        capacity: u64,
        rate: f64,
        generations: NonZeroU32,
        hashing: Hashing,
    ) -> Result<Self, ConfigError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(ConfigError::RateOutOfRange(rate));
        }
        let sizing = Sizing::for_rate(capacity, rate / f64::from(generations.get()))?;
        let newest = BloomFilter::with_hashing(sizing, hashing)?;
        let older = (1..generations.get())
            .map(|_| BloomFilter::with_hashing(sizing, hashing))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            full_at: newest.ones_above(capacity as f64).unwrap_or(sizing.bits()),
            newest,
            older,
            rotations: 0,
            settled_ones: 0,
        })
    }

    /// Marks a key as seen: `true` if no generation contains it.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        Filter::insert(self, key.as_ref())
    }

    /// Returns whether a remembered generation contains the key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let digest = self.newest.digest(key.as_ref());
        self.newest.contains_digest(digest) || self.older_contain(digest)
    }

    /// Forgets the oldest generation and starts a new one. It happens by itself when the newest is full.
    pub fn rotate(&mut self) {
        self.rotations += 1;
        self.settled_ones += self.newest.ones();
        if let Some(oldest) = self.older.pop_back() {
            self.older.push_front(std::mem::replace(&mut self.newest, oldest));
        }
        self.newest.clear();
    }

    /// Returns the memory of the filter, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.generations().map(BloomFilter::memory_bytes).sum()
    }

    /// Returns the number of generations that were started after the first.
    pub fn rotations(&self) -> u64 {
        self.rotations
    }

    /// Returns the chance that the next new key is treated as seen: 1 − ∏(1 − fᵢ) over the generations.
    pub fn false_positive_rate(&self) -> f64 {
        let passes: f64 = self
            .generations()
            .map(|filter| 1.0 - filter.false_positive_rate())
            .product();
        1.0 - passes
    }

    fn generations(&self) -> impl Iterator<Item = &BloomFilter> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    #[inline]
    fn older_contain(&self, digest: Digest) -> bool {
        self.older.iter().any(|generation| generation.contains_digest(digest))
    }
}

impl Filter for RotatingBloomFilter {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.newest.digest(key)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        for generation in self.generations() {
            generation.prefetch(digest);
        }
    }

    #[inline]
    fn insert_digest(&mut self, key: &[u8], digest: Digest) -> bool {
        if self.older_contain(digest) || !self.newest.insert_digest(key, digest) {
            return false;
        }
        if self.newest.ones() >= self.full_at {
            self.rotate();
        }
        true
    }

    fn contains(&self, key: &[u8]) -> bool {
        Self::contains(self, key)
    }

    /// Returns the load of the remembered generations. It has no capacity.
    fn load(&self) -> Load {
        Load {
            capacity: None,
            rate: self.false_positive_rate(),
            forgets: true,
            ..self.newest.load_with(&self.older)
        }
    }

    #[inline]
    fn ones(&self) -> u64 {
        self.settled_ones + self.newest.ones()
    }

    fn ones_above(&self, _keys: f64) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(generations: u32) -> RotatingBloomFilter {
        RotatingBloomFilter::new(1_000, 0.01, NonZeroU32::new(generations).unwrap()).unwrap()
    }

    #[test]
    fn a_key_is_remembered_for_its_generations_and_is_new_again_then() {
        for generations in [1, 2, 4] {
            let mut filter = filter(generations);
            assert!(filter.insert(b"the key"));
            let mut further = 0_u64;
            while filter.contains(b"the key") {
                filter.insert(further.to_le_bytes());
                further += 1;
            }
            let g = u64::from(generations);
            // The estimate that ends a generation is off by a few keys, and some are wrongly dropped.
            assert!(
                further > (g - 1) * 970 && further < g * 1_060,
                "g={g}: forgotten after {further}"
            );
            assert!(filter.insert(b"the key"), "and then it is new again");
        }
    }

    #[test]
    fn the_count_of_ones_never_falls_when_a_generation_is_forgotten() {
        let mut filter = filter(2);
        let mut last = 0;
        for n in 0_u64..5_000 {
            let new = filter.insert(n.to_le_bytes());
            let ones = Filter::ones(&filter);
            assert!(if new { ones > last } else { ones == last }, "{n}: {last}, then {ones}");
            last = ones;
        }
        assert!(filter.rotations() >= 4);
    }

    #[test]
    fn the_rate_always_stays_below_the_configured_one() {
        let mut filter = filter(3);
        for n in 0_u64..30_000 {
            filter.insert(n.to_le_bytes());
            if n % 500 == 0 {
                assert!(filter.false_positive_rate() <= 0.01, "{n}");
            }
        }
        assert!((28..=31).contains(&filter.rotations()), "{}", filter.rotations());
        let hits = (0_u64..100_000)
            .filter(|n| filter.contains(format!("other {n}").as_bytes()))
            .count();
        let stated = filter.false_positive_rate();
        assert!((hits as f64 / 1e5 - stated).abs() < 6.0 * (stated / 1e5).sqrt());
    }
}
