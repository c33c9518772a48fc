//! A graph traversal with a sieve, in twenty lines.
//!
//! `cargo run -p sieve --example embed`

use sieve::Sieve;

/// Stands for fetching a page and extracting its links: page n links to 2n, 3n and back to the start.
fn links_of(page: &str) -> Vec<String> {
    let n: u64 = page
        .rsplit('/')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(1);
    [2 * n, 3 * n, 1]
        .into_iter()
        .filter(|&n| n < 1_000_000)
        .map(|n| format!("https://example.com/{n}"))
        .collect()
}

fn main() -> Result<(), sieve::ConfigError> {
    let mut to_visit = Sieve::new(10_000)?;
    to_visit.push("https://example.com/1");
    let mut visited = 0;
    while let Some(page) = to_visit.pop() {
        visited += 1;
        to_visit.push_all(links_of(&page));
    }
    println!("{visited} pages visited, each once; {}", to_visit.saturation());
    Ok(())
}
