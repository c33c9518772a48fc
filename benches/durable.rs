//! The store of a durable frontier: what each commit costs in time, memory and disk.
//!
//! `cargo bench -p crawl-frontier --features durable --bench durable`; as a test (`cargo test`) it runs once with small sizes. Arguments: a
//! shape (`zipf`, `tens`, `one`, `offers` or `again`), a number of URLs, and a bound of the memory in MiB, as in `-- zipf 5000000 512`. The seen-set is of fixed
//! size, or as one of these words says: `growing` from a million URLs, `exact`.
//!
//! Pages are leased and settled in batches of 64, each with five new links, until a fifth of the URLs is settled. Then all that waits is
//! settled, without links. Each batch is one commit. In between, the frontier is dropped without notice and opened again, in another process; it is an
//! error if not every page that waited or was in flight is settled then.
//!
//! `offers` offers links in batches of 64, and no page is settled meanwhile. One in ten is new, and the others are among the last 100 000 new ones, which
//! take some 20 MiB of the memory that is shown. Then a million pages are settled.
//!
//! `again` fetches each page ten times, a day apart, and each time it has another version. Each line is of one time.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontier::{
    Canonicalizer, Directory, Frontier, FrontierConfig, Lease, Leasing, LimitConfig, Link, Outcome, PolitenessConfig,
    Reach, Refetch, ScopeConfig, SeenSetConfig, Settlement, Time, Validators,
};

const BATCH: usize = 64;
const LINKS_OF_PAGE: u64 = 5;
/// Of the links that are only offered, one in this many is new.
const NEW_ONE_OF: u64 = 10;
/// The pages that are settled after the offers.
const SETTLED_AFTER_OFFERS: u64 = 1_000_000;
/// The links that may be offered again.
const RECENT: usize = 100_000;
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
    /// Hosts as with `Zipf`, and short URLs. Nine offers in ten are of URLs that were offered before, among the last [`RECENT`] new ones.
    Offers,
    /// One host, whose pages are fetched ten times.
    Again,
}

/// The work of a process that only drains a directory: its path, the name of the shape, the number of URLs, and how many are left.
const DRAIN: &str = "FRONTIER_BENCH_DRAIN";

fn main() -> Result<()> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let shape = words.iter().find_map(|word| shape_of(word));
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let (urls, memory) = (numbers.next(), numbers.next());
    if let Ok(work) = std::env::var(DRAIN) {
        return drain(&work, memory);
    }
    let shapes = match shape {
        Some(shape) => vec![(shape, urls.unwrap_or(1_000_000))],
        None if is_bench => vec![
            (Shape::Zipf, 5_000_000),
            (Shape::Tens, 3_000_000),
            (Shape::One, 3_000_000),
        ],
        None => vec![
            (Shape::Zipf, 20_000),
            (Shape::Tens, 5_000),
            (Shape::One, 5_000),
            (Shape::Offers, 50_000),
            (Shape::Again, 5_000),
        ],
    };
    println!(
        "{:<6} {:>10} {:>9} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "shape",
        "offers",
        "new/s",
        "end",
        "settled/s",
        "us/new",
        "us/sett",
        "p99 ms",
        "max ms",
        "B/waiting",
        "open s",
        "B/page",
        "find ms",
        "list ms",
        "RSS MiB"
    );
    for (shape, urls) in shapes {
        let dir = std::env::temp_dir().join(format!("frontier-bench-{}", std::process::id()));
        let done = match shape {
            Shape::Again => again(urls, memory, &dir),
            _ => run(shape, urls, memory, &dir),
        };
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
        "offers" => Some(Shape::Offers),
        "again" => Some(Shape::Again),
        _ => None,
    }
}

