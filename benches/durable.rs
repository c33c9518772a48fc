//! The store of a durable frontier: what each commit costs in time, memory and disk.
//!
//! `cargo bench -p frontier --features durable --bench durable`; as a test (`cargo test`) it runs once with small sizes. Arguments: a
//! shape (`zipf`, `tens` or `one`) and a number of URLs, as in `-- zipf 5000000`.
//!
//! Pages are leased and settled in batches of 64, each with five new links, until a fifth of the URLs is settled. Then all that waits is
//! settled, without links. Each batch is one commit. In between, the frontier is dropped without notice and opened again.

use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontier::{
    Canonicalizer, Frontier, FrontierConfig, Lease, Leasing, Link, Outcome, Reach, RobotsRules, ScopeConfig,
    Settlement, Task, Time,
};

const BATCH: usize = 64;
const LINKS_OF_PAGE: u64 = 5;
const HOSTS: u64 = 60_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How URLs are spread over hosts.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// 60 000 hosts; the n-th has a share in proportion to 1/n.
    Zipf,
    /// Ten URLs per host.
    Tens,
    One,
}

fn main() -> Result<()> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let shape = words.iter().find_map(|word| shape_of(word));
    let urls = words.iter().find_map(|word| word.parse().ok());
    let shapes = match shape {
        Some(shape) => vec![(shape, urls.unwrap_or(1_000_000))],
        None if is_bench => vec![
            (Shape::Zipf, 5_000_000),
            (Shape::Tens, 3_000_000),
            (Shape::One, 3_000_000),
        ],
        None => vec![(Shape::Zipf, 20_000), (Shape::Tens, 5_000), (Shape::One, 5_000)],
    };
    println!(
        "{:<6} {:>10} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "shape",
        "URLs",
        "new/s",
        "settled/s",
        "us/new",
        "us/sett",
        "p99 ms",
        "max ms",
        "B/waiting",
        "open s",
        "RSS MiB"
    );
    for (shape, urls) in shapes {
        let dir = std::env::temp_dir().join(format!("frontier-bench-{}", std::process::id()));
        let done = run(shape, urls, &dir);
        std::fs::remove_dir_all(&dir)?;
        done?;
    }
    Ok(())
}

fn shape_of(word: &str) -> Option<Shape> {
    match word {
        "zipf" => Some(Shape::Zipf),
        "tens" => Some(Shape::Tens),
        "one" => Some(Shape::One),
        _ => None,
    }
}

/// No robots.txt is asked for, so nothing is ever parsed.
fn no_rules(_text: &[u8]) -> Arc<dyn RobotsRules> {
    #[derive(Debug)]
    struct Nothing;
    impl RobotsRules for Nothing {
        fn allows(&self, _path: &str) -> bool {
            true
        }
    }
    Arc::new(Nothing)
}

fn open(dir: &Path, urls: u64, now: Time) -> Result<Frontier> {
    let config = FrontierConfig {
        capacity: urls,
        delay: Duration::ZERO,
        per_host: NonZeroU32::new(BATCH as u32).unwrap_or(NonZeroU32::MIN),
        ask_robots: false,
        max_queued: u64::MAX,
        max_hosts: 100_000_000,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        ..FrontierConfig::default()
    };
    Ok(Frontier::open(dir, config, now, Arc::new(no_rules))?.frontier)
}

/// Makes links to URLs that were never offered.
struct Urls {
    shape: Shape,
    canonicalizer: Canonicalizer,
    made: u64,
    random: u64,
    hosts: f64,
}

impl Urls {
    fn next(&mut self) -> Result<String> {
        let n = self.made;
        self.made += 1;
        // SplitMix64 (G. Steele et al., OOPSLA 2014).
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        let uniform = mixed as f64 / u64::MAX as f64;
        let host = match self.shape {
            // The inverse of the distribution function ln(x)/ln(n).
            Shape::Zipf => self.hosts.powf(uniform) as u64,
            Shape::Tens => n / 10,
            Shape::One => 0,
        };
        Ok(format!(
            "http://host-{host}.example/section-{}/chapter-{}/page-{n}.html",
            n % 97,
            n % 1009
        ))
    }

