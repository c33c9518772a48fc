//! The pace of requests: when the next one may start.

use std::time::Duration;

use crate::time::Time;

/// The requests to one host or one address. The epoch stands for never.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pace {
    last_start: Time,
    last_end: Time,
    in_flight: u32,
}

impl Pace {
    fn stamp(now: Time) -> Time {
        now.max(Time::from_millis(1))
    }

    /// How long the last request took, if none is in flight; a minute at most, as one that a crash has cut short counts as ended much later.
    pub(crate) fn last_took(&self) -> Duration {
        self.last_end.since(self.last_start).min(Duration::from_secs(60))
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Records the start of a request. Returns the time since the end of the last one.
    pub(crate) fn start(&mut self, now: Time) -> Option<Duration> {
        self.in_flight += 1;
        self.last_start = Self::stamp(now);
        (self.last_end > Time::EPOCH).then(|| now.since(self.last_end))
    }

    /// Records the end of a request.
    pub(crate) fn end(&mut self, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end = Self::stamp(now);
    }

    /// Undoes a start for which no request was made.
    pub(crate) fn take_back(&mut self, started: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        // Another request may have started since, and starts keep their distance from that.
        if self.last_start == Self::stamp(started) {
            self.last_start = Time::EPOCH;
        }
    }

    /// When the next request may start, if at most `most` are in flight at a time.
    pub(crate) fn free_from(&self, delay: Duration, most: u32) -> Time {
        let after = |time: Time| if time > Time::EPOCH { time + delay } else { time };
        if delay.is_zero() {
            return Time::EPOCH;
        }
        // With one request at a time the end of the last is after its start; with several, starts keep the delay too.
        let after_start = if most > 1 { after(self.last_start) } else { Time::EPOCH };
        after(self.last_end).max(after_start)
    }
}
