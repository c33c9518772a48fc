//! What a frontier is built from, with the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scope::{ScopeConfig, ScopeError};

/// How many distinct URLs the seen-set is meant for, unless set.
pub const DEFAULT_CAPACITY: u64 = 1_000_000;
/// How many URLs may wait in memory, unless set.
pub const DEFAULT_MAX_QUEUED: u64 = 10_000_000;
/// How many hosts are remembered, unless set.
pub const DEFAULT_MAX_HOSTS: usize = 1_000_000;
/// The time between the end of one request to a host and the start of the next, unless set.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// How many sitemaps are asked for in all, unless set.
pub const DEFAULT_MAX_SITEMAPS: usize = 10_000;

/// Different queries of one path that are followed, unless set. Wikis and forums have all their pages under one path,
/// so it is high.
pub const DEFAULT_MAX_QUERIES_PER_PATH: u32 = 10_000;
/// Hosts of one registrable domain that are followed, unless set. Wikipedia has some 350.
pub const DEFAULT_MAX_HOSTS_PER_SITE: u32 = 1_000;
/// Near-duplicates of one page that are followed, unless set.
///
/// Honest sites have some too: among 47 000 pages of documentation by Debian the largest clusters have 257 members on a
/// site and 213 under a prefix (the unstable features of Rust, which share a sidebar), in OpenJDK 16 and 9, with
/// Apache's translations 10 and 1, with Python and PostgreSQL none.
pub const DEFAULT_MAX_NEAR_DUPLICATES: u32 = 500;

/// Origins of one host, its schemes and ports: URLs of further ones are refused, but for seeds.
pub const MAX_ORIGINS_PER_HOST: usize = 256;

/// Near-duplicates of one page that are fetched in all, unless set.
pub const DEFAULT_MAX_NEAR_DUPLICATES_IN_ALL: u32 = 5_000;
/// Of so many pages one is compared with others, unless set.
pub const DEFAULT_COMPARE_ONE_OF: u32 = 32;
/// The latest pages that a page is compared with, unless set.
pub const DEFAULT_MAX_FINGERPRINTS: usize = 250_000;
/// The longest `Crawl-delay` that is obeyed, unless set; a longer one is cut to it.
pub const DEFAULT_MAX_CRAWL_DELAY: Duration = Duration::from_secs(60);

