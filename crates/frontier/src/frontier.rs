//! The frontier: offer, lease, settle.

mod duplicates;
mod look;
mod settling;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use sieve::{Filter, RefusedBy, SeenSet, Sieve};

use crate::admission::entry;
use crate::budgets::Budgets;
use crate::config::{ConfigError, FrontierConfig, RetryPolicy};
use crate::entry::{Entry, Purpose};
use crate::hosts::{Arrival, HostQueues, HostRules, Taken};
use crate::lease::{Lease, LeaseId, Leasing, NotFetched, Settled, Settlement, Verdict};
use crate::link::Link;
use crate::report::{LinkCounts, PageCounts};
use crate::scope::{Refusal, Scope};
use crate::sitemaps::Sitemaps;
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey, Origin};

/// Why a frontier cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// A call before this one did not come to its end, so that seen-set and queue may disagree.
    #[error("an earlier call was cut short by a panic, so the frontier can no longer be trusted: start it anew")]
    Poisoned,
}

/// What to fetch next, and never a thing twice.
///
/// It is owned by one task and does nothing by itself: links are [offered](Self::offer), entries are [leased](Self::lease),
/// leases are [settled](Self::settle) together with the links that their pages led to. Time is an argument of every call.
///
/// ```
/// use std::time::Duration;
/// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Link, Outcome, Settlement, Time};
///
/// let config = FrontierConfig { delay: Duration::from_secs(2), ask_robots: false, ..FrontierConfig::default() };
/// let mut frontier = Frontier::in_memory(config)?;
/// let urls = Canonicalizer::default();
///
/// let start = Time::from_millis(1_000_000);
/// frontier.add_seed(&urls.parse("https://example.com/")?, start)?;
/// let Leasing::Ready(leases) = frontier.lease(start, 10)? else { panic!("the seed is ready") };
///
/// // ... fetch leases[0].entry.url, which takes half a second ...
/// let end = start + Duration::from_millis(500);
/// let about = Link::found(urls.parse("https://example.com/about")?, 1, "https://example.com/".into());
/// frontier.settle(&[Settlement { lease: leases[0].id, outcome: Outcome::Done, links: vec![about] }], end)?;
///
/// // The delay counts from the end of the request.
/// assert_eq!(frontier.lease(end, 10)?, Leasing::NotUntil(end + Duration::from_secs(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Frontier<F = SeenSet> {
    sieve: Sieve<F, HostQueues>,
    scope: Scope,
    retries: RetryPolicy,
    max_pages: Option<u64>,
    leases: HashMap<LeaseId, Taken>,
    leased_pages: u64,
    next_lease: u64,
    pages: PageCounts,
    not_fetched: BTreeMap<NotFetched, u64>,
    links: LinkCounts,
    sitemaps: Sitemaps,
    in_commit: bool,
}

impl Frontier {
    /// Creates a frontier in memory, with a Bloom filter as its seen-set.
    ///
    /// # Errors
    ///
    /// A seen-set that cannot be built or a pattern of the scope that cannot be understood.
    pub fn in_memory(config: FrontierConfig) -> Result<Self, ConfigError> {
        let filter = Sieve::builder()
            .capacity(config.capacity)
            .false_positive_rate(config.false_positive_rate)
            .hashing(config.hashing)
            .on_saturation(config.on_saturation)
            .build_filter()?;
        Self::with_filter(config, filter)
    }
}

impl<F: Filter> Frontier<F> {
    /// Creates a frontier in memory with a seen-set of your own, such as [`sieve::ExactFilter`].
    ///
    /// The capacity, rate and hash of `config` are not looked at.
    ///
    /// # Errors
    ///
    /// A pattern of the scope that cannot be understood.
    pub fn with_filter(config: FrontierConfig, filter: F) -> Result<Self, ConfigError> {
        let rules = HostRules {
            per_host: config.per_host.get(),
            per_address: config.per_address,
            delay: config.delay,
            max_queued: config.max_queued,
            max_hosts: config.max_hosts,
            max_pages_per_host: config.max_pages_per_host,
            max_host_failures: config.retries.max_host_failures.get(),
            max_throttles: config.retries.max_throttles.get(),
            ask_robots: config.ask_robots,
        };
        let budgets = Budgets::new(&config);
        Ok(Self {
            sieve: Sieve::from_parts(filter, HostQueues::new(rules, budgets)).on_saturation(config.on_saturation),
            scope: Scope::new(config.scope)?,
            retries: config.retries,
            max_pages: config.max_pages,
            leases: HashMap::new(),
            leased_pages: 0,
            next_lease: 0,
            pages: PageCounts::default(),
            not_fetched: BTreeMap::new(),
            links: LinkCounts::default(),
            sitemaps: Sitemaps::new(config.max_sitemaps),
            in_commit: false,
        })
    }

