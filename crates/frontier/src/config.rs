//! The configuration of a frontier, with its defaults.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::OrderRule;
use crate::freshness::FreshnessConfig;
use crate::partition::Partition;
use crate::policy::{CrawlPolicy, HostPolicy, NoHosts};
use crate::scope::{ScopeConfig, ScopeError};

/// The bytes of hosts in memory, if a frontier has a directory and no [`FrontierConfig::max_memory`]: 160 MiB.
pub const DEFAULT_HOST_MEMORY: u64 = 160 << 20;
/// The most origins (schemes and ports) of one host. URLs of further origins are refused, except seeds.
pub const MAX_ORIGINS_PER_HOST: usize = 256;

/// The configuration of a [`Frontier`](crate::Frontier).
///
/// Later versions may add fields: set the fields that you need and fill the rest with `..FrontierConfig::default()`, and likewise in each group:
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use frontier::{FrontierConfig, PolitenessConfig, TrapConfig};
///
/// let config = FrontierConfig {
///     politeness: PolitenessConfig {
///         delay: Duration::from_secs(2),
///         per_host: NonZeroU32::MIN.saturating_add(1), // two: never zero, so no `unwrap`
///         ..PolitenessConfig::default()
///     },
///     traps: TrapConfig {
///         max_queries_per_path: NonZeroU32::new(5_000), // an `Option`: `None` is no limit
///         ..TrapConfig::default()
///     },
///     ..FrontierConfig::default()
/// };
/// assert_eq!(config.politeness.per_host.get(), 2);
/// ```
///
/// **The serialized form contains the secret of the hash.**
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontierConfig {
    /// What was seen.
    #[serde(flatten)]
    pub seen_set: SeenSetConfig,
    /// What may be crawled.
    pub scope: ScopeConfig,
    /// What comes first: the first rule that matches a link gives it its [`Class`](crate::Class), unless the [link](crate::Link::class) has one. A change counts for
    /// what is queued from then on.
    pub order: Vec<OrderRule>,
    /// How often hosts are asked.
    #[serde(flatten)]
    pub politeness: PolitenessConfig,
    /// What some hosts are granted: by name, or by `*.` and a name for its subdomains. Of each field, the most specific pattern that has it counts, and
    /// before that what [`Frontier::set_policy`](crate::Frontier::set_policy) has set.
    pub hosts: BTreeMap<String, HostPolicy>,
    /// How much is fetched and remembered.
    #[serde(flatten)]
    pub limits: LimitConfig,
    /// What one site may spend.
    #[serde(flatten)]
    pub traps: TrapConfig,
    /// When failed requests are retried.
    pub retries: RetryPolicy,
    /// How pages are kept fresh that were fetched.
    pub freshness: FreshnessConfig,
    /// The bytes of memory that a frontier with a directory may take: the seen-set, hosts, the store. Hosts that were not used for long lie
    /// on disk then. It needs `FrontierConfig::least_memory`, and about 200 bytes for each host. `None` bounds only the hosts, to
    /// [`DEFAULT_HOST_MEMORY`]. Without a directory it has no effect. It may change between two runs.
    pub max_memory: Option<u64>,
    /// How often a frontier with a directory syncs it to the medium: what a power cut may cost. By default each second; zero for each commit.
    /// Without a directory it has no effect. It may change between two runs.
    pub sync_interval: Duration,
    /// The share of the crawl that this frontier has, if several processes share it; `None` for all of it. It cannot change between two runs.
    pub partition: Option<Partition>,
}

impl Default for FrontierConfig {
    fn default() -> Self {
        Self {
            seen_set: SeenSetConfig::default(),
            scope: ScopeConfig::default(),
            order: Vec::new(),
            politeness: PolitenessConfig::default(),
            hosts: BTreeMap::new(),
            limits: LimitConfig::default(),
            traps: TrapConfig::default(),
            retries: RetryPolicy::default(),
            freshness: FreshnessConfig::default(),
            max_memory: None,
            sync_interval: Duration::from_secs(1),
            partition: None,
        }
    }
}

impl FrontierConfig {
    /// Returns what holds if this is ordered for the whole crawl: of its pages, a partition has its share.
    pub(crate) fn under(&self, ordered: &CrawlPolicy) -> Self {
        let (mut config, ordered) = (self.clone(), ordered.clone());
        let (limits, scope, freshness) = (&mut config.limits, &mut config.scope, &mut config.freshness);
        config.politeness.delay = ordered.delay.unwrap_or(config.politeness.delay);
        let share = |all| self.partition.map_or(all, |partition| partition.share_of(all));
        limits.max_pages = ordered.max_pages.map(share).or(limits.max_pages);
        limits.max_pages_per_host = ordered.max_pages_per_host.or(limits.max_pages_per_host);
        freshness.revisit_share = ordered.revisit_share.unwrap_or(freshness.revisit_share);
        freshness.min_age = ordered.min_age.unwrap_or(freshness.min_age);
        freshness.max_age = ordered.max_age.unwrap_or(freshness.max_age);
        scope.max_depth = ordered.max_depth.or(scope.max_depth);
        scope.include = ordered.include.unwrap_or(std::mem::take(&mut scope.include));
        scope.exclude = ordered.exclude.unwrap_or(std::mem::take(&mut scope.exclude));
        config
    }
}

