//! How long hosts take to answer, and how long they are left alone: a bounded table in the crawler, beside what the frontier knows of each host.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use frontier::{FailureKind, Frontier, HostKey, HostReport, Time};
use serde::{Deserialize, Serialize};

use super::{HostFigures, HostTable, less_ahead};
use crate::fetch::ResourceKind;
use crate::records::RequestRecord;

/// The file of the table in a state directory.
const FILE: &str = "hosts.json";

/// The most hosts in the table.
const HOSTS: usize = 256;

/// The last times of a host, of which the median is taken.
const SAMPLES: usize = 31;

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
    /// Of pages with a whole answer.
    #[serde(default)]
    whole: LastTimes,
    /// Of pages without one.
    #[serde(default)]
    cut: LastTimes,
    /// Requests for pages since the last with a whole answer, and those of them that are made again.
    #[serde(default)]
    silent: (u64, u64),
    pauses: LastTimes,
}

/// The last of many times, in milliseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct LastTimes {
    /// How many there were.
    all: u64,
    /// The newest first.
    last: Vec<u32>,
}

impl LastTimes {
    fn add(&mut self, time: Duration) {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.last.insert(0, milliseconds);
        self.last.truncate(SAMPLES);
        self.all += 1;
    }

    /// The mean of the last ones, up to a number.
    fn mean(&self, of: usize) -> Duration {
        let last = &self.last[..of.min(self.last.len())];
        let sum: u64 = last.iter().copied().map(u64::from).sum();
        Duration::from_millis(sum / last.len().max(1) as u64)
    }

    fn median(&self) -> Option<Duration> {
        let mut last = self.last.clone();
        last.sort_unstable();
        let median = last.get(last.len() / 2);
        median.map(|milliseconds| Duration::from_millis(u64::from(*milliseconds)))
    }
}

impl Times {
    /// The requests that each waiting page takes if all of them fail in all their attempts, less those that they have spent: all that were made
    /// again, but for those of pages that were given up since.
    fn requests_at_most(&self, report: &HostReport) -> f64 {
        let waiting = (report.queued + u64::from(report.in_flight)).max(1) as f64;
        // The last attempt is spared if an outage begins with it, as with one silent page in three.
        let attempts = f64::from(report.max_attempts) + 1.0 / 3.0;
        let (requests, again) = (self.silent.0 as f64, self.silent.1 as f64);
        let spent = again - (attempts - 1.0) * (requests - again);
        attempts - spent.max(0.0) / waiting
    }
}

impl AnswerTimes {
    /// Reads the table of a state directory; an empty one if there is none, or if a power cut has damaged it.
    pub(crate) fn read(state: &Path) -> Self {
        let saved = fs::read(state.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&saved).unwrap_or_default()
    }