fn open(dir: &Path, shape: Shape, urls: u64, memory_mib: Option<u64>, now: Time) -> Result<Frontier> {
    let config = FrontierConfig {
        max_memory: memory_mib.map(|mib| mib << 20),
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        seen_set: SeenSetConfig {
            capacity: match shape {
                Shape::Offers => urls / NEW_ONE_OF,
                _ => urls,
            },
            on_saturation: sieve::OnSaturation::Warn,
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            delay: Duration::ZERO,
            per_host: NonZeroU32::new(BATCH as u32).unwrap_or(NonZeroU32::MIN),
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        limits: LimitConfig {
            max_queued: u64::MAX,
            max_hosts: 100_000_000,
            ..LimitConfig::default()
        },
        ..FrontierConfig::default()
    };
    let config = with_seen_set(config);
    Ok(Frontier::open(
        dir,
        config,
        now,
        Arc::new(|_: &[u8]| unreachable!("no robots.txt is asked for")),
    )?
    .frontier)
}

/// Returns the configuration with the seen-set that the arguments name.
fn with_seen_set(mut config: FrontierConfig) -> FrontierConfig {
    let is_given = |word| std::env::args().any(|argument| argument == word);
    if is_given("growing") {
        config.seen_set.capacity = 1_000_000;
        config.seen_set.on_saturation = sieve::OnSaturation::Grow;
    }
    config.seen_set.exact = is_given("exact");
    config
}

/// Makes URLs by their number, and links to those that were never offered.
struct Urls {
    shape: Shape,
    canonicalizer: Canonicalizer,
    made: u64,
    hosts: f64,
    /// Links that are offered again: to parse their URLs once more would take longer than all that is measured.
    recent: Vec<Link>,
}

/// The n-th number of SplitMix64 (G. Steele et al., OOPSLA 2014).
fn random(n: u64) -> u64 {
    let mut mixed = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(7);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Urls {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            canonicalizer: Canonicalizer::default(),
            made: 0,
            hosts: HOSTS as f64,
            recent: Vec::new(),
        }
    }

    fn url(&self, n: u64) -> String {
        let host = match self.shape {
            // The inverse of the distribution function ln(x)/ln(n).
            Shape::Zipf | Shape::Offers => self.hosts.powf(random(n) as f64 / u64::MAX as f64) as u64,
            Shape::Tens => n / 10,
            Shape::One | Shape::Again => 0,
        };
        match self.shape {
            Shape::Offers => format!("http://host-{host}.example/{n}"),
            _ => format!(
                "http://host-{host}.example/section-{}/chapter-{}/page-{n}.html",
                n % 97,
                n % 1009
            ),
        }
    }

    fn next(&mut self) -> String {
        self.made += 1;
        self.url(self.made - 1)
    }

    /// Returns the links of the n-th page that only offers: some to new URLs, most to others.
    fn offers(&mut self, first: u64) -> Result<Vec<Link>> {
        let mut links = Vec::with_capacity(BATCH);
        for n in first..first + BATCH as u64 {
            let random = random(n) as usize;
            if n % NEW_ONE_OF != 0 && !self.recent.is_empty() {
                links.push(self.recent[random % self.recent.len()].clone());
                continue;
            }
            let url = self.next();
            let link = Link::found(self.canonicalizer.parse(&url)?, 1, "http://host-0.example/".into());
            if self.recent.len() < RECENT {
                self.recent.push(link.clone());
            } else {
                self.recent[self.made as usize % RECENT] = link.clone();
            }
            links.push(link);
        }
        Ok(links)
    }

    fn links(&mut self, lease: &Lease) -> Result<Vec<Link>> {
        let referrer: Arc<str> = lease.entry.url.as_ref().into();
        let mut links = Vec::new();
        for _ in 0..LINKS_OF_PAGE {
            let url = self.next();
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
    /// How many commits took how long, in units of 10 µs.
    commits: BTreeMap<u128, u64>,
    /// The time at each tenth of the work.
    tenths: Vec<Duration>,
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
        self.count(commit.elapsed());
        self.elapsed += start.elapsed();
        self.cpu += cpu_seconds() - cpu;
        Ok(leased)
    }

    /// Offers links, in one commit.
    fn offer(&mut self, frontier: &mut Frontier, links: &[Link], now: Time) -> Result<()> {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        frontier.offer(links, now)?;
        let commit = Instant::now();
        frontier.persist(b"", now)?;
        self.count(commit.elapsed());
        self.elapsed += start.elapsed();
        self.cpu += cpu_seconds() - cpu;
        Ok(())
    }

    fn progress(&mut self, done: u64, of: u64) {
        while done * 10 >= of * (self.tenths.len() as u64 + 1) {
            self.tenths.push(self.elapsed);
        }
    }

    /// Returns the rate in the last tenth of the work, as a share of that in the first.
    fn steadiness(&self) -> f64 {
        match *self.tenths.as_slice() {
            [first, .., before, last] => first.as_secs_f64() / (last - before).as_secs_f64(),
            _ => f64::NAN,
        }
    }

    fn count(&mut self, commit: Duration) {
        *self.commits.entry(commit.as_micros() / 10).or_default() += 1;
    }

    /// Returns the time in milliseconds that this share of the commits did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let all: u64 = self.commits.values().sum();
        let mut rest = (all as f64 * share).ceil() as u64;
        for (time, count) in &self.commits {
            rest = rest.saturating_sub(*count);
            if rest == 0 {
                return (*time + 1) as f64 / 100.0;
            }
        }
        f64::NAN
    }
}

