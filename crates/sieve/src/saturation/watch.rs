//! When a line is due.

use std::time::Duration;

use super::{Level, Saturation, SelfCheck};
use crate::filter::Load;

/// When a line is due, and when the next will be at the present pace.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Watch {
    /// The level that was reported.
    tenths: u64,
    due_at_ones: Option<u64>,
    full_at_ones: Option<u64>,
    now: Option<Duration>,
    paced_from: Option<(Duration, f64)>,
    accused: bool,
    check_at: u64,
    layers: u32,
}

/// The first number of accepted keys at which the self-check is made between levels; then at each doubling.
const FIRST_CHECK: u64 = 1024;

impl Watch {
    pub(crate) fn new(ones_above: impl Fn(f64) -> Option<u64>, load: &Load) -> Self {
        let mut watch = Self {
            tenths: Level::HEALTHY.tenths,
            due_at_ones: None,
            full_at_ones: None,
            now: None,
            paced_from: None,
            accused: false,
            check_at: FIRST_CHECK,
            layers: load.layers,
        };
        watch.wait_for_next(ones_above, load);
        watch
    }

    /// Resumes an earlier watch over the same filter: a level that it has reported is not reported again.
    pub(crate) fn resume(&mut self, saturation: &Saturation, ones_above: impl Fn(f64) -> Option<u64>) {
        self.tenths = saturation.level.tenths;
        self.layers = saturation.layers;
        self.set_next_check(saturation.accepted);
        self.wait_for_next(ones_above, saturation);
    }

    /// Takes the time, for the forecasts; the first call starts the pace.
    pub(crate) fn set_now(&mut self, now: Duration, estimated: impl Fn() -> f64) {
        self.now = Some(now);
        if self.paced_from.is_none() {
            self.paced_from = Some((now, estimated()));
        }
    }

    /// Forgets the time and the pace, which a new clock makes wrong.
    pub(crate) fn drop_pace(&mut self) {
        (self.now, self.paced_from) = (None, None);
    }

    /// Says, with three comparisons, whether [`look`](Self::look) might return a notice.
    #[inline]
    pub(crate) fn is_due(&self, ones: u64, accepted: u64, layers: u32) -> bool {
        self.due_at_ones.is_some_and(|due| ones >= due) || accepted >= self.check_at || layers > self.layers
    }

    /// Returns whether nothing can become due before these numbers of ones and accepted keys are reached.
    #[inline]
    pub(crate) fn is_quiet_until(&self, ones: u64, accepted: u64) -> bool {
        self.due_at_ones.is_none_or(|due| ones < due) && accepted < self.check_at
    }

    /// Says whether the estimate exceeds what the filter holds: unlike a level, that ends when enough keys are forgotten.
    #[inline]
    pub(crate) fn is_past_capacity(&self, ones: u64) -> bool {
        self.full_at_ones.is_some_and(|full| ones >= full)
    }

    /// Looks at a measurement, and returns the notice to log, if any. Returns each level at most once.
    pub(crate) fn look(
        &mut self,
        saturation: &Saturation,
        ones: u64,
        ones_above: impl Fn(f64) -> Option<u64>,
    ) -> Option<Notice> {
        self.set_next_check(saturation.accepted);
        let suspicious = matches!(saturation.check, SelfCheck::Suspicious { .. });
        let has_grown = saturation.layers > self.layers;
        self.layers = saturation.layers;
        let due = has_grown || self.due_at_ones.is_some_and(|due| ones >= due);
        if due && saturation.level.tenths > self.tenths {
            self.tenths = saturation.level.tenths;
            self.accused |= suspicious;
            self.wait_for_next(ones_above, saturation);
            let next_level_in = self.forecast(saturation);
            self.paced_from = self.now.map(|now| (now, saturation.estimated));
            return Some(Notice::Level { next_level_in });
        }
        if has_grown {
            self.wait_for_next(ones_above, saturation);
            return Some(Notice::Grown);
        }
        if suspicious && !self.accused {
            self.accused = true;
            return Some(Notice::Suspicion);
        }
        None
    }

    fn next_level(&self) -> Level {
        let tenths = self.tenths;
        Level { tenths }.next()
    }

    fn set_next_check(&mut self, accepted: u64) {
        if accepted >= self.check_at {
            let next = accepted.saturating_add(1).checked_next_power_of_two();
            self.check_at = next.unwrap_or(u64::MAX).max(FIRST_CHECK);
        }
    }

    fn wait_for_next(&mut self, ones_above: impl Fn(f64) -> Option<u64>, load: &Load) {
        let threshold = self.next_level().threshold();
        self.due_at_ones = load.capacity.and_then(|keys| ones_above(threshold * keys as f64));
        let holds = load.grown_capacity.or(load.capacity);
        self.full_at_ones = holds.and_then(|keys| ones_above(keys as f64));
    }

    fn forecast(&self, saturation: &Saturation) -> Option<Duration> {
        let (from, keys_then) = self.paced_from?;
        let seconds = self.now?.checked_sub(from)?.as_secs_f64();
        let pace = (saturation.estimated - keys_then) / seconds;
        let missing = self.next_level().threshold() * saturation.capacity? as f64 - saturation.estimated;
        Duration::try_from_secs_f64(missing / pace).ok()
    }
}

/// What is to be logged.
pub(crate) enum Notice {
    /// A level was exceeded; the next will be after this time, at the present pace.
    Level { next_level_in: Option<Duration> },
    /// The self-check failed between two levels.
    Suspicion,
    /// The filter has added a layer between two levels.
    Grown,
}