    fn links(&mut self, lease: &Lease) -> Result<Vec<Link>> {
        let referrer: Arc<str> = lease.entry.url.as_ref().into();
        let mut links = Vec::new();
        for _ in 0..LINKS_OF_PAGE {
            let url = self.next()?;
            let url = self.canonicalizer.parse(&url)?;
            links.push(Link::found(url, 1, Arc::clone(&referrer)));
        }
        Ok(links)
    }
}

/// The time inside of the frontier, of both its phases.
#[derive(Default)]
struct Clock {
    elapsed: Duration,
    cpu: f64,
    commits: Vec<Duration>,
}

impl Clock {
    fn batch(&mut self, frontier: &mut Frontier, settlements: &[Settlement], now: Time) -> Result<Option<Vec<Lease>>> {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        if !settlements.is_empty() {
            frontier.settle(settlements, now)?;
        }
        let leased = match frontier.lease(now, BATCH)? {
            Leasing::Ready(leases) => Some(leases),
            _ => None,
        };
        let commit = Instant::now();
        frontier.persist(b"", now)?;
        self.commits.push(commit.elapsed());
        self.elapsed += start.elapsed();
        self.cpu += cpu_seconds() - cpu;
        Ok(leased)
    }

    fn quantile(&mut self, share: f64) -> f64 {
        self.commits.sort_unstable();
        let at = ((self.commits.len() - 1) as f64 * share) as usize;
        self.commits[at].as_secs_f64() * 1_000.0
    }
}

fn settle(leases: &[Lease], urls: Option<&mut Urls>) -> Result<Vec<Settlement>> {
    let mut urls = urls;
    let mut settlements = Vec::with_capacity(leases.len());
    for lease in leases {
        let Task::Page(page) = lease.task() else { continue };
        let links = match &mut urls {
            Some(urls) => urls.links(lease)?,
            None => Vec::new(),
        };
        settlements.push(page.settle(Outcome::Done).with_links(links));
    }
    Ok(settlements)
}

fn run(shape: Shape, most: u64, dir: &Path) -> Result<()> {
    let start = Instant::now();
    let now = || Time::from_millis(1_700_000_000_000 + u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    let mut urls = Urls {
        shape,
        canonicalizer: Canonicalizer::default(),
        made: 0,
        random: 7,
        hosts: HOSTS as f64,
    };
    let mut frontier = open(dir, most, now())?;
    for _ in 0..BATCH {
        let seed = urls.next()?;
        let seed = urls.canonicalizer.parse(&seed)?;
        frontier.add_seed(&seed, now())?;
    }
    let mut growing = Clock::default();
    let mut leases = Vec::new();
    while urls.made < most {
        let settlements = settle(&leases, Some(&mut urls))?;
        leases = growing
            .batch(&mut frontier, &settlements, now())?
            .ok_or("nothing is ready")?;
    }
    let waiting = frontier.report().queued;
    let bytes = directory_bytes(dir)?;
    drop(frontier);
    let opening = Instant::now();
    let mut frontier = open(dir, most, now())?;
    let opening = opening.elapsed();
    let mut draining = Clock::default();
    let mut settled = 0_u64;
    leases = draining.batch(&mut frontier, &[], now())?.unwrap_or_default();
    while !leases.is_empty() {
        let settlements = settle(&leases, None)?;
        settled += settlements.len() as u64;
        leases = draining.batch(&mut frontier, &settlements, now())?.unwrap_or_default();
    }
    let cpu = |clock: &Clock, count: u64| clock.cpu * 1e6 / count as f64;
    let (cpu_new, cpu_settled) = (cpu(&growing, urls.made), cpu(&draining, settled));
    println!(
        "{:<6} {:>10} {:>9.0} {:>9.0} {:>8.2} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>8.2} {:>8.0}",
        format!("{shape:?}").to_lowercase(),
        urls.made,
        urls.made as f64 / growing.elapsed.as_secs_f64(),
        settled as f64 / draining.elapsed.as_secs_f64(),
        cpu_new,
        cpu_settled,
        growing.quantile(0.99).max(draining.quantile(0.99)),
        growing.quantile(1.0).max(draining.quantile(1.0)),
        bytes as f64 / waiting as f64,
        opening.as_secs_f64(),
        peak_rss_mib().unwrap_or(f64::NAN),
    );
    Ok(())
}

fn directory_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Returns the processor time of all threads of the process.
fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::now().as_duration().as_secs_f64()
}

fn peak_rss_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
