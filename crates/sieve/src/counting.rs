//! A filter that can remove keys.

use crate::filter::{Filter, Load};
use crate::hash::{Digest, Hashing};
use crate::memory::Memory;
use crate::probes::Probes;
use crate::sizing::{ConfigError, Sizing};

const COUNTERS_PER_WORD: u64 = 16;

/// The value at which a counter saturates: 15.
pub const MAX_COUNT: u64 = 0xf;

/// A Bloom filter with a counter of four bits instead of each bit, so that keys can be removed.
///
/// L. Fan, P. Cao, J. Almeida, A. Broder, "Summary cache", IEEE/ACM Transactions on Networking 8(3), 2000, show that four bits are
/// enough: with k = ln 2 · m/n, the chance that any of m counters exceeds 15 is below m · 1.4 · 10⁻¹⁵. A counter that reaches 15 is
/// never decremented again. A removed key may then still look seen, but a seen key never looks new.
///
/// # What removal can break
///
/// * In a plain filter, clearing the bits of a key also clears bits of other keys, which would then look new. That is why
///   [`BloomFilter`](crate::BloomFilter) has no `remove`.
/// * Here, removing a key **that was never inserted**, but looks seen, decrements the counters of other keys, which may then look new.
///   Remove only keys that you inserted. If [`insert`](Self::insert) returned `false`, the key was not counted: do not remove it.
///
/// Memory: four times that of the plain filter. Cost: one hash; one random access in four cache lines in blocks, k in the classic layout.
///
/// ```
/// use sieve::CountingBloomFilter;
///
/// let mut open = CountingBloomFilter::new(1000, 0.01)?;
/// assert!(open.insert(b"issue 7"));
/// assert!(open.remove(b"issue 7"));
/// assert!(!open.contains(b"issue 7"));
/// assert!(!open.remove(b"issue 7")); // not in the filter: nothing is changed
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CountingBloomFilter {
    pub(crate) counters: Memory,
    sizing: Sizing,
    hashing: Hashing,
    /// Counters above zero.
    ones: u64,
    removed: u64,
}

