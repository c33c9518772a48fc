//! What is remembered of hosts: failures, robots.txt, budgets, and who is given up.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use frontier::{
    CanonicalUrl, Canonicalizer, Fate, Frontier, FrontierConfig, FrontierError, HostKey, Lease, Leasing, Link,
    NotFetched, Origin, Outcome, Purpose, Reach, Refusal, RetryPolicy, ScopeConfig, Settled, Settlement, Time, Verdict,
};
use sieve::{ExactFilter, Filter, Load};

const START: Time = Time::from_millis(1_700_000_000_000);
const DOWN: Outcome = Outcome::HostDown { until: None };

fn at(seconds: u64) -> Time {
    START + Duration::from_secs(seconds)
}

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

fn origin(text: &str) -> Origin {
    url(text).origin()
}

fn config() -> FrontierConfig {
    FrontierConfig {
        delay: Duration::ZERO,
        ask_robots: false,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            jitter_percent: 0,
            ..RetryPolicy::default()
        },
        ..FrontierConfig::default()
    }
}

fn offer<F: Filter>(frontier: &mut Frontier<F>, urls: &[&str], now: Time) -> Vec<Verdict> {
    let links: Vec<_> = urls.iter().map(|text| Link::found(url(text), 1, "".into())).collect();
    frontier.offer(&links, now).unwrap()
}

#[track_caller]
fn one(frontier: &mut Frontier, now: Time) -> Lease {
    match frontier.lease(now, 1).unwrap() {
        Leasing::Ready(mut leases) => leases.remove(0),
        other => panic!("something should be ready, not {other:?}"),
    }
}

/// The next lease, whenever it comes.
#[track_caller]
fn next(frontier: &mut Frontier, now: &mut Time) -> Lease {
    loop {
        match frontier.lease(*now, 1).unwrap() {
            Leasing::Ready(mut leases) => return leases.remove(0),
            Leasing::NotUntil(time) => *now = time,
            other => panic!("something should be ready, not {other:?}"),
        }
    }
}

fn settle(frontier: &mut Frontier, lease: &Lease, outcome: Outcome, now: Time) -> Settled {
    let settlement = Settlement {
        lease: lease.id,
        outcome,
        links: Vec::new(),
    };
    frontier.settle(&[settlement], now).unwrap().remove(0)
}

#[test]
fn a_retry_waits_for_a_robots_txt_that_is_asked_for_anew_and_other_origins_do_not() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        ask_robots: true,
        per_host: NonZeroU32::new(5).unwrap(),
        ..config()
    })
    .unwrap();
    let (plain, tls) = (origin("http://a.example/"), origin("https://a.example/"));
    offer(&mut frontier, &["http://a.example/retry"], START);
    let robots = one(&mut frontier, START);
    settle(&mut frontier, &robots, Outcome::Done, START);
    frontier.robots_known(&plain, at(50), START).unwrap();
    let page = one(&mut frontier, START);
    let after = Some(Duration::from_secs(60));
    settle(&mut frontier, &page, Outcome::Retry { after }, START);

    let again = one(&mut frontier, at(60));
    assert_eq!(again.entry.purpose, Purpose::Robots(plain.clone()));
    assert_eq!(
        frontier.lease(at(60), 9).unwrap(),
        Leasing::AllLeased,
        "the retry waits"
    );

    frontier.robots_known(&tls, at(9000), at(60)).unwrap();
    offer(&mut frontier, &["https://a.example/"], at(60));
    assert_eq!(&*one(&mut frontier, at(60)).entry.url, "https://a.example/");
    assert_eq!(frontier.lease(at(60), 9).unwrap(), Leasing::AllLeased, "it still waits");

    settle(&mut frontier, &again, Outcome::Done, at(61));
    frontier.robots_known(&plain, at(9000), at(61)).unwrap();
    assert_eq!(one(&mut frontier, at(61)).entry.url, page.entry.url);
}

