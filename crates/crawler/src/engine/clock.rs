//! The one clock: monotonic, anchored once to the Unix epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frontier::Time;
use tokio::time::Instant;

use crate::timestamp::rfc3339;

/// Returns the frontier's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Duration,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch,
            started: Instant::now(),
        }
    }

    /// Returns the present millisecond, which has begun: what may start now.
    pub(crate) fn now(&self) -> Time {
        let millis = (self.epoch + self.started.elapsed()).as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Returns the next millisecond: what has ended by now has ended before it, so that a delay from there on is whole.
    pub(crate) fn just_after(&self) -> Time {
        self.now() + Duration::from_millis(1)
    }

    /// Returns the instant at which [`now`](Self::now) reaches a time.
    pub(crate) fn instant_of(&self, time: Time) -> Instant {
        let since_epoch = Duration::from_millis(time.as_millis());
        let wait = since_epoch.saturating_sub(self.epoch);
        // Far-off times are cut to what the timer can hold; waking early does no harm.
        self.started + wait.min(Duration::from_secs(86_400 * 365))
    }

    /// Formats a time as RFC 3339, in UTC, with milliseconds.
    pub(crate) fn rfc3339(time: Time) -> String {
        rfc3339(Duration::from_millis(time.as_millis()))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