impl CountingBloomFilter {
    /// Creates a filter for `capacity` keys at a time, with a false-positive rate of at most `rate` at capacity.
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
        Ok(Self::of(Memory::zeroed(Self::words(&sizing))?, sizing, hashing))
    }

    fn of(counters: Memory, sizing: Sizing, hashing: Hashing) -> Self {
        Self {
            counters,
            sizing,
            hashing,
            ones: 0,
            removed: 0,
        }
    }

    /// Inserts a key unless it looks seen: `true` if it was new (the polarity of `HashSet::insert`).
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        Filter::insert(self, key.as_ref())
    }

    /// Inserts a key even if it looks seen. It takes as many [`remove`](Self::remove)s to remove it, up to [`MAX_COUNT`].
    pub fn add(&mut self, key: impl AsRef<[u8]>) {
        self.count_up(&self.probes(self.hashing.digest(key.as_ref())));
    }

    /// Removes a key. Returns `false`, and changes nothing, if it is not in the filter.
    ///
    /// Remove only keys that were inserted; see [above](Self#what-removal-can-break).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        let probes = self.probes(self.hashing.digest(key.as_ref()));
        if !self.has(&probes) {
            return false;
        }
        self.count_down(&probes);
        self.removed += 1;
        true
    }

    /// Returns whether the filter contains the key: "no" is certain, "yes" is wrong at the false-positive rate.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.has(&self.probes(self.hashing.digest(key.as_ref())))
    }

    /// Returns an upper bound of how often a key was added: its smallest counter. 15 means 15 or more.
    pub fn count_of(&self, key: impl AsRef<[u8]>) -> u64 {
        let probes = self.probes(self.hashing.digest(key.as_ref()));
        probes.as_slice().iter().map(|&at| self.count(at)).min().unwrap_or(0)
    }

    /// Estimates the number of distinct keys in the filter, as [`BloomFilter::estimated_len`](crate::BloomFilter::estimated_len),
    /// from the counters above zero.
    pub fn estimated_len(&self) -> f64 {
        self.sizing.keys_at(self.ones)
    }

    /// Returns the chance that the next new key is treated as seen.
    pub fn false_positive_rate(&self) -> f64 {
        if self.ones == self.sizing.bits() {
            1.0
        } else {
            self.sizing.rate_at(self.estimated_len())
        }
    }

    /// Returns the shape: one counter per bit.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// Returns the hash, with its seed or key.
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// Returns the memory of the filter, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        Self::words(&self.sizing) * 8
    }

    /// Returns how many keys were removed so far.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    pub(crate) fn words(sizing: &Sizing) -> u64 {
        sizing.bits().div_ceil(COUNTERS_PER_WORD)
    }

    /// Takes counters that have the shape's length; `None` when one is above zero that no probe could have counted.
    pub(crate) fn from_counters(counters: Memory, sizing: Sizing, hashing: Hashing, removed: u64) -> Option<Self> {
        let mut filter = Self::of(counters, sizing, hashing);
        filter.removed = removed;
        let words = filter.counters.words();
        filter.ones = words.iter().map(|&word| above_zero(word)).sum();
        let all = Self::words(&sizing) * COUNTERS_PER_WORD;
        (sizing.bits()..all).all(|at| filter.count(at) == 0).then_some(filter)
    }

    #[inline]
    fn probes(&self, digest: Digest) -> Probes {
        Probes::draw(digest, &self.sizing)
    }

    #[inline]
    fn has(&self, probes: &Probes) -> bool {
        probes.as_slice().iter().all(|&at| self.count(at) > 0)
    }

    fn count_up(&mut self, probes: &Probes) {
        for &at in probes.as_slice() {
            let count = self.count(at);
            if count < MAX_COUNT {
                self.set(at, count + 1);
                self.ones += u64::from(count == 0);
            }
        }
    }

    /// All counters must be above zero.
    fn count_down(&mut self, probes: &Probes) {
        for &at in probes.as_slice() {
            let count = self.count(at);
            if count < MAX_COUNT {
                self.set(at, count - 1);
                self.ones -= u64::from(count == 1);
            }
        }
    }

    #[inline]
    fn count(&self, at: u64) -> u64 {
        self.counters.words()[(at / COUNTERS_PER_WORD) as usize] >> shift(at) & MAX_COUNT
    }

    #[inline]
    fn set(&mut self, at: u64, count: u64) {
        let word = &mut self.counters.words_mut()[(at / COUNTERS_PER_WORD) as usize];
        *word = *word & !(MAX_COUNT << shift(at)) | count << shift(at);
    }
}

/// How many of a word's counters are above zero: the four bits of each are put together in its lowest.
#[inline]
fn above_zero(word: u64) -> u64 {
    let either = word | word >> 1;
    u64::from(((either | either >> 2) & 0x1111_1111_1111_1111).count_ones())
}

#[inline]
fn shift(at: u64) -> u64 {
    at % COUNTERS_PER_WORD * 4
}

