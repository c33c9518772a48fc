//! The size of a filter: the formulas, with their sources.
//!
//! With *n* keys, *m* bits and *k* probes per key:
//!
//! * rate ≈ (1 − e^(−kn/m))^k, smallest at k = ln 2 · m/n, where m = −n·ln p / (ln 2)²: B. H. Bloom, "Space/time
//!   trade-offs in hash coding with allowable errors", CACM 13(7), 1970, and A. Broder, M. Mitzenmacher, "Network
//!   applications of Bloom filters", Internet Mathematics 1(4), 2004, section 2.
//! * That formula is a limit for large m. The rate of a small filter lies above it: P. Bose et al., "On the
//!   false-positive rate of Bloom filters", Information Processing Letters 108(4), 2008. Our k probes of one key are
//!   always distinct, which gives [`false_positive_rate`] a short exact form by inclusion and exclusion.
//!
//! Memory grows linearly with n and with the logarithm of 1/p. The length of the keys makes no difference. At the best number of
//! probes, p = 2⁻ᵏ; whole numbers of probes stay within 7 % of that:
//!
//! | bits per key | probes | rate |
//! |---|---|---|
//! | 4 | 3 | 14.7 % |
//! | 8 | 6 | 2.16 % |
//! | 10 | 7 | 0.819 % |
//! | 12 | 8 | 0.314 % |
//! | 16 | 11 | 0.0459 % |
//! | 20 | 14 | 0.00671 % |
//!
//! A [`Sizing`] made [for a rate](Sizing::for_rate) starts from the textbook's m, rounded **up**, and adds the few bits
//! so that the *exact* rate with a whole number of probes is at most p: in the [classic](Layout::Classic) layout 0.1 % at p = 1 %, and
//! more for tiny filters; for blocks, see the next section.
//!
//! # In blocks
//!
//! In [blocks](Layout::Blocks), the default, all probes of a key lie in one cache line of 512 bits, spread over its eight words;
//! 511 of the bits can be probes. One access to memory per key costs 5 % more bits at p = 1 %, 9 % at 0.1 %, because keys fall unevenly on
//! blocks, and the fuller ones are wrong more often (F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient
//! Bloom filters", ACM JEA 14, 2009). Two things are proved in the source, and measured by the tests:
//!
//! * The estimate stays −(m/k)·ln(1 − X/m), with X ones among m bits: a block with j keys leaves a bit alone with probability
//!   (1 − k/511)ʲ, and in the mean over blocks with binomial loads that is exp(−kn/m).
//! * The rate is not (X/m)ᵏ but the mean over the blocks. With B blocks, S a set of a new key's probes and a(S) the chance that an
//!   old key of the same block leaves all of S alone, it is Σ (−1)^|S| · (1 − (1 − a(S))/B)ⁿ over all S, which is what a filter is
//!   sized by.

mod blocks;
mod classic;
mod estimate;
mod practice;

use std::f64::consts::LN_2;

#[cfg(test)]
pub(crate) use blocks::bits_in_word;
pub(crate) use blocks::{BLOCK_BITS, WORDS};
pub use blocks::{MAX_BLOCK_HASHES, MIN_BLOCK_RATE};
pub use classic::false_positive_rate;
pub use practice::{Practice, best_practice};

/// The largest number of probes per key; the best one for a false-positive rate of 2⁻³².
///
/// A smaller rate is still kept: such a filter gets more bits instead of more probes.
pub const MAX_HASHES: u32 = 32;

/// The largest number of bits: 2⁴⁸, or 32 TiB, beyond which rounding in the estimates would show.
pub const MAX_BITS: u64 = 1 << 48;

