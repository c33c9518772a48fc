//! Timers: when waiting hosts are due, and when resting hosts are forgotten.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::HostQueues;
use super::host::HostState;
use super::table::HostTable;
use crate::time::Time;
use crate::url::HostKey;

/// The times at which hosts are checked, the earliest first.
///
/// When the time of a host changes, its old timer stays. It differs from the time of the host, and is removed when it is due or by a sweep.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Timers {
    pub(super) waiting: BinaryHeap<Timer>,
    pub(super) resting: BinaryHeap<Timer>,
}

pub(super) type Timer = Reverse<(Time, HostKey)>;

/// Hosts without state that are kept for the report.
const HOSTS_KEPT: usize = 10_000;

/// The number of timers below which there is no sweep.
const FEW_MARKS: usize = 64;

impl HostQueues {
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        let of_address = self.addresses.next_time();
        while let Some(Reverse((time, key))) = self.timers.waiting.peek() {
            if self.hosts.is_in(key, HostState::Waiting(*time)) {
                return Some(of_address.map_or(*time, |other| other.min(*time)));
            }
            self.timers.waiting.pop();
        }
        of_address
    }

    /// Rebuilds the timers once most of them are outdated. A host whose queue becomes empty after each page leaves an outdated timer
    /// each time, until its robots.txt expires.
    ///
    /// Cost: a scan of all hosts, amortised over as many new timers.
    pub(super) fn sweep(&mut self) {
        let most = 2 * self.hosts.len() + FEW_MARKS;
        if self.timers.waiting.len() > most {
            self.timers.waiting = timers(&self.hosts, |state| match state {
                HostState::Waiting(time) => Some(time),
                _ => None,
            });
        }
        if self.timers.resting.len() > most {
            self.timers.resting = timers(&self.hosts, |state| match state {
                HostState::Resting(time) => Some(time),
                _ => None,
            });
        }
    }

    pub(super) fn wake(&mut self, now: Time) {
        let mut just_met = Vec::new();
        while let Some((time, key)) = pop_until(&mut self.timers.waiting, now) {
            if self.hosts.is_in(&key, HostState::Waiting(time))
                && let Some(host) = self.hosts.get_mut(&key)
            {
                host.state = HostState::Idle;
                if host.is_just_met() {
                    just_met.push(key);
                } else {
                    self.update_state(&key, now);
                }
            }
        }
        // Each of them joins the round in front of the others.
        for key in just_met.into_iter().rev() {
            self.update_state(&key, now);
        }
        while let Some(address) = self.addresses.wake(now) {
            self.admit_waiting(Some(address), now);
        }
        let kept = HOSTS_KEPT.min(self.config.limits.max_hosts / 2);
        while self.hosts.len() > kept
            && let Some((time, key)) = pop_until(&mut self.timers.resting, now)
        {
            if self.hosts.is_in(&key, HostState::Resting(time)) {
                self.forget(&key);
            }
        }
    }
}

/// Adds a timer. Timers that double have room for as many hosts again.
pub(super) fn add(timers: &mut BinaryHeap<Timer>, time: Time, key: HostKey) {
    if timers.len() == timers.capacity() {
        timers.reserve_exact(timers.len() / 8 + 4);
    }
    timers.push(Reverse((time, key)));
}

fn timers(hosts: &HostTable, time_of: impl Fn(HostState) -> Option<Time>) -> BinaryHeap<Timer> {
    let marks = hosts
        .all_facts()
        .filter_map(|(key, facts)| Some(Reverse((time_of(facts.state)?, key.clone()))));
    marks.collect()
}

fn pop_until(timers: &mut BinaryHeap<Timer>, now: Time) -> Option<(Time, HostKey)> {
    let Reverse((time, _)) = timers.peek()?;
    if *time > now {
        return None;
    }
    timers.pop().map(|Reverse(next)| next)
}
