//! Settlements: how a lease ends, and what the frontier answers.
//!
//! The tables in [`answer`](crate::answer) say which HTTP status and which failure has which outcome.
//!
//! What came back is one [`Outcome`], whatever was asked for ([`Purpose`](crate::Purpose)):
//!
//! | outcome | of a page or a sitemap | of a robots.txt | of an address |
//! |---|---|---|---|
//! | [`Done`](Outcome::Done) | it was fetched | its [rules](Settlement::with_rules) decide about its origin; without them it has failed | [it](Settlement::with_address) is known |
//! | [`Redirected`](Outcome::Redirected) | the one link leads on | the same, five times at most; then as if it was rejected | there is none |
//! | [`Rejected`](Outcome::Rejected) | it ends without content | there is none: everything is allowed | there is none |
//! | [`Failed`](Outcome::Failed) | its [kind](crate::failure) decides | it is asked for again, while the pages of its origin wait; at last, they are not fetched | there is none |
//! | [`NotFetched`](Outcome::NotFetched) | it ends without a request | no page of its origin is fetched | there is none |
//!
//! ```
//! use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Outcome, Purpose, Time};
//!
//! let mut frontier = Frontier::in_memory(FrontierConfig::default())?;
//! let now = Time::from_millis(1_000_000);
//! frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now)?;
//!
//! let Leasing::Ready(leases) = frontier.lease(now, 1)? else { panic!("the robots.txt is ready") };
//! let outcome = match &leases[0].entry.purpose {
//!     Purpose::Robots(_) => Outcome::Rejected, // HTTP 4xx: everything is allowed
//!     Purpose::Page | Purpose::Sitemap(_) | Purpose::Address => Outcome::Done,
//! };
//! frontier.settle(&[leases[0].settle(outcome)], now)?;
//! # use std::time::Duration;
//! assert!(matches!(frontier.lease(now + Duration::from_secs(1), 1)?, Leasing::Ready(page) if page.len() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::fingerprint::{ContentHash, Fingerprint};
use crate::lease::{Lease, LeaseId, NotFetched};
use crate::link::{Link, Validators};
use crate::notice::Notice;
use crate::rules::RobotsRules;
use crate::scope::Refusal;
use crate::time::Time;

/// How a request ended. [`answer`](crate::answer) has the table from HTTP statuses and failures to outcomes.
///
/// The links of a settlement are offered whatever its outcome is, also with `Rejected` and `Failed`: a page of status 404 or 500 can
/// have links. If a page is retried, links that were offered before are [`Seen`](Verdict::Seen).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    /// It was fetched, or has not changed since a previous crawl (304). With a body that broke off, a page is done only if you do not want
    /// another attempt. A robots.txt is done with its [rules](Settlement::with_rules) only.
    Done,
    /// The answer was a redirect. Its target is the one link of the settlement, made by [`Entry::redirected`](crate::Entry::redirected).
    /// Without a link, nothing leads on: use that for a target that cannot be crawled. With two links, both are offered, but neither
    /// counts as the target. It led to no page if the target is [refused](Verdict::Refused), or closes a
    /// [loop](Settled::redirect_loop); the records of a directory do not say so. It spends no page budget. The
    /// target of a robots.txt is no link that is offered: it gets no verdict.
    Redirected,
    /// The answer is final, but there is no content: HTTP 4xx, or a sitemap that is not a sitemap. It is not retried. An origin without a
    /// robots.txt allows everything (RFC 9309, section 2.3.1.3).
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

/// The end of one lease, with the links of its page. Both are one commit.
#[derive(Debug, Clone)]
#[must_use = "a settlement does nothing until it is given to `Frontier::settle`"]
pub struct Settlement {
    pub(crate) lease: LeaseId,
    pub(crate) outcome: Outcome,
    pub(crate) links: Vec<Link>,
    pub(crate) links_known: u64,
    /// Links that a journal has counted, and not stored.
    pub(crate) other_links: Vec<OtherLinks>,
    pub(crate) rules: Option<Arc<dyn RobotsRules>>,
    pub(crate) address: Option<IpAddr>,
    /// Of the rules or the address.
    pub(crate) lifetime: Option<Duration>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) status: Option<u16>,
    pub(crate) validators: Validators,
    pub(crate) content: Option<ContentHash>,
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
    /// Ends a lease of which only the id is left, because it was stored. [`Lease::settle`] ends any other.
    pub fn new(lease: LeaseId, outcome: Outcome) -> Self {
        Self {
            lease,
            outcome,
            links: Vec::new(),
            links_known: 0,
            other_links: Vec::new(),
            rules: None,
            address: None,
            lifetime: None,
            fingerprint: None,
            status: None,
            validators: Validators::default(),
            content: None,
        }
    }

    /// Adds the links: those of a page or a sitemap, the one target of a redirect, or the sitemaps that a robots.txt lists.
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

    /// Adds the rules of a robots.txt, which decide which pages of its origin are leased. They are valid for
    /// [a day](crate::rules::ROBOTS_LIFETIME). Of anything else, they change nothing.
    pub fn with_rules(mut self, rules: impl RobotsRules + 'static) -> Self {
        self.rules = Some(Arc::new(rules));
        self
    }

    /// Adds the address of a host, which is valid for an hour; `None` if there is none: the host then shares its politeness with no other.
    /// If a host has several addresses, choose the same one for all hosts that have them, such as the lowest. Of anything else, it changes
    /// nothing.
    pub fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self
    }

    /// Sets for how long the rules or the address are valid, before they are asked for again.
    pub fn valid_for(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Adds the fingerprint, by which the page is compared with others.
    pub fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Adds the HTTP status of the answer, for the page of a durable frontier. It changes no decision.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds what distinguishes this version of the page from others, for the page of a durable frontier:
    /// `Frontier::queue_again` returns it. It changes no decision.
    pub fn with_version(mut self, validators: Validators, content: Option<ContentHash>) -> Self {
        self.validators = validators;
        self.content = content;
        self
    }

    /// Returns the id of the lease that it ends.
    pub fn lease(&self) -> LeaseId {
        self.lease
    }

    /// Returns the links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns how the request ended.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl Lease {
    /// Ends the lease. Give the settlement to [`Frontier::settle`](crate::Frontier::settle).
    pub fn settle(&self, outcome: Outcome) -> Settlement {
        Settlement::new(self.id, outcome)
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
    /// This link is not followed. It was not marked as seen, so the URL may be crawled by another link, before or after.
    Refused(Refusal),
}

/// The answer to a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settled {
    /// What happened to the lease.
    pub fate: Fate,
    /// The number of the row of a page that has ended; 0 of anything else.
    pub(crate) page: u64,
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
///
/// A page has ended with `Final` or `GaveUp`, or when it is [`Dropped`](crate::Dropped): write what you keep of it then, before the next
/// [`persist`](crate::Frontier::persist). A robots.txt ends so, too: look at the [purpose](crate::Entry::purpose). Where one spelling of a
/// [key](crate::Entry::key) redirects to another, both end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Fate {
    /// It is settled; the entry is not leased again.
    #[default]
    Final,
    /// The entry is queued again for a retry.
    Requeued {
        /// The earliest time of the retry. If its origin is away, probes decide when that is: see [`NotUntil`](crate::Leasing::NotUntil).
        due: Time,
    },
    /// The entry failed in all its attempts and is not leased again.
    GaveUp,
    /// There is no such lease: it was settled before, or given back. The links of this settlement were ignored.
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
