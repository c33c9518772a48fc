//! The standard filter.

mod insert_one;

use insert_one::InsertOne;

use crate::filter::{Filter, Load};
use crate::hash::{Digest, Hashing};
use crate::memory::{Block, Line, Memory};
use crate::prefetch::prefetch;
use crate::probes::eight::EightProbes;
use crate::probes::{Probes, blocks, classic};
use crate::sizing::{ConfigError, Layout, Sizing};

/// A Bloom filter: m bits, k distinct probes per key, one hash per key.
///
/// | method | cost |
/// |---|---|
/// | [`insert`](Self::insert), [`contains`](Self::contains) | one hash; one random access to memory in blocks, k in the classic layout |
/// | [`estimated_len`](Self::estimated_len), [`fill`](Self::fill) | O(1): set bits are counted as they are set |
/// | [`false_positive_rate`](Self::false_positive_rate) | O(1): 16 exponentials at 8 probes in blocks, some hundreds at other numbers |
/// | memory | m / 8 bytes, mapped once, touched as keys are inserted |
///
/// The default seed is 0: reproducible, but known to an attacker. Keys that are crafted against a known seed can fill the filter or
/// hide another key. For untrusted keys, use a [secret seed](Self::with_hashing) or the [hardened](Hashing::Hardened) hash.
///
/// ```
/// use sieve::BloomFilter;
///
/// let mut seen = BloomFilter::new(1000, 0.01)?;
/// assert!(seen.insert(b"spam.example"));
/// assert!(!seen.insert(b"spam.example"));
/// assert!(seen.contains(b"spam.example"));
/// assert!(!seen.contains(b"ham.example")); // "no" is certain
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BloomFilter {
    pub(crate) memory: Memory,
    sizing: Sizing,
    hashing: Hashing,
    ones: u64,
    /// The way to mark keys in the usual shape, which are blocks with eight probes, as at a rate of 1 %; `None` in another shape.
    eight_probes: Option<EightProbes>,
    /// The way to insert a single key.
    insert_one: InsertOne,
}

impl BloomFilter {
    /// Creates a filter for `capacity` keys with a false-positive rate of at most `rate` at capacity, with MurmurHash3 and seed 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::for_rate`], or memory that cannot be allocated.
    pub fn new(capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        Self::with_hashing(Sizing::for_rate(capacity, rate)?, Hashing::default())
    }

    /// Creates a filter of a given shape, hash and seed.
    ///
    /// # Errors
    ///
    /// Memory that cannot be allocated.
    pub fn with_hashing(sizing: Sizing, hashing: Hashing) -> Result<Self, ConfigError> {
        Ok(Self::of(Memory::zeroed(sizing.words())?, sizing, hashing, 0))
    }

    /// Creates a filter from words of the shape's length, and counts their ones. `None` if a bit is set that no probe can have.
    pub(crate) fn from_memory(memory: Memory, sizing: Sizing, hashing: Hashing) -> Option<Self> {
        let mut words = memory.words().iter().zip(0..);
        let clean = words.all(|(word, at)| word & !sizing.probe_bits(at) == 0);
        let ones = memory.count_ones();
        clean.then(|| Self::of(memory, sizing, hashing, ones))
    }

    fn of(memory: Memory, sizing: Sizing, hashing: Hashing, ones: u64) -> Self {
        let has_eight_probes = sizing.layout() == Layout::Blocks && sizing.hashes() == 8;
        let eight_probes = has_eight_probes.then(EightProbes::detect);
        Self {
            memory,
            sizing,
            hashing,
            ones,
            eight_probes,
            insert_one: InsertOne::choose(eight_probes, &hashing),
        }
    }

