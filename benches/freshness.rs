//! How near the visits of the real frontier come to the best that is possible, in virtual time: `cargo bench --bench freshness --features durable -- [PAGES [DAYS]]`, and
//! `hosts` for the last rows alone.
//!
//! Pages change as Poisson processes with log-normal rates, on 200 hosts of unequal size. A row says which share of the optimum (Azar et al., PNAS 2018) is reached
//! in the second half of the time, by what the simulation knows of all pages: with the same pause for all pages, with intervals that are shortened and
//! lengthened as in other crawlers, and with the frontier.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frontier::{
    Canonicalizer, Class, FreshnessConfig, Frontier, FrontierConfig, Lease, Leasing, Link, Outcome, PolitenessConfig,
    Reach, Refetch, ScopeConfig, SeenSetConfig, Time, Validators,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const DAY: f64 = 86_400_000.0;
const COMMIT_EVERY: Duration = Duration::from_secs(600);
const START: Time = Time::from_millis(1_700_000_000_000);

/// Random numbers (SplitMix64, G. Steele et al., OOPSLA 2014).
struct Random(u64);

impl Random {
    /// Between 0 and 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -self.uniform().ln() / rate
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn pareto(&mut self, shape: f64) -> f64 {
        self.uniform().powf(-1.0 / shape)
    }
}

/// Pages, as the simulation knows them. Times are days.
struct World {
    rates: Vec<f64>,
    hosts: Vec<usize>,
    classes: Vec<Class>,
    weights: Vec<f64>,
}

impl World {
    fn new(pages: usize, is_pareto: bool) -> Result<Self> {
        let mut random = Random(7);
        let rates = (0..pages)
            .map(|_| ((1.0_f64 / 20.0).ln() + 2.0 * random.normal()).exp())
            .collect();
        let hosts = (0..pages).map(|_| (random.pareto(0.8) as usize - 1).min(199)).collect();
        let number = |random: &mut Random| match is_pareto {
            true => (3.0 - random.pareto(1.2).log2().floor()).max(0.0) as u8,
            false => 3,
        };
        let classes = (0..pages).map(|_| Class::try_from(number(&mut random)));
        let classes: Vec<_> = classes.collect::<std::result::Result<_, _>>()?;
        let weights = classes
            .iter()
            .map(|class| 2_f64.powi(3 - i32::from(class.number())))
            .collect();
        Ok(Self {
            rates,
            hosts,
            classes,
            weights,
        })
    }

    fn of_hosts(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut of_hosts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (page, host) in self.hosts.iter().enumerate() {
            of_hosts.entry(*host).or_default().push(page);
        }
        of_hosts
    }

    /// The age at which a page has a value: by bisection.
    fn age(&self, page: usize, value: f64) -> f64 {
        let (rate, weight) = (self.rates[page], self.weights[page]);
        if value >= weight / rate * (1.0 - 1e-9) {
            return f64::INFINITY;
        }
        let of = |age: f64| weight / rate * (1.0 - (1.0 + rate * age) * (-rate * age).exp());
        let (mut low, mut high) = (0.0, 1.0 / rate);
        while of(high) < value {
            high *= 2.0;
        }
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            *(if of(middle) < value { &mut low } else { &mut high }) = middle;
        }
        high
    }

    /// The value from which these pages take so many visits a day.
    fn value(&self, pages: &[usize], visits: f64, least: f64) -> f64 {
        let demand = |value| pages.iter().map(|page| 1.0 / self.age(*page, value)).sum::<f64>();
        if least > 0.0 && demand(least) <= visits {
            return least;
        }
        let (mut low, mut high) = (least.max(1e-12).ln(), 30.0_f64);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            *(if demand(middle.exp()) > visits {
                &mut low
            } else {
                &mut high
            }) = middle;
        }
        high.exp()
    }

    /// The best share of time in which pages are fresh, with so many visits a day in all, and of each host.
    fn optimum(&self, visits: f64, of_host: f64) -> f64 {
        let hosts = self.of_hosts();
        let values = |least: f64| {
            hosts
                .values()
                .map(move |pages| (pages, self.value(pages, of_host, least)))
        };
        let demand = |least| {
            let of_all =
                values(least).flat_map(|(pages, value)| pages.iter().map(move |page| 1.0 / self.age(*page, value)));
            of_all.sum::<f64>()
        };
        let (mut low, mut high) = (1e-9_f64.ln(), 20.0_f64);
        for _ in 0..25 {
            let middle = f64::midpoint(low, high);
            *(if demand(middle.exp()) > visits {
                &mut low
            } else {
                &mut high
            }) = middle;
        }
        let fresh =
            values(high.exp()).flat_map(|(pages, value)| pages.iter().map(move |page| (*page, self.age(*page, value))));
        self.mean(fresh.map(|(page, age)| {
            (
                page,
                if age.is_finite() {
                    self.fresh_within(page, age)
                } else {
                    0.0
                },
            )
        }))
    }

    /// The mean share of time in which a page is fresh that is visited so often.
    fn fresh_within(&self, page: usize, age: f64) -> f64 {
        (1.0 - (-self.rates[page] * age).exp()) / (self.rates[page] * age)
    }

    fn mean(&self, of_pages: impl Iterator<Item = (usize, f64)>) -> f64 {
        of_pages.map(|(page, share)| self.weights[page] * share).sum::<f64>() / self.weights.iter().sum::<f64>()
    }
}

