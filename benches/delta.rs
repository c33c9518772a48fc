//! The size of a delta next to the whole filter, after 0.1 %, 1 % and 10 % of new keys, in each layout.
//!
//! `cargo bench -p crawl-sieve --bench delta`; as a test it runs once with small sizes.

use std::time::Instant;

use sieve::{BloomFilter, Hashing, Layout, Sizing};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    // `cargo bench` says so to what it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let capacity = if is_bench { 10_000_000 } else { 20_000 };
    println!("filter for {capacity} keys at 1 %, four fifths full; new keys in percent of those that it holds");
    println!(
        "{:>8} {:>9} {:>12} {:>12} {:>8} {:>14} {:>10} {:>10}",
        "layout", "new keys", "filter bytes", "delta bytes", "share", "bits per key", "delta ms", "apply ms"
    );
    for layout in [Layout::Classic, Layout::Blocks] {
        let sizing = Sizing::in_layout(layout, capacity, 0.01)?;
        let mut older = BloomFilter::with_hashing(sizing, Hashing::default())?;
        let held = capacity / 5 * 4;
        (0..held).for_each(|n| {
            older.insert(n.to_le_bytes());
        });
        for percent in [0.1, 1.0, 10.0] {
            row(&older, held, percent)?;
        }
    }
    Ok(())
}

fn row(older: &BloomFilter, held: u64, percent: f64) -> Result<()> {
    let new_keys = (held as f64 * percent / 100.0) as u64;
    let mut newer = older.clone();
    (held..held + new_keys).for_each(|n| {
        newer.insert(n.to_le_bytes());
    });
    let start = Instant::now();
    let delta = newer.delta(older)?;
    let made = start.elapsed();
    let mut mirror = older.clone();
    let start = Instant::now();
    mirror.apply(&delta)?;
    let applied = start.elapsed();
    let (whole, sent) = (newer.memory_bytes(), delta.encoded_len());
    println!(
        "{:>8} {:>7} % {whole:>12} {sent:>12} {:>6.2} % {:>14.1} {:>10.1} {:>10.1}",
        format!("{:?}", newer.sizing().layout()).to_lowercase(),
        percent,
        sent as f64 / whole as f64 * 100.0,
        sent as f64 * 8.0 / new_keys as f64,
        made.as_secs_f64() * 1e3,
        applied.as_secs_f64() * 1e3,
    );
    Ok(())
}
