//! How long the busiest hosts take to answer: a bounded table in the crawler, beside what the frontier knows of each host.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use frontier::{Frontier, HostKey};
use serde::{Deserialize, Serialize};

use crate::event::RequestRecord;

/// The file of the table in a state directory.
const FILE: &str = "hosts.json";

/// The most hosts in the table.
const HOSTS: usize = 256;

/// The last answers of a host, of which the median is taken.
const SAMPLES: usize = 31;

/// The most hosts that a list of the busiest has.
const LISTED: usize = 10;

/// A host with waiting pages, and how it answers. The times are of its answers, from the start of the request to the end of the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BusyHost {
    /// The host.
    pub host: HostKey,
    /// Entries that wait for it.
    pub waiting: u64,
    /// Requests that have ended, those for robots.txt included.
    pub requests: u64,
    /// Requests that failed: no whole answer, or a page with a status of 400 or more. They count from when the host came into the table of
    /// the 256 hosts on which the crawl spends most time.
    pub failures: u64,
    /// The median time of its last 31 answers; `None` before the first.
    pub median: Option<Duration>,
    /// The longest time of an answer; `None` before the first.
    pub longest: Option<Duration>,
    /// The delay that is owed to it.
    pub delay: Duration,
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
    answers: u64,
    longest: Duration,
    /// The last answers, in milliseconds. The next one replaces the one at `answers % SAMPLES`.
    last: Vec<u32>,
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
        let Some(answer) = request.status.map(|_| request.took) else {
            return;
        };
        times.longest = times.longest.max(answer);
        let milliseconds = u32::try_from(answer.as_millis()).unwrap_or(u32::MAX);
        match times.last.get_mut((times.answers % SAMPLES as u64) as usize) {
            Some(oldest) => *oldest = milliseconds,
            None => times.last.push(milliseconds),
        }
        times.answers += 1;
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

    /// Returns the hosts of the table with the most waiting entries, then those with the most requests.
    pub(crate) fn busiest(&self, frontier: &Frontier) -> Vec<BusyHost> {
        let hosts = self.hosts.iter().filter_map(|(host, times)| {
            let report = frontier.host_report(host)?;
            let mut last = times.last.clone();
            last.sort_unstable();
            let median = last.get(last.len() / 2);
            Some(BusyHost {
                host: host.clone(),
                waiting: report.queued,
                requests: report.requests,
                failures: times.failures,
                median: median.map(|milliseconds| Duration::from_millis(u64::from(*milliseconds))),
                longest: (times.answers > 0).then_some(times.longest),
                delay: report.delay,
            })
        });
        let mut hosts: Vec<_> = hosts.collect();
        hosts.sort_by(|a, b| {
            let by_numbers = (b.waiting, b.requests).cmp(&(a.waiting, a.requests));
            by_numbers.then_with(|| a.host.cmp(&b.host))
        });
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
            bytes: 0,
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
        assert_eq!((times.last.len(), times.answers), (SAMPLES, 1_000));
        assert!(times.last.iter().all(|time| *time >= 969));
    }
}
