//! The frontier with a fetcher of one's own. It decides what to fetch next, and when; `drive_frontier` adds links.
//!
//! `cargo run -p crawl-cli --example embed_frontier -- http://localhost:8080/`

use std::io::Read;
use std::time::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

use frontier::{
    Answer, Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Lease, Leasing, Settlement, Time,
};
use page::robots::RobotsTxt; // or any other parser
use ureq::Agent;

const USER_AGENT: &str = "my-bot/1.0";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (client, urls, now) = (client(), Canonicalizer::default(), clock()?);
    let mut frontier = Frontier::in_memory(FrontierConfig::default())?; // a second between requests
    frontier.add_seed(&urls.parse(&std::env::args().nth(1).ok_or("which URL?")?)?, now())?;
    loop {
        match frontier.lease(now(), 1)? {
            Leasing::Ready(leases) => {
                let settlement = fetch(&client, &leases[0], &urls); // a page, or a robots.txt
                frontier.settle(&[settlement], now())?;
            }
            Leasing::NotUntil(time) => std::thread::sleep(time.since(now())),
            Leasing::Dropped(entries) => println!("not fetched: {entries:?}"),
            Leasing::AllLeased => unreachable!("one task settles each lease at once"),
            Leasing::BudgetSpent | Leasing::Drained => return Ok(()),
        }
    }
}

/// A client that answers every status and follows no redirect: that is for the frontier to decide.
fn client() -> Agent {
    let client = Agent::config_builder().http_status_as_error(false).max_redirects(0);
    let client = client.timeout_global(Some(Duration::from_secs(30)));
    client.user_agent(USER_AGENT).build().new_agent()
}

/// A monotonic clock, anchored to the epoch once, so that a step of the wall clock does no harm.
fn clock() -> Result<impl Fn() -> Time, SystemTimeError> {
    let (epoch, start) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
    Ok(move || Time::since_epoch(epoch + start.elapsed()))
}

fn fetch(client: &Agent, lease: &Lease, urls: &Canonicalizer) -> Settlement {
    let url = &lease.entry.url;
    let answer = get(client, url);
    println!("{url}: {:?}", answer.as_ref().map(|(head, _)| head.status));
    match answer {
        // For a page, add its links: .with_links(..)
        Ok((head, body)) => lease.answered(&head, urls, || RobotsTxt::parse(&body, USER_AGENT)),
        Err(failure) => lease.failed(failure),
    }
}

fn get(client: &Agent, url: &str) -> Result<(Answer, Vec<u8>), Failure> {
    let (head, body) = client
        .get(url)
        .call()
        .map_err(|error| Failure::of_error(&error))?
        .into_parts();
    let header = |name| head.headers.get(name)?.to_str().ok();
    let answer = Answer {
        status: head.status.as_u16(),
        location: header("location").map(str::to_owned),
        retry_after: header("retry-after")
            .and_then(|after| after.parse().ok())
            .map(Duration::from_secs),
        ..Answer::default()
    };
    let mut bytes = Vec::new();
    match body.into_reader().take(10_000_000).read_to_end(&mut bytes) {
        // What is missing may forbid.
        Err(error) if head.status.is_success() => Err(Failure::new(FailureKind::Incomplete, error.to_string())),
        _ => Ok((answer, bytes)),
    }
}
