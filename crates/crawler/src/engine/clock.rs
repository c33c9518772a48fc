//! The clock of a crawl: monotonic, and set once to the time of day at the start.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frontier::Time;
use tokio::time::Instant;

/// Converts between the timer's instants and the frontier's times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Duration,
    started: Instant,
    /// The duration of earlier runs.
    earlier: Duration,
    /// How long this run was paused before the present pause.
    paused: Duration,
    paused_since: Option<Instant>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch,
            started: Instant::now(),
            earlier: Duration::ZERO,
            paused: Duration::ZERO,
            paused_since: None,
        }
    }

    /// Starts a run. Its times are not before `earliest`, even if the time of day was set back since an earlier run.
    pub(crate) fn start_run(earliest: Time, earlier: Duration) -> Self {
        let clock = Self::start();
        Self {
            epoch: clock.epoch.max(Duration::from_millis(earliest.as_millis())),
            earlier,
            ..clock
        }
    }

    /// Returns the current millisecond, rounded down. Requests that start now start at this time.
    pub(crate) fn now(&self) -> Time {
        let millis = (self.epoch + self.started.elapsed()).as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Returns the next millisecond. A request that has ended by now ended before it, so a delay counted from it is
    /// never too short.
    pub(crate) fn next_millisecond(&self) -> Time {
        self.now() + Duration::from_millis(1)
    }

    /// Returns the instant at which [`now`](Self::now) reaches a time.
    pub(crate) fn instant_of(&self, time: Time) -> Instant {
        let since_epoch = Duration::from_millis(time.as_millis());
        let wait = since_epoch.saturating_sub(self.epoch);
        // The timer cannot hold times far off, so the wait is capped. Waking early does no harm.
        self.started + wait.min(Duration::from_secs(86_400 * 365))
    }

    /// Returns the duration of all runs. Pauses do not count.
    pub(crate) fn elapsed(&self) -> Duration {
        self.earlier + self.elapsed_in_run()
    }

    /// Returns the duration of this run. Pauses do not count.
    pub(crate) fn elapsed_in_run(&self) -> Duration {
        let until = self.paused_since.unwrap_or_else(Instant::now);
        until.duration_since(self.started).saturating_sub(self.paused)
    }

    /// Begins or ends a pause. The time of day goes on in it, so a host that is owed a delay still gets it.
    pub(crate) fn set_paused(&mut self, is_paused: bool) {
        match (self.paused_since, is_paused) {
            (None, true) => self.paused_since = Some(Instant::now()),
            (Some(since), false) => {
                self.paused += since.elapsed();
                self.paused_since = None;
            }
            _ => {}
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// Returns the duration of the runs before this one.
    pub(crate) fn earlier(&self) -> Duration {
        self.earlier
    }
}
