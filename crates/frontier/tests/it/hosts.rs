//! The state of hosts: retries, delays, budgets; and a frontier after a panic.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use frontier::{
    FailureKind, Fate, FrontierConfig, FrontierError, Leasing, LimitConfig, NotFetched, Outcome, PolitenessConfig,
    Purpose, Refusal, RetryPolicy, RobotsRules, Time, Verdict,
};

use crate::common::{
    self, Forbid, Orders as _, START, allow_for, answer, asking, at, config, failing, failure, frontier, give_rules,
    names, next, offer, one, origin, pages, settle, with_pages,
};

#[test]
fn a_retry_waits_for_a_robots_txt_that_is_asked_for_anew_and_other_origins_do_not() {
    let mut frontier = frontier(FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots: true,
            per_host: NonZeroU32::new(5).unwrap(),
            ..config().politeness
        },
        ..config()
    });
    offer(&mut frontier, &["http://a.example/retry"], START);
    let robots = one(&mut frontier, START);
    allow_for(&mut frontier, &robots, Duration::from_secs(50), START);
    let page = one(&mut frontier, START);
    let in_a_minute = Outcome::Failed {
        failure: failure(FailureKind::Status),
        retry_after: Some(Duration::from_secs(60)),
    };
    settle(&mut frontier, &page, in_a_minute, START);

    let again = one(&mut frontier, at(60));
    assert_eq!(again.entry.purpose, Purpose::Robots(origin("http://a.example/")));
    let answered = frontier.lease(at(60), 9).unwrap();
    assert_eq!(answered, Leasing::AllLeased, "the retry waits");

    offer(&mut frontier, &["https://a.example/"], at(60));
    let other = one(&mut frontier, at(60));
    allow_for(&mut frontier, &other, Duration::from_secs(9000), at(60));
    assert_eq!(&*one(&mut frontier, at(60)).entry.url, "https://a.example/");
    let answered = frontier.lease(at(60), 9).unwrap();
    assert_eq!(answered, Leasing::AllLeased, "it still waits");

    allow_for(&mut frontier, &again, Duration::from_secs(9000), at(61));
    assert_eq!(one(&mut frontier, at(61)).entry.url, page.entry.url);
}

#[test]
fn retries_that_are_due_at_the_same_time_keep_their_order() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 3));
    for _ in 0..3 {
        let lease = one(&mut frontier, START);
        settle(&mut frontier, &lease, failing(FailureKind::Status), START);
    }
    for n in 0..3 {
        let lease = one(&mut frontier, at(1));
        assert_eq!(*lease.entry.url, format!("https://a.example/{n}"));
        settle(&mut frontier, &lease, Outcome::Done, at(1));
    }
}

#[test]
fn a_retry_waits_behind_pages_that_were_never_asked_for() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 4));
    let first = one(&mut frontier, START);
    settle(&mut frontier, &first, failing(FailureKind::Status), START);
    for n in 1..4 {
        let lease = one(&mut frontier, at(60));
        assert_eq!(
            *lease.entry.url,
            format!("https://a.example/{n}"),
            "the retry is long due"
        );
        settle(&mut frontier, &lease, Outcome::Done, at(60));
    }
    assert_eq!(one(&mut frontier, at(60)).entry.url, first.entry.url);
}

#[test]
fn requests_at_the_epoch_are_followed_by_the_delay_too() {
    for per_host in [1, 2] {
        let mut config = config();
        config.politeness.per_host = NonZeroU32::new(per_host).unwrap();
        config.politeness.delay = Duration::from_secs(1);
        let mut frontier = with_pages(config, &pages("https://a.example/", 3));
        let first = one(&mut frontier, Time::EPOCH);
        if per_host == 1 {
            settle(&mut frontier, &first, Outcome::Done, Time::EPOCH);
        }
        // The epoch itself is "never".
        let next = Time::from_millis(1_001);
        assert_eq!(frontier.lease(Time::EPOCH, 9).unwrap(), Leasing::NotUntil(next));
    }
}

#[test]
fn the_delay_of_a_host_is_remembered_while_nothing_is_queued_for_it() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_hosts: 1,
            ..config().limits
        },
        ..config()
    });
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
fn a_page_that_failed_in_all_attempts_counts_against_the_budget_of_its_host() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_pages_per_host: Some(1),
            ..config().limits
        },
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1"], START);
    let mut now = START;
    for _ in 0..3 {
        let lease = next(&mut frontier, &mut now);
        settle(&mut frontier, &lease, failing(FailureKind::Status), now);
    }
    let verdicts = offer(&mut frontier, &["https://a.example/2"], now);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostBudget)]);
}

