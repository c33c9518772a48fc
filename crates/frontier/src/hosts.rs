//! Whose turn it is: the queues of all hosts, with their due times, delays, blocks and failures.
//!
//! A host is in exactly one [`HostState`]: **due** (in the round of hosts that can be asked now), **waiting** for its time,
//! **held** (as many requests in flight as it may have, or its robots.txt is asked for), or **idle** with nothing queued. An idle
//! host rests until its next time has passed, so that a new link cannot jump the delay, and is kept for longer when
//! something is known of it that must not be lost: a delay of its own, a page count, that it was given up.
//!
//! Where requests count by address as well, a host whose turn has come first stands **in line** at its address.
//!
//! Handing out goes round the due hosts, one entry each, so that a host with a long queue never delays another. An entry that
//! its robots.txt forbids, or that has become one of too many near-duplicates, is not handed out: it is [dropped](Dropped) or waits
//! behind everything else.
//!
//! Cost: a hash-map look-up per call, plus O(log hosts) where a host goes to wait.

mod addresses;
mod dropped;
mod host;
mod incidents;
mod jitter;
mod origin_queue;
mod outage;
mod pace;
mod packed_entries;
mod robots;
mod round_robin;
mod sieve_queue;
mod timers;
mod why;

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use addresses::Addresses;
use dropped::DroppedEntries;
pub(crate) use incidents::Consequence;
pub(crate) use jitter::with_jitter;
use origin_queue::OriginId;
use robots::RulesMemory;
pub(crate) use sieve_queue::Arrival;
use timers::Timers;

use crate::config::MAX_ORIGINS_PER_HOST;
use crate::entry::{Entry, Purpose};
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;
use crate::traps::Traps;
use crate::url::HostKey;
use host::{Host, HostState};

/// The rules that all hosts share.
#[derive(Debug, Clone)]
pub(crate) struct HostRules {
    pub(crate) per_host: u32,
    pub(crate) per_address: bool,
    pub(crate) delay: Duration,
    pub(crate) max_crawl_delay: Duration,
    pub(crate) max_queued: u64,
    pub(crate) max_hosts: usize,
    pub(crate) max_pages_per_host: Option<u64>,
    pub(crate) ask_robots: bool,
}

/// The queues of all hosts, as one [`sieve::Queue`].
#[derive(Debug)]
pub(crate) struct HostQueues {
    rules: HostRules,
    // A box each: a table of large values would waste as much as it holds.
    hosts: HashMap<HostKey, Box<Host>>,
    due: VecDeque<HostKey>,
    addresses: Addresses,
    // A host whose time has changed since leaves its old mark behind in these two; it is known by the time, and dropped when
    // that comes or at the next sweep.
    waiting: Timers,
    resting: Timers,
    queued: u64,
    /// Origins that were given up.
    given_up: u64,
    /// A host has had half as many origins as it may have.
    has_crowded_hosts: bool,
    postponed: u64,
    /// Where something is postponed, in the order in which it was.
    postponed_at: VecDeque<(HostKey, OriginId)>,
    dropped: DroppedEntries,
    rules_memory: RulesMemory,
    traps: Traps,
}

/// An entry that was handed out.
#[derive(Debug)]
pub(crate) struct LeasedEntry {
    pub(crate) entry: Entry,
    /// How long after the end of the host's last request.
    gap: Option<Duration>,
    /// When.
    pub(crate) started: Time,
    /// The address that was asked, if that counts.
    address: Option<IpAddr>,
    /// Whether it asks if its origin is back.
    pub(crate) is_probe: bool,
}

impl HostQueues {
    pub(crate) fn new(rules: HostRules, traps: Traps) -> Self {
        Self {
            traps,
            addresses: Addresses::new(rules.per_host, rules.delay),
            rules,
            hosts: HashMap::new(),
            due: VecDeque::new(),
            waiting: Timers::new(),
            resting: Timers::new(),
            queued: 0,
            given_up: 0,
            has_crowded_hosts: false,
            postponed: 0,
            postponed_at: VecDeque::new(),
            dropped: DroppedEntries::default(),
            rules_memory: RulesMemory::default(),
        }
    }

