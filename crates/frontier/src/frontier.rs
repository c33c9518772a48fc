//! The [`Frontier`]: offer, lease, settle.

mod again;
pub mod durable;
mod inspect;
mod lease;
mod offer;
mod release;
mod settle;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sieve::{SeenSet, Sieve};

use again::RecordsRead;

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
use durable::Seen;

/// Why a call to a frontier fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// An earlier call panicked, so that seen-set and queue may disagree.
    #[error(
        "an earlier call panicked or could not be saved, so the state of the frontier may be inconsistent: create or open it again"
    )]
    Poisoned,
    /// The changes cannot be saved. The text says why, and what to do.
    #[error("{0}")]
    NotSaved(Box<str>),
    /// What was read of the directory is not what was written. The text says where. `Directory::repair` (feature `durable`) goes back to the last whole state.
    #[error("{0}")]
    Damaged(Box<str>),
    /// A part of a queue cannot be read from the directory.
    #[error("a part of a queue cannot be read: restore the directory from a copy, or start again in another one")]
    NotRead,
    /// A durable frontier stores rules by their text, and these have none.
    #[error("the rules of a robots.txt have no text to store: implement RobotsRules::text")]
    RulesWithoutText,
}

/// A crawl frontier: it decides what to fetch next, and fetches nothing twice.
///
/// One task owns it, and it does nothing by itself. You [offer](Self::offer) links, [lease](Self::lease) entries, and
/// [settle](Self::settle) each lease together with the links of its page. Time is an argument of every call.
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
    sieve: Sieve<Seen, HostQueues>,
    scope: Scope,
    retries: RetryPolicy,
    max_pages: Option<u64>,
    compare_one_of: u32,
    leases: HashMap<LeaseId, LeasedEntry>,
    leased_pages: u64,
    next_lease: u64,
    /// The last call returned dropped entries: this one returns leases first.
    has_just_dropped: bool,
    pages: PageCounts,
    not_fetched: BTreeMap<NotFetched, u64>,
    links: LinkCounts,
    sitemaps: Sitemaps,
    clusters: Clusters,
    redirects: RedirectLoops,
    hash: KeyedHash,
    in_commit: bool,
    durable: Option<Box<durable::Durable>>,
    /// The latest time of a call.
    latest: Time,
    records_read: RecordsRead,
    /// The configuration of an earlier run that has refused links by limits that were widened since, as JSON.
    refused_under: Option<String>,
}

impl Frontier {
    /// Creates a frontier in memory, with the seen-set that the configuration describes.
    ///
    /// # Errors
    ///
    /// A seen-set that cannot be built, or an invalid pattern of the scope.
    pub fn in_memory(config: FrontierConfig) -> Result<Self, ConfigError> {
        let seen = if config.exact {
            SeenSet::exact()
        } else {
            bloom_filter(&config)?
        };
        Self::with_seen_set(config, seen)
    }

    /// Creates a frontier in memory with a given seen-set.
    ///
    /// The capacity and rate of `config` are ignored.
    ///
    /// # Errors
    ///
    /// An invalid pattern of the scope.
    pub(crate) fn with_seen_set(config: FrontierConfig, seen: SeenSet) -> Result<Self, ConfigError> {
        let hash = KeyedHash::with_secret_of(&config.hashing);
        let queues = HostQueues::new(Self::host_rules(&config), Traps::new(&config, hash));
        Ok(Self {
            sieve: Sieve::from_parts(seen.into(), queues).on_saturation(config.on_saturation),
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
            durable: None,
            latest: Time::EPOCH,
            records_read: RecordsRead::default(),
            refused_under: None,
        })
    }

    fn host_rules(config: &FrontierConfig) -> HostRules {
        HostRules {
            per_host: config.per_host.get(),
            per_address: config.per_address,
            delay: config.delay,
            max_crawl_delay: config.max_crawl_delay,
            max_queued: config.max_queued,
            max_hosts: config.max_hosts,
            max_pages_per_host: config.max_pages_per_host,
            ask_robots: config.ask_robots,
            shelf: None,
        }
    }

