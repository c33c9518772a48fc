//! A filter that grows.

mod layer_sizing;

use layer_sizing::{MIN_LAYER_BYTES, layer_sizing};

use crate::bloom::BloomFilter;
use crate::filter::{Filter, Load};
use crate::hash::{Digest, Hashing};
use crate::loss::LossMeter;
use crate::sizing::{ConfigError, MAX_HASHES, Sizing};

// With another value of these two, saved filters keep the layers that they have, and the calls of a frontier's journal make others: its `LOGIC`
// goes up. GUIDE.md, `on_saturation.rs` and `seen_set.rs` name the growth, too.
/// The capacity of a layer divided by that of the previous layer.
pub const GROWTH: u64 = 3;

/// The false-positive rate of a layer divided by that of the previous layer.
pub const TIGHTENING: f64 = 0.8;

/// The maximum size of the next layer as a multiple of the previous one, by which files are checked. It is more than [`GROWTH`] because of rounding.
const MAX_GROWTH: u64 = 5;

/// A Bloom filter without a fixed capacity: when a layer is full, it adds a larger one.
///
/// P. S. Almeida, C. Baquero, N. Preguiça, D. Hutchison, "Scalable Bloom filters", Information Processing Letters 101(6),
/// 2007. Layer i has [`GROWTH`]ⁱ times the first capacity and a rate of p·(1 − r)·rⁱ with r = [`TIGHTENING`]. So the total rate stays
/// below p for any number of layers.
///
/// | | cost |
/// |---|---|
/// | insert, contains | one hash; one random access to memory per layer: 5 layers at 100 times the first capacity |
/// | memory | at 1 %: 14 bits per key in the first layer, 0.6 more in each further one; together they are 33 to 100 % full, and 83 % at 100 times the first capacity |
/// | adding a layer | mapping new memory; keys are not moved |
///
/// A good first capacity still pays: fewer layers, fewer bits. Behind a [`Sieve`](crate::Sieve), the log has one warning per level of the
/// first capacity: see [`saturation`](crate::saturation).
///
/// ```
/// use sieve::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::new(100, 0.01)?;
/// for n in 0..10_000_u32 {
///     seen.insert(&n.to_le_bytes());
/// }
/// assert_eq!(seen.layers().len(), 5);
/// assert!(seen.false_positive_rate() < 0.01);
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScalableBloomFilter {
    pub(crate) newest: BloomFilter,
    older: Vec<BloomFilter>,
    rate: f64,
    /// Not saved, as the next.
    max_bytes: Option<u64>,
    /// By which its load is reported.
    reported_capacity: u64,
    /// Set bits, keys and false-positive rate of all older layers together, which do not change any more.
    older_ones: u64,
    older_estimate: f64,
    older_rate: f64,
    /// New keys that older layers took for seen: they set no bit of the newest.
    hidden: LossMeter,
    /// The set bits at which the newest is full; `u64::MAX` while it cannot grow.
    grow_at: u64,
}

impl ScalableBloomFilter {
    /// Creates a filter whose first layer holds `capacity` keys and whose total rate stays at or below `rate`.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::for_rate`], or memory that cannot be allocated.
    pub fn new(capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        Self::with_hashing(capacity, rate, Hashing::default())
    }

