//! A frontier in a directory: four requests at a time, an output of its own, and a task that panics. Killed at any moment, it continues.
//!
//! `cargo run -p crawl-frontier --features durable --example durable_frontier -- DIR`

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frontier::{Canonicalizer, Directory, Failure, FailureKind, Fate, Frontier, FrontierConfig, Lease, Leasing};
use frontier::{Opened, Outcome, ParseRules, Purpose, RobotsRules, Settlement, Time};
use tokio::task::{JoinSet, block_in_place};

const MAX_IN_FLIGHT: u32 = 4;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("which directory?")?);
    std::fs::create_dir_all(&dir)?;
    let pages = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("pages.txt"))?;
    let opened = open(&dir, &pages)?;
    // Not the clock's: that was set back if it is before the end of the last run.
    let (mut frontier, from, start) = (opened.frontier, opened.now, Instant::now());
    let now = || from + start.elapsed();

    frontier.add_seed(&Canonicalizer::default().parse("https://example.com/1")?, now())?;
    let mut tasks = JoinSet::new();
    loop {
        let mut wait = Duration::MAX;
        if tasks.len() < MAX_IN_FLIGHT as usize {
            wait = match frontier.lease(now(), MAX_IN_FLIGHT as usize - tasks.len())? {
                Leasing::Ready(leases) => {
                    // Before their requests are sent: so a kill makes no host be asked too soon.
                    persist(&mut frontier, &pages, now())?;
                    for lease in leases {
                        tasks.spawn(settlement(lease));
                    }
                    continue;
                }
                Leasing::Dropped(entries) => {
                    for one in entries {
                        writeln!(&pages, "{} {}", one.entry.url, one.why.name())?;
                    }
                    continue;
                }
                Leasing::NotUntil(time) => time.since(now()),
                Leasing::AllLeased => Duration::MAX,
                Leasing::BudgetSpent | Leasing::Drained => break,
            };
        }
        let next_sync = frontier
            .save_status()
            .and_then(|status| status.next_sync)
            .map_or(Duration::MAX, |due| due.since(now()));
        tokio::select! {
            Some(ended) = tasks.join_next() => {
                let (lease, settlement) = ended?;
                for settled in frontier.settle(&[settlement], now())? {
                    // A robots.txt is no page, and one that is queued again has not ended.
                    if lease.entry.purpose == Purpose::Page && matches!(settled.fate, Fate::Final | Fate::GaveUp) {
                        writeln!(&pages, "{} {:?}", lease.entry.url, settled.fate)?;
                    }
                }
                // So a kill repeats no request that has ended.
                persist(&mut frontier, &pages, now())?;
            }
            () = tokio::time::sleep(wait.min(next_sync)) => persist(&mut frontier, &pages, now())?,
        }
    }
    pages.sync_data()?;
    frontier.checkpoint(&pages.metadata()?.len().to_le_bytes(), now())?;
    println!("{}", frontier.report());
    Ok(())
}

/// Opens frontier and pages as they were at one commit.
fn open(dir: &Path, pages: &File) -> Result<Opened, Box<dyn Error>> {
    let written = pages.metadata()?.len();
    // A power cut may take lines from the file that the directory counts: then it goes back to the last sync.
    if let Some(unsynced) = Directory::new(dir).unsynced()? {
        if unsynced.is_system_restarted || written < length(&unsynced.attachment)? {
            Directory::new(dir).discard_unsynced()?;
        } else {
            pages.sync_data()?;
        }
    }
    let mut config = FrontierConfig::default();
    (config.politeness.delay, config.politeness.ask_robots) = (Duration::from_millis(5), false);
    config.politeness.per_host = NonZeroU32::MIN.saturating_add(MAX_IN_FLIGHT - 1);
    config.retries.retry_wait = Duration::from_millis(5);
    let parse: ParseRules = Arc::new(|_: &[u8]| Arc::new(NoRules));
    let clock = Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH)?);
    let opened = Frontier::open(dir, config, clock, parse)?;
    let saved = match &opened.attachment {
        Some(attachment) => length(attachment)?,
        None if written > 0 => return Err("pages.txt is of something else".into()),
        None => 0,
    };
    if written < saved {
        return Err(format!("pages.txt has {written} of {saved} bytes").into());
    }
    // What was written after the last `persist` is written again.
    pages.set_len(saved)?;
    Ok(opened)
}

/// Returns the length of the file that an attachment has.
fn length(attachment: &[u8]) -> Result<u64, Box<dyn Error>> {
    match attachment {
        [] => Ok(0),
        length => Ok(u64::from_le_bytes(length.try_into()?)),
    }
}

/// Makes pages and frontier survive together. It waits for the disk, in a thread that may.
fn persist(frontier: &mut Frontier, pages: &File, now: Time) -> Result<(), Box<dyn Error>> {
    block_in_place(|| {
        if frontier.save_status().is_some_and(|status| status.is_sync_due(now)) {
            pages.sync_data()?;
        }
        Ok(frontier.persist(&pages.metadata()?.len().to_le_bytes(), now)?)
    })
}

/// Fetches a page, and returns how its lease ends. A panic costs an attempt of one page.
async fn settlement(lease: Lease) -> (Lease, Settlement) {
    let settlement = match tokio::spawn(fetch(lease.entry.url.clone())).await {
        Ok(found) => {
            let urls = Canonicalizer::default();
            let links = found.iter().filter_map(|link| urls.parse(link).ok());
            lease.settle(Outcome::Done).with_links(lease.entry.links(links))
        }
        Err(panic) => lease.failed(Failure::new(FailureKind::Panic, panic.to_string())),
    };
    (lease, settlement)
}

/// Stands for an HTTP request and link extraction: page n links to 2n and 2n + 1. Page 13 has a bug in its parser.
async fn fetch(url: Box<str>) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let n: u64 = url.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(1);
    assert_ne!(n, 13, "a bug in the parser");
    let links = [2 * n, 2 * n + 1].into_iter().filter(|&n| n < 200);
    links.map(|n| format!("https://example.com/{n}")).collect()
}

#[derive(Debug)]
struct NoRules;

impl RobotsRules for NoRules {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn text(&self) -> Option<&[u8]> {
        Some(b"")
    }
}