    /// Offers a seed. It joins the scope; depth and patterns do not apply to it.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn add_seed(&mut self, url: &CanonicalUrl, now: Time) -> Result<Verdict, FrontierError> {
        self.commit(|frontier| {
            frontier.scope.add_seed(url);
            let verdicts = frontier.offer_links(&[Link::seed(url.clone())], false, now);
            let verdict = verdicts.first().copied().unwrap_or(Verdict::Seen);
            frontier.record_seed(url, verdict, now)?;
            Ok(verdict)
        })
    }

    /// Offers links and returns a verdict on each. A link that is refused is not marked as seen.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn offer(&mut self, links: &[Link], now: Time) -> Result<Vec<Verdict>, FrontierError> {
        self.commit(|frontier| {
            let verdicts = frontier.offer_links(links, false, now);
            frontier.record_offer(links, &verdicts, now)?;
            Ok(verdicts)
        })
    }

    /// Leases up to `up_to` entries whose hosts may be requested now, or says when to call again. If `up_to` is 0, an empty
    /// [`Ready`](Leasing::Ready) means that an entry is ready.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn lease(&mut self, now: Time, up_to: usize) -> Result<Leasing, FrontierError> {
        self.commit(|frontier| {
            let leasing = frontier.lease_ready(now, up_to);
            frontier.record_lease(&leasing, up_to, now)?;
            Ok(leasing)
        })
    }

    /// Settles leases, each with the links of its page, in one commit. Returns what happened to each, in the order of `settlements`.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn settle(&mut self, settlements: &[Settlement], now: Time) -> Result<Vec<Settled>, FrontierError> {
        if self.durable.is_some() && settlements.iter().any(Settlement::has_rules_without_text) {
            return Err(FrontierError::RulesWithoutText);
        }
        self.commit(|frontier| frontier.settle_and_record(settlements, now))
    }

    /// Returns whether a URL is in reach of a seed or of the target of a redirected seed.
    pub fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.scope.reaches(url)
    }

    /// Sets the delay of one host. It applies if it is longer than the delay of all hosts and the `Crawl-delay` of robots.txt. The host is
    /// remembered from then on, until the delay is set to zero.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn set_delay(&mut self, host: &HostKey, delay: Duration, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| {
            frontier.hosts().set_delay(host, delay, now);
            frontier.record_delay(host, delay, now)?;
            Ok(())
        })
    }

    /// Blocks requests to a host until a time. A longer block stays.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn block(&mut self, host: &HostKey, until: Time, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| {
            frontier.hosts().block(host, until, now);
            frontier.record_block(host, until, now)?;
            Ok(())
        })
    }

    /// Queues everything again that is in flight, and returns the number of entries. Their requests count as ended now, and not as
    /// attempts. If an origin was given up meanwhile, its entries are [dropped](Leasing::Dropped). Late settlements of their leases are
    /// [`Fate::Stale`](crate::Fate::Stale).
    ///
    /// It serves callers whose requests have ended without a result: after a crash, or when all requests were aborted.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn release_leases(&mut self, now: Time) -> Result<u64, FrontierError> {
        self.commit(|frontier| {
            let released = frontier.release_all(now);
            frontier.record_release(now)?;
            Ok(released)
        })
    }

    /// Queues entries again whose requests were not made and will not be, such as those that wait when a crawl is stopped. They spend
    /// neither delay nor attempts, and come after what is queued for their origins. If an origin was given up meanwhile, its entries are
    /// [dropped](Leasing::Dropped). Returns the number of leases that ended, which are all but those that were settled before or are unknown.
    /// Late settlements of them are [`Fate::Stale`](crate::Fate::Stale).
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn give_back(&mut self, leases: &[LeaseId], now: Time) -> Result<u64, FrontierError> {
        self.commit(|frontier| {
            let ended = frontier.release_unsent(leases, now);
            frontier.record_give_back(leases, ended, now)?;
            Ok(ended)
        })
    }

    /// Returns whether nothing is queued, nothing is leased, and all dropped entries were returned.
    pub fn is_drained(&self) -> bool {
        self.sieve.is_empty() && self.leases.is_empty() && !self.sieve.queue().has_dropped()
    }

    fn hosts(&mut self) -> &mut HostQueues {
        self.sieve.queue_mut()
    }

    /// Runs one change. If it panics or cannot be recorded, the frontier stays poisoned.
    fn commit<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T, FrontierError>) -> Result<T, FrontierError> {
        if self.in_commit {
            return Err(FrontierError::Poisoned);
        }
        self.in_commit = true;
        let result = change(self)?;
        self.check_shelf()?;
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

/// Builds the Bloom filter that a configuration describes.
pub(crate) fn bloom_filter(config: &FrontierConfig) -> Result<SeenSet, ConfigError> {
    let mut seen = Sieve::builder()
        .capacity(config.capacity)
        .false_positive_rate(config.false_positive_rate)
        .hashing(config.hashing)
        .on_saturation(config.on_saturation)
        .build_filter()?;
    if let SeenSet::Growing(growing) = &mut seen {
        growing.set_max_bytes(config.max_seen_set_bytes);
    }
    Ok(seen)
}
