//! How a lease ends, typed by what was asked for, and what the frontier answers.
//!
//! A [`Settlement`] is made by the [`Task`](crate::Task) of a lease, so that a robots.txt cannot be settled as a page:
//!
//! ```
//! use std::time::Duration;
//! use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Outcome, RobotsOutcome, Task, Time};
//!
//! let mut frontier = Frontier::in_memory(FrontierConfig::default())?;
//! let now = Time::from_millis(1_000_000);
//! frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now)?;
//!
//! let Leasing::Ready(leases) = frontier.lease(now, 1)? else { panic!("the robots.txt is ready") };
//! let settlement = match leases[0].task() {
//!     Task::Page(page) => page.settle(Outcome::Done),
//!     Task::Robots(robots) => robots.settle(RobotsOutcome::Unavailable), // HTTP 4xx: everything is allowed
//!     Task::Address(address) => address.settle(None, Duration::from_secs(3600)),
//!     Task::Sitemap(sitemap) => sitemap.settle(Outcome::Rejected),
//! };
//! frontier.settle(&[settlement], now)?;
//! assert!(matches!(frontier.lease(now + Duration::from_secs(1), 1)?, Leasing::Ready(page) if page.len() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::fingerprint::Fingerprint;
use crate::lease::{AddressTask, LeaseId, NotFetched, PageTask, RobotsTask, SitemapTask};
use crate::link::Link;
use crate::notice::Notice;
use crate::rules::{ROBOTS_LIFETIME, RobotsRules};
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// How a page or a sitemap ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was fetched.
    Done,
    /// It answered by a redirect; its target is the one link. It spends no page budget.
    Redirected,
    /// It does not exist or is not for us (HTTP 4xx, or a sitemap that is none); asking again is of no use.
    Rejected,
    /// The request failed. What follows is decided by the kind: see [`failure`](crate::failure).
    Failed {
        /// What went wrong.
        failure: Failure,
        /// How long the server asks to wait (`Retry-After`); else the [`RetryPolicy`](crate::RetryPolicy) decides.
        retry_after: Option<Duration>,
    },
    /// No request was made, and none will be. It spends neither delay nor budget.
    NotFetched(NotFetched),
}

impl Outcome {
    /// Makes the end of a request that failed, without a word of the server on when to come back.
    pub fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            retry_after: None,
        }
    }

    /// Makes the end of a request that failed, with the time that the server asks to wait (`Retry-After`), if it does.
    pub fn failed_until(failure: Failure, retry_after: Option<Duration>) -> Self {
        Self::Failed { failure, retry_after }
    }
}

/// How a request for a robots.txt ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RobotsOutcome {
    /// It was read.
    Known {
        /// What it says.
        rules: Arc<dyn RobotsRules>,
        /// For how long that holds.
        lifetime: Duration,
    },
    /// It is at another place, which is asked for next; after [`MAX_ROBOTS_REDIRECTS`](crate::rules::MAX_ROBOTS_REDIRECTS) it is taken for
    /// unavailable (RFC 9309, section 2.3.1.2).
    Redirected(CanonicalUrl),
    /// There is none (HTTP 4xx): everything is allowed (RFC 9309, section 2.3.1.3).
    Unavailable,
    /// The request failed. The pages of the origin wait, and it is asked for again; in the end they are not fetched.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// How long the server asks to wait (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The origin may not be asked: its pages are not fetched for this reason.
    NotFetched(NotFetched),
}

impl RobotsOutcome {
    /// Makes the outcome of a file that was read and holds for a day.
    pub fn known(rules: impl RobotsRules + 'static) -> Self {
        Self::Known {
            rules: Arc::new(rules),
            lifetime: ROBOTS_LIFETIME,
        }
    }

    /// Makes the end of a request that failed, without a word of the server on when to come back.
    pub fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            retry_after: None,
        }
    }

    /// Makes the end of a request that failed, with the time that the server asks to wait (`Retry-After`), if it does.
    pub fn failed_until(failure: Failure, retry_after: Option<Duration>) -> Self {
        Self::Failed { failure, retry_after }
    }
}

