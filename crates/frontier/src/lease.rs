//! Leases, and the entries that left the queue without one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::failure::Failure;
use crate::time::Time;

/// The id of a lease.
///
/// Ids are unique across restarts: they start from the time of the first lease, in milliseconds, times 2²⁰. In a durable frontier, that holds for
/// leases that were persisted: after a crash, the id of one that was not may be given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseId(pub(crate) u64);

impl LeaseId {
    /// Creates an id from a stored number.
    pub const fn from_u64(id: u64) -> Self {
        Self(id)
    }

    /// Returns the id as a number, to be stored or sent.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Something to fetch, leased once: its entry says what for. [`settle`](Self::settle) ends it. Dropping the value settles nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The id that its settlement refers to.
    pub id: LeaseId,
    /// What to fetch. Its attempts include this one.
    pub entry: Arc<Entry>,
    /// Whether its settlement should have a [`Fingerprint`](crate::Fingerprint), such as `ReadOptions::fingerprint` of the crate `crawl-page`
    /// computes. With another parser, hash the bytes, and the words of the text by any [simhash](crate::SimHash). True for pages only. A
    /// page without one is compared with no other: traps of pages that look alike are not found.
    pub wants_fingerprint: bool,
    /// The delay of the host, as far as it is known now: how long after this request the next one may start. In a durable frontier, a
    /// request without a delay may be sent before the lease is persisted, if only this process settles it: after a crash, no delay could be
    /// cut short, unless the next run gives the host one.
    pub delay: Duration,
    /// The time since the end of the last request to the host that has ended; `None` if none has, as far as the host is remembered. It is never
    /// shorter than [`delay`](Self::delay), which is what was owed: the delay as it is now, not as it was when that request ended. A
    /// `Crawl-delay` that was read meanwhile counts, and so does a delay that was shortened. With several requests at a time
    /// ([`per_host`](crate::PolitenessConfig::per_host)), others may still be in flight.
    pub pause: Option<Duration>,
}

/// The answer of [`Frontier::lease`](crate::Frontier::lease).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Leasing {
    /// These leases can be fetched now.
    Ready(Vec<Lease>),
    /// These entries left the queue and will not be fetched, at most [`MAX_DROPPED`] at a time. Record them and call again.
    Dropped(Vec<Dropped>),
    /// Nothing can be fetched before this time, unless you settle or offer something.
    NotUntil(Time),
    /// Nothing can be fetched before a lease is settled, or something is offered. At least one lease is in flight, unless the outboxes for other
    /// partitions are full: then nothing can be fetched before their batches are [acknowledged](crate::Frontier::acknowledged).
    AllLeased,
    /// The page budget is spent, and nothing is in flight. Queued entries stay queued.
    BudgetSpent,
    /// Nothing is queued and nothing is leased: the crawl is complete, unless you offer something more.
    #[default]
    Drained,
}

/// The most entries in one [`Leasing::Dropped`].
pub const MAX_DROPPED: usize = 256;

/// An entry that left the queue and will not be fetched: a page, or a sitemap.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Dropped {
    /// The entry.
    pub entry: Entry,
    /// The reason.
    pub why: NotFetched,
    /// The failure of the host or its robots.txt, if that is the reason.
    pub cause: Option<Arc<Failure>>,
}

impl Dropped {
    pub(crate) fn new(entry: Entry, why: NotFetched, cause: Option<Arc<Failure>>) -> Self {
        Self { entry, why, cause }
    }
}

/// Why an entry was not fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotFetched {
    /// The robots.txt of its origin forbids it (RFC 9309).
    RobotsForbid,
    /// The robots.txt of its origin could not be fetched, which forbids everything (RFC 9309, section 2.3.1.4).
    RobotsUnreachable,
    /// The address guard forbids the host's address.
    AddressForbidden,
    /// Its path prefix has too many near-duplicates and was closed while it was queued, and it was not fetched before.
    NearDuplicates,
    /// It was queued when the page budget of its host was spent, and was not fetched before.
    HostBudget,
    /// It was queued for an origin that was given up: away for too long, or throttling all the time.
    HostDown,
    /// Its host was [closed](crate::HostPolicy::closed).
    ByOrder,
}

impl NotFetched {
    /// Returns the reason as one word in snake case, for counters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::RobotsForbid => "robots_forbid",
            Self::RobotsUnreachable => "robots_unreachable",
            Self::AddressForbidden => "address_forbidden",
            Self::NearDuplicates => "near_duplicates",
            Self::HostBudget => "host_budget",
            Self::HostDown => "host_down",
            Self::ByOrder => "by_order",
        }
    }
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RobotsForbid => "forbidden by robots.txt",
            Self::RobotsUnreachable => "its robots.txt could not be fetched",
            Self::AddressForbidden => "its address is not public",
            Self::NearDuplicates => "too many near-duplicates",
            Self::HostBudget => "page budget of the host spent",
            Self::HostDown => "its origin was given up",
            Self::ByOrder => "dropped by order or policy",
        })
    }
}
