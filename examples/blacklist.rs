//! Checks a blacklist before every page load. The list is on disk, and is read only if a filter says "maybe".
//!
//! The list is URLhaus' list of hosts and pages with malware, from the Debian package `webext-ublock-origin-firefox`. The page loads are
//! the external links of a manual, and some entries of the list. The filter is built once, saved, and loaded when a program starts.
//!
//! `cargo run -p crawl-sieve --example blacklist -- LIST FOLDER`; the defaults are that list and an installed manual. Its output:
//!
//! ```text
//! 6254 entries of 343519 bytes in a file of 8040 bytes
//! 1742 page loads, 1818 look-ups: 1738 spared, 80 on disk
//! 63 listed; 17 false alarms, 0.97 % of the others, where 0.99 % were expected
//! ```

mod input;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use sieve::snapshot::SnapshotCounts;
use sieve::{BloomFilter, Snapshot};

const LIST: &str = "/usr/share/mozilla/extensions/{ec8030f7-c20a-464f-9b0e-13a3a9e97384}/uBlock0@raymondhill.net/assets/thirdparties/\
                    urlhaus-filter/urlhaus-filter-online.txt";

/// Returns the entry of a line: a host, or a host and a path. Comments begin with `!`; `||host/path^$all` is a rule with the entry.
fn entry_of(line: &str) -> Option<&str> {
    let entry = line.trim().trim_start_matches("||").trim_end_matches("^$all");
    (!entry.is_empty() && !entry.starts_with('!')).then_some(entry)
}

/// Reads the list from its beginning, which the filter avoids.
fn is_listed(list: &Path, key: &str) -> io::Result<bool> {
    for line in BufReader::new(File::open(list)?).lines() {
        if entry_of(&line?) == Some(key) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn save(filter: &BloomFilter, path: &Path) -> io::Result<()> {
    // Renamed when it is complete, so that no reader sees a part of it.
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    filter.write_to(&SnapshotCounts::default(), &mut file)?; // the counts are for a `Sieve`
    file.sync_all()?;
    fs::rename(unfinished, path)
}

fn load(path: &Path) -> Result<BloomFilter, Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    // No more memory is allocated than the length of the file.
    let limit = file.metadata()?.len();
    let (filter, _counts) = BloomFilter::read_from(&mut file, limit, None)?;
    Ok(filter)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let list = arguments.next().unwrap_or_else(|| LIST.to_owned());
    let list = Path::new(&list);
    let (true, Some(folder)) = (list.exists(), input::manual(arguments.next())) else {
        println!(
            "No list or no manual: give both, or `apt-get install webext-ublock-origin-firefox postgresql-doc-15`."
        );
        return Ok(());
    };

    let text = fs::read_to_string(list)?;
    let entries: Vec<&str> = text.lines().filter_map(entry_of).collect();
    let mut filter = BloomFilter::new(entries.len() as u64, 0.01)?;
    for entry in &entries {
        filter.insert(entry.as_bytes());
    }
    let path = std::env::temp_dir().join(format!("blacklist-{}.sieve", std::process::id()));
    save(&filter, &path)?;
    println!(
        "{} entries of {} bytes in a file of {} bytes",
        entries.len(),
        text.len(),
        fs::metadata(&path)?.len()
    );
    let filter = load(&path)?;
    fs::remove_file(path)?;

    let mut loads: BTreeSet<String> = entries.iter().step_by(100).map(|&entry| entry.to_owned()).collect();
    for page in input::pages(&folder)? {
        let html = input::read(&page)?;
        for scheme in ["href=\"http://", "href=\"https://"] {
            loads.extend(input::between(&html, scheme, "\"").map(str::to_owned));
        }
    }

    // Looks up the host and the whole URL, each once, as a browser caches the answers.
    let hosts = loads.iter().filter_map(|url| url.split('/').next());
    let keys: BTreeSet<&str> = hosts.chain(loads.iter().map(String::as_str)).collect();
    let (mut maybe, mut listed) = (0, 0);
    for key in &keys {
        if filter.contains(key.as_bytes()) {
            maybe += 1;
            listed += usize::from(is_listed(list, key)?);
        }
    }
    let (asked, unlisted) = (keys.len(), keys.len() - listed);
    println!(
        "{} page loads, {asked} look-ups: {} spared, {maybe} on disk",
        loads.len(),
        asked - maybe
    );
    println!(
        "{listed} listed; {} false alarms, {:.2} % of the others, where {:.2} % were expected",
        maybe - listed,
        (maybe - listed) as f64 * 100.0 / unlisted as f64,
        filter.false_positive_rate() * 100.0
    );
    Ok(())
}
