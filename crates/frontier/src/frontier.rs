//! The frontier: offer, lease, settle.

mod inspect;
mod lease;
mod offer;
mod settle;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sieve::{SeenSet, Sieve};

use crate::config::{ConfigError, FrontierConfig, RetryPolicy};
use crate::entry::Purpose;
use crate::hosts::{HostQueues, HostRules, LeasedEntry};
use crate::keyed_hash::KeyedHash;
use crate::lease::{LeaseId, Leasing, NotFetched};
use crate::link::Link;
use crate::report::{LinkCounts, PageCounts};
use crate::scope::Scope;
use crate::settlement::{Settled, Settlement, Verdict};
use crate::sitemaps::Sitemaps;
use crate::time::Time;
use crate::traps::{Clusters, RedirectLoops, Traps};
use crate::url::{CanonicalUrl, HostKey};

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
/// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Link, Outcome, Task, Time};
///
/// let config = FrontierConfig { delay: Duration::from_secs(2), ask_robots: false, ..FrontierConfig::default() };
/// let mut frontier = Frontier::in_memory(config)?;
/// let urls = Canonicalizer::default();
///
/// let start = Time::from_millis(1_000_000);
/// frontier.add_seed(&urls.parse("https://example.com/")?, start)?;
/// let Leasing::Ready(leases) = frontier.lease(start, 10)? else { panic!("the seed is ready") };
/// let Task::Page(page) = leases[0].task() else { panic!("robots.txt is not asked for") };
///
/// // ... fetch leases[0].entry.url, which takes half a second ...
/// let end = start + Duration::from_millis(500);
/// let about = Link::found(urls.parse("https://example.com/about")?, 1, "https://example.com/".into());
/// frontier.settle(&[page.settle(Outcome::Done).with_links(vec![about])], end)?;
///
/// // The delay counts from the end of the request.
/// assert_eq!(frontier.lease(end, 10)?, Leasing::NotUntil(end + Duration::from_secs(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Frontier {
    sieve: Sieve<SeenSet, HostQueues>,
    scope: Scope,
    retries: RetryPolicy,
    max_pages: Option<u64>,
    compare_one_of: u32,
    leases: HashMap<LeaseId, LeasedEntry>,
    leased_pages: u64,
    next_lease: u64,
    /// The last answer was about what was dropped: what can be fetched comes first now.
    has_just_dropped: bool,
    pages: PageCounts,
    not_fetched: BTreeMap<NotFetched, u64>,
    links: LinkCounts,
    sitemaps: Sitemaps,
    clusters: Clusters,
    redirects: RedirectLoops,
    hash: KeyedHash,
    in_commit: bool,
}

impl Frontier {
    /// Creates a frontier in memory, with the seen-set that the configuration asks for.
    ///
    /// # Errors
    ///
    /// A seen-set that cannot be built or a pattern of the scope that cannot be understood.
    pub fn in_memory(config: FrontierConfig) -> Result<Self, ConfigError> {
        let seen = if config.exact {
            SeenSet::exact()
        } else {
            Sieve::builder()
                .capacity(config.capacity)
                .false_positive_rate(config.false_positive_rate)
                .hashing(config.hashing)
                .on_saturation(config.on_saturation)
                .build_filter()?
        };
        Self::with_seen_set(config, seen)
    }

    /// Creates a frontier in memory with a seen-set that was built before.
    ///
    /// The capacity, rate and hash of `config` are not looked at.
    ///
    /// # Errors
    ///
    /// A pattern of the scope that cannot be understood.
    pub fn with_seen_set(config: FrontierConfig, seen: SeenSet) -> Result<Self, ConfigError> {
        let rules = HostRules {
            per_host: config.per_host.get(),
            per_address: config.per_address,
            delay: config.delay,
            max_crawl_delay: config.max_crawl_delay,
            max_queued: config.max_queued,
            max_hosts: config.max_hosts,
            max_pages_per_host: config.max_pages_per_host,
            ask_robots: config.ask_robots,
        };
        let hash = KeyedHash::with_secret_of(&config.hashing);
        let queues = HostQueues::new(rules, Traps::new(&config, hash));
        Ok(Self {
            sieve: Sieve::from_parts(seen, queues).on_saturation(config.on_saturation),
            scope: Scope::new(config.scope)?,
            retries: config.retries,
            max_pages: config.max_pages,
            compare_one_of: config.compare_one_of.get(),
            leases: HashMap::new(),
            leased_pages: 0,
            next_lease: 0,
            has_just_dropped: false,
            pages: PageCounts::default(),
            not_fetched: BTreeMap::new(),
            links: LinkCounts::default(),
            sitemaps: Sitemaps::new(config.max_sitemaps),
            clusters: Clusters::new(config.max_fingerprints),
            redirects: RedirectLoops::default(),
            hash,
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
            let verdicts = frontier.offer_links(&[Link::seed(url.clone())], false, now);
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
        self.commit(|frontier| frontier.offer_links(links, false, now))
    }

    /// Hands out up to `up_to` entries whose hosts may be asked now, or says when to come back. When `up_to` is 0, an empty
    /// [`Ready`](Leasing::Ready) says that there is something.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn lease(&mut self, now: Time, up_to: usize) -> Result<Leasing, FrontierError> {
        self.commit(|frontier| frontier.lease_ready(now, up_to))
    }

    /// Settles leases, each with the links that it led to, and says what became of them. One commit.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn settle(&mut self, settlements: &[Settlement], now: Time) -> Result<Vec<Settled>, FrontierError> {
        self.commit(|frontier| settlements.iter().map(|one| frontier.settle_one(one, now)).collect())
    }

    /// Sets the delay of one host. It counts where it is longer than the delay of all, and than what robots.txt asks for.
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

    /// Says whether nothing is queued, nothing is leased, and nothing was dropped that was not handed over.
    pub fn is_drained(&self) -> bool {
        self.sieve.is_empty() && self.leases.is_empty() && !self.sieve.queue().has_dropped()
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

    fn count_not_fetched(&mut self, purpose: &Purpose, why: NotFetched) {
        if *purpose != Purpose::Page {
            return;
        }
        if why == NotFetched::HostDown {
            self.pages.lost_with_host += 1;
        } else {
            *self.not_fetched.entry(why).or_default() += 1;
        }
    }
}