/// Settles all. The last of a batch has a final answer that is no page.
fn settle(leases: &[Lease], urls: Option<&mut Urls>) -> Result<Vec<Settlement>> {
    let mut urls = urls;
    let mut settlements = Vec::with_capacity(leases.len());
    for lease in leases {
        let links = match &mut urls {
            Some(urls) => urls.links(lease)?,
            None => Vec::new(),
        };
        let outcome = if settlements.len() == BATCH - 1 {
            Outcome::Rejected
        } else {
            Outcome::Done
        };
        settlements.push(lease.settle(outcome).with_links(links));
    }
    Ok(settlements)
}

fn run(shape: Shape, most: u64, memory: Option<u64>, dir: &Path) -> Result<()> {
    let start = Instant::now();
    let now = || Time::from_millis(1_700_000_000_000 + u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    let mut urls = Urls::new(shape);
    let mut frontier = open(dir, shape, most, memory, now())?;
    for _ in 0..BATCH {
        let seed = urls.next();
        let seed = urls.canonicalizer.parse(&seed)?;
        frontier.add_seed(&seed, now())?;
    }
    let mut growing = Clock::default();
    let mut leases = Vec::new();
    let mut offered = BATCH as u64;
    while offered < most {
        if let Shape::Offers = shape {
            let links = urls.offers(offered)?;
            growing.offer(&mut frontier, &links, now())?;
            offered += BATCH as u64;
        } else {
            let settlements = settle(&leases, Some(&mut urls))?;
            leases = growing
                .batch(&mut frontier, &settlements, now())?
                .ok_or("nothing is ready")?;
            offered = urls.made;
        }
        growing.progress(offered, most);
    }
    let waiting = frontier.report().queued;
    let in_flight = leases.len() as u64;
    let bytes = directory_bytes(dir)?;
    let urls_left = waiting + in_flight;
    drop((frontier, leases, urls));
    let name = format!("{shape:?}").to_lowercase();
    let work = format!("{}\n{name}\n{most}\n{urls_left}", dir.display());
    let drained = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(DRAIN, work)
        .stderr(Stdio::inherit())
        .output()?;
    let drained = String::from_utf8(drained.stdout)?;
    let drained: std::result::Result<Vec<f64>, _> = drained.split_whitespace().map(str::parse).collect();
    let Ok([rate, cpu, p99, longest, opening, of_page, finding, listing, peak]) = <[f64; 9]>::try_from(drained?) else {
        return Err("the process that settles what waits has failed".into());
    };
    println!(
        "{:<6} {:>10} {:>9.0} {:>6.2} {:>9.0} {:>8.2} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>8.2} {:>8.0} {:>8.1} {:>8.1} {:>8.0}",
        name,
        offered,
        offered as f64 / growing.elapsed.as_secs_f64(),
        growing.steadiness(),
        rate,
        growing.cpu * 1e6 / offered as f64,
        cpu,
        growing.quantile(0.99).max(p99),
        growing.quantile(1.0).max(longest),
        bytes as f64 / waiting as f64,
        opening,
        of_page,
        finding,
        listing,
        peak_rss_mib().unwrap_or(f64::NAN).max(peak),
    );
    Ok(())
}

/// Opens a directory, and settles what waits there, or as many as the shape says. Prints the settled pages per second, the processor time of
/// each in µs, the time of a commit in ms, of 99 in 100 and the longest, the time to open in seconds, the bytes on disk per page, the time to find
/// one and the first that failed in ms, and the peak of the memory in MiB.
fn drain(work: &str, memory: Option<u64>) -> Result<()> {
    let mut lines = work.lines();
    let mut next = || lines.next().ok_or("a line is missing");
    let (dir, shape, most, left) = (next()?, next()?, next()?.parse()?, next()?.parse::<u64>()?);
    let shape = shape_of(shape).ok_or("no such shape")?;
    let start = Instant::now();
    // The calls of the process before are earlier.
    let first = 1_700_000_000_000 + u64::try_from(Duration::from_secs(1_000_000).as_millis())?;
    let now = || Time::from_millis(first + u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    let mut frontier = open(Path::new(dir), shape, most, memory, now())?;
    let opening = start.elapsed();
    let mut draining = Clock::default();
    let mut settled = 0_u64;
    let mut leases = draining.batch(&mut frontier, &[], now())?.unwrap_or_default();
    let enough = match shape {
        Shape::Offers => SETTLED_AFTER_OFFERS,
        _ => u64::MAX,
    };
    while !leases.is_empty() && settled < enough {
        let settlements = settle(&leases, None)?;
        settled += settlements.len() as u64;
        leases = draining.batch(&mut frontier, &settlements, now())?.unwrap_or_default();
    }
    if enough == u64::MAX && settled < left {
        return Err(format!("{left} pages waited or were in flight, and {settled} were settled").into());
    }
    let counts = frontier.report().pages;
    let pages = counts.done + counts.rejected;
    frontier.checkpoint(b"", now())?;
    let peak = peak_rss_mib().unwrap_or(f64::NAN);
    drop(frontier);
    println!(
        "{} {} {} {} {} {} {} {} {}",
        settled as f64 / draining.elapsed.as_secs_f64(),
        draining.cpu * 1e6 / settled as f64,
        draining.quantile(0.99),
        draining.quantile(1.0),
        opening.as_secs_f64(),
        directory_bytes(Path::new(dir))? as f64 / pages as f64,
        longest_find(Path::new(dir), &Urls::new(shape), pages)?,
        first_failed(Path::new(dir))?,
        peak,
    );
    Ok(())
}

/// Returns the longest time in milliseconds to find one of some pages, or none.
fn longest_find(dir: &Path, urls: &Urls, pages: u64) -> Result<f64> {
    let mut longest = 0.0_f64;
    for n in [0, pages / 2, pages - 1, u64::MAX] {
        let (key, start) = (urls.url(n), Instant::now());
        let found = Directory::new(dir).find_page(&key)?;
        longest = longest.max(start.elapsed().as_secs_f64() * 1e3);
        if found.is_some_and(|page| page.key() != key) {
            return Err("another page was found".into());
        }
    }
    Ok(longest)
}

/// Returns the time in milliseconds until the first page that failed is read.
fn first_failed(dir: &Path) -> Result<f64> {
    let (start, mut first) = (Instant::now(), None);
    Directory::new(dir).visit_pages(true, &mut |_| {
        first.get_or_insert_with(|| start.elapsed());
    })?;
    Ok(first.map_or(f64::NAN, |first| first.as_secs_f64() * 1e3))
}

/// Fetches pages again and again. Prints the fetches per second, the longest commit in ms and the bytes on disk per page of each time.
fn again(pages: u64, memory: Option<u64>, dir: &Path) -> Result<()> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let start = Instant::now();
    let mut day = 0;
    let now = |day: u32| Time::from_millis(1_700_000_000_000) + DAY * day + start.elapsed();
    let mut urls = Urls::new(Shape::Again);
    let mut frontier = open(dir, Shape::Again, pages, memory, now(0))?;
    while urls.made < pages {
        let links: Result<Vec<_>> = (0..BATCH)
            .map(|_| {
                let url = urls.next();
                Ok(Link::found(
                    urls.canonicalizer.parse(&url)?,
                    1,
                    "http://host-0.example/".into(),
                ))
            })
            .collect();
        frontier.offer(&links?, now(0))?;
        frontier.persist(b"", now(0))?;
    }
    for time in 0..10 {
        let (mut clock, mut settled, mut leases) = (Clock::default(), 0, Vec::new());
        loop {
            let settlements: Vec<_> = leases
                .iter()
                .map(|lease: &Lease| {
                    let etag = Some(format!("\"{:016x}\"", random(lease.id.as_u64())));
                    let content = u128::from(random(lease.id.as_u64())) << 64;
                    let validators = Validators {
                        etag,
                        last_modified: None,
                    };
                    let settlement = lease.settle(Outcome::Done).with_status(200);
                    settlement.with_version(validators, Some(content.into()))
                })
                .collect();
            settled += settlements.len() as u64;
            let start = Instant::now();
            if time > 0 && leases.is_empty() {
                frontier.queue_again(Refetch::OlderThan(DAY / 2), 1024, now(day))?;
            }
            clock.elapsed += start.elapsed();
            leases = clock.batch(&mut frontier, &settlements, now(day))?.unwrap_or_default();
            // The seen-set takes some for seen.
            if leases.is_empty() && (time == 0 || settled == frontier.report().pages.done) {
                break;
            }
        }
        println!(
            "again {time}: {:.0} fetches/s, commits p99 {:.2} ms, max {:.1} ms, {:.0} bytes per page",
            settled as f64 / clock.elapsed.as_secs_f64(),
            clock.quantile(0.99),
            clock.quantile(1.0),
            directory_bytes(dir)? as f64 / settled as f64
        );
        day += 1;
    }
    frontier.checkpoint(b"", now(day))?;
    drop(frontier);
    println!("a page is found in {:.1} ms", longest_find(dir, &urls, urls.made)?);
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
