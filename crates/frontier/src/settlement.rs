//! Settlements: how a lease ends, and what the frontier answers.
//!
//! The tables in [`answer`](crate::answer) say which HTTP status and which failure has which outcome.
//!
//! The [`Task`](crate::Task) of a lease creates its [`Settlement`], so that a robots.txt cannot be settled as a page:
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
use crate::fingerprint::{ContentHash, Fingerprint};
use crate::lease::{AddressTask, LeaseId, NotFetched, PageTask, RobotsTask, SitemapTask};
use crate::link::{Link, Validators};
use crate::notice::Notice;
use crate::rules::{ROBOTS_LIFETIME, RobotsRules, stored_rules};
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::{CanonicalUrl, stored_url};

/// How a page or a sitemap ended. [`answer`](crate::answer) has the table from HTTP statuses and failures to outcomes.
///
/// The links of a settlement are offered whatever its outcome is, also with `Rejected` and `Failed`: a page of status 404 or 500 can
/// have links. If a page is retried, links that were offered before are [`Seen`](Verdict::Seen).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    /// It was fetched, or has not changed since a previous crawl (304). With a body that broke off, it is done only if you do not want
    /// another attempt.
    Done,
    /// The answer was a redirect. Its target is the one link of the settlement, made by [`Entry::redirected`](crate::Entry::redirected).
    /// Without a link, nothing leads on: use that for a target that cannot be crawled. With two links, both are offered, but neither
    /// counts as the target. It spends no page budget.
    Redirected,
    /// The answer is final, but there is no content: HTTP 4xx, or a sitemap that is not a sitemap. It is not retried.
    Rejected,
    /// The request failed. The kind of failure decides what follows: see [`failure`](crate::failure).
    Failed {
        /// What went wrong.
        failure: Failure,
        /// The `Retry-After` of the server; without one, the [`RetryPolicy`](crate::RetryPolicy) decides.
        retry_after: Option<Duration>,
    },
    /// No request was made, and none will be. It spends neither delay nor budget.
    NotFetched(NotFetched),
}

impl Outcome {
    /// Creates the outcome of a failed request without a `Retry-After`.
    pub fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            retry_after: None,
        }
    }

    /// Creates the outcome of a failed request with the `Retry-After` of the server, if any.
    pub fn failed_until(failure: Failure, retry_after: Option<Duration>) -> Self {
        Self::Failed { failure, retry_after }
    }
}

/// How the request for a robots.txt ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RobotsOutcome {
    /// It was read.
    Known {
        /// Its rules.
        rules: Arc<dyn RobotsRules>,
        /// How long they are valid.
        lifetime: Duration,
    },
    /// The answer was a redirect, which the frontier follows. After [`MAX_ROBOTS_REDIRECTS`](crate::rules::MAX_ROBOTS_REDIRECTS)
    /// the file counts as unavailable (RFC 9309, section 2.3.1.2).
    Redirected(CanonicalUrl),
    /// There is no robots.txt (HTTP 4xx): everything is allowed (RFC 9309, section 2.3.1.3).
    Unavailable,
    /// The request failed. It is retried while the pages of the origin wait. After the last attempt they are not fetched.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// The `Retry-After` of the server.
        retry_after: Option<Duration>,
    },
    /// No request may be made to the origin. Its pages are not fetched for this reason.
    NotFetched(NotFetched),
}

impl RobotsOutcome {
    /// Creates the outcome of a file that was read and is valid for a day.
    pub fn known(rules: impl RobotsRules + 'static) -> Self {
        Self::Known {
            rules: Arc::new(rules),
            lifetime: ROBOTS_LIFETIME,
        }
    }

    /// Creates the outcome of a failed request without a `Retry-After`.
    pub fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            retry_after: None,
        }
    }

    /// Creates the outcome of a failed request with the `Retry-After` of the server, if any.
    pub fn failed_until(failure: Failure, retry_after: Option<Duration>) -> Self {
        Self::Failed { failure, retry_after }
    }
}

/// The end of one lease, with the links of its page. Both are one commit.
#[derive(Debug, Clone)]
#[must_use = "a settlement does nothing until it is given to `Frontier::settle`"]
pub struct Settlement {
    pub(crate) lease: LeaseId,
    pub(crate) end: End,
    pub(crate) links: Vec<Link>,
    pub(crate) links_known: u64,
    /// Links that a journal has counted, and not stored.
    pub(crate) other_links: Vec<OtherLinks>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) status: Option<u16>,
    pub(crate) validators: Validators,
    pub(crate) content: Option<ContentHash>,
}

/// The end of a lease, by its purpose.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) enum End {
    Page(Outcome),
    Robots(#[serde(with = "StoredRobots")] RobotsOutcome),
    Address(Option<IpAddr>, Duration),
    Sitemap(Outcome),
}

/// The end of a robots.txt as it is stored: its rules are to be parsed when they are read.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "RobotsOutcome")]
enum StoredRobots {
    Known {
        #[serde(with = "stored_rules")]
        rules: Arc<dyn RobotsRules>,
        lifetime: Duration,
    },
    Redirected(#[serde(with = "stored_url")] CanonicalUrl),
    Unavailable,
    Failed {
        failure: Failure,
        retry_after: Option<Duration>,
    },
    NotFetched(NotFetched),
}

/// Links that changed nothing but a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct OtherLinks {
    pub(crate) are_sitemaps: bool,
    /// Why they were refused; `None` for links that were seen.
    pub(crate) refused: Option<Refusal>,
    pub(crate) count: u64,
}