impl Filter for CountingBloomFilter {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.hashing.digest(key)
    }

    #[inline]
    fn insert_digest(&mut self, _key: &[u8], digest: Digest) -> bool {
        let probes = self.probes(digest);
        let new = !self.has(&probes);
        if new {
            self.count_up(&probes);
        }
        new
    }

    fn contains(&self, key: &[u8]) -> bool {
        Self::contains(self, key)
    }

    fn load(&self) -> Load {
        Load {
            forgets: self.removed > 0,
            memory_bytes: self.memory_bytes(),
            ..self.sizing.load(self.ones, self.false_positive_rate())
        }
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
    use crate::sizing::Layout;

    fn counters(filter: &CountingBloomFilter, among: u64) -> Vec<u64> {
        (0..among).map(|at| filter.count(at)).collect()
    }

    /// The example of the article on counting filters, whose own sum is off by one.
    #[test]
    fn the_worked_example_of_five_counters_comes_out() {
        let sizing = Sizing::explicit(5, 3).unwrap();
        let mut filter = CountingBloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
        let (a, b) = (Probes::at(&[1, 2]), Probes::at(&[1, 2, 4]));
        filter.count_up(&a);
        assert_eq!(counters(&filter, 5), [0, 1, 1, 0, 0]);
        filter.count_up(&b);
        assert_eq!(counters(&filter, 5), [0, 2, 2, 0, 1]);
        filter.count_down(&a);
        assert_eq!(counters(&filter, 5), [0, 1, 1, 0, 1]);
        assert!(filter.has(&b));
        // The positions of a are among those of b, so a still looks seen. (The article says that it does not.)
        assert!(filter.has(&a));
        assert_eq!(filter.ones, 3);
    }

    #[test]
    fn the_second_worked_example_of_five_counters_comes_out_and_its_plain_twin_loses_a_key() {
        let sizing = Sizing::explicit(5, 3).unwrap();
        let mut filter = CountingBloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
        let (one, other) = (Probes::at(&[1, 2]), Probes::at(&[1, 2]));
        filter.count_up(&one);
        filter.count_up(&other);
        assert_eq!(counters(&filter, 5), [0, 2, 2, 0, 0]);
        filter.count_down(&one);
        assert_eq!(counters(&filter, 5), [0, 1, 1, 0, 0]);
        assert!(filter.has(&other), "it was not removed");
        // Without counters: removing one key clears the bits of both.
        let mut bits = [false; 5];
        one.as_slice().iter().for_each(|&at| bits[at as usize] = true);
        one.as_slice().iter().for_each(|&at| bits[at as usize] = false);
        assert!(!other.as_slice().iter().all(|&at| bits[at as usize]), "it is lost");
    }

    #[test]
    fn removed_keys_are_gone_and_the_others_stay() {
        for layout in [Layout::Blocks, Layout::Classic] {
            let sizing = Sizing::in_layout(layout, 2_000, 0.001).unwrap();
            let mut filter = CountingBloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
            let counted: Vec<u32> = (0..2_000).filter(|n: &u32| filter.insert(n.to_le_bytes())).collect();
            let (go, stay): (Vec<u32>, Vec<u32>) = counted.iter().partition(|n| *n % 2 == 0);
            for n in &go {
                assert!(filter.remove(n.to_le_bytes()));
            }
            assert!(stay.iter().all(|n| filter.contains(n.to_le_bytes())));
            let left = go.iter().filter(|n| filter.contains(n.to_le_bytes())).count();
            assert!(left < 10, "{left} of 1000 removed keys look seen; 0.03 % should");
            assert!((filter.estimated_len() - stay.len() as f64).abs() < 60.0);
            for n in &stay {
                filter.remove(n.to_le_bytes());
            }
            assert_eq!(filter.ones, 0);
        }
    }

    #[test]
    fn a_counter_that_reached_its_maximum_sticks() {
        let mut filter = CountingBloomFilter::new(100, 0.01).unwrap();
        for _ in 0..20 {
            filter.add(b"often");
        }
        assert_eq!(filter.count_of(b"often"), 15);
        for _ in 0..40 {
            assert!(filter.remove(b"often"));
        }
        assert!(filter.contains(b"often"));
        filter.add(b"twice");
        filter.add(b"twice");
        assert_eq!(filter.count_of(b"twice"), 2);
        assert!(filter.remove(b"twice") && filter.remove(b"twice") && !filter.remove(b"twice"));
    }

    #[test]
    fn a_full_filter_takes_every_key_for_one_that_is_there() {
        for sizing in [
            Sizing::explicit(64, 3).unwrap(),
            Sizing::explicit(40, 22).unwrap(),
            Sizing::explicit_blocks(1, 1).unwrap(),
        ] {
            let mut filter = CountingBloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
            for n in 0_u32..10_000 {
                filter.insert(n.to_le_bytes());
            }
            assert_eq!(filter.ones, sizing.bits());
            assert!(filter.contains(b"never inserted"));
            assert!((filter.false_positive_rate() - 1.0).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn clearing_the_bits_of_a_key_would_lose_other_keys() {
        // What the docs warn of: a plain filter in which a removed key's bits are cleared, and what becomes of the others.
        let sizing = Sizing::in_layout(Layout::Classic, 200, 0.01).unwrap();
        let mut bits = std::collections::HashSet::new();
        let probes = |n: u32| Probes::draw(Hashing::default().digest(&n.to_le_bytes()), &sizing);
        (0..200).for_each(|n| bits.extend(probes(n).as_slice().iter().copied()));
        for n in 0..100 {
            probes(n).as_slice().iter().for_each(|at| {
                bits.remove(at);
            });
        }
        let lost = (100..200)
            .filter(|&n| !probes(n).as_slice().iter().all(|at| bits.contains(at)))
            .count();
        assert!(lost > 50, "{lost} of 100 keys that nobody removed look new");
    }
}