#[test]
fn retries_that_are_due_at_the_same_time_keep_their_order() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let urls = ["https://a.example/1", "https://a.example/2", "https://a.example/3"];
    offer(&mut frontier, &urls, START);
    for _ in urls {
        let lease = one(&mut frontier, START);
        settle(&mut frontier, &lease, Outcome::Retry { after: None }, START);
    }
    for url in urls {
        let lease = one(&mut frontier, at(1));
        assert_eq!(&*lease.entry.url, url);
        settle(&mut frontier, &lease, Outcome::Done, at(1));
    }
}

#[test]
fn any_answer_forgives_all_failures_of_a_host() {
    for answer in [Outcome::Done, Outcome::Gone, Outcome::Retry { after: None }] {
        let mut frontier = Frontier::in_memory(config()).unwrap();
        let urls: Vec<_> = (0..40).map(|n| format!("https://a.example/{n}")).collect();
        offer(
            &mut frontier,
            &urls.iter().map(String::as_str).collect::<Vec<_>>(),
            START,
        );
        let mut now = START;
        for outcome in [DOWN, DOWN, DOWN, DOWN, DOWN, answer].repeat(3) {
            let lease = next(&mut frontier, &mut now);
            let settled = settle(&mut frontier, &lease, outcome, now);
            assert!(settled.given_up.is_empty(), "{answer:?}");
        }
    }
}

#[test]
fn the_failures_of_a_host_are_remembered_while_nothing_is_queued_for_it() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        max_hosts: 1,
        ..config()
    })
    .unwrap();
    let mut now = START;
    for url in ["https://a.example/1", "https://a.example/2"] {
        assert_eq!(offer(&mut frontier, &[url], now), [Verdict::Queued]);
        for _ in 0..3 {
            let lease = next(&mut frontier, &mut now);
            settle(&mut frontier, &lease, DOWN, now);
        }
        now = now + Duration::from_secs(1_000);
        assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::Drained);
    }
    let verdicts = offer(&mut frontier, &["https://a.example/3"], now);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostDead)], "six failures in a row");
}

#[test]
fn the_delay_of_a_host_is_remembered_while_nothing_is_queued_for_it() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        max_hosts: 1,
        ..config()
    })
    .unwrap();
    offer(&mut frontier, &["https://a.example/1"], START);
    let lease = one(&mut frontier, START);
    let delay = Duration::from_secs(5);
    frontier.set_delay(&lease.entry.queue, delay, START).unwrap();
    settle(&mut frontier, &lease, Outcome::Done, START);
    assert_eq!(frontier.lease(at(100), 9).unwrap(), Leasing::Drained);
    let urls = ["https://a.example/2", "https://a.example/3"];
    offer(&mut frontier, &urls, at(100));
    let lease = one(&mut frontier, at(100));
    settle(&mut frontier, &lease, Outcome::Done, at(100));
    assert_eq!(frontier.lease(at(101), 9).unwrap(), Leasing::NotUntil(at(105)));
}

#[test]
fn a_host_is_given_up_together_with_the_robots_txt_that_waits_for_it() {
    let mut config = config();
    config.retries.max_host_failures = NonZeroU32::MIN;
    let mut frontier = Frontier::in_memory(config).unwrap();
    offer(&mut frontier, &["https://b.example/1", "https://b.example/2"], START);
    let page = one(&mut frontier, START);
    let whose = origin("https://a.example/");
    let target = url("https://b.example/robots-of-a.txt");
    frontier.follow_robots(&whose, &target, 1, START).unwrap();
    let settled = settle(&mut frontier, &page, DOWN, START);
    assert_eq!(settled.fate, Fate::GaveUp);
    let purposes: Vec<_> = settled.given_up.into_iter().map(|entry| entry.purpose).collect();
    assert_eq!(
        purposes,
        [Purpose::Robots(whose), Purpose::Page],
        "whoever waits for it is told"
    );
    let pages = frontier.report().pages;
    assert_eq!((pages.gave_up, pages.lost_with_host), (1, 1), "robots.txt is no page");
    assert!(frontier.is_drained());
}

#[test]
fn a_page_that_failed_for_good_counts_against_the_budget_of_its_host() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        max_pages_per_host: Some(1),
        ..config()
    })
    .unwrap();
    offer(&mut frontier, &["https://a.example/1"], START);
    let mut now = START;
    for _ in 0..3 {
        let lease = next(&mut frontier, &mut now);
        settle(&mut frontier, &lease, Outcome::Retry { after: None }, now);
    }
    let verdicts = offer(&mut frontier, &["https://a.example/2"], now);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostBudget)]);
}

