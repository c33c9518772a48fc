//! A frontier in a directory: four requests at a time, an output of its own, and a task that panics. Killed at any moment, it continues.
//!
//! `cargo run -p crawl-frontier --features durable --example durable_frontier -- DIR`

use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Lease, Leasing, Link};
use frontier::{Outcome, ParseRules, RobotsRules, Settlement, Time};
use tokio::task::{Id, JoinError, JoinSet, block_in_place};

const MAX_IN_FLIGHT: u32 = 4;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("which directory?")?);
    let mut config = FrontierConfig::default();
    (config.politeness.delay, config.politeness.ask_robots) = (Duration::from_millis(5), false);
    config.politeness.per_host = NonZeroU32::MIN.saturating_add(MAX_IN_FLIGHT - 1);
    config.retries.retry_wait = Duration::from_millis(5);
    let parse: ParseRules = Arc::new(|_: &[u8]| Arc::new(NoRules));
    let clock = Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH)?);
    let opened = Frontier::open(&dir, config, clock, parse)?;
    // Not `clock`: that was set back if it is before the end of the last run.
    let (mut frontier, from, start) = (opened.frontier, opened.now, Instant::now());
    let now = || from + start.elapsed();

    // What was written after the last `persist` is written again.
    let saved = opened.attachment.and_then(|length| length.try_into().ok());
    let pages = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("pages.txt"))?;
    pages.set_len(saved.map_or(0, u64::from_le_bytes))?;

    let urls = Canonicalizer::default();
    frontier.add_seed(&urls.parse("https://example.com/1")?, now())?;
    let (mut tasks, mut in_flight) = (JoinSet::new(), HashMap::<Id, Lease>::new());
    loop {
        let wait = match frontier.lease(now(), MAX_IN_FLIGHT as usize - in_flight.len())? {
            Leasing::Ready(leases) => {
                // Before their requests are sent: so a kill repeats no request that has ended.
                persist(&mut frontier, &pages, now())?;
                for lease in leases {
                    in_flight.insert(tasks.spawn(fetch(lease.entry.url.clone())).id(), lease);
                }
                Duration::MAX
            }
            Leasing::NotUntil(time) => time.since(now()),
            Leasing::AllLeased => Duration::MAX,
            Leasing::Dropped(_) => continue,
            Leasing::BudgetSpent | Leasing::Drained => break,
        };
        // With nothing in flight it is time that must pass.
        let ended = async {
            match tasks.join_next_with_id().await {
                Some(ended) => ended,
                None => std::future::pending().await,
            }
        };
        if let Ok(ended) = tokio::time::timeout(wait, ended).await {
            let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            let lease = in_flight.remove(&id).ok_or("each task has a lease")?;
            frontier.settle(&[settlement(&lease, ended, &urls, &pages)?], now())?;
        }
    }
    persist(&mut frontier, &pages, now())?;
    println!("{}", frontier.report());
    Ok(())
}

/// Makes pages and frontier survive together. It waits for the disk, in a thread that may.
fn persist(frontier: &mut Frontier, mut pages: &File, now: Time) -> Result<(), Box<dyn Error>> {
    block_in_place(|| {
        pages.flush()?;
        if frontier.save_status().is_some_and(|status| status.is_sync_due(now)) {
            pages.sync_data()?;
        }
        Ok(frontier.persist(&pages.metadata()?.len().to_le_bytes(), now)?)
    })
}

type Ended = Result<(Id, Vec<String>), JoinError>;

/// Writes the page, and returns how its lease ends. A panic costs an attempt of one page.
fn settlement(
    lease: &Lease,
    ended: Ended,
    urls: &Canonicalizer,
    mut pages: &File,
) -> Result<Settlement, Box<dyn Error>> {
    let found = match ended {
        Ok((_, found)) => found,
        Err(panic) => return Ok(lease.failed(Failure::new(FailureKind::Panic, panic.to_string()))),
    };
    writeln!(pages, "{}", lease.entry.url)?;
    let links = found.iter().filter_map(|link| urls.parse(link).ok());
    let links: Vec<Link> = lease.entry.links(links);
    Ok(lease.settle(Outcome::Done).with_links(links))
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
