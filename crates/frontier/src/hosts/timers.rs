//! When the hosts that wait are looked at again, and those that rest forgotten.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::HostQueues;
use super::host::{Host, HostState};
use crate::time::Time;
use crate::url::HostKey;

/// When which host is to be looked at; the earliest first.
pub(super) type Timers = BinaryHeap<Reverse<(Time, HostKey)>>;

/// Hosts that are kept for the sake of the report, though nothing is left to know of them.
const HOSTS_KEPT: usize = 10_000;

/// Marks that are not worth a sweep.
const FEW_MARKS: usize = 64;

impl HostQueues {
    /// Returns when the next host will be due, if any waits for its time.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        let of_address = self.addresses.next_time();
        while let Some(Reverse((time, key))) = self.waiting.peek() {
            if self
                .hosts
                .get(key)
                .is_some_and(|host| host.state == HostState::Waiting(*time))
            {
                return Some(of_address.map_or(*time, |other| other.min(*time)));
            }
            self.waiting.pop();
        }
        of_address
    }

    /// Rebuilds an timers once most of its marks are old ones. A host that runs empty after each page leaves one behind each
    /// time, to stay until its robots.txt expires.
    ///
    /// Costs one look at every host, paid for by as many marks since the last time.
    pub(super) fn sweep(&mut self) {
        let most = 2 * self.hosts.len() + FEW_MARKS;
        if self.waiting.len() > most {
            self.waiting = timers(&self.hosts, |state| match state {
                HostState::Waiting(time) => Some(time),
                _ => None,
            });
        }
        if self.resting.len() > most {
            self.resting = timers(&self.hosts, |state| match state {
                HostState::Resting(time) => Some(time),
                _ => None,
            });
        }
    }

    /// Brings the hosts whose time has come into the round, and forgets those of whom nothing is left to know, if there are
    /// many.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some((time, key)) = pop_until(&mut self.waiting, now) {
            if let Some(host) = self
                .hosts
                .get_mut(&key)
                .filter(|host| host.state == HostState::Waiting(time))
            {
                host.state = HostState::Idle;
                self.update_state(&key, now);
            }
        }
        while let Some(address) = self.addresses.wake(now) {
            self.admit_waiting(Some(address), now);
        }
        let kept = HOSTS_KEPT.min(self.rules.max_hosts / 2);
        while self.hosts.len() > kept
            && let Some((time, key)) = pop_until(&mut self.resting, now)
        {
            if self
                .hosts
                .get(&key)
                .is_some_and(|host| host.state == HostState::Resting(time))
            {
                self.forget(&key);
            }
        }
    }
}

/// One mark for each host whose place has a time of the kind asked for.
fn timers(hosts: &HashMap<HostKey, Box<Host>>, time_of: impl Fn(HostState) -> Option<Time>) -> Timers {
    let marks = hosts
        .iter()
        .filter_map(|(key, host)| Some(Reverse((time_of(host.state)?, key.clone()))));
    marks.collect()
}

fn pop_until(timers: &mut Timers, now: Time) -> Option<(Time, HostKey)> {
    let Reverse((time, _)) = timers.peek()?;
    if *time > now {
        return None;
    }
    timers.pop().map(|Reverse(next)| next)
}
