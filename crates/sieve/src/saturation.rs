//! How full a filter is, what that has cost so far, and when the log has a line about it.
//!
//! With X bits set of m, k probes per key, n the capacity and A the accepted keys:
//!
//! * **Estimated keys** s = −(m/k)·ln(1 − X/m). A key that is wrongly dropped would have set no bit, so s estimates the
//!   distinct keys that were *offered*. Its noise is about √(m(eᵗ − t − 1)) / k with t = ks/m.
//! * **Rate** f, the chance that the next new key is dropped: (X/m)ᵏ in the classic layout, the mean over the blocks in blocks, and
//!   1 − ∏(1 − fᵢ) with layers.
//! * **Keys lost so far**, in two ways: L1 = Σ f/(1 − f) over the accepted keys, which is reported as
//!   [`lost`](Saturation::lost), and L2 = s − A, [`lost_by_difference`](Saturation::lost_by_difference), which is noisier.
//!   When the two disagree by more than chance allows, the [`SelfCheck`] says so: the keys were crafted against the hash,
//!   or the filter is damaged.
//!
//! What a filter for 1 % loses when more than its capacity is offered, in blocks / in the classic layout:
//!
//! | offered | rate for the next key | lost so far |
//! |---|---|---|
//! | 1 × capacity | 1.0 / 1.0 % | 0.16 / 0.16 % |
//! | 1.5 × | 6.0 / 5.8 % | 1.1 / 1.1 % |
//! | 2 × | 16.6 / 15.7 % | 3.6 / 3.4 % |
//! | 3 × | 45.8 / 43.6 % | 12.8 / 12.0 % |
//!
//! # In the log
//!
//! Target `sieve::saturation`; one record when the estimate exceeds a [`Level`] for the first time: `info` below the capacity, `warn`
//! above it, whatever the policy. A level is a multiple of the capacity that was configured, also for a filter that has grown. A layer
//! that is added between two levels is one `info` record. The first time that the [`SelfCheck`] is suspicious, the record of a level
//! that is due then says so, or one `warn` record of its own. There is never a record per key.
//!
//! Key-values of each record: `saturation_level` (as [`Level`] prints it), `estimated`, `capacity`, `grown_capacity`, `accepted`,
//! `fill`, `rate`, `lost`, `lost_at_least`, `bits`, `ones`, `hashes`, `layers`, `memory_bytes`, `consistent` and, when the sieve was
//! given the time, `next_level_seconds`.

pub(crate) mod rounded;
mod shown;
mod watch;

use std::fmt;
use std::ops::Deref;

pub use rounded::grouped;
pub(crate) use watch::{Notice, Watch};

use crate::filter::Load;
use crate::loss::LossMeter;

/// By how many standard deviations the two loss estimates may differ before the self-check raises its alarm.
///
/// One healthy filter in some two million would be accused at one look.
pub const SELF_CHECK_SIGMAS: f64 = 5.0;

/// The expected number of dropped keys from which on a loss is reported as possible. Below it, no key was dropped with a probability of 90 %
/// and more.
pub const POSSIBLE_LOSS: f64 = 0.1;

/// Bits of a block: a cache line.
const BLOCK_BITS: f64 = 512.0;

/// The number of clear bits below which the self-check is off: the logarithm of the estimate then varies by far more than a normal variable.
const MIN_CLEAR_BITS: u64 = 64;

/// How many times the capacity is exceeded by the estimate, in the steps that are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(into = "String"))]
pub struct Level {
    /// Tenths of the capacity that were exceeded; 0 below the first step.
    tenths: u64,
}

impl Level {
    /// At most 0.8 of the capacity.
    pub const HEALTHY: Self = Self { tenths: 0 };
    /// Above 0.8 of the capacity: reported as `info`.
    pub const FILLING: Self = Self { tenths: 8 };
    /// Above the capacity: reported as a warning, like every level beyond.
    pub const FULL: Self = Self { tenths: 10 };

    /// Returns the level of an estimate that is `ratio` times the capacity.
    pub fn of(ratio: f64) -> Self {
        let mut level = Self::HEALTHY;
        while ratio > level.next().threshold() && level < level.next() {
            level = level.next();
        }
        level
    }

