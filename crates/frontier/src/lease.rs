//! What is handed out, and how it comes back.

use std::fmt;
use std::time::Duration;

use crate::entry::Entry;
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;

/// Names one lease of one frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub(crate) u64);

/// Something to fetch, handed out once. Dropping it does nothing: it must be settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Names it when it is settled.
    pub id: LeaseId,
    /// What to fetch.
    pub entry: Entry,
    /// How often it has been handed out, this time included.
    pub attempt: u32,
}

/// What [`Frontier::lease`](crate::Frontier::lease) answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leasing {
    /// These can be fetched now.
    Ready(Vec<Lease>),
    /// Nothing can be fetched before this time, unless something is settled or offered.
    NotUntil(Time),
    /// Nothing can be fetched before something is settled.
    AllLeased,
    /// The page budget is spent; what is queued stays queued.
    BudgetSpent,
    /// Nothing is queued and nothing is leased: the crawl is done.
    Drained,
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was fetched.
    Done,
    /// It answered by a redirect; its target is among the links. It spends no page budget.
    Moved,
    /// It does not exist or is not for us (HTTP 4xx); asking again is of no use.
    Gone,
    /// It failed and is to be asked for again.
    Retry {
        /// Not before so long from now, by the server's own word; else by the [`RetryPolicy`](crate::RetryPolicy).
        after: Option<Duration>,
    },
    /// The server asks for less traffic (HTTP 429, or 503 with `Retry-After`): its host rests, longer with each time in a
    /// row, and the attempt is not counted. An origin that does nothing else is given up after
    /// [`max_throttles`](crate::RetryPolicy::max_throttles).
    Throttled {
        /// The server's own word of how long; at least that, if it is not above the longest wait.
        after: Option<Duration>,
    },
    /// No request was made for a reason of our own, such as no file handle being left. It is asked for again, and neither
    /// the attempt nor the host is charged; so often at most as a page may be throttled.
    Hindered,
    /// The host itself failed; none of its URLs is asked for until it has rested.
    HostDown {
        /// Not before this time; else by the [`RetryPolicy`](crate::RetryPolicy).
        until: Option<Time>,
    },
    /// No request was made. It spends neither delay nor budget.
    NotFetched(NotFetched),
}

/// Why no request was made for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotFetched {
    /// The host's robots.txt forbids it (RFC 9309).
    RobotsForbid,
    /// The host's robots.txt could not be had, which forbids everything (RFC 9309, section 2.3.1.4).
    RobotsUnreachable,
    /// The host's address is not one that may be dialled.
    AddressForbidden,
    /// Its path prefix was closed while it waited, because of too many near-duplicates.
    NearDuplicates,
    /// It waited when the page budget of its host was spent.
    HostBudget,
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
        }
    }
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RobotsForbid => "forbidden by robots.txt",
            Self::RobotsUnreachable => "its robots.txt could not be had",
            Self::AddressForbidden => "its address is not public",
            Self::NearDuplicates => "its path has too many near-duplicates",
            Self::HostBudget => "the page budget of its host is spent",
        })
    }
}

/// One lease's end, with the links that its page led to. Both are one commit.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// Which lease.
    pub lease: LeaseId,
    /// How it ended.
    pub outcome: Outcome,
    /// What the page linked to, or the one target of a redirect.
    pub links: Vec<Link>,
}

/// What became of a link that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is new and waits in its host's queue.
    Queued,
    /// It was seen before, or is wrongly taken for it at the false-positive rate.
    Seen,
    /// It may not be crawled; it was not marked as seen.
    Refused(Refusal),
}

/// What became of a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// What became of the lease.
    pub fate: Fate,
    /// What became of each link, in their order.
    pub verdicts: Vec<Verdict>,
    /// Entries that were taken out of the queue because their host was given up by this.
    pub given_up: Vec<Entry>,
    /// Pages that were taken out of the queue because the budget of their host is spent by this. They were not asked for.
    pub over_budget: Vec<Entry>,
}

impl Settled {
    /// A lease that led to nothing else.
    pub(crate) fn alone(fate: Fate) -> Self {
        Self {
            fate,
            verdicts: Vec::new(),
            given_up: Vec::new(),
            over_budget: Vec::new(),
        }
    }
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is over.
    Final,
    /// It is queued again, and will be handed out no sooner than this.
    Requeued {
        /// Not before.
        due: Time,
    },
    /// It failed as often as it may, and is over.
    GaveUp,
    /// There is no such lease: it was settled before. Its links were not taken.
    Stale,
}