impl OtherLinks {
    pub(crate) fn count_one(all: &mut Vec<Self>, link: &Link, refused: Option<Refusal>) {
        let are_sitemaps = link.sitemap_of.is_some();
        let same = all
            .iter_mut()
            .find(|one| one.are_sitemaps == are_sitemaps && one.refused == refused);
        match same {
            Some(same) => same.count += 1,
            None => all.push(Self {
                are_sitemaps,
                refused,
                count: 1,
            }),
        }
    }
}

impl Settlement {
    pub(crate) fn new(lease: LeaseId, end: End) -> Self {
        Self {
            lease,
            end,
            links: Vec::new(),
            links_known: 0,
            other_links: Vec::new(),
            fingerprint: None,
            status: None,
            validators: Validators::default(),
            content: None,
        }
    }

    /// Adds the links: those of a page, the one target of a redirect, or the sitemaps that a robots.txt lists.
    pub fn with_links(mut self, links: Vec<Link>) -> Self {
        self.links = links;
        self
    }

    /// Counts links of the page that you omit because they were [`Queued`](Verdict::Queued) or [`Seen`](Verdict::Seen) when you
    /// offered them before. A link that is seen stays seen, so a cache of such links is safe.
    pub fn with_known_links(mut self, count: u64) -> Self {
        self.links_known = count;
        self
    }

    /// Adds the fingerprint, by which the page is compared with others.
    pub fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Adds the HTTP status of the answer, for the records of a durable frontier. It changes no decision.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds what distinguishes this version of the page from others, for the records of a durable frontier:
    /// `Frontier::queue_again` returns it. It changes no decision.
    pub fn with_version(mut self, validators: Validators, content: Option<ContentHash>) -> Self {
        self.validators = validators;
        self.content = content;
        self
    }

    pub(crate) fn is_redirect(&self) -> bool {
        matches!(self.end, End::Page(Outcome::Redirected))
    }

    pub(crate) fn has_rules_without_text(&self) -> bool {
        matches!(&self.end, End::Robots(RobotsOutcome::Known { rules, .. }) if rules.text().is_none())
    }

    /// Returns the id of the lease that it ends.
    pub fn lease(&self) -> LeaseId {
        self.lease
    }

    /// Returns the links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the outcome of a page or a sitemap.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.end {
            End::Page(outcome) | End::Sitemap(outcome) => Some(outcome),
            End::Robots(_) | End::Address(..) => None,
        }
    }
}

impl PageTask {
    /// Creates the task of a stored page lease. The settlement of a lease of another kind is [`Fate::Stale`].
    pub const fn of(lease: LeaseId) -> Self {
        Self(lease)
    }

    /// Ends the lease.
    pub fn settle(self, outcome: Outcome) -> Settlement {
        Settlement::new(self.0, End::Page(outcome))
    }
}

impl RobotsTask {
    /// Ends the lease. The rules decide which pages of the origin are leased.
    pub fn settle(&self, outcome: RobotsOutcome) -> Settlement {
        Settlement::new(self.0, End::Robots(outcome))
    }
}

impl AddressTask {
    /// Ends the lease. `None` if no address was found; the host then shares its politeness with no other. If a host has several
    /// addresses, choose the same one for all hosts that have them, such as the lowest. The address is looked up again after
    /// `lifetime`.
    pub fn settle(self, address: Option<IpAddr>, lifetime: Duration) -> Settlement {
        Settlement::new(self.0, End::Address(address, lifetime))
    }
}

impl SitemapTask {
    /// Ends the lease.
    pub fn settle(&self, outcome: Outcome) -> Settlement {
        Settlement::new(self.0, End::Sitemap(outcome))
    }
}

/// What the frontier decided about a link that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is new and was queued.
    Queued,
    /// It was seen before, or is a false positive of the seen-set.
    Seen,
    /// It belongs to another [partition](crate::Partition) of the crawl, to which it is sent, unless it is a seed, which all processes have.
    /// One that was sent lately is [`Seen`](Self::Seen).
    Elsewhere,
    /// It is not crawled. It was not marked as seen.
    Refused(Refusal),
}

/// The answer to a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settled {
    /// What happened to the lease.
    pub fate: Fate,
    /// The verdict on each link, in their order.
    pub verdicts: Vec<Verdict>,
    /// The earlier page with the same bytes, if any.
    pub duplicate_of: Option<Arc<str>>,
    /// The first page of its cluster of near-duplicates, if that is another page.
    pub near_duplicate_of: Option<Arc<str>>,
    /// The URLs of a redirect loop that this redirect closes, itself first. None of them leads to a page.
    pub redirect_loop: Vec<Box<str>>,
    /// Events for the operator.
    pub notices: Vec<Notice>,
}

/// What happened to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Fate {
    /// It is settled; the entry is not leased again.
    #[default]
    Final,
    /// The entry is queued again for a retry.
    Requeued {
        /// The earliest time of the retry.
        due: Time,
    },
    /// The entry failed in all its attempts and is not leased again.
    GaveUp,
    /// There is no such lease of this kind: it was settled before, or is a lease of another kind, which stays in flight. The links of
    /// this settlement were ignored.
    Stale,
}

impl Settled {
    /// Creates an answer without verdicts and notices.
    pub fn new(fate: Fate) -> Self {
        Self {
            fate,
            ..Self::default()
        }
    }
}
