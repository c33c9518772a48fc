//! An async crawl loop that saves its state on Ctrl-C and resumes from it.
//!
//! `cargo run -p crawl-sieve --example tokio_snapshot -- crawl.state`: press Ctrl-C, then run it again.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sieve::Sieve;
use tokio::task::JoinSet;

const MAX_IN_FLIGHT: usize = 4;

/// The last line of the file: without it, the file was cut off. No URL is an empty line.
const END: &str = "";

/// Stands for an HTTP request and link extraction: page n links to 2n, 3n and back to the start.
async fn fetch(url: String) -> (String, Vec<String>) {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let n: u64 = url.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let targets = [2 * n, 3 * n, 1].into_iter().filter(|&n| n < 1_000_000);
    let links = targets.map(|n| format!("https://example.com/{n}")).collect();
    (url, links)
}

/// Saves the filter, then the URLs that are not done: those in flight and those in the queue.
///
/// A crash leaves the old file or the new one, never a part: the new file replaces the old one when it is complete.
fn save(path: &Path, to_visit: &Sieve, in_flight: &BTreeSet<String>) -> Result<(), Box<dyn Error>> {
    let new = path.with_extension("new");
    let mut file = BufWriter::new(File::create(&new)?);
    to_visit.save_filter(&mut file)?;
    for url in in_flight.iter().chain(to_visit.queue()) {
        writeln!(file, "{url}")?;
    }
    writeln!(file, "{END}")?;
    file.into_inner()?.sync_all()?;
    fs::rename(&new, path)?;
    Ok(())
}

/// Loads what [`save`] wrote. The URLs go into the queue past the filter, which has seen them.
fn load(path: &Path) -> Result<Sieve, Box<dyn Error>> {
    let limit = fs::metadata(path)?.len();
    let mut file = BufReader::new(File::open(path)?);
    let mut to_visit: Sieve = Sieve::resume(&mut file, limit, None, VecDeque::new())?;
    let mut is_whole = false;
    for url in file.lines() {
        let url = url?;
        is_whole = url == END;
        if !is_whole {
            to_visit.requeue(url)?;
        }
    }
    if is_whole {
        Ok(to_visit)
    } else {
        Err("the file was cut off".into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "crawl.state".to_owned()));
    let mut to_visit = if path.exists() {
        let to_visit = load(&path)?;
        println!("resumed from {}: {} URLs to visit", path.display(), to_visit.len());
        to_visit
    } else {
        let mut to_visit = Sieve::new(10_000)?;
        to_visit.push("https://example.com/1");
        to_visit
    };

    let (mut tasks, mut in_flight) = (JoinSet::new(), BTreeSet::new());
    let mut ctrl_c = std::pin::pin!(tokio::signal::ctrl_c());
    let mut fetched = 0;
    loop {
        while tasks.len() < MAX_IN_FLIGHT
            && let Some(url) = to_visit.pop()
        {
            in_flight.insert(url.clone());
            tasks.spawn(fetch(url));
        }
        tokio::select! {
            result = tasks.join_next() => match result {
                Some(page) => {
                    let (url, links) = page?;
                    in_flight.remove(&url);
                    to_visit.push_all(links);
                    fetched += 1;
                }
                None => break, // nothing queued, nothing in flight
            },
            signal = &mut ctrl_c => {
                signal?;
                // The requests in flight end here. Their URLs are saved and fetched again.
                save(&path, &to_visit, &in_flight)?;
                let left = in_flight.len() + to_visit.len();
                println!("{fetched} pages fetched; {left} URLs saved to {}", path.display());
                return Ok(());
            }
        }
    }
    println!("{fetched} pages fetched, nothing left; {}", to_visit.saturation());
    if path.exists() {
        fs::remove_file(&path)?;
    }
    Ok(())
}
