//! Finds the titles that several pages share, without keeping the titles of all pages in memory.
//!
//! A first filter notes every title; a title that it has had before goes into a second one. Both may say "yes" too often, never too seldom,
//! so a second pass needs an exact map of just the few titles that the second filter knows, and the answer is exact.
//!
//! `cargo run -p sieve --example duplicate_titles -- /usr/share/doc/postgresql-doc-15/html`; without a folder it takes a
//! manual that is installed. Its output:
//!
//! ```text
//! 1169 pages in /usr/share/doc/postgresql-doc-15/html
//!    2 times: DECLARE
//!    2 times: PREPARE
//! 3 titles held of about 1168, behind 1664 bytes of filters
//! exactly: 1167 titles held, 64682 bytes
//! both answers are the same
//! ```

mod input;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use sieve::BloomFilter;

fn title_of(page: &Path) -> std::io::Result<Option<String>> {
    let html = input::read(page)?;
    let mut titles = input::between(&html, "<title>", "</title>");
    Ok(titles.next().map(|title| title.trim().to_owned()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = input::manual(std::env::args().nth(1)) else {
        println!("No manual is installed: give a folder of HTML pages, or `apt-get install postgresql-doc-15`.");
        return Ok(());
    };
    let pages = input::pages(&folder)?;
    println!("{} pages in {}", pages.len(), folder.display());

    // First pass: whatever the first filter has had, or thinks so, is a candidate.
    let most = pages.len().max(10) as u64;
    let mut seen = BloomFilter::new(most, 0.01)?;
    let mut seen_again = BloomFilter::new(most / 10, 0.01)?;
    for page in &pages {
        if let Some(title) = title_of(page)? {
            // One call asks and marks; "not new" is the rare answer.
            if !seen.insert(title.as_bytes()) {
                seen_again.insert(title.as_bytes());
            }
        }
    }

    // Second pass: count the candidates; one that is met only once was the mistake of a filter.
    let mut candidates: BTreeMap<String, u32> = BTreeMap::new();
    for page in &pages {
        if let Some(title) = title_of(page)?
            && seen_again.contains(title.as_bytes())
        {
            *candidates.entry(title).or_default() += 1;
        }
    }
    let held = candidates.len();
    candidates.retain(|_, times| *times > 1);
    for (title, times) in &candidates {
        println!("{times:>4} times: {title}");
    }
    let filters = seen.sizing().memory_bytes() + seen_again.sizing().memory_bytes();
    println!(
        "{} titles held of about {:.0}, behind {filters} bytes of filters",
        held,
        seen.estimated_len()
    );

    // The exact answer, for which every title must be held.
    let mut all: HashMap<String, u32> = HashMap::new();
    for page in &pages {
        if let Some(title) = title_of(page)? {
            *all.entry(title).or_default() += 1;
        }
    }
    let bytes: usize = all.keys().map(|title| title.len() + size_of::<(String, u32)>()).sum();
    println!("exactly: {} titles held, {bytes} bytes", all.len());
    all.retain(|_, times| *times > 1);
    if all != candidates.into_iter().collect() {
        return Err("the two answers differ".into());
    }
    println!("both answers are the same");
    Ok(())
}
