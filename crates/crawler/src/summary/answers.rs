//! How long hosts take to answer, and how long they are left alone: a bounded table in the crawler, beside what the frontier knows of each host.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use frontier::{Frontier, HostKey, Time};
use serde::{Deserialize, Serialize};

use super::Summary;
use crate::event::RequestRecord;

/// The file of the table in a state directory.
const FILE: &str = "hosts.json";

/// The most hosts in the table.
const HOSTS: usize = 256;

/// The last times of a host, of which the median is taken.
const SAMPLES: usize = 31;

/// The most hosts that a list has.
const LISTED: usize = 20;

/// The least answers of a host that counts among the slowest.
const FEWEST_ANSWERS: u64 = 3;

/// A host: what waits for it, how it answers, and how it is treated. The times of answers are from the start of the request to the end of the
/// body; pauses are from the end of a request to the lease of the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostFigures {
    /// The host.
    pub host: HostKey,
    /// Entries that wait for it.
    pub waiting: u64,
    /// Requests that have ended, those for robots.txt included.
    pub requests: u64,
    /// Requests that failed: no whole answer, or a page with a status of 400 or more. They count from when the host came into the table of
    /// the 256 hosts on which the crawl spends most time.
    pub failures: u64,
    /// Answers, counted as failures are.
    pub answers: u64,
    /// The median time of its last 31 answers; `None` before the first.
    pub median: Option<Duration>,
    /// The longest time of an answer; `None` before the first.
    pub longest: Option<Duration>,
    /// The delay that is owed to it.
    pub delay: Duration,
    /// The shortest pause between two requests; `None` before the second.
    pub shortest_pause: Option<Duration>,
    /// The median of its last 31 pauses; `None` before the second request.
    pub median_pause: Option<Duration>,
    /// When its robots.txt was read, as [`frontier::HostReport::robots_at`] says.
    pub robots_at: Option<Time>,
}

/// The hosts on which the crawl has spent most time. It keeps them as the Space-Saving algorithm does (Metwally, Agrawal and El Abbadi,
/// ICDT 2005): a new host takes the place of the one with the least time, and inherits that time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AnswerTimes {
    hosts: HashMap<HostKey, Times>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Times {
    spent: Duration,
    failures: u64,
    longest: Duration,
    answers: LastTimes,
    pauses: LastTimes,
}

/// The last of many times, in milliseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct LastTimes {
    /// How many there were. The next one replaces the one at `all % SAMPLES`.
    all: u64,
    last: Vec<u32>,
}

impl LastTimes {
    fn add(&mut self, time: Duration) {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        match self.last.get_mut((self.all % SAMPLES as u64) as usize) {
            Some(oldest) => *oldest = milliseconds,
            None => self.last.push(milliseconds),
        }
        self.all += 1;
    }

    fn median(&self) -> Option<Duration> {
        let mut last = self.last.clone();
        last.sort_unstable();
        let median = last.get(last.len() / 2);
        median.map(|milliseconds| Duration::from_millis(u64::from(*milliseconds)))
    }
}

impl AnswerTimes {
    /// Reads the table of a state directory; an empty one if there is none, or if a power cut has damaged it.
    pub(crate) fn read(state: &Path) -> Self {
        let saved = fs::read(state.join(FILE));
        saved.map_or_else(
            |_| Self::default(),
            |saved| serde_json::from_slice(&saved).unwrap_or_default(),
        )
    }

