//! Politeness per IP address: the requests in flight and the delay that its hosts share.
//!
//! A host that is due waits in a queue at its address. When the address is free, the first host joins the round of due hosts. So a
//! server with a hundred thousand names costs no scan of its names.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;

use super::HostConfig;
use super::pace::Pace;
use super::round::Round;
use crate::class::Class;
use crate::time::Time;
use crate::url::HostKey;

/// The number of addresses below which there is no sweep.
const FEW: usize = 64;

/// The address of a host, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum Address {
    #[default]
    Unknown,
    Asking,
    /// The address, if the host has one, until it is to be looked up again.
    Known(Option<IpAddr>, Time),
}

/// One address.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Shared {
    pace: Pace,
    /// Hosts that are due and wait for the address.
    waiting: Round,
    /// Hosts that were admitted to the round and were not leased yet.
    admitted: u32,
    /// The time at which its queue is checked next.
    timer: Option<Time>,
}

impl Shared {
    /// An address has as many requests in flight as a host may have, each at least the delay after the end of the last one.
    fn free_from(&self, config: &HostConfig) -> Time {
        let politeness = &config.politeness;
        self.pace.free_from(politeness.delay, politeness.per_host.get())
    }
}

/// All addresses.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Addresses {
    shared: HashMap<IpAddr, Shared>,
    timers: BinaryHeap<Reverse<(Time, IpAddr)>>,
    /// The number of addresses after the last sweep.
    kept: usize,
}

impl Addresses {
    /// Replaces each name of a waiting host.
    pub(crate) fn replace_names(&mut self, replace: impl Fn(&mut HostKey)) {
        for shared in self.shared.values_mut() {
            shared.waiting.iter_mut().for_each(&replace);
        }
    }

    /// Removes all hosts that wait or were admitted, and the timers. Returns those that wait, by address and in order.
    pub(crate) fn take_waiting(&mut self) -> Vec<HostKey> {
        self.timers.clear();
        let mut shared: Vec<_> = self.shared.iter_mut().collect();
        shared.sort_unstable_by_key(|(address, _)| **address);
        let waiting = shared.into_iter().flat_map(|(_, shared)| {
            shared.admitted = 0;
            shared.timer = None;
            shared.waiting.drain()
        });
        waiting.collect()
    }

    /// The hosts that wait for an address.
    pub(crate) fn waiting(&mut self, address: IpAddr) -> &mut Round {
        &mut self.shared.entry(address).or_default().waiting
    }

    /// Returns the host that may join the round now. If the address is not free yet, it sets a timer.
    pub(crate) fn next(&mut self, address: IpAddr, now: Time, config: &HostConfig) -> Option<(Class, HostKey)> {
        let shared = self.shared.get_mut(&address)?;
        // Each start moves the time of the next.
        let most = config.politeness.per_host.get();
        let at_once = if config.politeness.delay.is_zero() { most } else { 1 };
        if shared.waiting.is_empty() || shared.admitted >= at_once || shared.pace.in_flight() + shared.admitted >= most
        {
            return None;
        }
        let free = shared.free_from(config);
        if free > now {
            if shared.timer != Some(free) {
                shared.timer = Some(free);
                self.timers.push(Reverse((free, address)));
            }
            return None;
        }
        let (class, host) = shared.waiting.first()?;
        shared.waiting.remove_first(class);
        Some((class, host))
    }

    /// Records that a host joined the round.
    pub(crate) fn admit(&mut self, address: IpAddr) {
        self.shared.entry(address).or_default().admitted += 1;
    }

    /// Records that a host left the round.
    pub(crate) fn left_round(&mut self, address: IpAddr) {
        if let Some(shared) = self.shared.get_mut(&address) {
            shared.admitted = shared.admitted.saturating_sub(1);
        }
    }

    /// Returns whether the address is free. A request may have ended since its host was admitted.
    pub(crate) fn is_free(&self, address: IpAddr, now: Time, config: &HostConfig) -> bool {
        let shared = self.shared.get(&address);
        shared.is_none_or(|shared| shared.free_from(config) <= now)
    }

    pub(crate) fn start(&mut self, address: IpAddr, now: Time) {
        self.shared.entry(address).or_default().pace.start(now);
    }

    pub(crate) fn end(&mut self, address: IpAddr, now: Time, config: &HostConfig) {
        self.shared.entry(address).or_default().pace.end(now);
        self.sweep(now, config);
    }

    pub(crate) fn take_back(&mut self, address: IpAddr, started: Time) {
        self.shared.entry(address).or_default().pace.take_back(started);
    }

    /// Removes an address whose timer is due, if any, and returns it.
    pub(crate) fn wake(&mut self, now: Time) -> Option<IpAddr> {
        while let Some(Reverse((time, address))) = self.timers.peek().copied() {
            if time > now {
                return None;
            }
            if self.end_first_timer() {
                return Some(address);
            }
        }
        None
    }

    pub(crate) fn next_time(&mut self) -> Option<Time> {
        while let Some(Reverse((time, address))) = self.timers.peek().copied() {
            let is_waited_for = |shared: &Shared| shared.timer == Some(time) && !shared.waiting.is_empty();
            if self.shared.get(&address).is_some_and(is_waited_for) {
                return Some(time);
            }
            self.end_first_timer();
        }
        None
    }

    /// Removes the first timer. Returns whether it was still that of its address.
    fn end_first_timer(&mut self) -> bool {
        let Some(Reverse((time, address))) = self.timers.pop() else {
            return false;
        };
        let shared = self.shared.get_mut(&address);
        shared.is_some_and(|shared| shared.timer.take_if(|timer| *timer == time).is_some())
    }

    /// Forgets addresses without state, once they may be the majority.
    fn sweep(&mut self, now: Time, config: &HostConfig) {
        if self.shared.len() <= 2 * self.kept + FEW {
            return;
        }
        self.shared.retain(|_, shared| {
            let is_in_use = shared.pace.in_flight() > 0 || shared.admitted > 0 || !shared.waiting.is_empty();
            is_in_use || shared.free_from(config) > now
        });
        self.kept = self.shared.len();
    }
}
