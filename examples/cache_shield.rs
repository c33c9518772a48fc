//! Puts a filter in front of a slow store, so that look-ups of missing keys do not reach it.
//!
//! The store is a folder of manual pages, as if it were across a slow network. The look-ups are those of `man -a`, which looks for a name
//! in each of eight sections, nearly always in vain. A filter that is sized for a tenth of the pages passes nearly all look-ups. One
//! that is sized for a tenth and grows does not.
//!
//! `cargo run -p crawl-sieve --example cache_shield -- /usr/share/man`; that folder is the default. Its output:
//!
//! ```text
//! 21783 pages of 21683 names
//! shield                 bytes    asked  in vain  stated rate
//! none                       0   173464   151681     100.00 %
//! for all                27584    23295     1512       0.99 %
//! for a tenth             2816   173101   151318      99.75 %
//! for a tenth, growing   62592    22445      662       0.41 %
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sieve::{BloomFilter, Filter, ScalableBloomFilter};

fn key(name: &str, section: u32) -> String {
    format!("man{section}/{name}.{section}.gz")
}

/// Looks up every name in every section and prints the cost. Returns the number of pages found.
fn ask_all(names: &BTreeSet<String>, folder: &Path, label: &str, shield: Option<&impl Filter>) -> usize {
    // Look-ups are counted, instead of waiting for a slow store.
    let (mut asked, mut found) = (0, 0);
    for key in names
        .iter()
        .flat_map(|name| (1..=8).map(move |section| key(name, section)))
    {
        if shield.is_none_or(|shield| shield.contains(key.as_bytes())) {
            asked += 1;
            found += usize::from(folder.join(key).exists());
        }
    }
    let (bytes, rate) = match shield.map(Filter::load) {
        Some(load) => (load.memory_bytes, load.rate),
        None => (0, 1.0),
    };
    println!(
        "{label:<20} {bytes:>7} {asked:>8} {:>8} {:>10.2} %",
        asked - found,
        rate * 100.0
    );
    found
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "/usr/share/man".to_owned()));
    let (mut names, mut keys) = (BTreeSet::new(), Vec::new());
    for section in 1..=8 {
        let Ok(entries) = fs::read_dir(folder.join(format!("man{section}"))) else {
            continue; // not every system has every section
        };
        for entry in entries {
            let file = entry?.file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(&format!(".{section}.gz")) {
                keys.push(key(name, section));
                names.insert(name.to_owned());
            }
        }
    }
    let (all, tenth) = (keys.len() as u64, keys.len() as u64 / 10);
    if tenth == 0 {
        println!(
            "There are no manual pages in {}: give a folder, or `apt-get install manpages`.",
            folder.display()
        );
        return Ok(());
    }
    println!("{all} pages of {} names", names.len());
    println!("shield                 bytes    asked  in vain  stated rate");
    let found = ask_all(&names, &folder, "none", None::<&BloomFilter>);

    let mut ample = BloomFilter::new(all, 0.01)?;
    let mut overfull = BloomFilter::new(tenth, 0.01)?;
    let mut growing = ScalableBloomFilter::new(tenth, 0.01)?;
    for key in &keys {
        ample.insert(key.as_bytes());
        overfull.insert(key.as_bytes());
        growing.insert(key.as_bytes());
    }
    let behind = [
        ask_all(&names, &folder, "for all", Some(&ample)),
        ask_all(&names, &folder, "for a tenth", Some(&overfull)),
        ask_all(&names, &folder, "for a tenth, growing", Some(&growing)),
    ];
    // "Not there" is certain: a filter can pass too many look-ups, but hides no page.
    if behind.into_iter().any(|behind| behind != found) {
        return Err("a shield hid a page".into());
    }
    Ok(())
}