    /// Writes the table to a state directory. It is no part of a commit, and nothing depends on it.
    pub(crate) fn write(&self, state: &Path) -> io::Result<()> {
        let new = state.join(FILE).with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, state.join(FILE))
    }

    /// Counts a request that took `spent` until it was settled.
    pub(crate) fn count(&mut self, host: &HostKey, spent: Duration, request: &RequestRecord) {
        if !self.hosts.contains_key(host) {
            let inherited = self.make_room();
            let times = Times {
                spent: inherited,
                ..Times::default()
            };
            self.hosts.insert(host.clone(), times);
        }
        let Some(times) = self.hosts.get_mut(host) else { return };
        times.spent += spent;
        times.failures += u64::from(request.failure.is_some());
        if let Some(pause) = request.pause {
            times.pauses.add(pause);
        }
        if request.status.is_some() {
            times.longest = times.longest.max(request.took);
            times.answers.add(request.took);
        }
    }

    /// Removes the host with the least time if the table is full, and returns that time.
    fn make_room(&mut self) -> Duration {
        if self.hosts.len() < HOSTS {
            return Duration::ZERO;
        }
        let least = self.hosts.iter().min_by_key(|(_, times)| times.spent);
        let Some((host, spent)) = least.map(|(host, times)| (host.clone(), times.spent)) else {
            return Duration::ZERO;
        };
        self.hosts.remove(&host);
        spent
    }

    /// Returns the table, by the names of the hosts.
    pub(crate) fn figures(&self, frontier: &Frontier) -> Vec<HostFigures> {
        let hosts = self.hosts.iter().filter_map(|(host, times)| {
            let report = frontier.host_report(host)?;
            Some(HostFigures {
                host: host.clone(),
                waiting: report.queued,
                requests: report.requests,
                failures: times.failures,
                answers: times.answers.all,
                median: times.answers.median(),
                longest: (times.answers.all > 0).then_some(times.longest),
                delay: report.delay,
                shortest_pause: report.shortest_gap,
                median_pause: times.pauses.median(),
                robots_at: report.robots_at,
            })
        });
        let mut hosts: Vec<_> = hosts.collect();
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        hosts
    }
}

impl Summary {
    /// Returns up to 20 of the [`host_table`](Self::host_table): those with the most waiting entries, then with the most requests, first.
    pub fn busiest(&self) -> Vec<&HostFigures> {
        let mut hosts: Vec<_> = self.host_table.iter().collect();
        hosts.sort_by_key(|host| Reverse((host.waiting, host.requests)));
        hosts.truncate(LISTED);
        hosts
    }

    /// Returns up to 20 of the [`host_table`](Self::host_table): those that take longest to answer, by the median of at least three answers.
    pub fn slowest(&self) -> Vec<&HostFigures> {
        let mut hosts: Vec<_> = self.host_table.iter().collect();
        hosts.retain(|host| host.answers >= FEWEST_ANSWERS);
        hosts.sort_by_key(|host| Reverse(host.median));
        hosts.truncate(LISTED);
        hosts
    }
}

#[cfg(test)]
mod tests {
    use frontier::FailureKind;

    use super::*;
    use crate::fetch::ResourceKind;

    #[test]
    fn a_slow_host_stays_in_the_table_beside_many_quick_ones_and_the_table_is_bounded() {
        let host = |name: String| HostKey::of(&url::Url::parse(&format!("http://{name}/")).unwrap()).unwrap();
        let request = |status: Option<u16>, took| RequestRecord {
            kind: ResourceKind::Page,
            status,
            failure: status.is_none().then_some(FailureKind::Timeout),
            took,
            pause: Some(took),
            ..RequestRecord::default()
        };
        let slow = host("slow.example".to_owned());
        let mut table = AnswerTimes::default();
        for n in 0..10_000_u64 {
            if n % 100 == 0 {
                table.count(&slow, Duration::from_secs(20), &request(None, Duration::ZERO));
            }
            let quick = host(format!("h{n}.example"));
            table.count(
                &quick,
                Duration::from_millis(5),
                &request(Some(200), Duration::from_millis(5)),
            );
        }
        assert_eq!(table.hosts.len(), HOSTS);
        assert_eq!(table.hosts[&slow].failures, 100);
        let answer = |table: &mut AnswerTimes, n: u64| {
            table.count(&slow, Duration::ZERO, &request(Some(200), Duration::from_millis(n)));
        };
        (0..1_000).for_each(|n| answer(&mut table, n));
        let times = &table.hosts[&slow];
        assert_eq!((times.answers.all, times.pauses.all), (1_000, 1_100));
        for times in [&times.answers, &times.pauses] {
            assert_eq!(times.last.len(), SAMPLES);
            assert!(times.last.iter().all(|time| *time >= 969));
            assert_eq!(times.median(), Some(Duration::from_millis(984)));
        }
    }
}
