//! When the next request may start, by those that are out and the last that has ended.

use std::time::Duration;

use crate::time::Time;

/// The requests to one host, or to one address.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// How many are out.
    pub(crate) out: u32,
    last_start: Option<Time>,
    last_end: Option<Time>,
}

impl Pace {
    /// Notes that a request starts; returns how long after the end of the last.
    pub(crate) fn start(&mut self, now: Time) -> Option<Duration> {
        self.out += 1;
        self.last_start = Some(now);
        self.last_end.map(|end| now.since(end))
    }

    /// Notes that a request has ended.
    pub(crate) fn end(&mut self, now: Time) {
        self.out = self.out.saturating_sub(1);
        self.last_end = Some(now);
    }

    /// Notes that what was to start at that time was no request.
    pub(crate) fn take_back(&mut self, started: Time) {
        self.out = self.out.saturating_sub(1);
        // Another request may have started since, and starts keep their distance from that.
        self.last_start = self.last_start.filter(|last| *last != started);
    }

    /// Returns from when on the next request may start, if no more than `most` are out at a time.
    pub(crate) fn free_from(&self, delay: Duration, most: u32) -> Time {
        if delay.is_zero() {
            return Time::EPOCH;
        }
        let after_end = self.last_end.map_or(Time::EPOCH, |end| end + delay);
        // With one request at a time the end of the last is after its start; with several, starts keep the delay too.
        let after_start = self
            .last_start
            .filter(|_| most > 1)
            .map_or(Time::EPOCH, |start| start + delay);
        after_end.max(after_start)
    }
}