/// The seen-set: how large it is, and what it may lose. A part of [`FrontierConfig`].
///
/// **The serialized form contains the secret of the hash.**
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenSetConfig {
    /// The number of distinct URLs that the seen-set is sized for: by default a million.
    pub capacity: u64,
    /// The seen-set's false-positive rate at capacity: the share of new URLs that are wrongly dropped, by default one in a hundred.
    pub false_positive_rate: f64,
    /// Whether the seen-set is exact, which it is not by default: no new URL is ever dropped. In memory it costs the bytes of each key and about 32 more.
    ///
    /// In a directory it is a Bloom filter of this capacity, rate and policy, and each "seen" of the filter is looked up among the stored
    /// digests of 128 bits. A seen URL that is not asked for often costs some reads of the store, of 16 KiB each; so does a share of the new
    /// URLs once the filter is beyond its capacity: let it grow. Two of a billion URLs have the same digest with a chance of 10⁻²¹ (with
    /// xxh3, which has 64 bits, of 3 %): then one of them is dropped.
    pub exact: bool,
    /// The hash of the seen-set. The default draws a random secret, so that no site can craft URLs that hide a page. Set a seed
    /// for reproducible runs.
    #[serde(alias = "hashing")]
    pub hash: sieve::Hashing,
    /// What happens once the estimate of the seen-set exceeds its capacity. By default it grows: then it takes 14 bits per URL and more.
    pub on_saturation: sieve::OnSaturation,
    /// The most memory that a seen-set may grow to, in bytes, if it grows. At this bound it stays as it is, and wrongly drops more and more
    /// new URLs, as one that does not grow. `None` for no bound.
    pub max_seen_set_bytes: Option<u64>,
}

impl Default for SeenSetConfig {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            false_positive_rate: sieve::DEFAULT_FALSE_POSITIVE_RATE,
            exact: false,
            hash: sieve::Hashing::random(),
            on_saturation: sieve::OnSaturation::Grow,
            max_seen_set_bytes: None,
        }
    }
}

/// Politeness towards hosts, and robots.txt. A part of [`FrontierConfig`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolitenessConfig {
    /// Requests that may be in flight to one host at a time: by default 1. More of them help only if answers take longer than the delay.
    pub per_host: NonZeroU32,
    /// Whether politeness applies per IP address, too: by default not. Hosts with one address then share `per_host` and `delay`,
    /// and the frontier leases address look-ups ([`Purpose::Address`](crate::entry::Purpose::Address)).
    pub per_address: bool,
    /// The minimum time: by default a second. A request to a host starts no sooner than this after the last start and after the last end
    /// of another, so one host gets at most 1 / `delay` requests a second, whatever `per_host` is.
    pub delay: Duration,
    /// The longest `Crawl-delay` of a robots.txt that is obeyed: by default a minute. A longer one is cut to it. Zero ignores `Crawl-delay`.
    pub max_crawl_delay: Duration,
    /// Whether the robots.txt of an origin is leased before its pages: by default yes.
    pub ask_robots: bool,
    /// The name by which the caller reads robots.txt files, such as `my-bot`. The frontier stores it with the state and does not use it: who
    /// reads the state makes the same rules by it (`Directory::config`). `RobotsTxt::of_text` of the crate `crawl-page` takes the product
    /// token (RFC 9309, section 2.2.1) or the whole user agent. It may change between two runs.
    pub robots_name: String,
}

impl Default for PolitenessConfig {
    fn default() -> Self {
        Self {
            per_host: NonZeroU32::MIN,
            per_address: false,
            delay: Duration::from_secs(1),
            max_crawl_delay: Duration::from_secs(60),
            ask_robots: true,
            robots_name: String::new(),
        }
    }
}

