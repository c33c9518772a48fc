//! The queues of all hosts, with their due times, delays, blocks and failures.
//!
//! A host is in exactly one [`HostState`](host::HostState):
//!
//! - **due**: in the round of hosts that can be requested now;
//! - **waiting** for its time;
//! - **waiting for a settlement**: all its requests are in flight, or its robots.txt is;
//! - **waiting for its address**, with politeness per address: other hosts of the address are requested first;
//! - **resting**: nothing is queued, and it is forgotten after its delay, so that a new link cannot bypass the delay;
//! - **idle**: nothing is queued, but something about it must be kept: its own delay, its page count, that an origin was given up.
//!
//! Leasing goes round the due hosts, one entry each, so that a long queue never delays another host: those whose best entry is of the best
//! [class](crate::Class) first. An entry that robots.txt forbids
//! is dropped. An entry with too many near-duplicates is dropped or postponed.
//!
//! Cost: a hash-map look-up per call, plus O(log hosts) if a host then waits.
//!
//! | to change | see |
//! |---|---|
//! | in which state a host is, and when it may be asked | `host/state.rs` |
//! | what follows from its state: rounds, timers, addresses | `change.rs`, `round_robin.rs`, `timers.rs`, `addresses.rs` |
//! | what an origin is asked for next, and in which order its queue is leased | `origin_queue.rs` |
//! | what follows from the policy of a host | `policies.rs` |
//! | delays and the page budget of a host | `host/politeness.rs`, `host/budget.rs`, `counts.rs` |
//! | what a robots.txt forbids, and how long it holds | `robots.rs`, `origin_queue.rs` |
//! | whose turn it is among classes | `class.rs`, `round.rs`, `Host::next_in_round` |
//! | what is dropped, what waits behind all else | `dropped.rs`, `release_postponed` here |
//! | what a failure means for an origin | `incidents.rs`, `outage.rs` |
//! | where hosts lie | `table.rs` |
//! | what is said of all this | `why.rs`, `health.rs` |
//!
//! With another decision, `LOGIC` of `durable/checkpoint.rs` goes up; with another stored field, `VERSION` of `sqlite/format.rs`.

mod addresses;
mod change;
mod counts;
mod dropped;
mod failed;
mod health;
mod host;
mod incidents;
mod jitter;
mod origin_id;
mod origin_queue;
mod outage;
mod pace;
mod packed_entries;
mod policies;
mod robots;
mod round;
mod round_robin;
mod sieve_queue;
mod stored;
mod table;
mod timers;
mod why;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use addresses::Address;
use addresses::Addresses;
use dropped::DroppedEntries;
pub(crate) use failed::Failed;
pub(crate) use incidents::Consequence;
pub(crate) use origin_id::OriginId;
pub(crate) use packed_entries::closed::{Closed, SegmentStore};
use regex::RegexSet;
use round::Round;
pub(crate) use sieve_queue::Arrival;
pub(crate) use table::{HostReader, HostRef, HostTable, HostsOnDisk};
use timers::Timers;

use crate::class::Order;
use crate::config::{FrontierConfig, FrontierConfigError, LimitConfig, MAX_ORIGINS_PER_HOST, PolitenessConfig};
use crate::entry::{Entry, Purpose};
use crate::link::Link;
use crate::policy::Policies;
use crate::scope::{Refusal, compile};
use crate::time::Time;
use crate::traps::Traps;
use crate::url::HostKey;

/// While new pages wait, at most one request of this many is a revisit.
pub(crate) const LEAST_TURNS: u32 = 4;

/// The configuration that all hosts share.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostConfig {
    pub(crate) politeness: PolitenessConfig,
    pub(crate) limits: LimitConfig,
    pub(crate) order: Order,
    pub(crate) policies: Policies,
    /// What is dropped: [`CrawlPolicy::dropped`](crate::CrawlPolicy::dropped).
    pub(crate) dropped: Option<RegexSet>,
    /// One request of this many may be a revisit.
    pub(crate) revisit_turns: u32,
    /// Whether revisits alone are asked for, as the page budget of the crawl is spent.
    pub(crate) holds_new: bool,
    /// Where segments of queues lie; `None` for memory.
    pub(crate) segments: Option<Arc<dyn SegmentStore>>,
}

impl HostConfig {
    /// # Errors
    ///
    /// An invalid pattern of the order, of the hosts, or of what is dropped.
    pub(crate) fn of(config: &FrontierConfig, dropped: &[String]) -> Result<Self, FrontierConfigError> {
        Ok(Self {
            politeness: config.politeness.clone(),
            limits: config.limits.clone(),
            order: Order::new(&config.order)?,
            policies: Policies::new(&config.hosts)?,
            dropped: compile("drop", dropped)?,
            revisit_turns: config.freshness.turns(),
            holds_new: false,
            segments: None,
        })
    }

