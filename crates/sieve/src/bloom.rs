//! The classic Bloom filter.

use crate::filter::{Filter, Load};
use crate::hash::{Digest, Probes};
use crate::sizing::{ConfigError, Sizing};

/// A Bloom filter: m bits, k distinct probes per key, one hash per key.
///
/// | method | cost |
/// |---|---|
/// | [`insert`](Self::insert), [`contains`](Self::contains) | one hash, k random reads of memory |
/// | [`estimated_len`](Self::estimated_len), [`false_positive_rate`](Self::false_positive_rate) | O(1): set bits are counted as they are set |
/// | memory | m / 8 bytes, allocated once |
///
/// The seed is 0 unless given: reproducible, and known to an attacker. Keys chosen against a known seed can fill the
/// filter or hide another key; where keys come from strangers, give a [random seed](Self::with_seed) and keep it secret.
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
    words: Vec<u64>,
    sizing: Sizing,
    seed: u64,
    ones: u64,
}

impl BloomFilter {
    /// Creates a filter for `capacity` keys with a false-positive rate of at most `rate` at capacity, and seed 0.
    ///
    /// # Errors
    ///
    /// As [`Sizing::for_rate`], or when the memory cannot be allocated.
    pub fn new(capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        Self::with_seed(Sizing::for_rate(capacity, rate)?, 0)
    }

    /// Creates a filter of a given shape, whose hash starts from `seed`.
    ///
    /// # Errors
    ///
    /// When the memory cannot be allocated.
    pub fn with_seed(sizing: Sizing, seed: u64) -> Result<Self, ConfigError> {
        Ok(Self {
            words: zeroed_words(sizing.bits())?,
            sizing,
            seed,
            ones: 0,
        })
    }

    /// Marks a key as seen, in one test-and-set: `true` when it was new (the polarity of `HashSet::insert`).
    #[inline]
    pub fn insert(&mut self, key: &[u8]) -> bool {
        Filter::insert(self, key)
    }

    /// Says whether the key was seen: "no" is certain, "yes" is wrong at the false-positive rate.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        let probes = self.probes(self.digest(key));
        probes
            .as_slice()
            .iter()
            .all(|&at| self.words[word_of(at)] & mask_of(at) != 0)
    }

    /// Estimates the number of distinct keys that were offered: −(m/k)·ln(1 − X/m), with X the bits set.
    ///
    /// S. Swamidass, P. Baldi, "Mathematical correction for fingerprint similarity measures …", J. Chem. Inf. Model.
    /// 47(3), 2007. A key that was wrongly dropped would have set no bit, so dropped keys are part of the estimate. At
    /// X = m, where the formula has no value, half a zero bit is assumed to be left: (m/k)·ln(2m), a lower bound.
    pub fn estimated_len(&self) -> f64 {
        self.keys_at(self.ones)
    }

    /// Returns the chance that the next new key is taken for a seen one.
    ///
    /// The k probes are distinct, so it is ∏ᵢ (X − i) / (m − i) over i < k, which is (X/m)ᵏ but for tiny filters.
    pub fn false_positive_rate(&self) -> f64 {
        let (ones, bits) = (self.ones as f64, self.sizing.bits() as f64);
        (0..self.sizing.hashes())
            .map(f64::from)
            .map(|i| (ones - i).max(0.0) / (bits - i))
            .product()
    }

    /// Returns the share of bits that are set, from 0 to 1.
    pub fn fill(&self) -> f64 {
        self.ones as f64 / self.sizing.bits() as f64
    }

    /// Returns the shape of the filter.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// Returns the number of bits that are set.
    pub fn ones(&self) -> u64 {
        self.ones
    }

    #[inline]
    fn probes(&self, digest: Digest) -> Probes {
        Probes::draw(digest, self.sizing.bits(), self.sizing.hashes())
    }

    fn keys_at(&self, ones: u64) -> f64 {
        let (bits, hashes) = (self.sizing.bits() as f64, f64::from(self.sizing.hashes()));
        let zeros = (bits - ones as f64).max(0.5);
        bits / hashes * (bits / zeros).ln()
    }

    /// The noise of the estimate, √(m(eᵗ − t − 1)) / k with t = ks/m keys' worth of load.
    ///
    /// K.-Y. Whang et al., "A linear-time probabilistic counting algorithm", ACM TODS 15(2), 1990, section 4, for k = 1;
    /// k probes per key see k times the draws, and the estimate divides by k.
    fn estimate_noise(&self, keys: f64) -> f64 {
        let (bits, hashes) = (self.sizing.bits() as f64, f64::from(self.sizing.hashes()));
        let load = hashes * keys / bits;
        (bits * (load.exp_m1() - load).max(0.0)).sqrt() / hashes
    }
}

