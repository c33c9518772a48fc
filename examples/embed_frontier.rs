//! The frontier with a fetcher of one's own. It decides what to fetch next, and when; `drive_frontier` adds links.
//!
//! `cargo run -p crawler-cli --example embed_frontier -- http://localhost:8080/`

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crawler::page::robots::RobotsTxt; // or any other parser
use frontier::{Answer, Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Leasing, Time};
use ureq::{Agent, Error, Timeout};

const USER_AGENT: &str = "my-bot/1.0";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Agent::config_builder().http_status_as_error(false).max_redirects(0);
    let client = client
        .timeout_global(Some(Duration::from_secs(30)))
        .user_agent(USER_AGENT);
    let client = client.build().new_agent();
    let urls = Canonicalizer::default();
    let mut frontier = Frontier::in_memory(FrontierConfig::default())?; // a second between requests
    let (epoch, start) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
    let now = || Time::since_epoch(epoch + start.elapsed());
    frontier.add_seed(&urls.parse(&std::env::args().nth(1).ok_or("which URL?")?)?, now())?;
    loop {
        match frontier.lease(now(), 1)? {
            Leasing::NotUntil(time) => std::thread::sleep(time.since(now())),
            Leasing::Ready(leases) => {
                let (url, answer) = (&leases[0].entry.url, get(&client, &leases[0].entry.url));
                println!("{url}: {:?}", answer.as_ref().map(|(head, _)| head.status));
                let settlement = match answer {
                    // For a page, add its links: .with_links(..)
                    Ok((head, body)) => leases[0].answered(&head, &urls, || RobotsTxt::parse(&body, USER_AGENT)),
                    Err(failure) => leases[0].failed(failure),
                };
                frontier.settle(&[settlement], now())?;
            }
            Leasing::Dropped(entries) => println!("not fetched: {entries:?}"),
            Leasing::AllLeased | Leasing::BudgetSpent | Leasing::Drained => return Ok(()),
        }
    }
}

fn get(client: &Agent, url: &str) -> Result<(Answer, Vec<u8>), Failure> {
    let (head, body) = client.get(url).call().map_err(no_answer)?.into_parts();
    let header = |name| head.headers.get(name)?.to_str().ok();
    let answer = Answer {
        status: head.status.as_u16(),
        location: header("location").map(str::to_owned),
        retry_after: header("retry-after")
            .and_then(|after| after.parse().ok())
            .map(Duration::from_secs),
    };
    let mut bytes = Vec::new();
    match body.into_reader().take(10_000_000).read_to_end(&mut bytes) {
        // What is missing may forbid.
        Err(error) if head.status.is_success() => Err(Failure::new(FailureKind::Incomplete, error.to_string())),
        _ => Ok((answer, bytes)),
    }
}

fn no_answer(error: Error) -> Failure {
    let kind = match &error {
        Error::HostNotFound => FailureKind::Unresolved,
        Error::Timeout(Timeout::Connect) => FailureKind::Connect,
        Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => FailureKind::Connect,
        Error::Timeout(_) => FailureKind::Timeout,
        _ => FailureKind::Broken,
    };
    Failure::new(kind, error.to_string())
}
