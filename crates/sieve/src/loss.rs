//! The running count of keys that were wrongly dropped.

/// How many parts of the filter may fill up before the rate is computed anew; at most 0.1 % of it is missed by that.
const REFRESHES: u64 = 8192;

/// A sum of one term per accepted key, each a slowly moving function of the filter's fill.
///
/// For L1 of the loss estimate the term is f / (1 − f), with f the false-positive rate before each key: between two accepted keys
/// the number of new keys that are dropped is geometric, with that mean. The sum is Kahan's: after thousands of millions of
/// keys a plain one would swallow the small terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossMeter {
    lost: f64,
    rounding: f64,
    per_accepted: f64,
    refresh_at: u64,
}

impl LossMeter {
    /// Counts one accepted key of a filter of `bits` with `ones` marks; `term` is asked when the fill has moved on.
    #[inline]
    pub(crate) fn accept(&mut self, ones: u64, bits: impl FnOnce() -> u64, term: impl FnOnce() -> f64) {
        let addend = self.per_accepted - self.rounding;
        let sum = self.lost + addend;
        self.rounding = (sum - self.lost) - addend;
        self.lost = sum;
        if ones >= self.refresh_at {
            self.refresh_at = ones + (bits() / REFRESHES).max(1);
            self.per_accepted = term();
        }
    }

    /// Has the term asked for again at the next key: the filter has changed its shape.
    pub(crate) fn refresh(&mut self) {
        self.refresh_at = 0;
    }

    pub(crate) fn lost(&self) -> f64 {
        self.lost
    }

    /// Goes on from a loss that was counted before.
    pub(crate) fn resume(&mut self, lost: f64) {
        self.lost = lost;
        self.refresh();
    }
}

/// The expected number of drops per accepted key at a rate; at a rate of 1 none is accepted, and the term is never used.
pub(crate) fn drops_per_accepted(rate: f64) -> f64 {
    if rate < 1.0 { rate / (1.0 - rate) } else { 0.0 }
}