/// How much is fetched and remembered. A part of [`FrontierConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitConfig {
    /// URLs that may be queued at a time: by default ten million. Further ones are refused.
    pub max_queued: u64,
    /// Hosts that are remembered at a time: by default a million. URLs of further hosts are refused.
    pub max_hosts: usize,
    /// Pages to fetch in the whole crawl. The rest stays queued. A page spends it that was fetched, answered with a final status such as
    /// 404, or given up after its attempts. Redirects, and pages that are dropped without a request, spend none.
    pub max_pages: Option<u64>,
    /// Pages to fetch of one host. Pages that robots.txt forbids and redirects do not count. When the budget is spent, the pages
    /// that are still queued are dropped ([`Leasing::Dropped`](crate::Leasing::Dropped)) and new ones are refused. Those that wait to be
    /// fetched again stay. Up to ten times this number plus 1 000 may be queued.
    pub max_pages_per_host: Option<u64>,
    /// Sitemaps to fetch in the whole crawl: by default 10 000. Further ones are refused. Their URLs are remembered, so that none is fetched twice.
    pub max_sitemaps: usize,
    /// Links to sites of other partitions that may wait to be acknowledged: by default ten million. Beyond this number nothing is leased, but
    /// for a few that were leased before; no link is refused for it. They lie on disk, in a frontier with a directory.
    pub max_outbox: u64,
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self {
            max_queued: 10_000_000,
            max_hosts: 1_000_000,
            max_pages: None,
            max_pages_per_host: None,
            max_sitemaps: 10_000,
            max_outbox: 10_000_000,
        }
    }
}

/// What one site may spend: the limits that end sites without end. A part of [`FrontierConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrapConfig {
    /// Different queries of one path: by default 10 000, because wikis and forums have all their pages under one path. Further ones are
    /// postponed: they wait behind everything else of the crawl. Those that are found on postponed pages are refused beyond four times this
    /// number, so that a site without end ends. `None` for no limit.
    pub max_queries_per_path: Option<NonZeroU32>,
    /// Hosts of one registrable domain: by default 1 000; Wikipedia has about 350. Pages and sitemaps of further hosts are refused, but for seeds. `None` for no limit. A host
    /// counts from its first page or sitemap on, whatever else is known of it. One that was forgotten counts again when it returns;
    /// that takes more than 10 000 hosts, or half of [`max_hosts`](LimitConfig::max_hosts), and the lifetime of its robots.txt.
    pub max_hosts_per_site: Option<NonZeroU32>,
    /// Near-duplicates of one page, per path prefix and per site: by default 500. Beyond this number, the pages there are postponed: they wait
    /// behind everything else of the crawl. `None` for no limit.
    ///
    /// A path prefix is what the URLs of a crawler trap share: all queries of a path (`/list?`), all parameters of one (`/list;`), all
    /// numbers in a place (`/calendar/#/#/`), or the pages of a directory, without those of the directories in it (`/api/*`).
    ///
    /// Sites without traps have near-duplicates, too. The largest clusters in 47 000 pages of documentation that Debian packages:
    ///
    /// | manual | members on the site | members under one path prefix |
    /// |---|---|---|
    /// | Rust (unstable features, which share a sidebar) | 257 | 213 |
    /// | OpenJDK | 16 | 9 |
    /// | Apache, with its translations | 10 | 1 |
    /// | Python, PostgreSQL | 0 | 0 |
    pub max_near_duplicates: Option<NonZeroU32>,
    /// Near-duplicates of one page, per path prefix and per site, beyond which new links are refused: by default 5 000. `None` for no limit:
    /// then a site that generates pages has no end.
    pub max_near_duplicates_in_all: Option<NonZeroU32>,
    /// One page in this many is compared with others: by default 32. Once a site seems to have as many near-duplicates as a limit allows, all its
    /// pages are compared. 1 compares all pages from the start.
    pub compare_one_of: NonZeroU32,
    /// How many of the latest pages a page is compared with: by default 250 000. Each takes about 200 bytes and its URL.
    pub max_fingerprints: usize,
}

impl Default for TrapConfig {
    fn default() -> Self {
        Self {
            max_queries_per_path: NonZeroU32::new(10_000),
            max_hosts_per_site: NonZeroU32::new(1_000),
            max_near_duplicates: NonZeroU32::new(500),
            max_near_duplicates_in_all: NonZeroU32::new(5_000),
            compare_one_of: NonZeroU32::MIN.saturating_add(31),
            max_fingerprints: 250_000,
        }
    }
}

