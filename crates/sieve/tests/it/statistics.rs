//! The rates that filters state against measured ones, within two-sided bounds of 99.9 %.

use std::num::NonZeroU32;

use sieve::{
    BloomFilter, CountingBloomFilter, Filter, Hashing, Layout, RotatingBloomFilter, ScalableBloomFilter, Sizing,
};

/// The quantile of a normal distribution that leaves 0.1 % outside on both sides together.
const Z: f64 = 3.29;
const CAPACITY: u64 = 4_000;
const RATE: f64 = 0.02;
const LOADS: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 3.0];
const FILTERS: u64 = 12;
const PROBES: u32 = 20_000;

fn hashings(seed: u64) -> [Hashing; 3] {
    [
        Hashing::Murmur3 { seed },
        Hashing::Xxh3 { seed },
        Hashing::Hardened {
            key: (u128::from(seed) + 1).to_le_bytes(),
        },
    ]
}

fn shape(layout: Layout) -> Sizing {
    Sizing::in_layout(layout, CAPACITY, RATE).unwrap()
}

/// Puts keys into filters of different seeds and compares the share of other keys they know with the rate that they state.
fn compare<F: Filter>(name: &str, load: f64, hash: usize, build: impl Fn(Hashing) -> F) {
    let mut differences = Vec::new();
    let mut variance_by_chance = 0.0;
    for seed in 0..FILTERS {
        let mut filter = build(hashings(seed)[hash]);
        for n in 0..(CAPACITY as f64 * load) as u32 {
            filter.insert(format!("https://example.com/{n}").as_bytes());
        }
        let known = |n: &u32| filter.contains(format!("https://example.org/{n}").as_bytes());
        let measured = (0..PROBES).filter(known).count() as f64 / f64::from(PROBES);
        let stated = filter.load().rate;
        differences.push(measured - stated);
        variance_by_chance += stated * (1.0 - stated) / f64::from(PROBES);
    }
    let n = FILTERS as f64;
    let mean = differences.iter().sum::<f64>() / n;
    // In blocks the rate also varies with how the keys of this filter fell on them.
    let sample = differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let deviation = (sample.max(variance_by_chance / n) / n).sqrt();
    assert!(
        mean.abs() < Z * deviation,
        "{name}, {} at {load} times its capacity: measured {mean:+e} off, {deviation:e} allowed {Z} times",
        hashings(0)[hash].name()
    );
}

fn at_every_load<F: Filter>(name: &str, build: impl Fn(Hashing) -> F) {
    for load in LOADS {
        for hash in 0..3 {
            compare(name, load, hash, &build);
        }
    }
}

#[test]
fn the_standard_filter_states_its_rate() {
    for layout in [Layout::Classic, Layout::Blocks] {
        at_every_load(&format!("standard {layout:?}"), |hashing| {
            BloomFilter::with_hashing(shape(layout), hashing).unwrap()
        });
    }
}

#[test]
fn the_counting_filter_states_its_rate() {
    for layout in [Layout::Classic, Layout::Blocks] {
        at_every_load(&format!("counting {layout:?}"), |hashing| {
            CountingBloomFilter::with_hashing(shape(layout), hashing).unwrap()
        });
    }
}

#[test]
fn the_scalable_filter_states_its_rate() {
    at_every_load("scalable", |hashing| {
        ScalableBloomFilter::with_hashing(CAPACITY / 2, RATE, hashing).unwrap()
    });
}

#[test]
fn the_rotating_filter_states_its_rate() {
    at_every_load("rotating", |hashing| {
        let generations = NonZeroU32::new(2).unwrap();
        RotatingBloomFilter::with_hashing(CAPACITY / 2, RATE, generations, hashing).unwrap()
    });
}
