//! The builder of a sieve: its size, error rate, hash and policy on saturation.

use std::collections::VecDeque;

use crate::bloom::BloomFilter;
use crate::hash::Hashing;
use crate::on_saturation::OnSaturation;
use crate::queue::Queue;
use crate::scalable::ScalableBloomFilter;
use crate::seen_set::SeenSet;
use crate::sieve::Sieve;
use crate::sizing::{ConfigError, Layout, Sizing};

/// The default false-positive rate: 1 %.
pub const DEFAULT_FALSE_POSITIVE_RATE: f64 = 0.01;

impl Sieve {
    /// Creates a sieve of strings for `capacity` distinct keys, with a false-positive rate of 1 %.
    ///
    /// It hashes by MurmurHash3 with seed 0. For untrusted URLs, use the [`builder`](Self::builder) with a random secret seed, by
    /// [`Hashing::random`](crate::Hashing::random): [`hash`](crate::hash) says why. For items of your own, use
    /// [`build_with`](SieveBuilder::build_with).
    ///
    /// # Errors
    ///
    /// A capacity of 0, or memory that cannot be allocated.
    pub fn new(capacity: u64) -> Result<Self, ConfigError> {
        Self::builder().capacity(capacity).build()
    }

    /// Creates a builder of a sieve of strings.
    pub fn builder() -> SieveBuilder {
        SieveBuilder::default()
    }
}

/// The builder of a [`Sieve`]; see [`Sieve::builder`].
#[derive(Debug, Clone)]
pub struct SieveBuilder {
    capacity: u64,
    rate: f64,
    layout: Option<Layout>,
    hashing: Hashing,
    on_saturation: OnSaturation,
}

impl Default for SieveBuilder {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            rate: DEFAULT_FALSE_POSITIVE_RATE,
            layout: None,
            hashing: Hashing::default(),
            on_saturation: OnSaturation::default(),
        }
    }
}

impl SieveBuilder {
    /// Sets the number of distinct keys that are expected. The default is 1 000 000.
    #[must_use]
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = keys;
        self
    }

    /// Sets the false-positive rate at capacity, a fraction above 0 and below 1. The default is 0.01.
    #[must_use]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the layout of the probes. The default is the choice of [`Sizing::for_rate`], which a filter that grows always uses.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Sets the hash to MurmurHash3 with this seed. The default seed is 0, so that equal input gives equal filters. It replaces an
    /// earlier [`hashing`](Self::hashing).
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hashing(Hashing::Murmur3 { seed })
    }

    /// Sets the hash with its seed or key. The default is MurmurHash3 with seed 0. [`hash`](crate::hash) says which to use.
    #[must_use]
    pub fn hashing(mut self, hashing: Hashing) -> Self {
        self.hashing = hashing;
        self
    }

    /// Sets what happens beyond the capacity. The default is [`OnSaturation::Warn`].
    #[must_use]
    pub fn on_saturation(mut self, policy: OnSaturation) -> Self {
        self.on_saturation = policy;
        self
    }

    /// Builds the sieve with a `VecDeque<String>` as its queue.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::for_rate`], or memory that cannot be allocated.
    pub fn build(self) -> Result<Sieve, ConfigError> {
        self.build_with(VecDeque::new())
    }

    /// Builds the sieve with a queue of your own, or with a `VecDeque` of items of your own.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::Sieve;
    ///
    /// let mut to_visit = Sieve::builder().capacity(1_000).build_with(VecDeque::<Vec<u8>>::new())?;
    /// assert!(to_visit.push(vec![1, 2, 3]));
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_with<Q: Queue>(self, queue: Q) -> Result<Sieve<SeenSet, Q>, ConfigError> {
        let policy = self.on_saturation;
        Ok(Sieve::from_parts(self.build_filter()?, queue).on_saturation(policy))
    }

    /// Builds the filter alone: one that grows with [`OnSaturation::Grow`], else a plain one.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_filter(self) -> Result<SeenSet, ConfigError> {
        match self.on_saturation {
            OnSaturation::Grow => {
                ScalableBloomFilter::with_hashing(self.capacity, self.rate, self.hashing).map(SeenSet::Growing)
            }
            OnSaturation::Warn | OnSaturation::Refuse => {
                let sizing = match self.layout {
                    Some(layout) => Sizing::in_layout(layout, self.capacity, self.rate),
                    None => Sizing::for_rate(self.capacity, self.rate),
                }?;
                BloomFilter::with_hashing(sizing, self.hashing).map(SeenSet::Fixed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rate_is_one_percent_and_the_default_layout_blocks() {
        let filter = SieveBuilder::default()
            .capacity(700)
            .on_saturation(OnSaturation::Warn)
            .build_filter()
            .unwrap();
        let SeenSet::Fixed(filter) = filter else {
            panic!("a filter that does not grow");
        };
        assert_eq!(filter.sizing(), Sizing::in_layout(Layout::Blocks, 700, 0.01).unwrap());
    }

    #[test]
    fn the_builder_builds_what_it_was_given() {
        let hashing = Hashing::Xxh3 { seed: 9 };
        let describe = || {
            SieveBuilder::default()
                .capacity(700)
                .false_positive_rate(0.003)
                .hashing(hashing)
        };
        let growing = describe().on_saturation(OnSaturation::Grow).build_filter().unwrap();
        let SeenSet::Growing(filter) = growing else {
            panic!("a filter that grows");
        };
        assert!((filter.rate() - 0.003).abs() < f64::EPSILON);
        assert_eq!((filter.capacity(), filter.hashing()), (700, hashing));
        for policy in [OnSaturation::Warn, OnSaturation::Refuse] {
            for layout in [Layout::Blocks, Layout::Classic] {
                let fixed = describe().layout(layout).on_saturation(policy).build_filter().unwrap();
                let SeenSet::Fixed(filter) = fixed else {
                    panic!("a filter that does not grow");
                };
                assert_eq!(filter.sizing(), Sizing::in_layout(layout, 700, 0.003).unwrap());
                assert_eq!(filter.hashing(), hashing);
            }
        }
    }
}
