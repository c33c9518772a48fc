//! All counts of a sieve, to continue with them after a restart.

use super::{Sieve, Tally};
use crate::filter::Filter;
use crate::loss::LossMeter;
use crate::queue::Queue;
use crate::saturation::Watch;

/// All counts of a [`Sieve`], besides its filter and its queue: what was pushed, the loss, and the levels that were logged.
///
/// A sieve from the same filter, an equal queue and these counters behaves like the one they were taken of. The file of
/// [`save_filter`](Sieve::save_filter) has fewer: of the counts only accepted and lost keys.
///
/// The serialized form belongs to one version of this crate.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    tally: Tally,
    loss: LossMeter,
    watch: Watch,
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Returns all counts, to continue with them after a restart.
    pub fn counters(&self) -> Counters {
        Counters {
            tally: self.tally,
            loss: self.loss.clone(),
            watch: self.watch.clone(),
        }
    }

    /// Sets all counts to those of a sieve with the same filter.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::Sieve;
    ///
    /// let mut to_visit = Sieve::new(1000)?;
    /// to_visit.push("https://example.com/");
    /// let again: Sieve = Sieve::from_parts(to_visit.filter().clone(), VecDeque::new()).with_counters(to_visit.counters());
    /// assert_eq!(again.tally(), to_visit.tally());
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_counters(mut self, counters: Counters) -> Self {
        self.tally = counters.tally;
        self.loss = counters.loss;
        self.watch = counters.watch;
        self
    }
}
