//! The clock of a crawl: set once to the time of day at the start, it never goes back, and goes on while the system is suspended. A step of the time of day
//! must not shorten a delay. Records and archives have the time of day itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frontier::Time;
use tokio::time::Instant;

/// The shortest suspend that counts: clocks that are read one after the other differ, too.
const SHORTEST_SUSPEND: Duration = Duration::from_secs(1);

/// Returns for how long the system was suspended since it was started.
#[cfg(target_os = "linux")]
fn suspended() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic))
}

/// Elsewhere it is not known.
#[cfg(not(target_os = "linux"))]
fn suspended() -> Duration {
    Duration::ZERO
}

pub(crate) fn time_of_day() -> Time {
    Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// When a request started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) time_of_day: Time,
    pub(crate) instant: Instant,
}

impl Start {
    pub(crate) fn now() -> Self {
        Self {
            time_of_day: time_of_day(),
            instant: Instant::now(),
        }
    }
}

/// Converts between the timer's instants and the frontier's times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Duration,
    started: Instant,
    /// The part of the system's suspends that the epoch has.
    suspended: Duration,
    /// The duration of earlier runs.
    pub(super) earlier: Duration,
    /// How long this run was paused before the present pause.
    paused: Duration,
    paused_since: Option<Instant>,
}

impl Clock {
    /// Starts a run after some earlier ones. Its times are not before `earliest`, even if the time of day was set back since.
    pub(crate) fn start(earliest: Time, earlier: Duration) -> Self {
        Self {
            epoch: Duration::from_millis(time_of_day().max(earliest).as_millis()),
            started: Instant::now(),
            suspended: suspended(),
            earlier,
            paused: Duration::ZERO,
            paused_since: None,
        }
    }

    /// Goes forward by the time for which the system was suspended.
    pub(crate) fn catch_up(&mut self) {
        self.catch_up_with(suspended());
    }

    fn catch_up_with(&mut self, suspended: Duration) {
        let missed = suspended.saturating_sub(self.suspended);
        if missed > SHORTEST_SUSPEND {
            self.epoch += missed;
            self.suspended = suspended;
        }
    }

    /// Returns the current millisecond, rounded down. Requests that start now start at this time.
    pub(crate) fn now(&self) -> Time {
        let millis = (self.epoch + self.started.elapsed()).as_millis();
        Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    pub(crate) fn ahead(&self) -> Duration {
        self.now().since(time_of_day())
    }

    /// Returns the next millisecond. A request that has ended by now ended before it, so a delay counted from it is
    /// never too short.
    pub(crate) fn next_millisecond(&self) -> Time {
        self.now() + Duration::from_millis(1)
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn a_clock_goes_forward_by_each_suspend_once_and_never_back() {
        let mut clock = Clock::start(Time::EPOCH, Duration::ZERO);
        let (start, earlier) = (clock.now(), clock.suspended);
        for (suspended, now) in [
            (Duration::from_millis(900), Duration::ZERO),
            (HOUR, HOUR),
            (HOUR, HOUR),
            (HOUR + Duration::from_millis(900), HOUR),
            (Duration::ZERO, HOUR),
            (HOUR * 3, HOUR * 3),
        ] {
            clock.catch_up_with(earlier + suspended);
            assert_eq!(clock.now(), start + now);
            let due = clock.instant_of(start + HOUR * 4) - Instant::now();
            assert_eq!(due, HOUR * 4 - now);
        }
        assert_eq!(clock.elapsed(), Duration::ZERO, "a suspend is no time of the crawl");
        assert!(clock.ahead() >= HOUR * 2, "the time of day has not gone on");
    }
}