    /// Writes the table to a state directory. It is no part of a commit, and nothing depends on it.
    pub(crate) fn write(&self, state: &Path) -> io::Result<()> {
        let new = state.join(FILE).with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, state.join(FILE))
    }

    /// Counts a request. `is_retried` says whether it failed, and is made again.
    pub(crate) fn count(&mut self, host: &HostKey, spent: Duration, request: &RequestRecord, is_retried: bool) {
        if !self.hosts.contains_key(host) {
            let spent = self.make_room();
            let times = Times {
                spent,
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
        if request.kind == ResourceKind::Page {
            let (requests, again) = times.silent;
            if let Some(FailureKind::Timeout | FailureKind::Broken | FailureKind::Incomplete) = request.failure {
                times.cut.add(request.took);
                times.silent = (requests + 1, again + u64::from(is_retried));
            } else {
                times.whole.add(request.took);
                times.silent = (0, 0);
            }
        }
        if request.status.is_some() {
            times.longest = times.longest.max(request.took);
            times.answers.add(request.took);
        }
    }

    /// Removes the host with the least time if the table is full, and returns that time.
    fn make_room(&mut self) -> Duration {
        let least = self.hosts.iter().min_by_key(|(_, times)| times.spent);
        let least = least.filter(|_| self.hosts.len() >= HOSTS);
        let removed = least
            .map(|(host, _)| host.clone())
            .and_then(|host| self.hosts.remove(&host));
        removed.unwrap_or_default().spent
    }

    pub(crate) fn figures_of(&self, report: HostReport, now: Time) -> HostFigures {
        let unknown = Times::default();
        let times = self.hosts.get(&report.host).unwrap_or(&unknown);
        let answering = report.time_left(times.whole.mean(SAMPLES), 1.0, now);
        // After three silent pages its origin is probed.
        let silent = times.cut.mean(report.health.times as usize) + report.delay / 3;
        let hanging = || report.time_left(silent, times.requests_at_most(&report), now);
        HostFigures {
            failures: times.failures,
            answers: times.answers.all,
            median: times.answers.median(),
            longest: (times.answers.all > 0).then_some(times.longest),
            median_pause: times.pauses.median(),
            left: if report.health.pages_hang() {
                hanging()
            } else {
                answering
            },
            answering,
            report,
        }
    }

    /// Looks at the hosts at a time of the frontier's clock. `ahead` says how far that is ahead of the time of day.
    pub(crate) fn table(&self, frontier: &Frontier, now: Time, ahead: Duration) -> HostTable {
        let of = |report| self.figures_of(report, now);
        let mut hosts: Vec<_> = frontier.held_up(now).into_iter().map(of).collect();
        hosts.sort_by(HostFigures::worst_first);
        hosts.truncate(HOSTS);
        let held_up: HashSet<_> = hosts.iter().map(|one| one.host.clone()).collect();
        let others = self.hosts.keys().filter(|host| !held_up.contains(*host));
        hosts.extend(others.filter_map(|host| frontier.host_report(host, now)).map(of));
        hosts.sort_by(HostFigures::worst_first);
        HostTable {
            hosts: hosts.into_iter().map(|host| host.less_ahead(ahead)).collect(),
            by_health: frontier.hosts_by_health(now),
            as_of: less_ahead(now, ahead),
        }
    }
}

impl HostFigures {
    /// Makes the figures of a host that has not answered.
    pub fn new(report: HostReport, now: Time) -> Self {
        AnswerTimes::default().figures_of(report, now)
    }
}

#[cfg(test)]
mod tests {
    use frontier::{Canonicalizer, Failure, FrontierConfig, Health, Leasing, Outcome};

    use super::*;

    #[test]
    fn a_slow_host_stays_in_the_table_beside_many_quick_ones_and_the_table_is_bounded() {
        let host = |name: String| HostKey::of(&url::Url::parse(&format!("http://{name}/")).unwrap()).unwrap();
        let request = |status: Option<u16>, took| RequestRecord {
            class: frontier::Class::default(),
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
                table.count(&slow, Duration::from_secs(20), &request(None, Duration::ZERO), true);
            }
            let quick = host(format!("h{n}.example"));
            table.count(
                &quick,
                Duration::from_millis(5),
                &request(Some(200), Duration::from_millis(5)),
                false,
            );
        }
        assert_eq!(table.hosts.len(), HOSTS);
        assert_eq!(table.hosts[&slow].failures, 100);
        let answer = |table: &mut AnswerTimes, n: u64| {
            table.count(
                &slow,
                Duration::ZERO,
                &request(Some(200), Duration::from_millis(n)),
                false,
            );
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

    #[test]
    fn a_host_that_was_mute_for_a_while_takes_as_long_as_its_answers_say_and_one_that_always_fails_a_request_for_each_page()
     {
        let pages: Vec<_> = (0..100).map(|n| format!("http://a.example/{n}")).collect();
        let mut frontier = Frontier::in_memory(FrontierConfig::default()).unwrap();
        for page in &pages {
            let seed = Canonicalizer::default().parse(page).unwrap();
            frontier.add_seed(&seed, Time::EPOCH).unwrap();
        }
        let host = Canonicalizer::default().parse(&pages[0]).unwrap().host();
        let report = || frontier.host_report(&host, Time::EPOCH).unwrap();
        let mut table = AnswerTimes::default();
        let mut asked = |status, failure, took| {
            let request = RequestRecord {
                kind: ResourceKind::Page,
                status,
                failure,
                took: Duration::from_secs(took),
                ..RequestRecord::default()
            };
            table.count(&host, request.took, &request, failure.is_some());
            table.figures_of(report(), Time::EPOCH)
        };
        let mut figures = asked(Some(500), Some(FailureKind::Status), 0);
        let at_least = figures.queued * figures.delay.as_secs();
        for _ in 0..3 {
            figures = asked(None, Some(FailureKind::Timeout), 30);
        }
        assert_eq!(figures.left.map(|left| left.as_secs()), Some(at_least));
        let mut hanging = report();
        (hanging.health.state, hanging.health.times) = (Health::Hanging, 4);
        let figures = table.figures_of(hanging, Time::EPOCH);
        let all = figures.left.unwrap().as_secs();
        assert!(all > 31 * figures.queued * 3, "all attempts, of 30 s: {all}");
        assert_eq!(figures.answering.map(|left| left.as_secs()), Some(at_least));
    }

    #[test]
    fn a_host_that_holds_the_crawl_up_is_in_the_table_though_no_time_was_spent_on_it() {
        let seed = Canonicalizer::default().parse("http://a.example/").unwrap();
        let mut frontier = Frontier::in_memory(FrontierConfig::default()).unwrap();
        frontier.add_seed(&seed, Time::EPOCH).unwrap();
        let Leasing::Ready(leases) = frontier.lease(Time::EPOCH, 1).unwrap() else {
            panic!("its robots.txt is due");
        };
        let minute = Duration::from_secs(60);
        let throttled = Failure::new(FailureKind::Throttled, "429");
        let outcome = Outcome::failed_until(throttled, Some(minute));
        frontier.settle(&[leases[0].settle(outcome)], Time::EPOCH).unwrap();
        let table = AnswerTimes::default().table(&frontier, Time::EPOCH, Duration::ZERO);
        let found = table.held_up_by().map(|host| (host.health.state, host.health.until));
        assert_eq!(found, Some((Health::Resting, Some(Time::EPOCH + minute))));
    }
}