    /// Says whether a link may be queued, and if not, why.
    pub(crate) fn admit(&self, link: &Link) -> Result<(), Refusal> {
        if self.len() >= self.rules.max_queued {
            return Err(Refusal::QueueFull);
        }
        let Some(host) = self.hosts.get(link.url.host_str()) else {
            if self.hosts.len() >= self.rules.max_hosts {
                return Err(Refusal::TooManyHosts);
            }
            if self.rules.max_pages_per_host == Some(0) && link.sitemap_of.is_none() {
                return Err(Refusal::HostBudget);
            }
            self.traps.admit_host(link)?;
            return self.traps.admit(link);
        };
        if host.gave_up(link.url.url().as_str()) {
            return Err(Refusal::HostDead);
        }
        let is_full = host.origins().len() >= MAX_ORIGINS_PER_HOST && !link.seed;
        if is_full && host.find(OriginId::of(link.url.url().as_str())).is_none() {
            return Err(Refusal::TooManyPorts);
        }
        if link.sitemap_of.is_none() && !host.takes_pages(&self.rules) {
            return Err(Refusal::HostBudget);
        }
        self.traps.admit(link)
    }

    /// Returns how many entries wait, those behind everything else included, and those that were dropped and are to be handed over.
    pub(crate) fn len(&self) -> u64 {
        self.queued + self.postponed + self.dropped_len()
    }

    /// Says whether anything waits that is not behind everything else.
    pub(crate) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Returns how many origins were given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Returns how many pages wait behind everything else.
    pub(crate) fn postponed(&self) -> u64 {
        self.postponed
    }

    /// Counts a page of a host. Says whether its budget is spent by that, and pages wait that must be dropped.
    pub(crate) fn count_page(&mut self, key: &HostKey, now: Time) -> bool {
        let (most, mut is_over) = (self.rules.max_pages_per_host, false);
        if self.hosts.contains_key(key) {
            self.change(key, now, |host, _| is_over = host.count_page(most));
        }
        is_over
    }

    /// Queues an entry with its host. What was admitted, and retries, which were admitted once.
    pub(crate) fn enqueue(&mut self, mut entry: Entry, now: Time) {
        // All entries of a host share one copy of its name.
        if let Some((key, _)) = self.hosts.get_key_value(&entry.queue) {
            entry.queue = key.clone();
        }
        let key = entry.queue.clone();
        self.change(&key, now, |host, rules| host.enqueue(entry, now, rules));
    }

    /// Lets a page wait behind everything else of the crawl.
    fn postpone(&mut self, entry: &Entry, now: Time) {
        let id = OriginId::of(&entry.url);
        let was_empty = self
            .hosts
            .get(&entry.queue)
            .and_then(|host| host.find(id))
            .is_none_or(|origin| origin.postponed_len() == 0);
        if was_empty {
            self.postponed_at.push_back((entry.queue.clone(), id));
        }
        self.change(&entry.queue, now, |host, _| host.postpone(entry));
    }

    /// Brings back some of what waits behind everything else, from one origin after the other. Says whether there was any.
    ///
    /// To be called when nothing else is queued or in flight.
    pub(crate) fn release_postponed(&mut self, now: Time) -> bool {
        // Enough for many hosts to be busy; few, so that what they lead to comes before the rest.
        const AT_ONCE: usize = 256;
        const OF_ORIGIN: usize = 16;
        let mut released = 0;
        let mut looked_at = self.postponed_at.len();
        while released < AT_ONCE && looked_at > 0 {
            looked_at -= 1;
            let Some((key, id)) = self.postponed_at.pop_front() else {
                break;
            };
            let mut is_left = false;
            if self.hosts.contains_key(&key) {
                self.change(&key, now, |host, rules| {
                    released += host.release(&key, id, OF_ORIGIN, now, rules);
                    is_left = host.find(id).is_some_and(|origin| origin.postponed_len() > 0);
                });
            }
            if is_left {
                self.postponed_at.push_back((key, id));
            }
        }
        released > 0
    }

    /// A request has ended, and the host's delay counts from now.
    pub(crate) fn request_ended(&mut self, leased: &LeasedEntry, now: Time) {
        if let Some(address) = leased.address {
            self.addresses.end(address, now);
        }
        self.change(&leased.entry.queue, now, |host, _| {
            host.request_ended(&leased.entry, leased.gap, now);
        });
        self.admit_waiting(leased.address, now);
    }

