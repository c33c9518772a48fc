//! A frontier with your own fetcher: robots.txt, links, redirects, failures, `Retry-After` and a clock. Replace `get` by an HTTP client.
//!
//! `cargo run -q -p crawl-frontier --example drive_frontier`

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frontier::reference::resolve;
use frontier::{Answer, Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Lease, Leasing};
use frontier::{Outcome, Purpose, RobotsRules, Settlement, Time};
use url::{ParseError, Url};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = FrontierConfig::default();
    config.retries.retry_wait = Duration::from_millis(20);
    config.politeness.delay = Duration::from_millis(10);
    let mut frontier = Frontier::in_memory(config)?;
    // A monotonic clock, anchored to the epoch once, so that a step of the wall clock does no harm.
    let (epoch, start) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
    let now = || Time::since_epoch(epoch + start.elapsed());
    frontier.add_seed(&Canonicalizer::default().parse("http://a.example/")?, now())?;
    let mut asked = Vec::new();
    loop {
        match frontier.lease(now(), 1)? {
            Leasing::Ready(leases) => {
                for lease in leases {
                    asked.push(lease.entry.url.clone());
                    for settled in frontier.settle(&[fetch(&lease, asked.len())?], now())? {
                        println!("{}: {:?} {:?}", lease.entry.url, settled.fate, settled.notices);
                    }
                }
            }
            Leasing::Dropped(entries) => entries
                .iter()
                .for_each(|one| println!("{}: {}", one.entry.url, one.why)),
            Leasing::NotUntil(time) => std::thread::sleep(time.since(now())),
            Leasing::AllLeased => return Err("wait here until a fetch has ended, if several run at a time".into()),
            Leasing::BudgetSpent | Leasing::Drained => break,
        }
    }
    println!("{}", frontier.report());
    let pages = frontier.report().pages;
    assert_eq!((pages.done, pages.redirected, pages.rejected), (3, 2, 1));
    let mails = asked.iter().filter(|url| url.ends_with("/mail"));
    assert_eq!(mails.count(), 1, "another request would be answered the same");
    assert!(!asked.iter().any(|url| url.contains("/private")));
    Ok(())
}

/// Fetches a lease. The tables of `frontier::answer` say which status and which failure has which outcome; here, only the links of a
/// page are added.
fn fetch(lease: &Lease, request: usize) -> Result<Settlement, ParseError> {
    let (url, urls) = (Url::parse(&lease.entry.url)?, Canonicalizer::default());
    let (answer, text) = match get(url.path(), request) {
        Ok(answered) => answered,
        Err(failure) => return Ok(lease.failed(failure)),
    };
    let settlement = lease.answered(&answer, &urls, || Disallowed(text));
    Ok(match (&lease.entry.purpose, settlement.outcome()) {
        (Purpose::Page, Outcome::Done) => {
            let link = |to| urls.canonicalize(resolve(Some(&url), to, None).ok()?).ok();
            settlement.with_links(lease.entry.links(text.split_whitespace().filter_map(link)))
        }
        _ => settlement,
    })
}

/// The paths that a robots.txt forbids for all crawlers, without wildcards.
#[derive(Debug)]
struct Disallowed(&'static str);

impl RobotsRules for Disallowed {
    fn allows(&self, path: &str) -> bool {
        let mut forbidden = self.0.lines().filter_map(|line| line.strip_prefix("Disallow: "));
        !forbidden.any(|prefix| path.starts_with(prefix))
    }
}

/// Returns the head of the answer, and the body: here a list of links. The fourth request fails.
fn get(path: &str, request: usize) -> Result<(Answer, &'static str), Failure> {
    let answer = |status, location: Option<&str>| Answer {
        status,
        location: location.map(str::to_owned),
        // What the server asks for while it is busy.
        retry_after: (status == 503).then_some(Duration::from_millis(50)),
        ..Answer::default()
    };
    match path {
        _ if request == 4 => Err(Failure::new(FailureKind::Connect, "connection refused")),
        "/robots.txt" => Ok((answer(200, None), "User-agent: *\nDisallow: /private")),
        "/" => Ok((answer(200, None), "/old /private/a /gone /busy /mail")),
        "/old" => Ok((answer(301, Some("/new")), "")),
        // A target that cannot be crawled: it ends here.
        "/mail" => Ok((answer(301, Some("mailto:ann@a.example")), "")),
        "/busy" if request < 10 => Ok((answer(503, None), "")),
        "/busy" | "/new" => Ok((answer(200, None), "")),
        _ => Ok((answer(404, None), "")),
    }
}