    /// Offers a URL of the user's: it joins the scope, and depth and patterns do not apply to it.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn add_seed(&mut self, url: &CanonicalUrl, now: Time) -> Result<Verdict, FrontierError> {
        self.commit(|frontier| {
            frontier.scope.add_seed(url);
            let verdicts = frontier.sift(&[Link::seed(url.clone())], now);
            verdicts.first().copied().unwrap_or(Verdict::Seen)
        })
    }

    /// Says whether a URL lies where the crawl may go: whether it belongs to a seed, or to where one was redirected.
    pub fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.scope.reaches(url)
    }

    /// Offers links and says what became of each. A link that is refused is not marked as seen.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn offer(&mut self, links: &[Link], now: Time) -> Result<Vec<Verdict>, FrontierError> {
        self.commit(|frontier| frontier.sift(links, now))
    }

    /// Hands out up to `up_to` entries whose hosts may be asked now, or says when to come back. When `up_to` is 0, an empty
    /// [`Ready`](Leasing::Ready) says that there is something.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn lease(&mut self, now: Time, up_to: usize) -> Result<Leasing, FrontierError> {
        self.commit(|frontier| frontier.hand_out(now, up_to))
    }

    /// Settles leases, each with the links that its page led to, and says what became of them. One commit.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn settle(&mut self, settlements: &[Settlement], now: Time) -> Result<Vec<Settled>, FrontierError> {
        self.commit(|frontier| settlements.iter().map(|one| frontier.settle_one(one, now)).collect())
    }

    /// Sets the delay of one host. It counts where it is longer than the delay of all.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn set_delay(&mut self, host: &HostKey, delay: Duration, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| frontier.hosts().set_delay(host, delay, now))
    }

    /// Lets a host rest until a time. A block that lasts longer stays.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn block(&mut self, host: &HostKey, until: Time, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| frontier.hosts().block(host, until, now))
    }

    /// Says that the robots.txt of an origin is known until a time. Until this is said after a robots lease, no page of
    /// the origin is handed out.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn robots_known(&mut self, origin: &Origin, until: Time, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| frontier.hosts().robots_known(origin, until, now))
    }

    /// Says which IP address a host has, until a time; `None` if it has none that is known, and then it shares none. With
    /// [`per_address`](FrontierConfig::per_address), until this is said after a lease for an address nothing else of the
    /// host is handed out. Of several addresses, say the same one for every host that has them, such as the lowest.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn address_known(
        &mut self,
        host: &HostKey,
        address: Option<IpAddr>,
        until: Time,
        now: Time,
    ) -> Result<(), FrontierError> {
        self.commit(|frontier| frontier.hosts().address_known(host, address, until, now))
    }

    /// Asks for the robots.txt of an origin at another URL: where its own redirects to. It passes filter and budgets by.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn follow_robots(
        &mut self,
        origin: &Origin,
        target: &CanonicalUrl,
        hops: u8,
        now: Time,
    ) -> Result<(), FrontierError> {
        let entry = Entry {
            queue: target.host(),
            url: target.url().as_str().into(),
            key: None,
            due: now,
            depth: 0,
            hops,
            attempts: 0,
            put_off: 0,
            purpose: Purpose::Robots(origin.clone()),
            metadata: crate::entry::Metadata::default(),
        };
        self.commit(|frontier| frontier.hosts().enqueue(entry, now))
    }

    /// Says whether nothing is queued and nothing is leased.
    pub fn is_drained(&self) -> bool {
        self.sieve.is_empty() && self.leases.is_empty()
    }

    fn hosts(&mut self) -> &mut HostQueues {
        self.sieve.queue_mut()
    }

    /// Runs one change to its end, or leaves the frontier poisoned.
    fn commit<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> Result<T, FrontierError> {
        if self.in_commit {
            return Err(FrontierError::Poisoned);
        }
        self.in_commit = true;
        let result = change(self);
        self.in_commit = false;
        Ok(result)
    }

    /// Scope first, then the filter's test-and-set with the queue behind it, all links of a page in one batch.
    fn sift(&mut self, links: &[Link], now: Time) -> Vec<Verdict> {
        self.sieve.set_now(Duration::from_millis(now.as_millis()));
        let mut verdicts = Vec::with_capacity(links.len());
        let mut admitted = Vec::with_capacity(links.len());
        for (at, link) in links.iter().enumerate() {
            verdicts.push(match self.scope.judge(link) {
                Ok(()) if link.sitemap_of.is_some() => self.take_in_sitemap(link, now),
                Ok(()) if self.sitemaps.has_read(link.url.key()) => Verdict::Seen,
                Ok(()) => {
                    admitted.push(at);
                    // Overwritten by the sieve's own answer.
                    Verdict::Seen
                }
                Err(refusal) => Verdict::Refused(refusal),
            });
        }
        let mut places = admitted.iter();
        let arrivals = admitted.iter().filter_map(|&at| links.get(at));
        self.sieve
            .try_push_all(arrivals.map(|link| Arrival { link, at: now }), |outcome| {
                let Some(verdict) = places.next().and_then(|&at| verdicts.get_mut(at)) else {
                    return;
                };
                *verdict = match outcome {
                    Ok(true) => Verdict::Queued,
                    Ok(false) => Verdict::Seen,
                    Err(refused) => Verdict::Refused(match refused.by {
                        RefusedBy::Queue(refusal) => refusal,
                        RefusedBy::Saturation => Refusal::Saturated,
                    }),
                };
            });
        self.forgive_seen(links, &mut verdicts);
        for (link, verdict) in links.iter().zip(&verdicts) {
            self.count(link, *verdict);
        }
        verdicts
    }

    /// Counts links that were not offered, because each of them was [`Queued`](Verdict::Queued) or
    /// [`Seen`](Verdict::Seen) when it was offered before.
    ///
    /// Whoever remembers such links may leave them out: what is seen stays seen, and says nothing more. O(1).
    pub fn count_seen(&mut self, links: u64) {
        self.links.seen += links;
    }

    fn count(&mut self, link: &Link, verdict: Verdict) {
        let counts = match link.sitemap_of {
            Some(_) => &mut self.sitemaps.counts,
            None => &mut self.links,
        };
        counts.count(verdict);
    }

    /// Sitemaps have a seen-set of their own, which is exact.
    fn take_in_sitemap(&mut self, link: &Link, now: Time) -> Verdict {
        if let Err(refusal) = self.sieve.queue().admit(link) {
            return Verdict::Refused(refusal);
        }
        let verdict = self.sitemaps.insert(link.url.key());
        if verdict == Verdict::Queued {
            self.hosts().enqueue(entry(link), now);
        }
        verdict
    }

    /// A link that leads to what was seen loses nothing by being refused: on another way the page was had, or will be.
    fn forgive_seen(&self, links: &[Link], verdicts: &mut [Verdict]) {
        for (link, verdict) in links.iter().zip(verdicts) {
            if matches!(verdict, Verdict::Refused(why) if !why.is_of_territory())
                && link.sitemap_of.is_none()
                && self.sieve.contains(link.url.key())
            {
                *verdict = Verdict::Seen;
            }
        }
    }

    fn hand_out(&mut self, now: Time, up_to: usize) -> Leasing {
        let mut ready = Vec::new();
        while ready.len() < up_to && self.budget_left() > 0 {
            let Some(mut taken) = self.hosts().take(now) else { break };
            taken.entry.attempts += 1;
            let id = LeaseId(self.next_lease);
            self.next_lease += 1;
            self.leased_pages += u64::from(taken.entry.purpose == Purpose::Page);
            ready.push(Lease {
                id,
                entry: taken.entry.clone(),
                attempt: taken.entry.attempts,
            });
            self.leases.insert(id, taken);
        }
        if !ready.is_empty() {
            return Leasing::Ready(ready);
        }
        if self.is_drained() {
            return Leasing::Drained;
        }
        if self.budget_left() == 0 {
            return if self.leases.is_empty() {
                Leasing::BudgetSpent
            } else {
                Leasing::AllLeased
            };
        }
        if up_to == 0 && self.hosts().is_due(now) {
            return Leasing::Ready(ready);
        }
        self.hosts().next_time().map_or(Leasing::AllLeased, Leasing::NotUntil)
    }

    fn budget_left(&self) -> u64 {
        self.max_pages.map_or(u64::MAX, |max| {
            max.saturating_sub(self.pages.spent() + self.leased_pages)
        })
    }
}