    /// A lease came back without a request having been made: it spends no delay.
    pub(crate) fn request_not_made(&mut self, leased: &LeasedEntry, now: Time) {
        if let Some(address) = leased.address {
            self.addresses.take_back(address, leased.started);
        }
        self.change(&leased.entry.queue, now, |host, _| {
            host.request_not_made(&leased.entry, leased.started);
        });
        self.admit_waiting(leased.address, now);
    }

    /// Sets the delay of one host; it counts where it is longer than the delay of all.
    pub(crate) fn set_delay(&mut self, key: &HostKey, delay: Duration, now: Time) {
        // One that does not count is not worth remembering a host for.
        let own = if delay > self.rules.delay {
            delay
        } else {
            Duration::ZERO
        };
        self.change(key, now, |host, _| host.set_own_delay(own));
    }

    /// Lets a host rest until a time; a block that lasts longer stays.
    pub(crate) fn block(&mut self, key: &HostKey, until: Time, now: Time) {
        self.change(key, now, |host, _| host.block(until));
    }

    /// The address of a host is known until a time, if it has one: what waits for it may be handed out.
    pub(crate) fn address_known(&mut self, key: &HostKey, address: Option<IpAddr>, until: Time, now: Time) {
        self.change(key, now, |host, _| host.address_known(address, until));
    }

    pub(crate) fn traps(&self) -> &Traps {
        &self.traps
    }

    pub(crate) fn traps_mut(&mut self) -> &mut Traps {
        &mut self.traps
    }

    pub(crate) fn rules(&self) -> &HostRules {
        &self.rules
    }

    pub(crate) fn get(&self, key: &HostKey) -> Option<&Host> {
        self.hosts.get(key).map(|host| &**host)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&HostKey, &Host)> {
        self.hosts.iter().map(|(key, host)| (key, &**host))
    }

    /// Changes an origin, and puts it and its host where they belong then.
    fn change_origin<T>(
        &mut self,
        key: &HostKey,
        id: OriginId,
        now: Time,
        change: impl FnOnce(&mut Host) -> T,
    ) -> Option<T> {
        let mut result = None;
        self.change(key, now, |host, rules| {
            result = Some(change(host));
            host.refresh(id, now, rules);
        });
        result
    }

    /// Changes a host and puts it where it belongs then: the one door through which queues and times change.
    fn change(&mut self, key: &HostKey, now: Time, change: impl FnOnce(&mut Host, &HostRules)) {
        let host = self.hosts.entry(key.clone()).or_default();
        let (queued, postponed) = (host.queued(), host.postponed());
        change(host, &self.rules);
        self.has_crowded_hosts |= host.origins().len() >= MAX_ORIGINS_PER_HOST / 2;
        self.queued = self.queued + host.queued() - queued;
        self.postponed = self.postponed + host.postponed() - postponed;
        self.update_state(key, now);
    }

    fn update_state(&mut self, key: &HostKey, now: Time) {
        let Some(host) = self.hosts.get_mut(key) else { return };
        if matches!(host.state, HostState::Due | HostState::WaitingForAddress) {
            // It is looked at anew when its turn comes.
            return;
        }
        let mut state = host.next_state(now, &self.rules);
        let address = host.shared_address(now).filter(|_| state == HostState::Due);
        if address.is_some() {
            state = HostState::WaitingForAddress;
        }
        if state == host.state {
            return;
        }
        host.state = state;
        // All that is kept of a host shares one copy of its name.
        let key = self.hosts.get_key_value(key).map_or(key, |(own, _)| own);
        match state {
            HostState::Due => self.due.push_back(key.clone()),
            HostState::Waiting(time) => self.waiting.push(Reverse((time, key.clone()))),
            HostState::Resting(time) => self.resting.push(Reverse((time, key.clone()))),
            HostState::WaitingForSettlement | HostState::Idle | HostState::WaitingForAddress => {}
        }
        if let Some(address) = address {
            self.addresses.enqueue(address, key.clone());
            self.admit_waiting(Some(address), now);
        }
        self.sweep();
    }
}

/// The origin whose queue an entry belongs to.
fn origin_of(entry: &Entry) -> OriginId {
    OriginId::of(&entry.url)
}

/// Whether an entry is a page or a sitemap: something that is not asked for before robots.txt.
fn is_page(entry: &Entry) -> bool {
    matches!(entry.purpose, Purpose::Page | Purpose::Sitemap(_))
}
