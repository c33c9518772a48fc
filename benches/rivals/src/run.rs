//! One contender at one size: load it, time its pushes, count its errors.

use std::time::Duration;

use cpu_time::ThreadTime;

use crate::chunk::{CHUNK, Chunk};
use crate::contenders::{Contender, Entry};
use crate::workload::{Stream, Workload};

/// The shares of duplicates that are timed, in percent.
pub(crate) const SHARES: [u64; 3] = [0, 50, 90];

/// How far a filter is loaded before anything is timed, and how far afterwards, in percent of its capacity.
const TIMED_FROM: u64 = 80;
const TIMED_TO: u64 = 99;
/// In so many slices, so that each share of duplicates meets the filter equally loaded.
const SLICES: u64 = 4;
/// How many new URLs the rate is measured with: 1 % comes out to within 0.03 points.
const PROBES: u64 = 10 * CHUNK;

/// What was measured of one contender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Nanoseconds per pushed URL at each share of duplicates.
    pub(crate) push: [f64; SHARES.len()],
    /// Nanoseconds per popped URL.
    pub(crate) pop: f64,
    /// The share of new URLs that are taken for seen at capacity.
    pub(crate) rate: f64,
    pub(crate) bits_per_key: f64,
}

impl Measured {
    /// Sums up rounds, each time by `pick`. The rate is that of the last one: it is the same in every round, but for random seeds.
    pub(crate) fn of(rounds: &[Self], pick: fn(Vec<f64>) -> f64) -> Self {
        let figures = |of: &dyn Fn(&Self) -> f64| pick(rounds.iter().map(of).collect());
        let last = rounds.last();
        Self {
            push: std::array::from_fn(|share| figures(&|round| round.push[share])),
            pop: figures(&|round| round.pop),
            rate: last.map_or(0.0, |last| last.rate),
            bits_per_key: last.map_or(0.0, |last| last.bits_per_key),
        }
    }

    /// Writes the figures in one line, for the process that asked for them.
    pub(crate) fn to_line(self) -> String {
        let [none, half, most] = self.push;
        format!("{none} {half} {most} {} {} {}", self.pop, self.rate, self.bits_per_key)
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let figures: Vec<f64> = line.split(' ').map_while(|figure| figure.parse().ok()).collect();
        let &[none, half, most, pop, rate, bits_per_key] = figures.as_slice() else {
            return None;
        };
        Some(Self {
            push: [none, half, most],
            pop,
            rate,
            bits_per_key,
        })
    }
}

/// Returns the least of some times; infinity if there are none.
pub(crate) fn best(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

/// Returns the median of some times; infinity if there are none.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = |at: usize| times.get(at).copied().unwrap_or(f64::INFINITY);
    f64::midpoint(middle(times.len().saturating_sub(1) / 2), middle(times.len() / 2))
}

/// Runs one contender once, from empty to full.
pub(crate) fn run(entry: &Entry, capacity: u64, workload: &Workload, chunk: &mut Chunk) -> Measured {
    let mut contender = (entry.build)(capacity);
    let mut stream = Stream::new();
    load(
        contender.as_mut(),
        capacity * TIMED_FROM / 100,
        workload,
        &mut stream,
        chunk,
    );
    let mut push = [Stopwatch::default(); SHARES.len()];
    let mut pop = Stopwatch::default();
    let new_per_link: f64 = SHARES.iter().map(|&percent| 1.0 - percent as f64 / 100.0).sum();
    let new_per_slice = (capacity * (TIMED_TO - TIMED_FROM) / 100 / SLICES) as f64;
    for _ in 0..SLICES {
        for (percent, push) in SHARES.into_iter().zip(&mut push) {
            let mut left = (new_per_slice / new_per_link) as u64;
            while left > 0 {
                workload.fill(chunk, &mut stream, left.min(CHUNK), percent);
                left -= chunk.len() as u64;
                push.time(|| {
                    contender.push(chunk);
                    chunk.len() as u64
                });
                pop.time(|| contender.drain());
            }
        }
    }
    load(contender.as_mut(), capacity, workload, &mut stream, chunk);
    let mut wrong = 0;
    for _ in 0..PROBES / CHUNK {
        workload.fill(chunk, &mut stream, CHUNK, 0);
        wrong += chunk.links().filter(|url| contender.knows(url)).count();
    }
    Measured {
        push: push.map(|stopwatch| stopwatch.per_item()),
        pop: pop.per_item(),
        rate: wrong as f64 / PROBES as f64,
        bits_per_key: contender.bits() as f64 / capacity as f64,
    }
}

/// Pushes new URLs until there were so many.
fn load(contender: &mut dyn Contender, until: u64, workload: &Workload, stream: &mut Stream, chunk: &mut Chunk) {
    while stream.distinct() < until {
        workload.fill(chunk, stream, CHUNK.min(until - stream.distinct()), 0);
        contender.push(chunk);
        contender.drain();
    }
}

/// Runs one contender over given links, from empty each time, and returns the least nanoseconds per link.
pub(crate) fn trace(entry: &Entry, capacity: u64, chunk: &Chunk, times: usize) -> f64 {
    let once = || {
        let mut contender = (entry.build)(capacity);
        let mut push = Stopwatch::default();
        push.time(|| {
            contender.push(chunk);
            chunk.len() as u64
        });
        push.per_item()
    };
    (0..times).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Processor time and items, summed up: what others do on the same cores is not counted.
#[derive(Clone, Copy, Default)]
struct Stopwatch {
    time: Duration,
    items: u64,
}

impl Stopwatch {
    fn time(&mut self, work: impl FnOnce() -> u64) {
        let start = ThreadTime::now();
        self.items += work();
        self.time += start.elapsed();
    }

    fn per_item(&self) -> f64 {
        self.time.as_nanos() as f64 / self.items.max(1) as f64
    }
}