/// What a [`Frontier`](crate::Frontier) is built from.
///
/// New fields may come: fill in what you set, and the rest by `..FrontierConfig::default()`.
///
/// Serialized, it contains the secret of its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontierConfig {
    /// Distinct URLs the seen-set is meant for.
    pub capacity: u64,
    /// The seen-set's false-positive rate at capacity: the share of new URLs that are wrongly dropped.
    pub false_positive_rate: f64,
    /// The seen-set's hash. The default draws a secret at random, so that no site can make up URLs that hide a page; set a seed for
    /// runs that must be equal.
    pub hashing: sieve::Hashing,
    /// What happens once the estimate of the seen-set exceeds its capacity.
    pub on_saturation: sieve::OnSaturation,
    /// What may be crawled.
    pub scope: ScopeConfig,
    /// Whether the seen-set is exact: no new URL is ever dropped, for the memory of each key and some 32 bytes.
    pub exact: bool,
    /// Requests that may be in flight to one host at a time.
    pub per_host: NonZeroU32,
    /// Whether requests count by IP address as well: then hosts of one address together have no more requests in flight than one
    /// host may have, and keep the `delay` between them. Leases for addresses
    /// ([`Purpose::Address`](crate::entry::Purpose::Address)) are handed out then.
    pub per_address: bool,
    /// The least time between the end of one request to a host and the start of the next. With a `per_host` above one,
    /// starts keep the same distance.
    pub delay: Duration,
    /// The longest `Crawl-delay` of a robots.txt that is obeyed; longer ones count as this. With zero, none is.
    pub max_crawl_delay: Duration,
    /// URLs that may wait at a time; further ones are refused.
    pub max_queued: u64,
    /// Hosts that are remembered at a time; URLs of further ones are refused.
    pub max_hosts: usize,
    /// Pages to hand out in all. What is queued beyond stays queued.
    pub max_pages: Option<u64>,
    /// Pages of one host. What robots.txt forbids and what was redirected does not count; what waits when they are spent is dropped
    /// ([`Leasing::Dropped`](crate::Leasing::Dropped)). Ten times as many and a thousand may wait; further ones, and those met
    /// later, are refused.
    pub max_pages_per_host: Option<u64>,
    /// Different queries of one path; further ones are refused. `None` for no limit.
    pub max_queries_per_path: Option<NonZeroU32>,
    /// Hosts under one registrable domain; URLs of further ones are refused. `None` for no limit. A host that was
    /// forgotten in the meantime, which takes more than ten thousand hosts and a day, counts anew.
    pub max_hosts_per_site: Option<NonZeroU32>,
    /// Near-duplicates of one page that are fetched under one [path prefix](crate::path_prefix), or followed on one site, before what
    /// else is there waits behind everything else of the crawl. `None` for no limit.
    pub max_near_duplicates: Option<NonZeroU32>,
    /// Near-duplicates of one page that are fetched under one [path prefix](crate::path_prefix), or followed on one site, in all; what
    /// comes beyond is refused. `None` for no limit: then a site that makes up pages has no end.
    pub max_near_duplicates_in_all: Option<NonZeroU32>,
    /// Of so many pages of a site one is compared with others, until the site seems to have as many near-duplicates as a limit
    /// allows; then all are. 1 to compare all from the start.
    pub compare_one_of: NonZeroU32,
    /// The latest pages that a page is compared with, each some 200 bytes and its URL.
    pub max_fingerprints: usize,
    /// When to try again.
    pub retries: RetryPolicy,
    /// Whether the robots.txt of an origin is handed out before its pages.
    pub ask_robots: bool,
    /// Sitemaps to ask for in all; further ones are refused. Their URLs are remembered, so that none is asked for
    /// twice.
    pub max_sitemaps: usize,
}

impl Default for FrontierConfig {
    fn default() -> Self {
        Self {
            capacity: DEFAULT_CAPACITY,
            false_positive_rate: sieve::DEFAULT_FALSE_POSITIVE_RATE,
            hashing: sieve::Hashing::random(),
            exact: false,
            on_saturation: sieve::OnSaturation::default(),
            scope: ScopeConfig::default(),
            per_host: NonZeroU32::MIN,
            per_address: false,
            delay: DEFAULT_DELAY,
            max_crawl_delay: DEFAULT_MAX_CRAWL_DELAY,
            max_queued: DEFAULT_MAX_QUEUED,
            max_hosts: DEFAULT_MAX_HOSTS,
            max_pages: None,
            max_pages_per_host: None,
            max_queries_per_path: NonZeroU32::new(DEFAULT_MAX_QUERIES_PER_PATH),
            max_hosts_per_site: NonZeroU32::new(DEFAULT_MAX_HOSTS_PER_SITE),
            max_near_duplicates: NonZeroU32::new(DEFAULT_MAX_NEAR_DUPLICATES),
            max_near_duplicates_in_all: NonZeroU32::new(DEFAULT_MAX_NEAR_DUPLICATES_IN_ALL),
            compare_one_of: NonZeroU32::MIN.saturating_add(DEFAULT_COMPARE_ONE_OF - 1),
            max_fingerprints: DEFAULT_MAX_FINGERPRINTS,
            retries: RetryPolicy::default(),
            ask_robots: true,
            max_sitemaps: DEFAULT_MAX_SITEMAPS,
        }
    }
}

