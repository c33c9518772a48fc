//! The memory of a durable frontier stays bounded, however many hosts it has.

#![cfg(feature = "durable")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frontier::{
    Canonicalizer, Frontier, FrontierConfig, FrontierConfigError, Leasing, Link, OpenError, Outcome, PolitenessConfig,
    Reach, RobotsRules, ScopeConfig, SeenSetConfig, Time,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const HOSTS: usize = 30_000;
const PAGES: usize = 6;
const MIB: usize = 1 << 20;
/// The hosts would take more than 50 MiB in memory, and have about 10 MiB.
const BOUND: usize = 40 * MIB;
/// The share of the store, which SQLite allocates by itself.
const OF_STORE: usize = 24 * MIB;
/// What comes on top: what is written or read at once, most of it when the calls of a journal are made again.
const BESIDE: usize = 20 * MIB;
const MOST: usize = BOUND - OF_STORE + BESIDE;
const START: Time = Time::from_millis(1_700_000_000_000);

fn config() -> FrontierConfig {
    FrontierConfig {
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        max_memory: Some(BOUND as u64),
        seen_set: SeenSetConfig {
            capacity: 200_000,
            hash: sieve::Hashing::Murmur3 { seed: 7 },
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            delay: Duration::ZERO,
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        ..FrontierConfig::default()
    }
}

fn no_rules(_text: &[u8]) -> Arc<dyn RobotsRules> {
    unreachable!("no robots.txt is asked for")
}

fn open(dir: &Path, config: FrontierConfig) -> Result<Frontier, OpenError> {
    Ok(Frontier::open(dir, config, START, Arc::new(no_rules))?.frontier)
}

struct Dir(std::path::PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("frontier-{name}-{}", std::process::id())))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Long paths that share nothing: a host takes more than a kilobyte.
fn url_of(page: usize) -> String {
    let path = format!("{:08x}", page.wrapping_mul(0x9E37_79B1) as u32).repeat(24);
    format!("http://host-{}.example/{path}/{}", page / PAGES, page % PAGES)
}

fn stays_bounded(what: &str) {
    let peak = ALLOCATED.peak_usage();
    assert!(peak < MOST, "{what}: {} MiB", peak / MIB);
    ALLOCATED.reset_peak_usage();
}

// One test: others would count at the same time.
#[test]
fn hosts_beyond_the_bound_of_the_memory_lie_on_disk_and_none_of_their_pages_is_lost() {
    let dir = Dir::new("bounded");
    let mut too_little = config();
    too_little.max_memory = Some(20 << 20);
    let refused = open(&dir.0, too_little).unwrap_err();
    let least = config().least_memory().unwrap();
    assert!(
        matches!(refused, OpenError::Config(FrontierConfigError::TooLittleMemory { least: said, .. }) if said == least),
        "{refused}"
    );
    assert!(refused.to_string().contains(&least.to_string()), "{refused}");

    ALLOCATED.reset_peak_usage();
    let mut frontier = open(&dir.0, config()).unwrap();
    let urls = Canonicalizer::default();
    let link = |page| Link::found(urls.parse(&url_of(page)).unwrap(), 1, "http://a.example/".into());
    for first in (0..HOSTS * PAGES).step_by(300) {
        let links: Vec<_> = (first..first + 300).map(link).collect();
        frontier.offer(&links, START).unwrap();
        frontier.persist(b"", START).unwrap();
    }
    stays_bounded("offering");
    let memory = frontier.report().memory.unwrap();
    assert_eq!(memory.bound, Some(BOUND as u64));
    assert!(memory.total() <= BOUND as u64, "{memory:?}");
    assert!(memory.hosts_on_disk > HOSTS as u64 / 3, "{memory:?}");
    let queued = frontier.report().queued;

    drop(frontier);
    let mut frontier = open(&dir.0, config()).unwrap();
    stays_bounded("opening");
    frontier.host_reports(Time::EPOCH).for_each(drop);
    stays_bounded("looking at all hosts");

    let mut fetched = BTreeSet::new();
    while let Leasing::Ready(leases) = frontier.lease(START, 500).unwrap() {
        let settle = |lease: &frontier::Lease| lease.settle(Outcome::Done);
        let settlements: Vec<_> = leases.iter().map(settle).collect();
        frontier.settle(&settlements, START).unwrap();
        frontier.persist(b"", START).unwrap();
        fetched.extend(leases.iter().map(|lease| hash_of(&lease.entry.url)));
    }
    assert_eq!(fetched.len() as u64, queued);
    assert_eq!(frontier.report().queued, 0);
    // The set of hashes is the test's own.
    let peak = ALLOCATED.peak_usage() - fetched.len() * 24;
    assert!(peak < MOST, "leasing: {} MiB", peak / MIB);
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}