/// Why a filter cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The capacity is zero.
    #[error("the capacity is 0: give the number of distinct keys you expect, at least 1")]
    ZeroCapacity,
    /// The false-positive rate is not a number above 0 and below 1.
    #[error("the false-positive rate {0} is not between 0 and 1: give a fraction such as 0.01 for 1 %")]
    RateOutOfRange(f64),
    /// The number of bits is zero, or below the number of probes, which must all be distinct.
    #[error("{bits} bits are too few for {hashes} distinct probes per key: give at least as many bits as probes")]
    TooFewBits {
        /// The bits asked for.
        bits: u64,
        /// The probes per key asked for.
        hashes: u32,
    },
    /// The number of probes per key is zero or above [`MAX_HASHES`] ([`MAX_BLOCK_HASHES`] in blocks).
    #[error(
        "{0} probes per key are not possible: give 1 to {most}, or to {most_in_blocks} in blocks",
        most = MAX_HASHES,
        most_in_blocks = MAX_BLOCK_HASHES
    )]
    HashesOutOfRange(u32),
    /// The false-positive rate is below [`MIN_BLOCK_RATE`], and the layout is blocks.
    #[error(
        "blocks keep no false-positive rate as small as {0}: give at least {least}, or the classic layout",
        least = MIN_BLOCK_RATE
    )]
    RateTooSmallForBlocks(f64),
    /// The layout is classic, and the filter supports blocks only.
    #[error("a concurrent filter supports blocks only: give a shape in Layout::Blocks")]
    BlocksNeeded,
    /// The filter would need more than [`MAX_BITS`].
    #[error(
        "such a filter needs more than 2^48 bits (32 TiB): give a smaller capacity or a larger false-positive rate"
    )]
    TooManyBits,
    /// The allocator cannot allocate this many bytes.
    #[error(
        "{bytes} bytes for the filter cannot be allocated: give a smaller capacity or a larger false-positive rate"
    )]
    CannotAllocate {
        /// The bytes asked for.
        bytes: u64,
    },
}

/// The layout of the probes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Layout {
    /// In one block of 512 bits, a cache line: one memory access per key, for about 5 % more bits at a rate of 1 %.
    #[default]
    Blocks,
    /// Anywhere: the textbook's filter, with the fewest bits, and one memory access per probe.
    Classic,
}

/// The shape of a filter: its layout, bits, probes per key and capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizing {
    layout: Layout,
    bits: u64,
    hashes: u32,
    capacity: u64,
}

impl Sizing {
    /// Returns the smallest shape that holds `capacity` keys with a false-positive rate of at most `rate`.
    ///
    /// The layout is [blocks](Layout::Blocks), or [classic](Layout::Classic) for rates below [`MIN_BLOCK_RATE`].
    ///
    /// # Errors
    ///
    /// A capacity of 0, a rate that is not above 0 and below 1 (a NaN is not), or a need of more than [`MAX_BITS`].
    ///
    /// ```
    /// let sizing = sieve::Sizing::for_rate(1_000_000, 0.01)?;
    /// assert!(sizing.expected_rate() <= 0.01);
    /// assert!(sizing.memory_bytes() < 1_270_000);
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        match blocks::for_rate(capacity, rate) {
            Err(ConfigError::RateTooSmallForBlocks(_)) => classic::for_rate(capacity, rate),
            other => other,
        }
    }

    /// Returns the smallest shape of a given layout that holds `capacity` keys at a rate of at most `rate`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_rate`](Self::for_rate), and a rate below [`MIN_BLOCK_RATE`] in blocks.
    ///
    /// ```
    /// use sieve::{Layout, Sizing};
    ///
    /// let sizing = Sizing::in_layout(Layout::Classic, 1_000_000, 0.01)?;
    /// assert_eq!(sizing.hashes(), 7);
    /// assert_eq!(sizing.bits().div_ceil(8) / 1024, 1171); // KiB
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    pub fn in_layout(layout: Layout, capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        match layout {
            Layout::Blocks => blocks::for_rate(capacity, rate),
            Layout::Classic => classic::for_rate(capacity, rate),
        }
    }

    /// Returns the classic shape with exactly these bits and probes per key.
    ///
    /// Its capacity is the number of keys for which `hashes` is the best number of probes, m·ln 2 / k, at which half
    /// of the bits are set; [`with_capacity`](Self::with_capacity) sets another.
    ///
    /// # Errors
    ///
    /// No probe or more than [`MAX_HASHES`]; fewer bits than probes; more than [`MAX_BITS`].
    pub fn explicit(bits: u64, hashes: u32) -> Result<Self, ConfigError> {
        if !(1..=MAX_HASHES).contains(&hashes) {
            return Err(ConfigError::HashesOutOfRange(hashes));
        }
        if bits < u64::from(hashes) {
            return Err(ConfigError::TooFewBits { bits, hashes });
        }
        Self::checked(Layout::Classic, bits, hashes)
    }

    /// Returns the shape with exactly this number of blocks of 64 bytes and probes per key, with a capacity as [`explicit`](Self::explicit).
    ///
    /// # Errors
    ///
    /// No block; no probe or more than [`MAX_BLOCK_HASHES`]; more than [`MAX_BITS`].
    pub fn explicit_blocks(blocks: u64, hashes: u32) -> Result<Self, ConfigError> {
        if !(1..=MAX_BLOCK_HASHES).contains(&hashes) {
            return Err(ConfigError::HashesOutOfRange(hashes));
        }
        if blocks == 0 {
            return Err(ConfigError::TooFewBits { bits: 0, hashes });
        }
        Self::checked(Layout::Blocks, blocks.saturating_mul(BLOCK_BITS), hashes)
    }

    fn checked(layout: Layout, bits: u64, hashes: u32) -> Result<Self, ConfigError> {
        if bits > MAX_BITS {
            return Err(ConfigError::TooManyBits);
        }
        let capacity = ((bits as f64 * LN_2 / f64::from(hashes)) as u64).max(1);
        Ok(Self {
            layout,
            bits,
            hashes,
            capacity,
        })
    }

    /// Sets the capacity. The levels of [`Saturation`](crate::Saturation) are multiples of it.
    ///
    /// # Errors
    ///
    /// A capacity of 0.
    pub fn with_capacity(self, capacity: u64) -> Result<Self, ConfigError> {
        if capacity == 0 {
            return Err(ConfigError::ZeroCapacity);
        }
        Ok(Self { capacity, ..self })
    }

    /// Returns the layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the number of bits that can be probes, m.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the number of probes per key, k.
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Returns the capacity in keys, n.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the memory of a plain filter of this shape, in bytes. On Linux, one of 1 MiB and more can take up to 1 MiB beyond that, because
    /// it lies on pages of 2 MiB where the system has them.
    pub fn memory_bytes(&self) -> u64 {
        self.words().saturating_mul(8)
    }

    /// Returns the expected false-positive rate at capacity.
    ///
    /// Cost: microseconds; in blocks half a millisecond, the first time that a number of probes is used.
    pub fn expected_rate(&self) -> f64 {
        self.rate_at(self.capacity as f64)
    }

    pub(crate) fn rate_at(&self, keys: f64) -> f64 {
        match self.layout {
            Layout::Classic => classic::rate_at(self.bits, self.hashes, keys),
            Layout::Blocks => blocks::rate_at(self.blocks(), self.hashes, keys),
        }
    }

    pub(crate) fn words(&self) -> u64 {
        match self.layout {
            Layout::Blocks => self.blocks() * WORDS as u64,
            Layout::Classic => self.bits.div_ceil(64),
        }
    }

    pub(crate) fn probe_bits(&self, word: u64) -> u64 {
        match self.layout {
            Layout::Blocks if word % WORDS as u64 == WORDS as u64 - 1 => u64::MAX >> 1,
            Layout::Classic if (word + 1) * 64 > self.bits => u64::MAX >> ((word + 1) * 64 - self.bits).min(63),
            _ => u64::MAX,
        }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.bits / BLOCK_BITS
    }
}