/// When to try again, and when to stop trying. See [`failure`](crate::failure) for what counts against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// How often one URL is asked for in all; times that were not its fault are not counted.
    pub max_attempts: NonZeroU32,
    /// How often a robots.txt is asked for before its origin is taken for closed; meanwhile its pages wait.
    pub max_robots_attempts: NonZeroU32,
    /// The wait before the second attempt; it doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait between two attempts; a longer one that a server asks for is cut to it.
    pub longest_wait: Duration,
    /// How long an origin that has answered in this crawl may be away before it is given up, with all that is queued for it.
    pub max_host_downtime: Duration,
    /// The same for one that has never answered.
    pub max_first_downtime: Duration,
    /// The longest wait between two requests that ask whether an origin is back. The first is [`first_wait`](Self::first_wait), and
    /// it doubles.
    pub longest_probe_wait: Duration,
    /// How long a host rests after it was throttling and did not say how long; it doubles with each further time in a row.
    pub first_throttle: Duration,
    /// After how many throttling answers in a row an origin is given up, with all that is queued for it; and after how many
    /// in all a single URL is, where others of its origin are answered. As often may a URL be asked for in vain for reasons that
    /// are not its own.
    pub max_throttles: NonZeroU32,
    /// How much is added to a wait at most, in percent of it, unless the server has named its length: another share for
    /// each URL and attempt, so that what failed together is not asked for together again. Waits may exceed `longest_wait`
    /// by it.
    pub jitter_percent: u8,
}

impl Default for RetryPolicy {
    /// Three attempts, 1 s and 2 s apart, never more than 5 minutes; eight for a robots.txt, which takes two minutes. An origin may
    /// be away for five minutes, 30 s if it never answered. After 12 throttling answers in a row it is given up: 5 s, 10 s, 20 s and
    /// so on apart, that is half an hour. Waits are up to a quarter longer, by another share for each URL.
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::MIN.saturating_add(2),
            max_robots_attempts: NonZeroU32::MIN.saturating_add(7),
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(300),
            max_host_downtime: Duration::from_secs(300),
            max_first_downtime: Duration::from_secs(30),
            longest_probe_wait: Duration::from_secs(60),
            first_throttle: Duration::from_secs(5),
            max_throttles: NonZeroU32::MIN.saturating_add(11),
            jitter_percent: 25,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after so many failures in a row: the first wait, doubled by each failure after the first.
    pub fn wait_after(&self, failures: u32) -> Duration {
        self.doubled(self.first_wait, failures)
    }

    /// Returns how long a host rests after so many throttling answers in a row, of which the last asked for a wait of
    /// `after`. A host whose own word proves too short, time after time, is given as long as one that failed.
    pub fn rest_after(&self, throttles: u32, after: Option<Duration>) -> Duration {
        match after {
            None => self.doubled(self.first_throttle, throttles),
            Some(after) => after.max(self.wait_after(throttles)).min(self.longest_wait),
        }
    }

    fn doubled(&self, first: Duration, times: u32) -> Duration {
        let factor = 2_u32.saturating_pow(times.saturating_sub(1).min(31));
        first.saturating_mul(factor).min(self.longest_wait)
    }
}

/// Why a frontier cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The seen-set cannot be built.
    #[error("the seen-set cannot be built: {0}")]
    SeenSet(#[from] sieve::ConfigError),
    /// The scope makes no sense.
    #[error(transparent)]
    Scope(#[from] ScopeError),
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
    fn a_host_that_throttles_again_rests_longer_whatever_it_says() {
        let policy = RetryPolicy::default();
        let rests = |after| [1, 2, 3, 7, 40].map(|throttles| policy.rest_after(throttles, after).as_secs());
        assert_eq!(rests(None), [5, 10, 20, 300, 300]);
        assert_eq!(rests(Some(Duration::ZERO)), [1, 2, 4, 64, 300]);
        assert_eq!(rests(Some(Duration::from_secs(100))), [100, 100, 100, 100, 300]);
        assert_eq!(rests(Some(Duration::MAX)), [300; 5]);
    }
}