impl Filter for BloomFilter {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        Digest::of(key, self.seed)
    }

    #[inline]
    fn insert_digest(&mut self, _key: &[u8], digest: Digest) -> bool {
        let probes = self.probes(digest);
        let mut fresh = 0;
        for &at in probes.as_slice() {
            let word = &mut self.words[word_of(at)];
            fresh += u64::from(*word & mask_of(at) == 0);
            *word |= mask_of(at);
        }
        self.ones += fresh;
        fresh > 0
    }

    fn contains(&self, key: &[u8]) -> bool {
        Self::contains(self, key)
    }

    fn load(&self) -> Load {
        let estimated_len = self.estimated_len();
        Load {
            capacity: Some(self.sizing.capacity()),
            estimated_len,
            estimate_noise: self.estimate_noise(estimated_len),
            false_positive_rate: self.false_positive_rate(),
            bits: self.sizing.bits(),
            ones: self.ones,
            hashes: self.sizing.hashes(),
            memory_bytes: self.words.len() as u64 * 8,
        }
    }

    #[inline]
    fn ones(&self) -> u64 {
        self.ones
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        let bits = self.sizing.bits();
        let near = bits as f64 * -(-keys * f64::from(self.sizing.hashes()) / bits as f64).exp_m1();
        // The inverse is rounded; the formula itself decides between its neighbours.
        let from = (near as u64).saturating_sub(2);
        (from..=bits.min(from + 4)).find(|&ones| self.keys_at(ones) > keys)
    }
}

/// A filter's worth of zero bits, or an error where `vec!` would abort the process.
fn zeroed_words(bits: u64) -> Result<Vec<u64>, ConfigError> {
    let words = bits.div_ceil(64);
    let refused = ConfigError::CannotAllocate {
        bytes: words.saturating_mul(8),
    };
    let words = usize::try_from(words).map_err(|_| refused.clone())?;
    Vec::<u64>::new().try_reserve_exact(words).map_err(|_| refused)?;
    // Allocated anew, as zeroed pages: filling the reserved memory would touch all of it.
    Ok(vec![0; words])
}

#[inline]
fn word_of(at: u64) -> usize {
    // Fits: the words were allocated.
    (at / 64) as usize
}

#[inline]
fn mask_of(at: u64) -> u64 {
    1 << (at % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_counted_past_two_to_the_thirty_two() {
        let sizing = Sizing::explicit(1 << 34, 7).unwrap();
        let mut filter = BloomFilter::with_seed(sizing, 0).unwrap();
        // As if so many bits had been set: 2 GiB of memory need not be touched to see the count go on.
        filter.ones = u64::from(u32::MAX) - 3;
        let before = filter.estimated_len();
        for key in 0_u32..10 {
            filter.insert(&key.to_le_bytes());
        }
        assert!(filter.ones() > u64::from(u32::MAX));
        assert!(filter.estimated_len() > before);
        assert!((filter.estimated_len() - before - 10.0 * 4.0 / 3.0).abs() < 0.5);
    }

    #[test]
    fn the_counted_ones_are_the_ones_in_memory() {
        let mut filter = BloomFilter::new(1000, 0.01).unwrap();
        for key in 0_u32..3000 {
            filter.insert(&key.to_le_bytes());
        }
        let counted: u64 = filter.words.iter().map(|word| u64::from(word.count_ones())).sum();
        assert_eq!(filter.ones(), counted);
    }

    #[test]
    fn a_full_filter_has_a_finite_estimate_above_every_other() {
        let mut filter = BloomFilter::new(10, 0.1).unwrap();
        let mut last = 0.0;
        for key in 0_u32..10_000 {
            if filter.insert(&key.to_le_bytes()) {
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
                        assert!(filter.keys_at(ones) > keys);
                        assert!(ones == 0 || filter.keys_at(ones - 1) <= keys);
                    }
                    None => assert!(filter.keys_at(filter.sizing().bits()) <= keys),
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_allocated_is_an_error_and_no_abort() {
        let sizing = Sizing::explicit(1 << 48, 7).unwrap();
        assert_eq!(
            BloomFilter::with_seed(sizing, 0).unwrap_err(),
            ConfigError::CannotAllocate { bytes: 1 << 45 }
        );
    }

    #[test]
    fn another_seed_marks_other_bits() {
        let sizing = Sizing::for_rate(100, 0.01).unwrap();
        let mut one = BloomFilter::with_seed(sizing, 1).unwrap();
        let mut two = BloomFilter::with_seed(sizing, 2).unwrap();
        one.insert(b"key");
        two.insert(b"key");
        assert_ne!(one.words, two.words);
    }
}
