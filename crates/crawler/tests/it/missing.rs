//! The summary of a crawl whose seen-set may have dropped a URL, whose queue was full, or whose frontier gave up an origin.

use std::num::NonZeroU32;
use std::time::Duration;

use crawler::{Ending, Summary};
use frontier::{
    Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Leasing, Link, Outcome, Reach, Refusal, RetryPolicy,
    RobotsOutcome, ScopeConfig, Task, Time,
};
use sieve::OnSaturation;

fn config() -> FrontierConfig {
    FrontierConfig {
        exact: true,
        delay: Duration::ZERO,
        ask_robots: false,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        ..FrontierConfig::default()
    }
}

fn link(text: &str) -> Link {
    Link::found(
        Canonicalizer::default().parse(text).unwrap(),
        1,
        "https://b.example/".into(),
    )
}

/// A sitemap that a full queue refuses is never read, so the pages that only it lists are missing.
#[test]
fn a_sitemap_that_a_full_queue_refuses_is_missing() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        ask_robots: true,
        max_queued: 1,
        ..config()
    })
    .unwrap();
    let now = Time::from_millis(1_700_000_000_000);
    frontier.offer(&[link("https://a.example/")], now).unwrap();
    while let Leasing::Ready(leases) = frontier.lease(now, 1).unwrap() {
        let settlement = match leases[0].task() {
            Task::Robots(robots) => {
                let sitemap = Canonicalizer::default().parse("https://a.example/sitemap.xml").unwrap();
                let links = vec![Link::sitemap(sitemap, robots.origin().clone(), 0, Some("x".into()))];
                robots.settle(RobotsOutcome::Unavailable).with_links(links)
            }
            Task::Page(page) => page.settle(Outcome::Done),
            other => panic!("{other:?}"),
        };
        frontier.settle(&[settlement], now).unwrap();
    }
    let report = frontier.report();
    assert_eq!(report.sitemaps.refused.get(&Refusal::QueueFull), Some(&1));
    let summary = Summary::new(Ending::Drained, report);
    assert!(
        !summary.missing().is_empty(),
        "complete, though a sitemap was refused for want of room"
    );
}

/// An origin that answers only 429 is given up. Links to it that are found later are refused, so the crawl is incomplete.
#[test]
fn links_to_a_given_up_origin_are_missing() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        retries: RetryPolicy {
            max_throttles: NonZeroU32::new(3).unwrap(),
            ..RetryPolicy::default()
        },
        ..config()
    })
    .unwrap();
    let mut now = Time::from_millis(1_700_000_000_000);
    frontier.offer(&[link("https://a.example/")], now).unwrap();
    loop {
        match frontier.lease(now, 1).unwrap() {
            Leasing::Ready(leases) => {
                let Task::Page(page) = leases[0].task() else { panic!() };
                let throttled = Outcome::failed(Failure::new(FailureKind::Throttled, "status 429"));
                frontier.settle(&[page.settle(throttled)], now).unwrap();
            }
            Leasing::NotUntil(time) => now = time,
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    let links: Vec<_> = (0..500).map(|n| link(&format!("https://a.example/{n}"))).collect();
    frontier.offer(&links, now).unwrap();
    let report = frontier.report();
    assert_eq!(report.links.refused.get(&Refusal::HostDown), Some(&500));
    assert_eq!(report.origins_given_up, 1);
    let mut summary = Summary::new(Ending::Drained, report);
    // The engine counts this page as given up with an answer, 429.
    summary.gave_up_answered = 1;
    assert!(
        !summary.missing().is_empty(),
        "complete, though 500 URLs of a host that was given up were refused"
    );
}

/// A loss of less than one expected URL is still a loss: the crawl is not called complete.
#[test]
fn a_seen_set_that_may_have_dropped_a_url_makes_the_crawl_incomplete() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        exact: false,
        capacity: 1_000,
        on_saturation: OnSaturation::Warn,
        ..config()
    })
    .unwrap();
    let now = Time::from_millis(1_700_000_000_000);
    let mut was_complete = false;
    for n in 0..1_000 {
        frontier.offer(&[link(&format!("https://a.example/{n}"))], now).unwrap();
        let report = frontier.report();
        let lost = report.saturation.lost;
        let summary = Summary::new(Ending::Drained, report);
        let missing = summary.missing();
        assert_eq!(missing.is_empty(), lost < 0.1, "{lost}: {missing:?}");
        assert_eq!(summary.lost_by_seen_set(), missing);
        was_complete |= missing.is_empty();
        if lost > 0.5 {
            let text = missing[0].to_string();
            assert!(
                text.starts_with("seen-set: one or a few URLs may be dropped, and"),
                "{text}"
            );
            assert!(was_complete);
            return;
        }
    }
    panic!("nothing was lost at the capacity");
}
