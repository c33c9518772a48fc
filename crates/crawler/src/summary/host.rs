//! One host of a crawl: its figures, its state in words, and what to do about it.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use frontier::{Health, HostReport, Time};
use serde_json::{Value, json};

use super::remedy::remedy;
use super::rows::{duration, grouped};
use crate::timestamp::{less_ahead, rfc3339};

/// The most characters of the cause of a state.
const CAUSE_CHARACTERS: usize = 120;

/// The hosts of a crawl at one time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HostTable {
    /// The hosts on which the crawl has spent most time, up to 256, and up to 256 that hold it up, the worst first.
    pub hosts: Vec<HostFigures>,
    /// How many hosts did what.
    pub by_health: BTreeMap<Health, u64>,
    /// When that was; [`Time::EPOCH`] if nobody has looked yet.
    pub as_of: Time,
}

impl HostTable {
    /// Returns the host that holds the crawl up longest, if anything waits.
    pub fn held_up_by(&self) -> Option<&HostFigures> {
        self.hosts.first().filter(|host| host.left.is_some())
    }

    /// Returns how many hosts are away.
    pub fn away(&self) -> u64 {
        self.by_health.get(&Health::Away).copied().unwrap_or_default()
    }
}

/// A host: what the frontier reports of it, how it answers, and how long it takes. The times of answers are from the start of the request to
/// the end of the body; pauses are from the end of a request to the lease of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFigures {
    /// The report of the frontier. Its fields are fields of the figures, too.
    pub report: HostReport,
    /// Requests that failed: no whole answer, or a page with a status of 400 or more. They count from when the host came into the table of
    /// the 256 hosts on which the crawl spends most time.
    pub failures: u64,
    /// Answers, counted as failures are.
    pub answers: u64,
    /// The median time of its last 31 answers; `None` before the first.
    pub median: Option<Duration>,
    /// The longest time of an answer; `None` before the first.
    pub longest: Option<Duration>,
    /// The median of its last 31 pauses; `None` before the second request.
    pub median_pause: Option<Duration>,
    /// How long what waits for it takes, as [`HostReport::time_left`] says with the mean of its last 31 answers and the share of its requests
    /// that were made again; `None` if nothing waits.
    pub left: Option<Duration>,
}

impl Deref for HostFigures {
    type Target = HostReport;

    fn deref(&self) -> &HostReport {
        &self.report
    }
}

impl HostFigures {
    /// Makes the figures of a host that has not answered.
    pub fn new(report: HostReport, now: Time) -> Self {
        Self {
            failures: 0,
            answers: 0,
            median: None,
            longest: None,
            median_pause: None,
            left: report.time_left(Duration::ZERO, 0.0, now),
            report,
        }
    }

    /// Takes how far the clock of the frontier is ahead of the time of day from all its times.
    pub(crate) fn less_ahead(mut self, ahead: Duration) -> Self {
        // The two clocks were read one after the other.
        let ahead = Duration::from_secs(ahead.as_secs());
        let health = &mut self.report.health;
        for time in [&mut health.since, &mut health.until, &mut self.report.robots_at] {
            *time = time.map(|time| less_ahead(time, ahead));
        }
        self
    }

    /// Compares hosts: the one that holds the crawl up longest comes first.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        let rank = |one: &Self| Reverse((one.left, one.health.state, one.requests));
        rank(self).cmp(&rank(other)).then_with(|| self.host.cmp(&other.host))
    }
}

impl HostFigures {
    /// Returns them as one JSON object, with times in seconds. `name` returns the name of an option by its field.
    pub fn to_json(&self, as_of: Time, name: &dyn Fn(&str) -> String) -> Value {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let health = &self.health;
        json!({
            "host": self.host,
            "state": health.state,
            "explanation": self.explained(as_of, name),
            "origin": health.origin.as_ref().map(ToString::to_string),
            "since": health.since.map(rfc3339),
            "until": health.until.map(rfc3339),
            "kind": health.cause.as_ref().map(|cause| cause.kind.name()),
            "cause": self.cause(),
            "retry_after_seconds": seconds(health.asked_for),
            "times": health.times,
            "advice": self.advice(name),
            "waiting": self.queued,
            "in_flight": self.in_flight,
            "left_seconds": seconds(self.left),
            "requests": self.requests,
            "failures": self.failures,
            "median_seconds": seconds(self.median),
            "longest_seconds": seconds(self.longest),
            "delay_seconds": self.delay.as_secs_f64(),
            "shortest_pause_seconds": seconds(self.shortest_gap),
            "median_pause_seconds": seconds(self.median_pause),
            "robots_fetched_at": self.robots_at.map(rfc3339),
        })
    }

    /// Says what the host does, since when, why and until when, how long what waits for it takes, and what to do.
    pub fn explained(&self, as_of: Time, name: &dyn Fn(&str) -> String) -> String {
        let health = &self.health;
        let mut text = self.state_in_words();
        if let Some(since) = health.since {
            text += &format!(" for {}", duration(as_of.since(since)));
        }
        if let Some(cause) = self.cause() {
            text += &format!(": {cause}");
        }
        if let Some(asked_for) = health.asked_for {
            text += &format!("; Retry-After: {}", duration(asked_for));
        }
        if health.times > 1 {
            text += &format!("; {} times in a row", health.times);
        }
        if let Some(until) = health.until {
            text += &format!(
                "; asked again in {}, at {}",
                duration(until.since(as_of)),
                rfc3339(until)
            );
        }
        if let Some(left) = self.left {
            let waiting = grouped(self.queued + u64::from(self.in_flight));
            text += &format!("; {waiting} waiting, {} left", duration(left));
        }
        let advice = self.advice(name).filter(|_| !text.contains("; try "));
        text + &advice.map(|advice| format!("; {advice}")).unwrap_or_default()
    }

    fn cause(&self) -> Option<String> {
        let cause = self.health.cause.as_ref()?;
        Some(cause.message.chars().take(CAUSE_CHARACTERS).collect())
    }

    /// Returns the state as people say it.
    pub fn state_in_words(&self) -> String {
        match self.health.state {
            Health::RobotsFailing => "robots.txt failing".to_owned(),
            state => state.name().replace('_', " "),
        }
    }

    /// Returns what an operator can do about the state.
    pub fn advice(&self, name: &dyn Fn(&str) -> String) -> Option<String> {
        Some(match self.health.state {
            Health::Resting => format!("raise {}: it asks for less traffic", name("delay")),
            Health::RobotsFailing | Health::Closed => {
                "look at its robots.txt: nothing is fetched without it".to_owned()
            }
            Health::Hanging => format!("{} says how long a request may take", name("timeout")),
            Health::Away | Health::GivenUp => remedy(self.health.cause.as_ref()?.kind, name),
            _ => return None,
        })
    }
}
