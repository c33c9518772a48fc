//! What is handed out: leases, and what left the queue without one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Purpose};
use crate::failure::Failure;
use crate::time::Time;
use crate::url::Origin;

/// Names one lease of one frontier.
///
/// Ids are unique over restarts: they start from the time of the first lease, in milliseconds, times 2²⁰.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseId(pub(crate) u64);

impl LeaseId {
    /// Reads an id that was written down.
    pub const fn from_u64(id: u64) -> Self {
        Self(id)
    }

    /// Returns the id as a number, to be written down or sent.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Something to fetch, handed out once. Dropping it does nothing: it must be settled, by what its [`task`](Self::task) offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// Names it when it is settled.
    pub id: LeaseId,
    /// What to fetch.
    pub entry: Entry,
    /// How often it has been handed out, this time included; times that were not its fault are not counted.
    pub attempt: u32,
    /// Whether its settlement should have a [`Fingerprint`](crate::Fingerprint): of pages only.
    pub wants_fingerprint: bool,
}

impl Lease {
    /// Returns what is to be done for it, which is also the only way to settle it.
    pub fn task(&self) -> Task {
        match &self.entry.purpose {
            Purpose::Page => Task::Page(PageTask(self.id)),
            Purpose::Address => Task::Address(AddressTask(self.id)),
            Purpose::Robots(origin) => Task::Robots(RobotsTask(self.id, origin.clone())),
            Purpose::Sitemap(origin) => Task::Sitemap(SitemapTask(self.id, origin.clone())),
        }
    }
}

/// What is to be done for a lease. Each kind is settled by what can come of it, and by nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Fetch a page.
    Page(PageTask),
    /// Fetch the robots.txt of an origin; its pages wait for that.
    Robots(RobotsTask),
    /// Look up the IP address of a host, where requests count by address; everything else of the host waits for that.
    Address(AddressTask),
    /// Fetch a sitemap.
    Sitemap(SitemapTask),
}

/// The task to fetch a page. See [`settlement`](crate::settlement) for how it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTask(pub(crate) LeaseId);

/// The task to fetch the robots.txt of an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsTask(pub(crate) LeaseId, pub(crate) Origin);

impl RobotsTask {
    /// Returns whose rules are asked for. After a redirect that is not where they are read.
    pub fn origin(&self) -> &Origin {
        &self.1
    }
}

/// The task to look up the address of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressTask(pub(crate) LeaseId);

/// The task to fetch a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapTask(pub(crate) LeaseId, pub(crate) Origin);

impl SitemapTask {
    /// Returns the origin whose sitemap it is.
    pub fn origin(&self) -> &Origin {
        &self.1
    }
}

/// What [`Frontier::lease`](crate::Frontier::lease) answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leasing {
    /// These can be fetched now.
    Ready(Vec<Lease>),
    /// These left the queue without being fetched, at most [`MAX_DROPPED`] at a time: take note of them, and ask again.
    Dropped(Vec<Dropped>),
    /// Nothing can be fetched before this time, unless something is settled or offered.
    NotUntil(Time),
    /// Nothing can be fetched before something is settled. Something is leased.
    AllLeased,
    /// The page budget is spent; what is queued stays queued.
    BudgetSpent,
    /// Nothing is queued and nothing is leased: the crawl is done.
    Drained,
}

/// The most entries in one [`Leasing::Dropped`].
pub const MAX_DROPPED: usize = 256;

/// An entry that left the queue and will not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// What would have been fetched.
    pub entry: Entry,
    /// Why not.
    pub why: NotFetched,
    /// What went wrong, where something did: with the host, or with its robots.txt.
    pub cause: Option<Arc<Failure>>,
}

impl Dropped {
    /// Says that an entry is not fetched, and why.
    pub fn new(entry: Entry, why: NotFetched, cause: Option<Arc<Failure>>) -> Self {
        Self { entry, why, cause }
    }
}

/// Why an entry was not fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotFetched {
    /// The host's robots.txt forbids it (RFC 9309).
    RobotsForbid,
    /// The host's robots.txt could not be fetched, which forbids everything (RFC 9309, section 2.3.1.4).
    RobotsUnreachable,
    /// The host's address is not one that may be dialled.
    AddressForbidden,
    /// Its path prefix has too many near-duplicates, and was closed while it waited.
    NearDuplicates,
    /// It waited when the page budget of its host was spent.
    HostBudget,
    /// It waited for an origin that was given up: away for too long, or doing nothing but throttle.
    HostDown,
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
        }
    }
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RobotsForbid => "forbidden by robots.txt",
            Self::RobotsUnreachable => "its robots.txt could not be fetched",
            Self::AddressForbidden => "its address is not public",
            Self::NearDuplicates => "its path has too many near-duplicates",
            Self::HostBudget => "the page budget of its host is spent",
            Self::HostDown => "its host was given up",
        })
    }
}