    /// Creates a filter with a given hash and seed.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn with_hashing(capacity: u64, rate: f64, hashing: Hashing) -> Result<Self, ConfigError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(ConfigError::RateOutOfRange(rate));
        }
        let first = BloomFilter::with_hashing(layer_sizing(capacity, rate, 0)?, hashing)?;
        Ok(Self::with_layer(first, rate))
    }

    /// Marks a key as seen: `true` if it was new. Adds a layer if the newest one is full then.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        Filter::insert(self, key.as_ref())
    }

    /// Returns whether the key was seen: "no" is certain, "yes" is wrong at the false-positive rate.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let digest = self.newest.digest(key.as_ref());
        self.newest.contains_digest(digest) || self.older_contain(digest)
    }

    /// Estimates the number of distinct keys that were offered.
    pub fn estimated_len(&self) -> f64 {
        self.older_estimate + self.newest.estimated_len() + self.hidden.lost()
    }

    /// Returns the chance that the next new key is treated as seen: 1 − ∏(1 − fᵢ) over the layers.
    pub fn false_positive_rate(&self) -> f64 {
        1.0 - (1.0 - self.older_rate) * (1.0 - self.newest.false_positive_rate())
    }

    /// Sets the most memory that all layers may take, in bytes; `None`, the default, for no bound.
    ///
    /// A layer that would pass it is not added: the rate then rises as in any full filter, and the log says so. A first layer that is
    /// larger stays.
    pub fn set_max_bytes(&mut self, bytes: Option<u64>) {
        self.max_bytes = bytes;
        // One that could not grow tries it again with the next key.
        self.grow_at = full_at(&self.newest);
    }

    fn has_room_for(&self, sizing: &Sizing) -> bool {
        let bytes = self.memory_bytes().saturating_add(sizing.memory_bytes());
        self.max_bytes.is_none_or(|most| bytes <= most)
    }

    /// Sets the capacity by which its load is reported and its levels are counted: by default, that of the first layer. It changes no layer.
    pub fn set_reported_capacity(&mut self, keys: u64) {
        self.reported_capacity = keys;
    }

    /// Returns the keys that all present layers hold at the rate: those in the full layers, and the capacity of the newest.
    pub fn capacity(&self) -> u64 {
        // A full layer has slightly more keys than its capacity: the last one made its estimate exceed it.
        let held = (self.older_estimate + self.hidden.lost()).ceil();
        (held as u64).saturating_add(self.newest.sizing().capacity())
    }

    /// Returns the layers, the oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &BloomFilter> {
        let count = self.older.len() + 1;
        (0..count).map(|at| self.older.get(at).unwrap_or(&self.newest))
    }

    /// Returns the memory of the filter, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.layers().map(BloomFilter::memory_bytes).sum()
    }

    /// Returns the hash, with its seed or key.
    pub fn hashing(&self) -> Hashing {
        self.newest.hashing()
    }

    /// Returns the configured total rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) fn hidden(&self) -> f64 {
        self.hidden.lost()
    }

    /// Returns whether the next layer would have a plausible size, compared with the newest.
    ///
    /// A crafted file can state a rate that its layers never had. The first key after loading would allocate memory for that rate.
    pub(crate) fn next_layer_is_plausible(&self) -> bool {
        self.next_sizing().map_or(true, |next| {
            next.memory_bytes() / MAX_GROWTH <= self.newest.sizing().memory_bytes().max(MIN_LAYER_BYTES)
        })
    }

    /// `None` without layers.
    pub(crate) fn from_layers(layers: Vec<BloomFilter>, rate: f64, hidden: f64) -> Option<Self> {
        let mut layers = layers.into_iter();
        let first = layers.next()?;
        let mut filter = Self::with_layer(first, rate);
        for layer in layers {
            filter.add_layer(layer);
        }
        // Without an upper bound of its variance, which is not saved.
        filter.hidden.resume(hidden, 0.0);
        Some(filter)
    }

    fn with_layer(newest: BloomFilter, rate: f64) -> Self {
        Self {
            grow_at: full_at(&newest),
            max_bytes: None,
            reported_capacity: newest.sizing().capacity(),
            newest,
            older: Vec::new(),
            rate,
            older_ones: 0,
            older_estimate: 0.0,
            older_rate: 0.0,
            hidden: LossMeter::default(),
        }
    }

    fn add_layer(&mut self, next: BloomFilter) {
        self.grow_at = full_at(&next);
        let full = std::mem::replace(&mut self.newest, next);
        self.older_ones += full.ones();
        self.older_estimate += full.estimated_len();
        self.older_rate = 1.0 - (1.0 - self.older_rate) * (1.0 - full.false_positive_rate());
        self.older.push(full);
        self.hidden.refresh();
    }

    #[inline]
    fn older_contain(&self, digest: Digest) -> bool {
        // The largest layers contain the most keys.
        self.older.iter().rev().any(|layer| layer.contains_digest(digest))
    }

    #[inline]
    fn grow_if_full(&mut self) {
        if self.newest.ones() >= self.grow_at {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let sizing = self.next_sizing().ok().filter(|sizing| self.has_room_for(sizing));
        match sizing.and_then(|sizing| BloomFilter::with_hashing(sizing, self.hashing()).ok()) {
            Some(next) => self.add_layer(next),
            None => self.grow_at = u64::MAX,
        }
    }

    fn next_sizing(&self) -> Result<Sizing, ConfigError> {
        let capacity = self.newest.sizing().capacity().saturating_mul(GROWTH);
        layer_sizing(capacity, self.rate, self.older.len() as i32 + 1)
    }

    /// The new keys that are hidden for each one that is accepted: both are shares of the new keys.
    fn hidden_per_accepted(&self) -> f64 {
        let rate = self.false_positive_rate();
        if rate < 1.0 {
            self.older_rate / (1.0 - rate)
        } else {
            0.0
        }
    }
}

