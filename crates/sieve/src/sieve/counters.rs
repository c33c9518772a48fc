//! The counts of a sieve, to look at and to continue with after a restart.

use super::Sieve;
use crate::filter::{Filter, Load};
use crate::loss::LossMeter;
use crate::queue::Queue;
use crate::saturation::{Saturation, Watch};

/// The counts of a [`Sieve`]: the items that were pushed, the loss, and the levels that were logged.
///
/// A sieve from the same filter, an equal queue and these counters behaves like the one they were taken of, but its forecasts begin anew:
/// a clock need not continue after a restart. The file of [`save_filter`](Sieve::save_filter) has fewer: only accepted and lost keys.
///
/// The serialized form belongs to one version of this crate.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    /// Items that were new, marked and queued.
    pub accepted: u64,
    /// Items that were seen: duplicates, and new keys that were wrongly dropped.
    pub seen: u64,
    /// Items that were refused, and not marked as seen.
    pub refused: u64,
    pub(super) loss: LossMeter,
    pub(super) watch: Watch,
}

impl Counters {
    pub(super) fn new(filter: &impl Filter) -> Self {
        Self {
            accepted: 0,
            seen: 0,
            refused: 0,
            loss: LossMeter::default(),
            watch: Watch::new(|keys| filter.ones_above(keys), &filter.load()),
        }
    }

    pub(super) fn saturation(&self, load: Load) -> Saturation {
        Saturation::of(load, self.accepted, &self.loss)
    }
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Returns all counts, to look at or to continue with after a restart by [`with_counters`](Self::with_counters).
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sets the counts to those of a sieve with the same filter. The forecasts begin anew with the next [`set_now`](Self::set_now).
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::Sieve;
    ///
    /// let mut to_visit = Sieve::new(1000)?;
    /// to_visit.push("https://example.com/");
    /// let counters = to_visit.counters().clone();
    /// let again: Sieve = Sieve::from_parts(to_visit.filter().clone(), VecDeque::new()).with_counters(counters);
    /// assert_eq!(again.counters().accepted, 1);
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_counters(self, mut counters: Counters) -> Self {
        counters.watch.drop_pace();
        Self { counters, ..self }
    }
}