    /// Returns the level above: 0.8, 1, 1.5, then 2, 3, 5, 10 and so on, times ten, up to 1.8 · 10¹⁸, which is its own.
    #[must_use]
    pub fn next(self) -> Self {
        let mut decade: u64 = 10;
        while let Some(larger) = decade.checked_mul(10)
            && self.tenths >= larger
        {
            decade = larger;
        }
        let tenths = match self.tenths / decade {
            0 if self.tenths < 8 => 8,
            0 => 10,
            1 if self.tenths == 10 => 15,
            1 => decade.saturating_mul(2),
            2 => decade.saturating_mul(3),
            3 | 4 => decade.saturating_mul(5),
            _ => decade.saturating_mul(10),
        };
        Self { tenths }
    }

    /// Returns the share of the capacity that the estimate must exceed to reach this level.
    pub fn threshold(self) -> f64 {
        self.tenths as f64 / 10.0
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HEALTHY => f.write_str("healthy"),
            Self::FILLING => f.write_str("filling"),
            Self::FULL => f.write_str("full"),
            Self { tenths } => write!(f, "{}x", tenths as f64 / 10.0),
        }
    }
}

impl From<Level> for String {
    fn from(level: Level) -> Self {
        level.to_string()
    }
}

/// Whether the two loss estimates agree, as they must while keys are hashed well and no bit is damaged.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum SelfCheck {
    /// They agree within their noise.
    Consistent,
    /// There is nothing to compare: no key yet, an exact filter, nearly all bits set, or keys that were removed or forgotten.
    Unknown,
    /// The number of standard deviations by which they differ: crafted keys, a broken hash, or a damaged filter.
    Suspicious {
        /// Positive when more bits are set than the accepted keys explain.
        sigmas: f64,
    },
}

/// One measurement of a sieve: the [`Load`] of its filter, and what that has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Saturation {
    /// How full the filter is. Its fields are those of the measurement, too: `saturation.estimated`.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub load: Load,
    /// The keys that were accepted, A.
    pub accepted: u64,
    /// The share of bits that are set, from 0 to 1.
    pub fill: f64,
    /// The expected number of new keys that were wrongly dropped so far, L1, to two decimals. The true number varies about it by
    /// [`lost_noise`](Self::lost_noise).
    pub lost: f64,
    /// The standard deviation of the number that was truly lost, in keys.
    pub lost_noise: f64,
    /// The same by difference, s − A; noisier, and below zero by chance. Without meaning once keys were removed or forgotten.
    pub lost_by_difference: f64,
    /// The reported level.
    pub level: Level,
    /// Whether the two loss estimates agree.
    pub check: SelfCheck,
}

impl Deref for Saturation {
    type Target = Load;

    fn deref(&self) -> &Load {
        &self.load
    }
}

impl Saturation {
    /// Puts a filter's load and a sieve's counts together.
    pub(crate) fn of(load: Load, accepted: u64, loss: &LossMeter) -> Self {
        let ratio = load.capacity.map_or(0.0, |capacity| load.estimated / capacity as f64);
        let mut saturation = Self {
            load,
            accepted,
            fill: load.fill(),
            lost: (loss.lost() * 100.0).round() / 100.0,
            lost_noise: loss.variance().sqrt(),
            lost_by_difference: load.estimated - accepted as f64,
            level: Level::of(ratio),
            check: SelfCheck::Unknown,
        };
        saturation.check = saturation.self_check();
        saturation
    }

    /// Returns how many new keys were wrongly dropped at least, with a confidence of 97 %; 0 while it may be none. Cost: O(1).
    ///
    /// The number dropped is a sum of geometric variables with means f/(1 − f) and variances f/(1 − f)². Keys that were dropped since
    /// the last one was accepted are not in it: once every bit is set, the bound stays. The rate is that of the loads that blocks are
    /// expected to have; of few blocks it may be off by a share of 1/(2·√blocks), which is part of the bound.
    pub fn lost_at_least(&self) -> u64 {
        lower_bound(self.lost, self.loss_variance()) as u64
    }

    /// Returns a capacity with which as many keys as were found would all be accepted: at a rate of 1 %, fewer than [`POSSIBLE_LOSS`] are
    /// expected to be dropped. Cost: O(1).
    ///
    /// It is at least twice the keys. A filter of r times as many has a false-positive rate that falls about with r⁶, and the more keys there
    /// are, the more meet it; the constant was measured with the default filter, from 300 to a million keys.
    pub fn sufficient_capacity(&self) -> f64 {
        let times = 6.0 * (self.estimated / 1e6).powf(1.0 / 6.0);
        self.estimated * times.max(2.0)
    }

    /// Returns whether keys may have been dropped: [`lost`](Self::lost) is [`POSSIBLE_LOSS`] or more. Cost: O(1).
    pub fn may_have_lost(&self) -> bool {
        self.lost >= POSSIBLE_LOSS
    }