fn full_at(layer: &BloomFilter) -> u64 {
    layer.ones_above(layer.sizing().capacity() as f64).unwrap_or(u64::MAX)
}

impl Filter for ScalableBloomFilter {
    type Digest = Digest;

    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.newest.digest(key)
    }

    // Not inlined: it would stand in the loop of each hash, and in callers that mostly have a plain filter.
    #[inline(never)]
    fn prefetch(&self, digest: Digest) {
        self.newest.prefetch(digest);
        for layer in &self.older {
            layer.prefetch(digest);
        }
    }

    #[inline]
    fn insert_digest(&mut self, key: &[u8], digest: Digest) -> bool {
        if self.older_contain(digest) || !self.newest.insert_digest(key, digest) {
            return false;
        }
        if !self.older.is_empty() {
            let mut hidden = std::mem::take(&mut self.hidden);
            hidden.accept(1, self.newest.ones(), || {
                (self.newest.sizing().bits(), self.hidden_per_accepted())
            });
            self.hidden = hidden;
        }
        self.grow_if_full();
        true
    }

    /// With one layer, as the layer does, which hashes and marks in one.
    #[inline]
    fn insert(&mut self, key: &[u8]) -> bool {
        if !self.older.is_empty() {
            let digest = self.newest.digest(key);
            return self.insert_digest(key, digest);
        }
        let is_new = Filter::insert(&mut self.newest, key);
        if is_new {
            self.grow_if_full();
        }
        is_new
    }

    #[inline]
    fn digest_batch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, digests: &mut [Digest]) -> usize {
        self.hashing()
            .digest_batch(keys, digests, |digest| self.prefetch(digest))
    }

    /// With one layer that has room for all, as the layer does.
    #[inline]
    fn insert_batch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, digests: &[Digest], is_new: &mut [bool]) {
        let most_ones = digests.len() as u64 * u64::from(MAX_HASHES);
        if self.older.is_empty() && self.newest.ones() + most_ones < self.grow_at {
            return self.newest.insert_batch(keys, digests, is_new);
        }
        for ((key, digest), new) in keys.zip(digests).zip(is_new) {
            *new = self.insert_digest(key, *digest);
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        Self::contains(self, key)
    }

    fn load(&self) -> Load {
        Load {
            capacity: Some(self.reported_capacity),
            grown_capacity: (!self.older.is_empty()).then(|| self.capacity()),
            estimated: self.estimated_len(),
            rate: self.false_positive_rate(),
            ..self.newest.load_with(&self.older)
        }
    }

    #[inline]
    fn ones(&self) -> u64 {
        self.older_ones + self.newest.ones()
    }

    #[inline]
    fn layers(&self) -> u32 {
        self.older.len() as u32 + 1
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        let in_newest = keys - self.older_estimate - self.hidden.lost();
        let ones = self.newest.ones_above(in_newest.max(0.0))?;
        Some(self.older_ones + ones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_rate_stays_below_the_promise_at_a_hundred_times_the_first_capacity() {
        for (capacity, rate) in [(1_000, 0.01), (1_000, 0.001), (20, 0.1)] {
            let mut filter = ScalableBloomFilter::new(capacity, rate).unwrap();
            for n in 0..capacity * 100 {
                filter.insert(format!("https://example.com/{n}").as_bytes());
            }
            assert_eq!(
                filter.layers().len(),
                5,
                "1 + 3 + 9 + 27 + 81 = 121 times the first capacity"
            );
            let hits = (0..200_000)
                .filter(|n| filter.contains(format!("https://example.org/{n}").as_bytes()))
                .count() as f64
                / 2e5;
            let stated = filter.false_positive_rate();
            assert!(stated < rate, "{stated}");
            assert!(
                (hits - stated).abs() < 6.0 * (stated / 2e5).sqrt() + 1e-9,
                "measured {hits}, stated {stated}"
            );
        }
    }

    #[test]
    fn every_layer_keeps_its_share_of_the_promise_however_small_it_is() {
        for rate in [0.9, 0.5, 0.1, 0.01, 1e-4, 1e-6, 1e-9, 1e-15] {
            for capacity in [1, 20, 500, 900, 3_000, 6_600, 8_000, 30_000] {
                for number in [0, 1, 6] {
                    let share = rate * (1.0 - TIGHTENING) * TIGHTENING.powi(number);
                    let sizing = layer_sizing(capacity, rate, number).unwrap();
                    assert!(sizing.expected_rate() <= share, "n={capacity} p={rate}: {sizing:?}");
                    assert_eq!(sizing.capacity(), capacity);
                }
            }
        }
    }

    #[test]
    fn the_estimate_counts_the_keys_of_all_layers() {
        let mut filter = ScalableBloomFilter::new(1_000, 0.05).unwrap();
        for n in 0_u64..60_000 {
            filter.insert(n.to_le_bytes());
        }
        let load = filter.load();
        let off = (load.estimated - 60_000.0) / load.estimate_noise;
        assert!(off.abs() < 5.0, "{off} standard deviations");
        assert_eq!(load.layers, 5);
        assert_eq!(load.ones, Filter::ones(&filter));
        assert!((121_000..123_000).contains(&filter.capacity()), "{}", filter.capacity());
    }

    #[test]
    fn keys_that_older_layers_hide_are_part_of_the_estimate_at_a_high_rate_too() {
        let hashing = Hashing::Murmur3 { seed: 1 };
        let mut filter = ScalableBloomFilter::with_hashing(1_000, 0.5, hashing).unwrap();
        for n in 0_u64..60_000 {
            filter.insert(n.to_le_bytes());
        }
        let load = filter.load();
        assert!(filter.hidden() > 3_000.0, "{}", filter.hidden());
        let off = (load.estimated - 60_000.0) / load.estimate_noise;
        assert!(off.abs() < 3.5, "{off} standard deviations");
    }

    #[test]
    fn a_filter_that_cannot_grow_says_so_and_behaves_like_a_full_one() {
        // As if its newest layer were of terabytes: a further one has more bits than there may be.
        let sizing = Sizing::explicit_blocks(64, 8).unwrap().with_capacity(1 << 60).unwrap();
        let layer = BloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
        let mut filter = ScalableBloomFilter::from_layers(vec![layer], 0.01, 0.0).unwrap();
        filter.grow_at = 800;
        for n in 0_u64..4_000 {
            assert_eq!(filter.grow_at == u64::MAX, Filter::ones(&filter) >= 800);
            filter.insert(n.to_le_bytes());
        }
        assert_eq!(filter.layers().len(), 1);
        assert!((0_u64..4_000).all(|n| filter.contains(n.to_le_bytes())));
        assert!(filter.false_positive_rate() > 0.01);
        assert!(
            filter.ones_above(100.0).is_some_and(|ones| ones < 900),
            "a level below the capacity"
        );
    }

    #[test]
    fn no_layer_is_added_that_would_pass_the_bound_until_it_is_raised() {
        let mut filter = ScalableBloomFilter::new(1_000, 0.01).unwrap();
        filter.set_max_bytes(Some(12 << 10));
        for n in 0_u64..9_000 {
            filter.insert(n.to_le_bytes());
            assert!(filter.memory_bytes() <= 12 << 10);
        }
        assert!(filter.grow_at == u64::MAX && filter.false_positive_rate() > 0.01);
        filter.set_max_bytes(None);
        for n in 9_000_u64..10_000 {
            filter.insert(n.to_le_bytes());
        }
        assert!(filter.grow_at < u64::MAX && filter.memory_bytes() > 12 << 10);
        assert!((0_u64..10_000).all(|n| filter.contains(n.to_le_bytes())));
    }

    #[test]
    fn inserted_keys_are_found_in_every_layer() {
        let mut filter = ScalableBloomFilter::new(10, 0.01).unwrap();
        for n in 0_u32..5_000 {
            filter.insert(n.to_le_bytes());
            assert!(filter.contains(n.to_le_bytes()));
        }
        assert!((0_u32..5_000).all(|n| filter.contains(n.to_le_bytes()) && !filter.insert(n.to_le_bytes())));
    }
}