/// One lease's end, with the links that it led to. Both are one commit.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub(crate) lease: LeaseId,
    pub(crate) end: End,
    pub(crate) links: Vec<Link>,
    pub(crate) links_known: u64,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// How it ended, by what was asked for.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Page(Outcome),
    Robots(RobotsOutcome),
    Address(Option<IpAddr>, Duration),
    Sitemap(Outcome),
}

impl Settlement {
    fn new(lease: LeaseId, end: End) -> Self {
        Self {
            lease,
            end,
            links: Vec::new(),
            links_known: 0,
            fingerprint: None,
        }
    }

    /// Adds what it led to: the links of a page, the one target of a redirect, or the sitemaps that a robots.txt names.
    #[must_use]
    pub fn with_links(mut self, links: Vec<Link>) -> Self {
        self.links = links;
        self
    }

    /// Counts links that are left out because each of them was [`Queued`](Verdict::Queued) or [`Seen`](Verdict::Seen) when it was
    /// offered before. Whoever remembers such links may leave them out: what is seen stays seen.
    #[must_use]
    pub fn with_known_links(mut self, count: u64) -> Self {
        self.links_known = count;
        self
    }

    /// Adds what the page is compared with others by.
    #[must_use]
    pub fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Returns which lease it ends.
    pub fn lease(&self) -> LeaseId {
        self.lease
    }

    /// Borrows the links that it offers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Borrows the outcome of a page or a sitemap.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.end {
            End::Page(outcome) | End::Sitemap(outcome) => Some(outcome),
            End::Robots(_) | End::Address(..) => None,
        }
    }
}

impl PageTask {
    /// Reads the task of a page lease that was written down. A lease of another kind is answered [`Fate::Stale`].
    pub const fn of(lease: LeaseId) -> Self {
        Self(lease)
    }

    /// Ends the lease.
    pub fn settle(self, outcome: Outcome) -> Settlement {
        Settlement::new(self.0, End::Page(outcome))
    }
}

impl RobotsTask {
    /// Reads the task of a robots lease that was written down. A lease of another kind is answered [`Fate::Stale`].
    pub const fn of(lease: LeaseId, origin: Origin) -> Self {
        Self(lease, origin)
    }

    /// Ends the lease: the pages of the origin can be handed out, or not, by what it says.
    pub fn settle(&self, outcome: RobotsOutcome) -> Settlement {
        Settlement::new(self.0, End::Robots(outcome))
    }
}

impl AddressTask {
    /// Reads the task of an address lease that was written down. A lease of another kind is answered [`Fate::Stale`].
    pub const fn of(lease: LeaseId) -> Self {
        Self(lease)
    }

    /// Ends the lease: `None` if the host has no address that is known, and then it shares none. Of several addresses, name the
    /// same one for every host that has them, such as the lowest. After the lifetime it is asked for again.
    pub fn settle(self, address: Option<IpAddr>, lifetime: Duration) -> Settlement {
        Settlement::new(self.0, End::Address(address, lifetime))
    }
}

impl SitemapTask {
    /// Reads the task of a sitemap lease that was written down. A lease of another kind is answered [`Fate::Stale`].
    pub const fn of(lease: LeaseId, origin: Origin) -> Self {
        Self(lease, origin)
    }

    /// Ends the lease.
    pub fn settle(&self, outcome: Outcome) -> Settlement {
        Settlement::new(self.0, End::Sitemap(outcome))
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settled {
    /// What became of the lease.
    pub fate: Fate,
    /// What became of each link, in their order.
    pub verdicts: Vec<Verdict>,
    /// Which earlier page it resembles, if it was compared.
    pub duplicate_of: Option<Arc<str>>,
    /// The first page of its cluster, if it was compared and is another one.
    pub near_duplicate_of: Option<Arc<str>>,
    /// The URLs of a loop of redirects that this closes, itself the first: none of them leads to a page.
    pub redirect_loop: Vec<Box<str>>,
    /// What an operator should know.
    pub notices: Vec<Notice>,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fate {
    /// It is over.
    #[default]
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

impl Settled {
    /// Makes the answer to a lease that led to nothing else.
    pub fn new(fate: Fate) -> Self {
        Self {
            fate,
            ..Self::default()
        }
    }
}