/// What happens to the pages over time.
struct Changes<'w> {
    world: &'w World,
    random: Random,
    rates: Vec<f64>,
    last: Vec<f64>,
    /// The first change since the last visit.
    next: Vec<f64>,
    versions: Vec<u64>,
    fresh: f64,
    from: f64,
}

impl<'w> Changes<'w> {
    fn new(world: &'w World, from: f64) -> Self {
        let (pages, mut random) = (world.rates.len(), Random(11));
        Self {
            next: world.rates.iter().map(|rate| random.exponential(*rate)).collect(),
            rates: world.rates.clone(),
            last: vec![f64::INFINITY; pages],
            versions: vec![0; pages],
            fresh: 0.0,
            world,
            random,
            from,
        }
    }

    fn count(&mut self, page: usize, until: f64) {
        let fresh = until.min(self.next[page]) - self.last[page].max(self.from);
        self.fresh += self.world.weights[page] * fresh.max(0.0);
    }

    /// Visits a page, and returns whether it has changed.
    fn visit(&mut self, page: usize, now: f64) -> bool {
        self.count(page, now);
        self.last[page] = now;
        let is_changed = self.next[page] <= now;
        if is_changed {
            self.versions[page] += 1;
            self.next[page] = now + self.random.exponential(self.rates[page]);
        }
        is_changed
    }

    /// All rates become those of other pages.
    fn shift(&mut self, now: f64) {
        for at in (1..self.rates.len()).rev() {
            let other = (self.random.uniform() * (at + 1) as f64) as usize;
            self.rates.swap(at, other.min(at));
        }
        for page in 0..self.rates.len() {
            if self.next[page] > now {
                self.next[page] = now + self.random.exponential(self.rates[page]);
            }
        }
    }

    fn fresh_now(&self, now: f64) -> f64 {
        let is_fresh = |page: usize| f64::from(self.last[page] <= now && self.next[page] > now);
        self.world
            .mean((0..self.rates.len()).map(|page| (page, is_fresh(page))))
    }

    fn share(mut self, days: f64) -> f64 {
        (0..self.rates.len()).for_each(|page| self.count(page, days));
        self.fresh / (days - self.from) / self.world.weights.iter().sum::<f64>()
    }
}

/// Intervals between an hour and 60 days that are shortened by a fifth after a change and else lengthened by two fifths; pages in the order of their times.
fn intervals(world: &World, days: f64, visits: f64) -> f64 {
    let mut changes = Changes::new(world, days / 2.0);
    let pages = world.rates.len();
    let mut queue: BinaryHeap<_> = (0..pages).map(|page| (Reverse(page as u64), page)).collect();
    let (mut every, mut now) = (vec![DAY; pages], 0.0);
    while let Some((Reverse(due), page)) = queue.pop() {
        now = f64::max(now + 1.0 / visits, due as f64 / DAY);
        if now > days {
            break;
        }
        let factor = if changes.visit(page, now) { 0.8 } else { 1.4 };
        every[page] = (every[page] * factor).clamp(DAY / 24.0, 60.0 * DAY);
        queue.push((Reverse((now * DAY + every[page]) as u64), page));
    }
    changes.share(days)
}