#[test]
fn a_robots_txt_that_was_not_asked_for_is_not_counted_as_a_page_that_was_not() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        ask_robots: true,
        ..config()
    })
    .unwrap();
    offer(&mut frontier, &["https://a.example/1"], START);
    let robots = one(&mut frontier, START);
    let inside = Outcome::NotFetched(NotFetched::AddressForbidden);
    settle(&mut frontier, &robots, inside, START);
    assert!(frontier.report().not_fetched.is_empty());
}

/// A seen-set that breaks on one key.
#[derive(Debug)]
struct Brittle(ExactFilter);

impl Filter for Brittle {
    type Digest = ();

    fn digest(&self, _key: &[u8]) {}

    fn insert_digest(&mut self, key: &[u8], (): ()) -> bool {
        assert!(!key.ends_with(b"/breaks"), "this key breaks it");
        self.0.insert(key)
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(key)
    }

    fn load(&self) -> Load {
        self.0.load()
    }

    fn ones(&self) -> u64 {
        self.0.ones()
    }

    fn ones_above(&self, keys: f64) -> Option<u64> {
        self.0.ones_above(keys)
    }
}

#[test]
fn a_call_that_was_cut_short_leaves_a_frontier_that_says_so() {
    let mut frontier = Frontier::with_filter(config(), Brittle(ExactFilter::new())).unwrap();
    let urls = ["https://a.example/1", "https://a.example/breaks"];
    assert_eq!(offer(&mut frontier, &urls[..1], START), [Verdict::Queued]);
    let broken = catch_unwind(AssertUnwindSafe(|| offer(&mut frontier, &urls, START)));
    assert!(broken.is_err());
    assert_eq!(frontier.lease(START, 1), Err(FrontierError::Poisoned));
    assert_eq!(frontier.offer(&[], START), Err(FrontierError::Poisoned));
}

#[test]
fn what_failed_together_is_not_asked_for_together_again() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        retries: RetryPolicy::default(),
        ..config()
    })
    .unwrap();
    let urls: Vec<String> = (0..20).map(|n| format!("https://h{n}.example/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    offer(&mut frontier, &urls, START);
    let Leasing::Ready(leases) = frontier.lease(START, 20).unwrap() else {
        panic!("all hosts are due")
    };
    let due = |lease: &Lease| match settle(&mut frontier, lease, DOWN, START).fate {
        Fate::Requeued { due } => due.since(START),
        other => panic!("{other:?}"),
    };
    let mut waits: Vec<Duration> = leases.iter().map(due).collect();
    let second = Duration::from_secs(1);
    assert!(
        waits.iter().all(|wait| (second..second * 5 / 4).contains(wait)),
        "{waits:?}"
    );
    waits.sort();
    waits.dedup();
    assert!(waits.len() > 10, "{waits:?}");
}

#[test]
fn each_wait_of_a_page_is_spread_anew() {
    let mut frontier = Frontier::in_memory(FrontierConfig {
        retries: RetryPolicy::default(),
        ..config()
    })
    .unwrap();
    let urls: Vec<String> = (0..9).map(|n| format!("https://h{n}.example/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    offer(&mut frontier, &urls, START);
    let mut now = START;
    let mut waits: HashMap<HostKey, Vec<Duration>> = HashMap::new();
    for _ in 0..2 {
        let Leasing::Ready(leases) = frontier.lease(now, 9).unwrap() else {
            panic!("all hosts are due")
        };
        for lease in leases {
            let Fate::Requeued { due } = settle(&mut frontier, &lease, Outcome::Retry { after: None }, now).fate else {
                panic!("it is asked for again")
            };
            waits.entry(lease.entry.queue).or_default().push(due.since(now));
        }
        now = now + Duration::from_secs(60);
    }
    // The second wait is twice the first but for what is added.
    let alike = waits.values().filter(|waits| waits[1] == waits[0] * 2).count();
    assert!(waits.len() == 9 && alike < 3, "{waits:?}");
}