    /// Returns whether every bit is set: no new key is accepted any more, and how many are dropped is unknown. Cost: O(1).
    pub fn is_full(&self) -> bool {
        self.bits > 0 && self.ones == self.bits
    }

    fn loss_noise(&self) -> f64 {
        (self.estimate_noise * self.estimate_noise + self.loss_variance()).sqrt()
    }

    /// The variance of the keys lost about their estimate: that of their number, and that of the rate, which is the one of the loads that
    /// blocks are expected to have. Of a filter that has grown, the oldest layer has the fewest blocks and the highest rate.
    fn loss_variance(&self) -> f64 {
        let oldest = match (self.capacity, self.grown_capacity) {
            (Some(oldest), Some(all)) => (oldest as f64 / all as f64).min(1.0),
            _ => 1.0,
        };
        let blocks = (self.bits as f64 / BLOCK_BITS * oldest).max(1.0);
        self.lost_noise * self.lost_noise + self.lost * self.lost / (4.0 * blocks)
    }

    fn self_check(&self) -> SelfCheck {
        let clear = self.bits.saturating_sub(self.ones);
        if self.accepted == 0 || clear < MIN_CLEAR_BITS || self.forgets {
            return SelfCheck::Unknown;
        }
        // The estimate treats the distinct probes of a key as independent, which in a tiny filter is off by k/2m of it.
        let mut bias = self.estimated * f64::from(self.hashes) / (2.0 * self.bits as f64);
        if self.layers > 1 {
            // Layers share one hash: a key that the older ones let pass meets such keys in the newest, and is a little likelier
            // to be dropped than the rates of the layers multiply to. At a total rate of 1 % that is nothing, at 30 % it would show.
            bias += self.estimated * self.rate * self.rate / 8.0;
        }
        let difference = self.lost_by_difference - self.lost;
        let sigmas = (difference.abs() - bias).max(0.0) / self.loss_noise().max(1.0);
        if sigmas > SELF_CHECK_SIGMAS {
            SelfCheck::Suspicious {
                sigmas: sigmas.copysign(difference),
            }
        } else {
            SelfCheck::Consistent
        }
    }
}

/// The lower end of the interval that has 95 % of a log-normal distribution with this mean and variance. It is never below zero,
/// whatever the variance; of a Poisson variable it reaches one at a mean of three, where nothing at all has a chance of 5 %.
fn lower_bound(mean: f64, variance: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let log_variance = (variance / (mean * mean)).ln_1p();
    mean * (-2.0 * log_variance.sqrt()).exp()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_levels_are_those_in_the_docs() {
        let mut level = Level::HEALTHY;
        let mut seen = Vec::new();
        while level.threshold() < 1000.0 {
            level = level.next();
            seen.push(level.threshold());
        }
        let expected = [
            0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0,
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_level_is_reached_above_its_threshold_and_not_at_it() {
        assert_eq!(Level::of(0.0), Level::HEALTHY);
        assert_eq!(Level::of(0.8), Level::HEALTHY);
        assert_eq!(Level::of(0.81), Level::FILLING);
        assert_eq!(Level::of(1.0), Level::FILLING);
        assert_eq!(Level::of(1.0001), Level::FULL);
        assert_eq!(Level::of(25.0).to_string(), "20x");
        assert_eq!(Level::of(1.7).to_string(), "1.5x");
    }

    #[test]
    fn the_forecast_is_the_missing_keys_by_the_present_pace() {
        let ones_above = |keys: f64| Some(keys as u64);
        let load = Load {
            capacity: Some(1000),
            grown_capacity: None,
            estimated: 850.0,
            estimate_noise: 1.0,
            rate: 0.005,
            bits: 10_000,
            ones: 4_500,
            hashes: 7,
            layers: 1,
            forgets: false,
            memory_bytes: 1250,
        };
        let mut watch = Watch::new(ones_above, &load);
        watch.set_now(Duration::from_secs(100), || 0.0);
        watch.set_now(Duration::from_secs(150), || unreachable!("the pace starts once"));
        let saturation = Saturation::of(load, 850, &LossMeter::default());
        let Some(Notice::Level { next_level_in }) = watch.look(&saturation, 4_500, ones_above) else {
            panic!("0.8 of the capacity was exceeded");
        };
        // 850 keys in 50 s; 150 more to the capacity.
        let expected = 150.0 / 17.0;
        assert!((next_level_in.unwrap().as_secs_f64() - expected).abs() < 0.01);
        assert!(
            watch.look(&saturation, 4_500, ones_above).is_none(),
            "each level is logged once"
        );
    }
}
