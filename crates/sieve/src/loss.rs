//! The expected number of keys that were wrongly dropped.

/// The rate is computed anew whenever another 1/512 of the bits is set.
///
/// Between two computations it is interpolated linearly. For a filter for 1 %, the error of the loss is 10⁻⁴ when it is full, and at
/// most 10⁻³ at any time.
const REFRESHES: u64 = 512;

/// A sum of one term per accepted key. The term is a slowly changing function of the filter's fill.
///
/// For the loss estimate L1, the term is f / (1 − f), with f the false-positive rate before each key: the number of new keys dropped
/// between two accepted ones is geometric, with that mean. Keys are only counted. When the term is computed anew, they are added by
/// the trapezoidal rule. So a key costs an integer addition, and small terms are not lost in a large sum.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LossMeter {
    lost: f64,
    /// Of the number that was truly lost.
    variance: f64,
    /// Accepted since the term was computed.
    pending: u64,
    per_accepted: f64,
    refresh_at: u64,
}

impl LossMeter {
    /// Counts accepted keys of a filter with `ones` bits set. It calls the closure when the term must be computed anew.
    #[inline]
    pub(crate) fn accept(&mut self, keys: u64, ones: u64, bits_and_term: impl FnOnce() -> (u64, f64)) {
        self.pending += keys;
        if ones >= self.refresh_at {
            self.compute(ones, bits_and_term());
        }
    }

    #[cold]
    fn compute(&mut self, ones: u64, (bits, term): (u64, f64)) {
        // No interpolation from the term of an old shape.
        let from = if self.refresh_at == 0 { term } else { self.per_accepted };
        self.lost += self.pending as f64 * f64::midpoint(from, term);
        self.variance += self.pending as f64 * f64::midpoint(variance_of(from), variance_of(term));
        self.pending = 0;
        self.per_accepted = term;
        self.refresh_at = ones + (bits / REFRESHES).max(1);
    }

    /// Computes the term anew at the next key, because the filter has changed its shape.
    pub(crate) fn refresh(&mut self) {
        // What was accepted until now is counted with the term of the old shape.
        self.variance = self.variance();
        self.lost = self.lost();
        self.pending = 0;
        self.refresh_at = 0;
    }

    /// Computes the term anew at the next key, if removals have cleared enough bits since.
    pub(crate) fn fell_to(&mut self, ones: u64, bits: u64) {
        if ones + 2 * (bits / REFRESHES).max(1) < self.refresh_at {
            self.refresh();
        }
    }

    pub(crate) fn lost(&self) -> f64 {
        self.lost + self.pending as f64 * self.per_accepted
    }

    pub(crate) fn variance(&self) -> f64 {
        self.variance + self.pending as f64 * variance_of(self.per_accepted)
    }

    /// Resumes from a loss that was counted before, at terms of at most `most_per_accepted`: its variance is an upper bound then.
    pub(crate) fn resume(&mut self, lost: f64, most_per_accepted: f64) {
        self.lost = lost;
        self.variance = lost * (1.0 + most_per_accepted);
        self.refresh();
    }
}

/// The variance of a geometric number with this mean.
fn variance_of(mean: f64) -> f64 {
    mean * (1.0 + mean)
}

/// The expected number of drops per accepted key at a rate; at a rate of 1 none is accepted, and the term is never used.
pub(crate) fn drops_per_accepted(rate: f64) -> f64 {
    if rate < 1.0 { rate / (1.0 - rate) } else { 0.0 }
}