#[test]
fn a_robots_txt_that_was_not_asked_for_is_not_counted_as_a_page_that_was_not() {
    let mut frontier = frontier(asking(true));
    offer(&mut frontier, &["https://a.example/1"], START);
    let robots = one(&mut frontier, START);
    let inside = Outcome::NotFetched(NotFetched::AddressForbidden);
    answer(&mut frontier, &robots, inside, START);
    assert!(frontier.report().not_fetched.is_empty());
    assert!(matches!(frontier.lease(START, 9).unwrap(), Leasing::Dropped(_)));
    assert_eq!(frontier.report().not_fetched[&NotFetched::AddressForbidden], 1);
}

/// Rules that panic.
#[derive(Debug)]
struct Brittle;

impl RobotsRules for Brittle {
    fn allows(&self, path: &str) -> bool {
        assert!(path != "/breaks", "this path breaks them");
        true
    }
}

#[test]
fn a_call_that_panics_poisons_the_frontier() {
    let mut frontier = frontier(asking(true));
    offer(&mut frontier, &["https://a.example/breaks"], START);
    let robots = one(&mut frontier, START);
    give_rules(&mut frontier, &robots, Brittle, START);
    let broken = catch_unwind(AssertUnwindSafe(|| frontier.lease(START, 1)));
    assert!(broken.is_err());
    assert_eq!(frontier.lease(START, 1), Err(FrontierError::Poisoned));
    assert_eq!(frontier.offer(&[], START), Err(FrontierError::Poisoned));
    assert_eq!(frontier.settle(&[], START), Err(FrontierError::Poisoned));
}

/// How long each of twenty hosts waits after its first request has failed.
fn waits_after(kind: FailureKind) -> Vec<Duration> {
    let mut config = config();
    config.retries = RetryPolicy::default();
    let urls: Vec<_> = (0..20)
        .map(|n| common::link(&format!("https://h{n}.example/")))
        .collect();
    let mut frontier = with_pages(config, &urls);
    let Leasing::Ready(leases) = frontier.lease(START, 20).unwrap() else {
        panic!("all hosts are due")
    };
    for lease in &leases {
        settle(&mut frontier, lease, failing(kind), START);
    }
    let (mut waits, mut now) = (Vec::new(), START);
    while waits.len() < 20 {
        let again = next(&mut frontier, &mut now);
        waits.push(now.since(START));
        settle(&mut frontier, &again, Outcome::Done, now);
    }
    waits
}

#[test]
fn requests_that_failed_together_are_not_retried_together() {
    for kind in [FailureKind::Status, FailureKind::Connect] {
        let mut waits = waits_after(kind);
        let second = Duration::from_secs(1);
        assert!(
            waits.iter().all(|wait| (second..second * 5 / 4).contains(wait)),
            "{kind}: {waits:?}"
        );
        waits.dedup();
        assert!(waits.len() > 10, "{kind}: {waits:?}");
    }
}

#[test]
fn a_robots_txt_that_is_done_without_rules_lets_no_page_through_and_rules_of_a_page_mean_nothing() {
    let mut frontier = with_pages(asking(true), &pages("https://a.example/", 2));
    let mut now = START;
    let mut notices = Vec::new();
    while !names(&notices).contains(&"closed") {
        let robots = next(&mut frontier, &mut now);
        notices.extend(answer(&mut frontier, &robots, Outcome::Done, now).notices);
    }
    let Leasing::Dropped(dropped) = frontier.lease(now, 9).unwrap() else {
        panic!("a page was leased")
    };
    assert!(dropped.iter().all(|one| one.why == NotFetched::RobotsUnreachable));
    assert_eq!(dropped.len(), 2);

    let mut frontier = with_pages(asking(true), &pages("https://a.example/", 2));
    let robots = one(&mut frontier, START);
    answer(&mut frontier, &robots, Outcome::Rejected, START);
    for _ in 0..2 {
        let page = one(&mut frontier, START);
        let done = page.settle(Outcome::Done).with_rules(Forbid::below("/"));
        assert_eq!(common::commit(&mut frontier, done, START).fate, Fate::Final);
    }
}