    /// Marks a key as seen, in one test-and-set: `true` when it was new (the polarity of `HashSet::insert`).
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        Filter::insert(self, key.as_ref())
    }

    /// Returns whether the key was seen: "no" is certain, "yes" is wrong at the false-positive rate.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.hashing.digest(key.as_ref()))
    }

    /// Estimates the number of distinct keys that were offered: −(m/k)·ln(1 − X/m), with X the bits set.
    ///
    /// S. Swamidass, P. Baldi, "Mathematical correction for fingerprint similarity measures …", J. Chem. Inf. Model.
    /// 47(3), 2007. A key that was wrongly dropped would have set no bit, so the estimate includes dropped keys. At X = m, where the
    /// formula has no value, half a zero bit is assumed: (m/k)·ln(2m), a lower bound.
    pub fn estimated_len(&self) -> f64 {
        self.sizing.keys_at(self.ones)
    }

    /// Returns the chance that the next new key is treated as seen.
    ///
    /// In the classic layout, the k probes are distinct, so it is ∏ᵢ (X − i) / (m − i) over i < k; about (X/m)ᵏ, except for tiny
    /// filters. In blocks, it is the mean over their loads at the estimated number of keys; see [`crate::sizing`].
    pub fn false_positive_rate(&self) -> f64 {
        match self.sizing.layout() {
            Layout::Blocks if self.ones == self.sizing.bits() => 1.0,
            Layout::Blocks => self.sizing.rate_at(self.estimated_len()),
            Layout::Classic => {
                let (ones, bits) = (self.ones as f64, self.sizing.bits() as f64);
                (0..self.sizing.hashes())
                    .map(f64::from)
                    .map(|i| (ones - i).max(0.0) / (bits - i))
                    .product()
            }
        }
    }

    /// Returns the share of bits that are set, from 0 to 1.
    pub fn fill(&self) -> f64 {
        self.ones as f64 / self.sizing.bits() as f64
    }

    /// Returns the shape of the filter.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// Returns the hash, with its seed or key.
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// Returns the memory of the filter, in bytes: [`Sizing::memory_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.sizing.memory_bytes()
    }

    /// Returns the number of bits that are set.
    pub fn ones(&self) -> u64 {
        self.ones
    }

    /// Changes the words and counts the ones again.
    pub(crate) fn change_words(&mut self, change: impl FnOnce(&mut [u64])) {
        change(self.memory.words_mut());
        self.ones = self.memory.count_ones();
    }

    #[inline]
    pub(crate) fn contains_digest(&self, digest: Digest) -> bool {
        match self.sizing.layout() {
            Layout::Blocks => {
                let blocks = self.memory.blocks();
                let block = &blocks[blocks::index(digest, blocks.len() as u64)];
                // The usual number as a constant: without branches on it, a batch takes a sixth less time in a filter that has grown.
                match self.sizing.hashes() {
                    8 => blocks::marked(block, digest, 8),
                    hashes => blocks::marked(block, digest, hashes),
                }
            }
            Layout::Classic => classic::marked(self.memory.words(), &Probes::draw(digest, &self.sizing)),
        }
    }

    /// Sets the bits of a key, and returns the number of those that were not set before.
    #[inline(always)]
    fn mark(&mut self, digest: Digest) -> u64 {
        match self.eight_probes {
            Some(eight_probes) => eight_probes.mark(self.line_mut(digest), digest),
            None => self.mark_in_another_shape(digest),
        }
    }

    /// Counts the bits that a key has set, and returns whether it was new.
    #[inline(always)]
    fn count(&mut self, fresh: u64) -> bool {
        if fresh == 0 {
            return false;
        }
        self.ones += fresh;
        true
    }

    #[inline(always)]
    fn line_mut(&mut self, digest: Digest) -> &mut Line {
        let lines = self.memory.lines_mut();
        let at = blocks::index(digest, lines.len() as u64);
        &mut lines[at]
    }

    #[inline]
    fn block_mut(&mut self, digest: Digest) -> &mut Block {
        let blocks = self.memory.blocks_mut();
        let at = blocks::index(digest, blocks.len() as u64);
        &mut blocks[at]
    }

    #[inline(never)]
    fn mark_in_another_shape(&mut self, digest: Digest) -> u64 {
        match self.sizing.layout() {
            Layout::Blocks => {
                let hashes = self.sizing.hashes();
                blocks::mark(self.block_mut(digest), digest, hashes)
            }
            Layout::Classic => classic::mark(self.memory.words_mut(), &Probes::draw(digest, &self.sizing)),
        }
    }

    pub(crate) fn load_with<'a>(&self, older: impl IntoIterator<Item = &'a Self>) -> Load {
        let mut load = self.load();
        let mut variance = load.estimate_noise * load.estimate_noise;
        for layer in older {
            let older = layer.load();
            variance += older.estimate_noise * older.estimate_noise;
            load.estimated += older.estimated;
            load.bits += older.bits;
            load.ones += older.ones;
            load.memory_bytes += older.memory_bytes;
            load.layers += 1;
        }
        load.estimate_noise = variance.sqrt();
        load
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.memory.words_mut().fill(0);
        self.ones = 0;
    }
}

