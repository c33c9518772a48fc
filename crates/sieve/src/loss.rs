//! The running count of keys that were wrongly dropped.

use crate::filter::{Filter, Load};

/// How many parts of the filter may fill up before the rate is computed anew; at most 0.1 % of it is missed by that.
const REFRESHES: u64 = 8192;

/// L1 of the loss estimate: Σ f / (1 − f) over the accepted keys, with f the false-positive rate before each.
///
/// Between two accepted keys the number of new keys that are dropped is geometric, with that mean. The sum is Kahan's:
/// after thousands of millions of keys a plain one would swallow the small terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossMeter {
    lost: f64,
    rounding: f64,
    per_accepted: f64,
    refresh_at: u64,
}

impl LossMeter {
    /// Counts one accepted key; to be called before the filter marks it or right after, but always at the same point.
    #[inline]
    pub(crate) fn accept<F: Filter>(&mut self, filter: &F) {
        let term = self.per_accepted - self.rounding;
        let sum = self.lost + term;
        self.rounding = (sum - self.lost) - term;
        self.lost = sum;
        if filter.ones() >= self.refresh_at {
            self.refresh(&filter.load());
        }
    }

    fn refresh(&mut self, load: &Load) {
        self.refresh_at = load.ones + (load.bits / REFRESHES).max(1);
        let rate = load.false_positive_rate;
        // At a rate of 1 no key is accepted any more, and the term is never used.
        self.per_accepted = if rate < 1.0 { rate / (1.0 - rate) } else { 0.0 };
    }

    pub(crate) fn lost(&self) -> f64 {
        self.lost
    }
}
