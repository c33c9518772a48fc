//! The running count of keys that were wrongly dropped.

/// How many parts of the filter may fill up before the rate is computed anew.
///
/// Between two computations it is taken to move in a straight line: of what a filter for 1 % loses until it is full, that
/// misses one part in ten thousand, and of the present total, which ends with a part begun, at most one in a thousand.
const REFRESHES: u64 = 512;

/// A sum of one term per accepted key, each a slowly moving function of the filter's fill.
///
/// For L1 of the loss estimate the term is f / (1 − f), with f the false-positive rate before each key: between two accepted keys
/// the number of new keys that are dropped is geometric, with that mean. Keys are counted, and summed up (by the trapezoidal
/// rule) only when the term is computed anew: a key costs an addition of integers, and no small term is swallowed by a large sum.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossMeter {
    lost: f64,
    /// Accepted since the term was computed.
    pending: u64,
    per_accepted: f64,
    refresh_at: u64,
}

impl LossMeter {
    /// Counts accepted keys of a filter with `ones` marks; its bits and the term are asked for when the fill has moved on.
    #[inline]
    pub(crate) fn accept(&mut self, keys: u64, ones: u64, bits_and_term: impl FnOnce() -> (u64, f64)) {
        self.pending += keys;
        if ones >= self.refresh_at {
            self.compute(ones, bits_and_term());
        }
    }

    #[cold]
    fn compute(&mut self, ones: u64, (bits, term): (u64, f64)) {
        // The term of an old shape says nothing about the way to that of a new one.
        let from = if self.refresh_at == 0 { term } else { self.per_accepted };
        self.lost += self.pending as f64 * f64::midpoint(from, term);
        self.pending = 0;
        self.per_accepted = term;
        self.refresh_at = ones + (bits / REFRESHES).max(1);
    }

    /// Has the term asked for again at the next key: the filter has changed its shape.
    pub(crate) fn refresh(&mut self) {
        // What was accepted until now is counted with the term of the old shape.
        self.lost = self.lost();
        self.pending = 0;
        self.refresh_at = 0;
    }

    /// Has the term asked for again once the marks, which were taken out, lie well below those it was asked for at.
    pub(crate) fn fell_to(&mut self, ones: u64, bits: u64) {
        if ones + 2 * (bits / REFRESHES).max(1) < self.refresh_at {
            self.refresh();
        }
    }

    pub(crate) fn lost(&self) -> f64 {
        self.lost + self.pending as f64 * self.per_accepted
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