fn open(dir: &Path, world: &World, visits: f64, of_host: Option<f64>) -> Result<Frontier> {
    let delay = of_host.map(|visits| Duration::from_secs_f64(86_400.0 / visits));
    let config = FrontierConfig {
        freshness: FreshnessConfig {
            keeps_fresh: true,
            revisits_per_second: Some(visits / 86_400.0),
            revisit_share: 1.0,
            ..FreshnessConfig::default()
        },
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        politeness: PolitenessConfig {
            delay: delay.unwrap_or_default(),
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        seen_set: SeenSetConfig {
            exact: true,
            ..SeenSetConfig::default()
        },
        sync_interval: Duration::from_secs(1 << 40),
        ..FrontierConfig::default()
    };
    let mut frontier = Frontier::open(
        dir,
        config,
        START,
        Arc::new(|_: &[u8]| unreachable!("no robots.txt is asked for")),
    )?
    .frontier;
    let urls = Canonicalizer::default();
    for (page, (host, class)) in world.hosts.iter().zip(&world.classes).enumerate() {
        let link = Link::seed(urls.parse(&format!("http://host-{host}.example/{page}"))?).with_class(*class);
        frontier.offer(&[link], START)?;
    }
    Ok(frontier)
}

fn page_of(lease: &Lease) -> Result<usize> {
    Ok(lease.entry.url.rsplit('/').next().unwrap_or_default().parse()?)
}

/// Returns the share that the frontier reaches, and how far its own estimate is from what is true, at most.
fn frontier(
    world: &World,
    days: f64,
    visits: f64,
    of_host: Option<f64>,
    shift: Option<f64>,
) -> Result<(f64, f64, u64)> {
    let dir = std::env::temp_dir().join(format!("frontier-freshness-{}", std::process::id()));
    let mut frontier = open(&dir, world, visits, of_host)?;
    let mut changes = Changes::new(world, days / 2.0);
    let (mut now, mut next_look, mut shift) = (START, START, shift);
    let (mut worst, mut next_check, mut made) = (0.0_f64, days / 2.0, 0);
    let mut next_commit = START;
    let day = |time: Time| time.since(START).as_secs_f64() / 86_400.0;
    while day(now) < days {
        if shift.is_some_and(|at| day(now) >= at) {
            shift = None;
            changes.shift(day(now));
        }
        if day(now) >= next_check {
            next_check += 1.0;
            let estimate = frontier.freshness(now).ok_or("no estimate")?.fresh;
            worst = worst.max((estimate - changes.fresh_now(day(now))).abs());
        }
        if now >= next_look {
            let again = frontier.queue_again(Refetch::Due, 1024, now)?;
            next_look = again
                .next
                .unwrap_or(now + Duration::from_secs(60))
                .max(now + Duration::from_secs(1));
        }
        let wake = match frontier.lease(now, 64)? {
            Leasing::Ready(leases) => {
                for lease in leases {
                    let page = page_of(&lease)?;
                    changes.visit(page, day(now));
                    made += u64::from(day(now) >= days / 2.0);
                    let version = u128::from(changes.versions[page]);
                    let settlement = lease.settle(Outcome::Done).with_status(200);
                    let settlement = settlement.with_version(Validators::default(), Some(version.into()));
                    frontier.settle(&[settlement], now)?;
                }
                now
            }
            Leasing::NotUntil(time) => time,
            _ => next_look,
        };
        // Long before a page may be visited again.
        if now >= next_commit {
            frontier.persist(b"", now)?;
            next_commit = now + COMMIT_EVERY;
        }
        now = now.max(wake.min(next_look));
    }
    drop(frontier);
    std::fs::remove_dir_all(&dir)?;
    Ok((changes.share(days), worst, made))
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u32>().ok());
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (pages, days) = if is_bench { (20_000, 300) } else { (60, 20) };
    let (pages, days) = (numbers.next().unwrap_or(pages) as usize, numbers.next().unwrap_or(days));
    let days = f64::from(days);
    let is_hosts_alone = std::env::args().any(|word| word == "hosts");
    println!(
        "importance, a visit every, optimum; share of it: uniform, intervals, frontier (visits of budget; its estimate is off by at most)"
    );
    for is_pareto in [false, true].into_iter().filter(|_| !is_hosts_alone) {
        let world = World::new(pages, is_pareto)?;
        let name = if is_pareto { "Pareto" } else { "equal" };
        for every in [3.0, 10.0, 30.0] {
            let visits = pages as f64 / every;
            let optimum = world.optimum(visits, f64::INFINITY);
            let uniform = world.mean((0..pages).map(|page| (page, world.fresh_within(page, every))));
            let intervals = intervals(&world, days, visits);
            let (found, off, made) = frontier(&world, days, visits, None, None)?;
            let spent = made as f64 / visits / (days / 2.0);
            println!(
                "{name:6} {every:4} days {optimum:.3}: {:.3} {:.3} {:.3} ({spent:.2}; {off:.3})",
                uniform / optimum,
                intervals / optimum,
                found / optimum
            );
        }
    }
    let world = World::new(pages, true)?;
    let visits = pages as f64 / 5.0;
    let optimum = world.optimum(visits, visits / 10.0);
    let (found, off, made) = frontier(&world, days, visits, Some(visits / 10.0), None)?;
    let spent = made as f64 / visits / (days / 2.0);
    println!(
        "each host allows a tenth of all visits, {optimum:.3}: {:.3} ({spent:.2}; {off:.3})",
        found / optimum
    );
    for every in [3.0, 10.0] {
        let world = World::new(pages, false)?;
        let visits = pages as f64 / every;
        let optimum = world.optimum(visits, f64::INFINITY);
        let (found, ..) = frontier(&world, days, visits, None, Some(days / 2.0))?;
        println!("rates change at half-time, {every} days: {:.3}", found / optimum);
    }
    Ok(())
}