/// Returns the textbook's number of bits, ⌈−n·ln p / (ln 2)²⌉, which is a lower bound for a whole number of probes.
///
/// # Errors
///
/// The errors of [`Sizing::for_rate`].
pub fn textbook_bits(capacity: u64, rate: f64) -> Result<u64, ConfigError> {
    if capacity == 0 {
        return Err(ConfigError::ZeroCapacity);
    }
    if !(rate > 0.0 && rate < 1.0) {
        return Err(ConfigError::RateOutOfRange(rate));
    }
    let bits = (-(capacity as f64) * rate.ln() / (LN_2 * LN_2)).ceil();
    if bits > MAX_BITS as f64 {
        return Err(ConfigError::TooManyBits);
    }
    Ok((bits as u64).max(1))
}

/// Returns the best number of probes per key, ln 2 · m/n, which is seldom a whole number.
pub fn best_hashes(bits: u64, keys: u64) -> f64 {
    LN_2 * bits as f64 / keys as f64
}

/// Returns the least number from `low` to `most` for which `keeps` is true. It must be true for all larger numbers, too.
fn least(mut low: u64, most: u64, keeps: impl Fn(u64) -> bool) -> Option<u64> {
    low = low.max(1);
    if keeps(low) {
        return Some(low);
    }
    let mut step = 1;
    while !keeps(low.checked_add(step)?) {
        low += step;
        step *= 2;
        if low > most {
            return None;
        }
    }
    let mut high = low + step;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if keeps(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (high <= most).then_some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate by the whole distribution of the number of set bits: slow, and of another origin than the formula.
    fn rate_by_distribution(bits: usize, hashes: usize, keys: usize) -> f64 {
        let choose = |n: usize, k: usize| -> f64 {
            if k > n {
                0.0
            } else {
                (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
            }
        };
        let mut chance = vec![0.0; bits + 1];
        chance[0] = 1.0;
        for _ in 0..keys {
            let mut next = vec![0.0; bits + 1];
            for (ones, &before) in chance.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                for fresh in 0..=hashes.min(bits - ones) {
                    let ways = choose(bits - ones, fresh) * choose(ones, hashes - fresh);
                    next[ones + fresh] += before * ways / choose(bits, hashes);
                }
            }
            chance = next;
        }
        chance
            .iter()
            .enumerate()
            .map(|(ones, p)| p * choose(ones, hashes) / choose(bits, hashes))
            .sum()
    }

    fn classic(capacity: u64, rate: f64) -> Sizing {
        Sizing::in_layout(Layout::Classic, capacity, rate).unwrap()
    }

    #[test]
    fn the_exact_rate_is_that_of_the_whole_distribution_of_set_bits() {
        for (bits, hashes, keys) in [
            (24, 4, 5),
            (24, 3, 5),
            (96, 7, 10),
            (63, 1, 9),
            (200, 12, 12),
            (8, 7, 3),
        ] {
            let oracle = rate_by_distribution(bits, hashes, keys);
            let rate = false_positive_rate(bits as u64, hashes as u32, keys as u64);
            assert!(
                (rate / oracle - 1.0).abs() < 1e-9,
                "m={bits} k={hashes} n={keys}: {rate} is not {oracle}"
            );
        }
    }

    #[test]
    fn above_twenty_probes_the_expansion_meets_the_distribution() {
        let oracle = rate_by_distribution(700, 22, 22);
        let rate = false_positive_rate(700, 22, 22);
        assert!((rate / oracle - 1.0).abs() < 0.02, "{rate} is not {oracle}");
    }

    #[test]
    fn the_rate_of_few_keys_is_that_of_the_distribution_though_the_sum_has_no_digits_left_for_it() {
        for (bits, hashes) in [(1_000, 7), (700, 12), (2_000, 10), (500, 20)] {
            for keys in [1, 2, 3, 5, 8] {
                let oracle = rate_by_distribution(bits, hashes, keys);
                let rate = false_positive_rate(bits as u64, hashes as u32, keys as u64);
                assert!(
                    (rate / oracle - 1.0).abs() < 0.02,
                    "m={bits} k={hashes} n={keys}: {rate} is not {oracle}"
                );
            }
        }
    }

    #[test]
    fn the_rate_of_a_large_filter_is_the_textbook_s_at_every_fill() {
        for (bits, hashes) in [(1_u64 << 40, 7), (9_585_058_377_367, 7), (1 << 47, 10), (1 << 48, 20)] {
            for bits_per_key in [2.0, 10.0, 20.0, 1e3, 1e6] {
                let keys = bits as f64 / bits_per_key;
                let textbook = (-(-f64::from(hashes) / bits_per_key).exp_m1()).powi(hashes as i32);
                let rate = false_positive_rate(bits, hashes, keys as u64);
                assert!(
                    (rate / textbook - 1.0).abs() < 1e-3,
                    "m={bits} k={hashes}, {bits_per_key} bits per key: {rate} is not {textbook}"
                );
            }
        }
    }

    #[test]
    fn the_textbook_sizes_are_met() {
        let kib = |n, p| textbook_bits(n, p).unwrap() as f64 / 8.0 / 1024.0;
        assert!((kib(10_000, 0.01) - 11.70).abs() < 0.005);
        assert!((kib(1_000_000, 0.01) / 1024.0 - 1.143).abs() < 0.0005);
        assert!((kib(1_000_000, 0.0001) / 1024.0 - 2.285).abs() < 0.0005);
        assert!((textbook_bits(1_000_000, 0.01).unwrap() as f64 / 1e6 - 9.585).abs() < 0.0005);
        assert!((textbook_bits(1_000_000, 0.0001).unwrap() as f64 / 1e6 - 19.170).abs() < 0.0005);
    }

    #[test]
    fn a_thousand_million_keys_at_a_hundredth_of_a_percent_need_gigabytes_not_megabytes() {
        let bytes = classic(1_000_000_000, 0.0001).bits() as f64 / 8.0;
        assert!((bytes / 1e9 - 2.396).abs() < 0.01, "{bytes}");
    }

    #[test]
    fn the_promised_rate_holds_exactly_and_costs_little() {
        for capacity in [1, 2, 5, 10, 100, 1_000, 100_000, 10_000_000, 3_000_000_000] {
            for rate in [0.3, 0.1, 0.01, 0.001, 0.0001, 1e-6] {
                let sizing = classic(capacity, rate);
                assert!(sizing.expected_rate() <= rate, "n={capacity} p={rate}: {sizing:?}");
                let more = sizing.bits() as f64 / textbook_bits(capacity, rate).unwrap() as f64;
                let allowed = if capacity >= 1000 { 1.01 } else { 4.0 };
                assert!(
                    more < allowed,
                    "n={capacity} p={rate}: {more} times the textbook's bits"
                );
            }
        }
    }

    #[test]
    fn five_keys_at_ten_percent_do_not_get_the_textbook_shape_that_breaks_the_promise() {
        assert_eq!(textbook_bits(5, 0.1).unwrap(), 24);
        assert!((false_positive_rate(24, 4, 5) - 0.115).abs() < 0.02);
        assert!(false_positive_rate(24, 4, 5) > false_positive_rate(24, 3, 5));
        let sizing = classic(5, 0.1);
        assert_eq!(sizing.hashes(), 3);
        assert!(sizing.expected_rate() <= 0.1);
    }

    #[test]
    fn the_formula_of_the_best_number_of_probes_gives_the_published_figures() {
        // Single probe: 100 bits per key for 1 %.
        assert!((false_positive_rate(100_000_000, 1, 1_000_000) - 0.00995).abs() < 1e-5);
        // k = 10, 20 bits per key.
        assert!((false_positive_rate(20_000_000, 10, 1_000_000) / 8.89e-5 - 1.0).abs() < 0.005);
        assert!((best_hashes(9_585_059, 1_000_000) - 6.64).abs() < 0.01);
    }

    #[test]
    fn blocks_keep_the_promised_rate_for_every_capacity() {
        for capacity in [1, 2, 5, 10, 100, 1_000, 100_000, 10_000_000, 3_000_000_000] {
            for rate in [0.5, 0.3, 0.1, 0.01, 0.001, 0.0001, 1e-6] {
                let sizing = Sizing::in_layout(Layout::Blocks, capacity, rate).unwrap();
                assert!(sizing.expected_rate() <= rate, "n={capacity} p={rate}: {sizing:?}");
                assert!(sizing.expected_rate() >= 0.0);
                assert_eq!(sizing.memory_bytes(), sizing.bits() / 511 * 64);
            }
        }
    }

    #[test]
    fn eighteen_megabytes_hold_millions_of_keys_not_a_thousand_million() {
        let bits = 18_000_000 * 8;
        for (rate, held, too_many) in [(0.0001, 7_500_000, 7_600_000), (0.01, 15_000_000, 15_100_000)] {
            assert!(textbook_bits(held, rate).unwrap() <= bits);
            assert!(textbook_bits(too_many, rate).unwrap() > bits);
        }
    }

    #[test]
    fn invalid_sizes_are_refused_with_a_reason() {
        assert_eq!(Sizing::for_rate(0, 0.01), Err(ConfigError::ZeroCapacity));
        for rate in [0.0, -0.5, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Sizing::for_rate(10, rate), Err(ConfigError::RateOutOfRange(rate)));
        }
        assert!(matches!(
            Sizing::for_rate(10, f64::NAN),
            Err(ConfigError::RateOutOfRange(_))
        ));
        assert_eq!(Sizing::for_rate(u64::MAX, 0.01), Err(ConfigError::TooManyBits));
        assert_eq!(Sizing::explicit(100, 0), Err(ConfigError::HashesOutOfRange(0)));
        assert_eq!(Sizing::explicit(100, 33), Err(ConfigError::HashesOutOfRange(33)));
        assert_eq!(
            Sizing::explicit(0, 1),
            Err(ConfigError::TooFewBits { bits: 0, hashes: 1 })
        );
        assert_eq!(
            Sizing::explicit(3, 4),
            Err(ConfigError::TooFewBits { bits: 3, hashes: 4 })
        );
        assert_eq!(Sizing::explicit(u64::MAX, 4), Err(ConfigError::TooManyBits));
        assert_eq!(Sizing::explicit_blocks(1, 17), Err(ConfigError::HashesOutOfRange(17)));
        assert_eq!(
            Sizing::explicit_blocks(0, 8),
            Err(ConfigError::TooFewBits { bits: 0, hashes: 8 })
        );
        assert_eq!(Sizing::explicit_blocks(u64::MAX, 8), Err(ConfigError::TooManyBits));
        assert_eq!(
            Sizing::in_layout(Layout::Blocks, 10, 1e-9),
            Err(ConfigError::RateTooSmallForBlocks(1e-9))
        );
        assert_eq!(
            Sizing::explicit(64, 4).unwrap().with_capacity(0),
            Err(ConfigError::ZeroCapacity)
        );
    }

    #[test]
    fn rates_below_the_smallest_best_one_get_bits_instead_of_probes() {
        let sizing = Sizing::for_rate(1000, 1e-15).unwrap();
        assert_eq!(sizing.hashes(), MAX_HASHES);
        assert!(sizing.expected_rate() <= 1e-15);
    }
}
