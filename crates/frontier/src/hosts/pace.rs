//! When the next request may start, by those in flight and the last that has ended.

use std::time::Duration;

use crate::time::Time;

/// The requests to one host, or to one address. A time of the epoch stands for never.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last_start: Time,
    last_end: Time,
    in_flight: u32,
}

impl Pace {
    /// Returns how many requests are in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Notes that a request starts; returns how long after the end of the last.
    pub(crate) fn start(&mut self, now: Time) -> Option<Duration> {
        self.in_flight += 1;
        self.last_start = now;
        (self.last_end > Time::EPOCH).then(|| now.since(self.last_end))
    }

    /// Notes that a request has ended.
    pub(crate) fn end(&mut self, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end = now;
    }

    /// Notes that what was to start at that time was no request.
    pub(crate) fn take_back(&mut self, started: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        // Another request may have started since, and starts keep their distance from that.
        if self.last_start == started {
            self.last_start = Time::EPOCH;
        }
    }

    /// Returns from when on the next request may start, if no more than `most` are in flight at a time.
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
