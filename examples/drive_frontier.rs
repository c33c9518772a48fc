//! A frontier with your own fetcher: robots.txt, redirects, failures and a clock. Replace `get` by an HTTP client.
//!
//! `cargo run -q -p frontier --example drive_frontier`

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Lease, Leasing};
use frontier::{Outcome, RobotsOutcome, RobotsRules, Settlement, Task, Time};
use url::{ParseError, Url};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = FrontierConfig::default();
    config.retries.first_wait = Duration::from_millis(20);
    config.delay = Duration::from_millis(10);
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
    let pages = frontier.report().pages;
    assert_eq!((pages.done, pages.redirected, pages.rejected), (3, 1, 1));
    assert!(!asked.iter().any(|url| url.contains("/private")));
    Ok(())
}

/// Fetches a lease. Its task decides which outcomes it can have: a robots.txt cannot be settled as a page.
fn fetch(lease: &Lease, request: usize) -> Result<Settlement, ParseError> {
    let url = Url::parse(&lease.entry.url)?;
    let resolve = |to: &str| Canonicalizer::default().canonicalize(url.join(to).ok()?).ok();
    let answer = get(url.path(), request).and_then(|(status, text)| match FailureKind::of_status(status, false) {
        Some(kind) => Err(Failure::new(kind, format!("status {status}"))),
        None => Ok((status, text)),
    });
    Ok(match (lease.task(), answer) {
        (Task::Page(page), Ok((200..=299, text))) => {
            let referrer = url.as_str().into();
            let link = |to| Some(lease.entry.link(resolve(to)?, &referrer));
            let links = text.split_whitespace().filter_map(link).collect();
            page.settle(Outcome::Done).with_links(links)
        }
        (Task::Page(page), Ok((300..=399, text))) => match resolve(text).map(|to| lease.entry.redirected(to)) {
            Some(link) => page.settle(Outcome::Redirected).with_links(vec![link]),
            None => page.settle(Outcome::failed(Failure::new(FailureKind::Redirect, text))),
        },
        (Task::Page(page), Ok(_)) => page.settle(Outcome::Rejected),
        (Task::Page(page), Err(failure)) => page.settle(Outcome::failed(failure)),
        (Task::Robots(robots), Ok((status, text))) => robots.settle(match (status, resolve(text)) {
            (200..=299, _) => RobotsOutcome::known(Disallowed(text)),
            (300..=399, Some(target)) => RobotsOutcome::Redirected(target),
            _ => RobotsOutcome::Unavailable, // then all is allowed
        }),
        (Task::Robots(robots), Err(failure)) => robots.settle(RobotsOutcome::failed(failure)),
        (Task::Sitemap(sitemap), _) => sitemap.settle(Outcome::Rejected), // only if sitemaps are offered
        (Task::Address(address), _) => address.settle(None, Duration::MAX), // only with `per_address`
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

/// Returns the status, and the body (here a list of links) or the `Location`. The fourth request fails.
fn get(path: &str, request: usize) -> Result<(u16, &'static str), Failure> {
    match path {
        _ if request == 4 => Err(Failure::new(FailureKind::Connect, "connection refused")),
        "/robots.txt" => Ok((200, "User-agent: *\nDisallow: /private")),
        "/" => Ok((200, "/old /private/a /gone /busy")),
        "/old" => Ok((301, "/new")),
        "/busy" if request < 9 => Ok((503, "")),
        "/busy" | "/new" => Ok((200, "")),
        _ => Ok((404, "")),
    }
}