/// When failed requests are retried, and when the frontier gives up. [`failure`](crate::failure) says which failure counts against
/// what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Requests for one URL: by default 3. Failures that are not its fault are not counted, and a page that failed while its origin was away gets up
    /// to two more.
    pub max_attempts: NonZeroU32,
    /// Requests for one robots.txt before its origin is closed for a while, at most 255: by default 8, which take two minutes. Meanwhile the pages of the origin wait.
    pub max_robots_attempts: NonZeroU32,
    /// The wait before the second attempt: by default a second. It doubles with each further attempt.
    #[serde(alias = "first_wait")]
    pub retry_wait: Duration,
    /// The longest wait between two attempts: by default 5 minutes. A longer `Retry-After` is cut to it.
    #[serde(alias = "longest_wait")]
    pub max_retry_wait: Duration,
    /// How long an origin that has answered in this crawl may be away before it is given up: by default 5 minutes. Its queued URLs are
    /// then dropped. One whose pages hang while its robots.txt is answered is [never given up](crate::failure#outages).
    pub max_host_downtime: Duration,
    /// The same for an origin that has never answered in this crawl: by default 30 s.
    pub max_first_downtime: Duration,
    /// The longest wait between two probes of an origin that is away: by default a minute. The first wait is [`retry_wait`](Self::retry_wait); it doubles
    /// with each probe.
    pub longest_probe_wait: Duration,
    /// How long a host rests after it throttled without a `Retry-After`: by default 5 s. It doubles with each further throttling answer in a row.
    #[serde(alias = "first_throttle")]
    pub throttle_wait: Duration,
    /// Throttling answers in a row after which an origin is given up, with everything queued for it: by default 12. The same number bounds how
    /// often one URL is deferred for reasons that are not its own.
    pub max_throttles: NonZeroU32,
    /// The maximum jitter that is added to a wait, in percent of the wait: by default 25. Each URL and attempt has its own jitter, so that requests
    /// that failed together are not repeated together. A wait that the server names has none. Waits may exceed `max_retry_wait` by it.
    #[serde(alias = "jitter_percent")]
    pub retry_jitter: u8,
}

impl Default for RetryPolicy {
    /// Returns the default policy:
    ///
    /// - three attempts per page, 1 s and 2 s apart; a wait is never longer than 5 minutes;
    /// - eight attempts per robots.txt, which take two minutes;
    /// - an origin may be away for 5 minutes, or 30 s if it never answered;
    /// - after 12 throttling answers in a row the origin is given up: with rests of 5 s, 10 s, 20 s and so on, half an hour;
    /// - jitter makes waits up to a quarter longer.
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::MIN.saturating_add(2),
            max_robots_attempts: NonZeroU32::MIN.saturating_add(7),
            retry_wait: Duration::from_secs(1),
            max_retry_wait: Duration::from_secs(300),
            max_host_downtime: Duration::from_secs(300),
            max_first_downtime: Duration::from_secs(30),
            longest_probe_wait: Duration::from_secs(60),
            throttle_wait: Duration::from_secs(5),
            max_throttles: NonZeroU32::MIN.saturating_add(11),
            retry_jitter: 25,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after a number of failures in a row: the first wait, doubled by each failure after the first.
    pub fn wait_after(&self, failures: u32) -> Duration {
        self.doubled(self.retry_wait, failures)
    }

    /// Returns how long a host rests after a number of throttling answers in a row. `after` is the `Retry-After` of the last one.
    /// If the times that a host names are repeatedly too short, the rest grows as for a failure.
    pub fn rest_after(&self, throttles: u32, after: Option<Duration>) -> Duration {
        match after {
            None => self.doubled(self.throttle_wait, throttles),
            Some(after) => after.max(self.wait_after(throttles)).min(self.max_retry_wait),
        }
    }

    fn doubled(&self, first: Duration, times: u32) -> Duration {
        let factor = 2_u32.saturating_pow(times.saturating_sub(1).min(31));
        first.saturating_mul(factor).min(self.max_retry_wait)
    }
}

/// Why a frontier cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierConfigError {
    /// The seen-set cannot be built.
    #[error("the seen-set cannot be built: {0}")]
    SeenSet(#[from] sieve::ConfigError),
    /// The bound of the memory is too small.
    #[error(
        "{most} bytes of memory are too few: at least {least} are needed, for the seen-set, the store and some hosts"
    )]
    TooLittleMemory {
        /// The bound.
        most: u64,
        /// The least bound for this configuration.
        least: u64,
    },
    /// The scope cannot be used.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A pattern of [`hosts`](FrontierConfig::hosts) names none.
    #[error(transparent)]
    Hosts(#[from] NoHosts),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let waits = [1, 2, 3, 9, 10, 40, u32::MAX].map(|failures| policy.wait_after(failures).as_secs());
        assert_eq!(waits, [1, 2, 4, 256, 300, 300, 300]);
    }

    #[test]
    fn a_host_that_throttles_again_rests_longer_than_its_retry_after() {
        let policy = RetryPolicy::default();
        let rests = |after| [1, 2, 3, 7, 40].map(|throttles| policy.rest_after(throttles, after).as_secs());
        assert_eq!(rests(None), [5, 10, 20, 300, 300]);
        assert_eq!(rests(Some(Duration::ZERO)), [1, 2, 4, 64, 300]);
        assert_eq!(rests(Some(Duration::from_secs(100))), [100, 100, 100, 100, 300]);
        assert_eq!(rests(Some(Duration::MAX)), [300; 5]);
    }
}
