//! The frontier with a fetcher of one's own. It decides what to fetch next, and when; `drive_frontier` adds redirects and retries.
//!
//! `cargo run -p crawler-cli --example embed_frontier -- http://localhost:8080/`

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crawler::page::robots::RobotsTxt; // or any other parser
use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig};
use frontier::{Leasing, Outcome, RobotsOutcome, Task, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let client = config.max_redirects(0).build().new_agent();
    let seed = Canonicalizer::default().parse(&std::env::args().nth(1).ok_or("which URL?")?)?;
    let mut frontier = Frontier::in_memory(FrontierConfig::default())?; // a second between requests
    let now = || Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    frontier.add_seed(&seed, now())?;
    loop {
        match frontier.lease(now(), 1)? {
            Leasing::NotUntil(time) => std::thread::sleep(time.since(now())),
            Leasing::Ready(leases) => {
                let url = &leases[0].entry.url;
                let answer = client.get(&**url).call();
                println!("{url}: {:?}", answer.as_ref().map(|answer| answer.status()));
                let failure = match &answer {
                    Ok(answer) => FailureKind::of_status(answer.status().as_u16(), false),
                    Err(_) => Some(FailureKind::Connect),
                };
                let failure = failure.map(|kind| Failure::new(kind, format!("{answer:?}")));
                let body = answer.ok().filter(|answer| answer.status().is_success());
                let body = body.and_then(|mut answer| answer.body_mut().read_to_vec().ok());
                let settlement = match (leases[0].task(), failure, body) {
                    (Task::Page(page), Some(failure), _) => page.settle(Outcome::failed(failure)),
                    (Task::Page(page), None, None) => page.settle(Outcome::Rejected), // such as 404
                    (Task::Page(page), ..) => page.settle(Outcome::Done),             // .with_links(found on it)
                    (Task::Robots(robots), Some(failure), _) => robots.settle(RobotsOutcome::failed(failure)),
                    (Task::Robots(robots), None, Some(text)) => {
                        robots.settle(RobotsOutcome::known(RobotsTxt::parse(&text, "my-bot")))
                    }
                    (Task::Robots(robots), ..) => robots.settle(RobotsOutcome::Unavailable),
                    (Task::Sitemap(sitemap), ..) => sitemap.settle(Outcome::Rejected), // none offered
                    (Task::Address(address), ..) => address.settle(None, Duration::MAX),
                };
                frontier.settle(&[settlement], now())?;
            }
            Leasing::Dropped(entries) => println!("{entries:?}"), // forbidden, or its host is dead
            Leasing::AllLeased | Leasing::BudgetSpent | Leasing::Drained => return Ok(()),
        }
    }
}