    /// Whether what has this key is dropped by order.
    pub(crate) fn drops(&self, key: &str) -> bool {
        self.dropped.as_ref().is_some_and(|dropped| dropped.is_match(key))
    }

    pub(crate) fn segments(&self) -> Option<&dyn SegmentStore> {
        self.segments.as_deref()
    }

    /// Whether the call should end at once: see [`SegmentStore`].
    pub(crate) fn is_broken(&self) -> bool {
        self.segments().is_some_and(SegmentStore::is_broken)
    }
}

/// The queues of all hosts, as one [`sieve::Queue`].
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct HostQueues {
    #[serde(skip)]
    config: HostConfig,
    #[serde(skip)]
    hosts: HostTable,
    due: Round,
    addresses: Addresses,
    timers: Timers,
    waiting: Waiting,
    /// As in the configuration.
    pub(crate) holds_new: bool,
    /// Origins that were given up.
    pub(crate) given_up: u64,
    /// Whether a host has half of the origins that it may have.
    has_crowded_hosts: bool,
    /// Hosts with a policy of their own.
    pub(crate) own_policies: u64,
    /// The origins with postponed pages, in order.
    postponed_at: VecDeque<(HostKey, OriginId)>,
    dropped: DroppedEntries,
    /// What the rules of robots.txt of all origins take.
    pub(crate) rules_bytes: usize,
    pub(crate) traps: Traps,
}

/// How many entries wait, at one host or at all.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Waiting {
    /// Without postponed pages.
    queued: u64,
    /// Pages among them.
    queued_pages: u64,
    /// Revisits among these.
    revisits: u64,
    postponed: u64,
}

impl Waiting {
    /// Takes over what has changed at one host.
    fn update(&mut self, before: Self, after: Self) {
        self.queued = self.queued + after.queued - before.queued;
        self.queued_pages = self.queued_pages + after.queued_pages - before.queued_pages;
        self.revisits = self.revisits + after.revisits - before.revisits;
        self.postponed = self.postponed + after.postponed - before.postponed;
    }
}

/// An entry that is leased.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct LeasedEntry {
    pub(crate) entry: Arc<Entry>,
    /// The time since the end of the host's last request.
    pub(crate) gap: Option<Duration>,
    /// The time of the lease.
    pub(crate) started: Time,
    /// The address of the host, with politeness per address.
    address: Option<IpAddr>,
    /// Whether it is the probe of an origin that is away.
    pub(crate) is_probe: bool,
}

impl HostQueues {
    pub(crate) fn new(config: HostConfig, traps: Traps) -> Self {
        Self {
            traps,
            addresses: Addresses::default(),
            hosts: HostTable::new(config.clone()),
            config,
            due: Round::default(),
            timers: Timers::default(),
            waiting: Waiting::default(),
            holds_new: false,
            given_up: 0,
            has_crowded_hosts: false,
            own_policies: 0,
            postponed_at: VecDeque::new(),
            dropped: DroppedEntries::default(),
            rules_bytes: 0,
        }
    }

    /// Checks whether a link may be queued. `is_late` says whether its page was postponed.
    pub(crate) fn admit(&self, link: &Link, is_late: bool) -> Result<(), Refusal> {
        if self.len() >= self.config.limits.max_queued {
            return Err(Refusal::QueueFull);
        }
        if self.config.drops(link.url.key()) {
            return Err(Refusal::ByOrder);
        }
        let name = link.url.host_str();
        let Some(facts) = self.hosts.facts(name) else {
            let policy = self.config.policies.of(name);
            if policy.is_closed() {
                return Err(Refusal::ByOrder);
            }
            if self.hosts.len() >= self.config.limits.max_hosts {
                return Err(Refusal::TooManyHosts);
            }
            if policy.max_pages.or(self.config.limits.max_pages_per_host) == Some(0) && link.sitemap_of.is_none() {
                return Err(Refusal::HostBudget);
            }
            self.traps.admit_host(link)?;
            return self.traps.admit(link, is_late);
        };
        if facts.is_closed {
            return Err(Refusal::ByOrder);
        }
        if facts.is_restricted
            && let Some(host) = self.hosts.get(name)
        {
            if host.gave_up(link.url.url().as_str()) {
                return Err(Refusal::HostDown);
            }
            let is_full = host.origins().len() >= MAX_ORIGINS_PER_HOST && !link.seed;
            if is_full && host.find(OriginId::of(link.url.url().as_str())).is_none() {
                return Err(Refusal::TooManyPorts);
            }
        }
        if link.sitemap_of.is_none() && !facts.takes_pages {
            return Err(Refusal::HostBudget);
        }
        if !facts.is_counted {
            self.traps.admit_host(link)?;
        }
        self.traps.admit(link, is_late)
    }

