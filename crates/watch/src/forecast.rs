//! When the seen-set reaches its next level, at the present pace.

use std::time::Duration;

use sieve::Saturation;

use crate::status::next_level_keys;

/// The length of a window. The pace is that of the last one or two of them.
const WINDOW: Duration = Duration::from_secs(60);

/// The number of distinct keys at the last two starts of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Forecast {
    from: (Duration, f64),
    next: (Duration, f64),
}

impl Forecast {
    /// Begins at a time, with what earlier runs have found.
    pub(crate) fn note(&mut self, elapsed: Duration, saturation: &Saturation) {
        if self.next.0.is_zero() {
            (self.from, self.next) = ((elapsed, saturation.estimated), (elapsed, saturation.estimated));
        } else if elapsed >= self.next.0 + WINDOW {
            self.from = self.next;
            self.next = (elapsed, saturation.estimated);
        }
    }

    /// Returns in how many seconds the number of distinct keys reaches the threshold of the next level; `None` for a seen-set without a
    /// limit, or when nothing new is found.
    pub(crate) fn next_level_seconds(&self, elapsed: Duration, saturation: &Saturation) -> Option<f64> {
        let threshold = next_level_keys(saturation)?;
        let seconds = elapsed.saturating_sub(self.from.0).as_secs_f64();
        let pace = (saturation.estimated - self.from.1) / seconds;
        (seconds > 0.0 && pace > 0.0).then(|| (threshold - saturation.estimated).max(0.0) / pace)
    }
}