impl Filter for BloomFilter {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.hashing.digest(key)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        // Only blocks gain: the probes of the classic layout are drawn one by one.
        if self.sizing.layout() == Layout::Blocks {
            let blocks = self.memory.blocks();
            prefetch(&blocks[blocks::index(digest, blocks.len() as u64)]);
        }
    }

    #[inline(always)]
    fn insert_digest(&mut self, _key: &[u8], digest: Digest) -> bool {
        let fresh = self.mark(digest);
        self.count(fresh)
    }

    #[inline(always)]
    fn insert(&mut self, key: &[u8]) -> bool {
        self.insert_one.call(self, key)
    }

    #[inline]
    fn digest_batch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, digests: &mut [Digest]) -> usize {
        // Only blocks gain: see `prefetch`.
        let blocks = match self.sizing.layout() {
            Layout::Blocks => self.memory.blocks(),
            Layout::Classic => &[],
        };
        let count = blocks.len() as u64;
        self.hashing.digest_batch(keys, digests, |digest| {
            if let Some(block) = blocks.get(blocks::index(digest, count)) {
                prefetch(block);
            }
        })
    }

    #[inline]
    fn insert_batch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, digests: &[Digest], is_new: &mut [bool]) {
        if let Some(eight_probes) = self.eight_probes {
            self.ones += eight_probes.mark_all(self.memory.blocks_mut(), digests, is_new);
            return;
        }
        for ((key, digest), new) in keys.zip(digests).zip(is_new) {
            *new = self.insert_digest(key, *digest);
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        Self::contains(self, key)
    }

    fn load(&self) -> Load {
        self.sizing.load(self.ones, self.false_positive_rate())
    }

    #[inline]
    fn ones(&self) -> u64 {
        self.ones
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        self.sizing.ones_above(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_counted_past_two_to_the_thirty_two() {
        let sizing = Sizing::explicit(1 << 34, 7).unwrap();
        let mut filter = BloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
        // As if so many bits had been set: 2 GiB of memory need not be touched to see the count go on.
        filter.ones = u64::from(u32::MAX) - 3;
        let before = filter.estimated_len();
        for key in 0_u32..10 {
            filter.insert(key.to_le_bytes());
        }
        assert!(filter.ones() > u64::from(u32::MAX));
        assert!(filter.estimated_len() > before);
        assert!((filter.estimated_len() - before - 10.0 * 4.0 / 3.0).abs() < 0.5);
    }

    #[test]
    fn the_rate_of_a_tiny_classic_filter_is_that_of_drawing_distinct_bits() {
        let mut filter = BloomFilter::with_hashing(Sizing::explicit(10, 3).unwrap(), Hashing::default()).unwrap();
        assert!(filter.false_positive_rate().abs() < f64::EPSILON);
        filter.insert(b"key");
        assert!(
            (filter.false_positive_rate() - 1.0 / 120.0).abs() < 1e-15,
            "3 · 2 · 1 of 10 · 9 · 8"
        );
    }

    #[test]
    fn the_counted_ones_are_the_ones_in_memory() {
        let mut filter = BloomFilter::new(1000, 0.01).unwrap();
        for key in 0_u32..3000 {
            filter.insert(key.to_le_bytes());
        }
        assert_eq!(filter.ones(), filter.memory.count_ones());
    }

    #[test]
    fn a_full_filter_has_a_finite_estimate_above_every_other() {
        let mut filter = BloomFilter::new(10, 0.1).unwrap();
        let mut last = 0.0;
        for key in 0_u32..10_000 {
            if filter.insert(key.to_le_bytes()) {
                assert!(filter.estimated_len() > last);
                last = filter.estimated_len();
            }
        }
        assert_eq!(filter.ones(), filter.sizing().bits());
        assert!(filter.estimated_len().is_finite());
        assert!((filter.false_positive_rate() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_threshold_in_bits_is_where_the_estimate_passes() {
        for (capacity, rate) in [(1, 0.5), (10, 0.01), (300, 0.01), (100_000, 0.001)] {
            let filter = BloomFilter::new(capacity, rate).unwrap();
            for tenths in [1, 8, 10, 15, 20, 30, 50] {
                let keys = capacity as f64 * f64::from(tenths) / 10.0;
                match filter.ones_above(keys) {
                    Some(ones) => {
                        assert!(filter.sizing.keys_at(ones) > keys);
                        assert!(ones == 0 || filter.sizing.keys_at(ones - 1) <= keys);
                    }
                    None => assert!(filter.sizing.keys_at(filter.sizing().bits()) <= keys),
                }
            }
        }
    }

    #[test]
    fn memory_that_cannot_be_allocated_is_an_error_not_an_abort() {
        let sizing = Sizing::explicit(1 << 48, 7).unwrap();
        assert_eq!(
            BloomFilter::with_hashing(sizing, Hashing::default()).unwrap_err(),
            ConfigError::CannotAllocate { bytes: 1 << 45 }
        );
    }

    #[test]
    fn another_seed_marks_other_bits() {
        let sizing = Sizing::for_rate(100, 0.01).unwrap();
        let mut one = BloomFilter::with_hashing(sizing, Hashing::Murmur3 { seed: 1 }).unwrap();
        let mut two = BloomFilter::with_hashing(sizing, Hashing::Murmur3 { seed: 2 }).unwrap();
        one.insert(b"key");
        two.insert(b"key");
        assert_ne!(one.memory.words(), two.memory.words());
    }
}
