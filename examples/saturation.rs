//! Overfills a sieve, to show the log lines, and the estimated loss next to the true loss.
//!
//! `cargo run -p crawl-sieve --example saturation`

use std::collections::HashSet;
use std::time::Duration;

use sieve::Sieve;

const CAPACITY: u64 = 20_000;

fn main() -> Result<(), sieve::ConfigError> {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .format_timestamp(None)
        // The message has the numbers already.
        .format_key_values(|_, _| Ok(()))
        .init();
    let mut sieve = Sieve::new(CAPACITY)?;
    let mut exact = HashSet::new();
    println!(
        "{:>8} {:>10} {:>10} {:>12} {:>10}",
        "offered", "truly lost", "estimated", "by difference", "next key"
    );
    for multiple in [1.0, 1.5, 2.0, 3.0, 5.0] {
        while (exact.len() as f64) < CAPACITY as f64 * multiple {
            let key = format!("https://example.com/{}", exact.len());
            exact.insert(key.clone());
            // Simulates a thousand keys per second. Any monotonic clock works.
            sieve.set_now(Duration::from_millis(exact.len() as u64));
            sieve.push(key);
        }
        let truly_lost = exact.len() as u64 - sieve.counters().accepted;
        let now = sieve.saturation();
        println!(
            "{:>8} {truly_lost:>10} {:>10.0} {:>13.0} {:>8.1} %",
            exact.len(),
            now.lost,
            now.lost_by_difference,
            now.rate * 100.0
        );
    }
    Ok(())
}
