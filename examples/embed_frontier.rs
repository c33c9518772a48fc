//! The frontier with a fetcher of one's own. It decides what to fetch next, and when; `drive_frontier` adds redirects and retries.
//!
//! `cargo run -p crawler-cli --example embed_frontier -- http://localhost:8080/`

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crawler::page::robots::RobotsTxt;
use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig};
use frontier::{Leasing, Outcome, RobotsOutcome, Task, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = Canonicalizer::default().parse(&std::env::args().nth(1).ok_or("which URL?")?)?;
    let mut frontier = Frontier::in_memory(FrontierConfig::default())?; // a second between requests to a host
    let now = || Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    frontier.add_seed(&seed, now())?;
    loop {
        match frontier.lease(now(), 1)? {
            Leasing::NotUntil(time) => std::thread::sleep(time.since(now())),
            Leasing::Ready(leases) => {
                let url = &leases[0].entry.url;
                let body = ureq::get(&**url)
                    .call()
                    .and_then(|mut page| page.body_mut().read_to_vec());
                println!("{url}: {:?}", body.as_ref().map(Vec::len));
                let body = body.map_err(|error| Failure::new(FailureKind::Connect, error.to_string()));
                let settlement = match (leases[0].task(), body) {
                    (Task::Page(page), Ok(_)) => page.settle(Outcome::Done), // .with_links(what it links to)
                    (Task::Page(page), Err(failure)) => page.settle(Outcome::failed(failure)),
                    (Task::Robots(robots), Ok(text)) => {
                        robots.settle(RobotsOutcome::known(RobotsTxt::parse(&text, "my-bot")))
                    }
                    (Task::Robots(robots), Err(failure)) => robots.settle(RobotsOutcome::failed(failure)),
                    (Task::Sitemap(sitemap), _) => sitemap.settle(Outcome::Rejected), // if you offer any
                    (Task::Address(address), _) => address.settle(None, Duration::MAX), // with `per_address`
                };
                frontier.settle(&[settlement], now())?;
            }
            Leasing::Dropped(entries) => entries
                .iter()
                .for_each(|one| println!("{}: {}", one.entry.url, one.why)),
            Leasing::AllLeased | Leasing::BudgetSpent | Leasing::Drained => return Ok(()),
        }
    }
}
