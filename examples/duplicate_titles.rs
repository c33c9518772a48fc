//! Finds the titles that several pages share, without storing the titles of all pages.
//!
//! The first filter contains all titles. A title that it has seen before is inserted into the second filter. Both have false positives,
//! but no false negatives. So a second pass with an exact map of the few titles in the second filter gives the exact result.
//!
//! `cargo run -p crawl-sieve --example duplicate_titles -- /usr/share/doc/postgresql-doc-15/html`; the default is an installed manual. Its
//! output:
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

    // First pass: a title that the first filter has seen is a candidate.
    let most = pages.len().max(10) as u64;
    let mut seen = BloomFilter::new(most, 0.01)?;
    let mut seen_again = BloomFilter::new(most / 10, 0.01)?;
    for page in &pages {
        if let Some(title) = title_of(page)? {
            // One call checks and marks. "Not new" is rare.
            if !seen.insert(title.as_bytes()) {
                seen_again.insert(title.as_bytes());
            }
        }
    }

    // Second pass: count the candidates. One that occurs once was a false positive.
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

    // The exact result, which needs all titles in memory.
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