    /// The number of entries, including postponed ones, and dropped ones that were not returned yet.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.queued + self.waiting.postponed + self.dropped_len()
    }

    /// Whether anything is queued that is no revisit, and not postponed.
    pub(crate) fn has_new(&self) -> bool {
        self.waiting.queued > self.waiting.revisits
    }

    pub(crate) fn queued_pages(&self) -> u64 {
        self.waiting.queued_pages + self.waiting.postponed
    }

    pub(crate) fn revisits(&self) -> u64 {
        self.waiting.revisits
    }

    pub(crate) fn postponed(&self) -> u64 {
        self.waiting.postponed
    }

    /// Queues an entry that was admitted, or a retry.
    pub(crate) fn enqueue(&mut self, mut entry: Entry, now: Time) {
        if self.has_policies()
            && let Some(why) = self.barred(&entry)
        {
            return self.drop_entry(entry, why, None);
        }
        // All entries of a host share one copy of its name.
        entry.queue = self.hosts.shared_name(&entry.queue);
        let key = entry.queue.clone();
        self.change(&key, now, |host, config| host.enqueue(entry, now, config));
    }

    /// Postpones a page: it waits behind everything else of the crawl.
    fn postpone(&mut self, entry: &Entry, now: Time) {
        let id = OriginId::of(&entry.url);
        let was_empty = self.hosts.get(entry.queue.as_str()).is_none_or(|host| {
            let origin = host.find(id);
            origin.is_none_or(|origin| origin.postponed_len() == 0)
        });
        if was_empty {
            self.postponed_at.push_back((entry.queue.clone(), id));
        }
        self.change(&entry.queue, now, |host, config| host.postpone(entry, config));
    }

    /// Queues some of the postponed pages, from one origin after the other. Returns whether there were any.
    ///
    /// Call it when nothing else but revisits is queued or in flight.
    pub(crate) fn release_postponed(&mut self, now: Time) -> bool {
        // Enough to keep many hosts busy, but few, so that their links come before the other postponed pages.
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
            if self.hosts.contains(key.as_str()) {
                self.change(&key, now, |host, config| {
                    released += host.release(&key, id, OF_ORIGIN, now, config);
                    is_left = host.find(id).is_some_and(|origin| origin.postponed_len() > 0);
                });
            }
            if is_left {
                self.postponed_at.push_back((key, id));
            }
        }
        released > 0
    }

    /// Ends a lease. If its request was made, the delay of the host counts from now; otherwise it spends none, and was no probe.
    pub(crate) fn end_request(&mut self, leased: &LeasedEntry, was_made: bool, now: Time) {
        if let Some(address) = leased.address {
            match was_made {
                true => self.addresses.end(address, now, &self.config),
                false => self.addresses.take_back(address, leased.started),
            }
        }
        self.change(&leased.entry.queue, now, |host, _| match was_made {
            true => host.request_ended(&leased.entry, leased.gap, now),
            false => host.request_not_made(&leased.entry, leased.started),
        });
        self.admit_waiting(leased.address, now);
        if !was_made {
            self.probe_not_sent(leased, now);
        }
    }

    /// Records what the look-up of an address has found. Once it is known, entries of the host can be leased.
    pub(crate) fn set_address(&mut self, key: &HostKey, address: Address, now: Time) {
        self.change(key, now, |host, _| host.set_address(address));
    }

    pub(crate) fn config(&self) -> &HostConfig {
        &self.config
    }

    pub(crate) fn get(&self, key: &HostKey) -> Option<HostRef<'_>> {
        self.hosts.get(key.as_str())
    }

    pub(crate) fn hosts(&self) -> &HostTable {
        &self.hosts
    }
}

fn origin_of(entry: &Entry) -> OriginId {
    OriginId::of(&entry.url)
}

/// Returns whether an entry is a page or a sitemap, which is fetched after robots.txt.
fn is_page(entry: &Entry) -> bool {
    matches!(entry.purpose, Purpose::Page | Purpose::Sitemap(_))
}

/// Returns whether an entry spends a budget of pages. One that was fetched in this crawl before has spent it.
pub(crate) fn counts_as_page(entry: &Entry) -> bool {
    entry.purpose == Purpose::Page && !entry.is_refresh()
}
