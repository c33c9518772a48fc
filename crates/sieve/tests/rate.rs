//! The measured false-positive rate against the promised one, within two-sided bounds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use sieve::{BloomFilter, Sizing};

/// Six standard deviations: a right filter fails one of these tests in some five hundred million runs; seeds are fixed.
const SIGMAS: f64 = 6.0;

/// Fills `filters` filters of this size to capacity, each under its own seed, and asks each for keys it never met.
///
/// Returns the measured rate, its standard deviation and the expected rate.
fn measure(capacity: u64, rate: f64, filters: u64, probes: u64) -> (f64, f64, f64) {
    let sizing = Sizing::for_rate(capacity, rate).unwrap();
    let mut hits_of_each = Vec::new();
    for seed in 0..filters {
        let mut filter = BloomFilter::with_seed(sizing, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
        for n in 0..capacity {
            filter.insert(format!("https://example.com/page/{n}").as_bytes());
        }
        let hits = (0..probes)
            .filter(|n| filter.contains(format!("https://example.org/{n}").as_bytes()))
            .count();
        hits_of_each.push(hits as f64 / probes as f64);
    }
    let mean = hits_of_each.iter().sum::<f64>() / filters as f64;
    let expected = sizing.expected_rate();
    // Between filters the rate varies with their fill, and within one by chance: take the larger of theory and sample.
    let sample = hits_of_each.iter().map(|hit| (hit - mean).powi(2)).sum::<f64>() / (filters as f64 - 1.0).max(1.0);
    let chance = expected * (1.0 - expected) / probes as f64;
    (mean, (sample.max(chance) / filters as f64).sqrt(), expected)
}

fn check(capacity: u64, rate: f64, filters: u64, probes: u64) {
    let (measured, deviation, expected) = measure(capacity, rate, filters, probes);
    let sigmas = (measured - expected) / deviation;
    assert!(
        sigmas.abs() < SIGMAS,
        "n={capacity} p={rate}: {measured:e} is {sigmas:.1} sigmas from {expected:e}"
    );
    assert!(
        expected <= rate,
        "n={capacity} p={rate}: promised {rate}, expected {expected}"
    );
}

#[test]
fn ten_keys_have_the_promised_rate_though_halves_of_a_hash_may_degenerate() {
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        check(10, rate, 4000, 500);
    }
}

#[test]
fn a_thousand_keys_have_the_promised_rate() {
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        check(1000, rate, 100, 10_000);
    }
}

#[test]
fn a_hundred_thousand_keys_have_the_promised_rate() {
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        check(100_000, rate, 3, 300_000);
    }
}

#[test]
fn a_million_keys_have_the_promised_rate() {
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        check(1_000_000, rate, 1, 1_000_000);
    }
}

#[test]
fn a_shape_from_explicit_bits_and_hashes_has_the_rate_of_the_formula() {
    let sizing = Sizing::explicit(100_000, 1).unwrap().with_capacity(1000).unwrap();
    assert!(
        (sizing.expected_rate() - 0.00995).abs() < 0.00001,
        "one probe needs 100 bits per key for 1 %"
    );
    let mut hits = 0;
    for seed in 0..50 {
        let mut filter = BloomFilter::with_seed(sizing, seed).unwrap();
        for n in 0_u64..1000 {
            filter.insert(&n.to_le_bytes());
        }
        hits += (1_000_000_u64..1_020_000)
            .filter(|n| filter.contains(&n.to_le_bytes()))
            .count();
    }
    let measured = hits as f64 / 1e6;
    assert!((measured - 0.00995).abs() < 6.0 * 1.5e-4, "{measured}");
}
