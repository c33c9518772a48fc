//! robots.txt: its rules are checked before a lease, kept for their lifetime, and fetched again.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::rules::{FIRST_CLOSING, MAX_ROBOTS_REDIRECTS, MAX_RULES_BYTES, ROBOTS_LIFETIME, RULES_EXTENSION};
use frontier::{
    Dropped, FailureKind, Fate, Frontier, FrontierConfig, Lease, Leasing, LimitConfig, NotFetched, Notice, Outcome,
    PolitenessConfig, Purpose, RetryPolicy, Settled, Time,
};

use crate::common::{
    self, Forbid, Orders as _, START, allow_for, answer, at, failing, failure, give_rules, is_robots, link, names,
    next, offer, one, origin, pages, redirect, settle, url, with_pages,
};

fn config() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots: true,
            ..common::config().politeness
        },
        ..common::config()
    }
}

fn failed(kind: FailureKind) -> Outcome {
    Outcome::failed(failure(kind))
}

/// Answers the robots.txt that is ready.
#[track_caller]
fn robots(frontier: &mut Frontier, outcome: Outcome, now: Time) -> Settled {
    let lease = one(frontier, now);
    answer(frontier, &lease, outcome, now)
}

/// Does the same with rules.
#[track_caller]
fn read(frontier: &mut Frontier, rules: Forbid, now: Time) -> Settled {
    let lease = one(frontier, now);
    give_rules(frontier, &lease, rules, now)
}

#[track_caller]
fn pieces(frontier: &mut Frontier, now: Time) -> Vec<Vec<Dropped>> {
    let mut pieces = Vec::new();
    while let Leasing::Dropped(dropped) = frontier.lease(now, 1).unwrap() {
        pieces.push(dropped);
    }
    pieces
}

#[test]
fn forbidden_pages_are_never_leased_and_spend_neither_delay_nor_budget() {
    let mut all = pages("https://a.example/private/", 3);
    all.push(link("https://a.example/public"));
    let mut frontier = with_pages(
        FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::from_secs(1),
                ..config().politeness
            },
            limits: LimitConfig {
                max_pages: Some(1),
                max_pages_per_host: Some(1),
                ..config().limits
            },
            ..config()
        },
        &all,
    );
    read(&mut frontier, Forbid::below("/private/"), START);
    let page = one(&mut frontier, at(1));
    assert_eq!(&*page.entry.url, "https://a.example/public");
    settle(&mut frontier, &page, Outcome::Done, at(1));
    let dropped = pieces(&mut frontier, at(1)).concat();
    assert!(
        dropped
            .iter()
            .all(|one| one.why == NotFetched::RobotsForbid && one.cause.is_none())
    );
    let report = frontier.report();
    assert_eq!(
        (report.not_fetched[&NotFetched::RobotsForbid], report.pages.done),
        (3, 1)
    );
    assert!(frontier.report().is_drained());
}

#[test]
fn a_retry_or_a_redirect_that_has_become_forbidden_is_dropped_too() {
    let mut frontier = with_pages(config(), &[link("https://a.example/private/1")]);
    let lease = one(&mut frontier, START);
    allow_for(&mut frontier, &lease, Duration::from_millis(500), START);
    let page = one(&mut frontier, START);
    settle(&mut frontier, &page, failing(FailureKind::Status), START);
    read(&mut frontier, Forbid::below("/private/"), at(1));
    let pieces = pieces(&mut frontier, at(1));
    assert_eq!((pieces.len(), pieces[0][0].why), (1, NotFetched::RobotsForbid));
    assert!(frontier.report().is_drained());
}

#[test]
fn rules_are_asked_by_path_and_query() {
    let mut frontier = with_pages(
        config(),
        &[link("https://a.example/list?page=2"), link("https://a.example/list")],
    );
    read(&mut frontier, Forbid::below("/list?page="), START);
    assert_eq!(&*one(&mut frontier, START).entry.url, "https://a.example/list");
}

#[test]
fn a_thousand_forbidden_pages_are_returned_in_batches() {
    let mut frontier = with_pages(config(), &pages("https://a.example/private/", 1_000));
    read(&mut frontier, Forbid::below("/private/"), START);
    let pieces = pieces(&mut frontier, START);
    let sizes: Vec<_> = pieces.iter().map(Vec::len).collect();
    assert_eq!(sizes, [256, 256, 256, 232]);
    let mut urls: Vec<_> = pieces.into_iter().flatten().map(|one| one.entry.url).collect();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 1_000);
    assert_eq!(frontier.report().not_fetched[&NotFetched::RobotsForbid], 1_000);
}

/// Fails the robots.txt of an origin until that has a consequence. Returns the notices of it, and how often it was asked for.
fn fail_to_the_end(frontier: &mut Frontier, kind: FailureKind, now: &mut Time) -> (Vec<Notice>, u32) {
    for attempt in 1..=300 {
        let lease = next(frontier, now);
        assert!(is_robots(&lease) && lease.entry.attempts == attempt, "{lease:?}");
        let settled = answer(frontier, &lease, failed(kind), *now);
        if settled.fate == Fate::GaveUp {
            return (settled.notices, attempt);
        }
        let said: &[_] = if attempt == 1 { &["robots failing"] } else { &[] };
        assert_eq!(names(&settled.notices), said);
    }
    panic!("it is asked for without end")
}

#[test]
fn a_robots_txt_is_asked_for_at_most_255_times() {
    for (most, asked) in [(2, 2), (255, 255), (256, 255), (100_000, 255)] {
        let retries = RetryPolicy {
            max_robots_attempts: NonZeroU32::new(most).unwrap(),
            ..RetryPolicy::default()
        };
        let config = FrontierConfig { retries, ..config() };
        let mut frontier = with_pages(config, &pages("https://a.example/", 1));
        let (_, attempts) = fail_to_the_end(&mut frontier, FailureKind::Status, &mut START.clone());
        assert_eq!(attempts, asked, "of {most}");
    }
}

#[test]
fn an_origin_whose_robots_txt_cannot_be_fetched_is_closed_for_a_while_with_the_cause() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 5));
    let mut now = START;
    let (notices, attempts) = fail_to_the_end(&mut frontier, FailureKind::Status, &mut now);
    assert_eq!((attempts, now), (8, at(127)), "1, 2, 4 ... 64 s apart");
    let [
        Notice::Closed {
            origin: who,
            cause,
            rest,
        },
    ] = notices.as_slice()
    else {
        panic!("{notices:?}")
    };
    assert_eq!(
        (who, &**cause, *rest),
        (
            &origin("https://a.example/"),
            &failure(FailureKind::Status),
            FIRST_CLOSING
        )
    );
    let dropped = pieces(&mut frontier, now).concat();
    assert_eq!(dropped.len(), 5);
    for one in dropped {
        assert_eq!(one.why, NotFetched::RobotsUnreachable);
        assert_eq!(one.cause.as_deref(), Some(&failure(FailureKind::Status)));
    }
    // What is found meanwhile is dropped too; after the rest it is asked again, and the next rest is twice as long.
    let closed_at = now;
    offer(&mut frontier, &["https://a.example/x"], now);
    assert_eq!(pieces(&mut frontier, closed_at + FIRST_CLOSING / 2).concat().len(), 1);
    now = closed_at + FIRST_CLOSING;
    offer(&mut frontier, &["https://a.example/y"], now);
    let (notices, _) = fail_to_the_end(&mut frontier, FailureKind::Status, &mut now);
    assert!(
        matches!(&notices[..], [Notice::Closed { rest, .. }] if *rest == 2 * FIRST_CLOSING),
        "{notices:?}"
    );
}

#[test]
fn a_silent_robots_txt_makes_an_origin_away_that_never_answered_and_counts_as_an_attempt_after() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 5));
    let settled = robots(&mut frontier, failed(FailureKind::Timeout), START);
    assert_eq!(names(&settled.notices), ["away"]);
    robots(&mut frontier, failed(FailureKind::Status), at(1));
    let settled = robots(&mut frontier, failed(FailureKind::Timeout), at(2));
    assert_eq!(names(&settled.notices), [""; 0], "it has answered");
    assert_eq!(settled.fate, Fate::Requeued { due: at(4) });
}

#[test]
fn rules_that_expire_and_cannot_be_fetched_again_are_extended() {
    let mut frontier = with_pages(config(), &pages("https://a.example/private/", 1));
    read(&mut frontier, Forbid::below("/private/"), START);
    pieces(&mut frontier, START);
    let mut now = START + ROBOTS_LIFETIME;
    offer(
        &mut frontier,
        &["https://a.example/private/x", "https://a.example/public"],
        now,
    );
    let (notices, _) = fail_to_the_end(&mut frontier, FailureKind::Status, &mut now);
    assert_eq!(names(&notices), ["extended"]);
    let page = next_page(&mut frontier, now);
    assert_eq!(&*page.entry.url, "https://a.example/public", "the last rules hold");
    settle(&mut frontier, &page, Outcome::Done, now);
    pieces(&mut frontier, now);
    let extended_at = now;
    offer(&mut frontier, &["https://a.example/later"], now + RULES_EXTENSION / 2);
    let page = one(&mut frontier, now + RULES_EXTENSION / 2);
    settle(&mut frontier, &page, Outcome::Done, now + RULES_EXTENSION / 2);
    now = extended_at + RULES_EXTENSION;
    offer(
        &mut frontier,
        &["https://a.example/private/y", "https://a.example/private/z"],
        now,
    );
    let (notices, _) = fail_to_the_end(&mut frontier, FailureKind::Status, &mut now);
    assert_eq!(names(&notices), ["extended"], "once more");
    assert_eq!(
        pieces(&mut frontier, now + RULES_EXTENSION * 3 / 2).concat().len(),
        2,
        "for twice as long"
    );
}

/// The next page, past what is dropped.
fn next_page(frontier: &mut Frontier, now: Time) -> Lease {
    loop {
        match frontier.lease(now, 1).unwrap() {
            Leasing::Ready(mut leases) => return leases.remove(0),
            Leasing::Dropped(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rules_beyond_the_bound_of_all_are_dropped_and_asked_for_again() {
    let hosts = 3;
    let all: Vec<_> = (0..hosts)
        .flat_map(|host| pages(&format!("https://h{host}.example/"), 2))
        .collect();
    let mut frontier = with_pages(config(), &all);
    let half = Forbid {
        bytes: MAX_RULES_BYTES / 2,
        ..Forbid::nothing()
    };
    let Leasing::Ready(leases) = frontier.lease(START, 9).unwrap() else {
        panic!("three robots.txt are ready")
    };
    for lease in &leases {
        give_rules(&mut frontier, lease, half.clone(), START);
        assert!(frontier.report().rules_bytes <= MAX_RULES_BYTES as u64);
    }
    let Leasing::Ready(leases) = frontier.lease(START, 9).unwrap() else {
        panic!("something is ready")
    };
    let asked: Vec<_> = leases
        .iter()
        .map(|lease| (lease.entry.queue.as_str(), is_robots(lease)))
        .collect();
    assert_eq!(asked.len(), 3);
    assert!(
        asked.contains(&("h0.example", false)),
        "the oldest that were not used yet stay: {asked:?}"
    );
    assert!(
        asked.contains(&("h2.example", true)),
        "the youngest are asked for again: {asked:?}"
    );
}

#[test]
fn a_redirected_robots_txt_is_fetched_there_and_applies_here() {
    let mut frontier = with_pages(config(), &pages("https://a.example/private/", 2));
    let here = one(&mut frontier, START);
    redirect(&mut frontier, &here, "https://b.example/robots-of-a.txt", START);
    let there = one(&mut frontier, START);
    assert_eq!(&*there.entry.url, "https://b.example/robots-of-a.txt");
    assert_eq!(there.entry.queue.as_str(), "b.example", "politeness is owed there");
    assert_eq!(there.entry.purpose, Purpose::Robots(origin("https://a.example/")));
    give_rules(&mut frontier, &there, Forbid::below("/private/"), START);
    assert_eq!(pieces(&mut frontier, START).concat().len(), 2);
}

#[test]
fn redirects_of_a_robots_txt_end_and_everything_is_allowed_then() {
    let mut frontier = with_pages(config(), &[link("https://a.example/1")]);
    for hop in 0..=MAX_ROBOTS_REDIRECTS {
        let lease = one(&mut frontier, START);
        redirect(&mut frontier, &lease, &format!("https://b.example/{hop}"), START);
    }
    assert_eq!(&*one(&mut frontier, START).entry.url, "https://a.example/1");
}

#[test]
fn a_redirect_target_of_robots_txt_that_fails_stalls_no_host() {
    for kind in [
        FailureKind::Connect,
        FailureKind::Timeout,
        FailureKind::Throttled,
        FailureKind::OutOfHandles,
    ] {
        let mut frontier = with_pages(config(), &pages("https://a.example/", 3));
        let lease = one(&mut frontier, START);
        redirect(&mut frontier, &lease, "https://b.example/x", START);
        offer(&mut frontier, &["https://c.example/"], START);
        let mut now = START;
        let (mut notices, mut requests) = (Vec::new(), 0);
        while !names(&notices).contains(&"closed") {
            requests += 1;
            assert!(requests < 50, "{kind}: it is asked for without end");
            let lease = next(&mut frontier, &mut now);
            match lease.entry.queue.as_str() {
                "b.example" => notices.extend(answer(&mut frontier, &lease, failed(kind), now).notices),
                "c.example" if is_robots(&lease) => {
                    assert_eq!(now, START, "it waits for nobody");
                    answer(&mut frontier, &lease, Outcome::Rejected, now);
                }
                "c.example" => drop(settle(&mut frontier, &lease, Outcome::Done, now)),
                other => panic!("{other} is asked before its robots.txt is known"),
            }
        }
        let dropped = pieces(&mut frontier, now).concat();
        assert!(
            dropped
                .iter()
                .all(|one| one.why == NotFetched::RobotsUnreachable && one.cause.is_some())
        );
        assert_eq!(dropped.len(), 3, "{kind}");
        assert!(frontier.report().is_drained());
    }
}

#[test]
fn the_longest_crawl_delay_applies_up_to_a_limit_and_an_operators_may_be_longer() {
    let seconds = Duration::from_secs;
    let delay_of = |asked: u64, own: u64| {
        let mut frontier = with_pages(config(), &pages("https://a.example/", 2));
        let rules = Forbid {
            delay: Some(seconds(asked)),
            ..Forbid::nothing()
        };
        read(&mut frontier, rules, START);
        frontier
            .set_delay(&url("https://a.example/").host(), seconds(own), START)
            .unwrap();
        match frontier.lease(START, 1).unwrap() {
            Leasing::NotUntil(time) => time.since(START).as_secs(),
            Leasing::Ready(_) => 0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([delay_of(5, 0), delay_of(5, 3), delay_of(5, 9)], [5, 5, 9]);
    assert_eq!(
        [delay_of(86_400, 0), delay_of(86_400, 99)],
        [60, 99],
        "no longer than max_crawl_delay"
    );
    assert_eq!(delay_of(0, 0), 0);
}

#[test]
fn a_lease_says_how_long_the_next_request_to_its_host_has_to_wait() {
    let seconds = Duration::from_secs;
    // Of the configuration, of robots.txt and of an operator.
    for (general, asked, own, longest) in [
        (0, 0, 0, 0),
        (4, 0, 0, 4),
        (0, 5, 0, 5),
        (0, 0, 6, 6),
        (7, 6, 5, 6),
        (7, 3, 5, 5),
    ] {
        let config = FrontierConfig {
            politeness: PolitenessConfig {
                delay: seconds(general),
                ..config().politeness
            },
            ..config()
        };
        let mut frontier = with_pages(config, &pages("https://a.example/", 2));
        let robots = one(&mut frontier, START);
        assert_eq!(robots.delay, seconds(general));
        let rules = Forbid {
            delay: Some(seconds(asked)),
            ..Forbid::nothing()
        };
        give_rules(&mut frontier, &robots, rules, START);
        frontier
            .set_delay(&url("https://a.example/").host(), seconds(own), START)
            .unwrap();
        let page = one(&mut frontier, at(60.0));
        assert_eq!(page.delay, seconds(longest));
    }
}

#[test]
fn with_a_longest_crawl_delay_of_zero_only_the_own_delays_count() {
    let wait_of = |own: u64, operators: Option<u64>| {
        let config = FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::from_secs(own),
                max_crawl_delay: Duration::ZERO,
                ..config().politeness
            },
            ..config()
        };
        let mut frontier = with_pages(config, &pages("https://a.example/", 2));
        let rules = Forbid {
            delay: Some(Duration::from_secs(30)),
            ..Forbid::nothing()
        };
        read(&mut frontier, rules, START);
        if let Some(seconds) = operators {
            let host = url("https://a.example/").host();
            frontier.set_delay(&host, Duration::from_secs(seconds), START).unwrap();
        }
        match frontier.lease(START, 1).unwrap() {
            Leasing::NotUntil(time) => time.since(START).as_secs(),
            Leasing::Ready(_) => 0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([wait_of(0, None), wait_of(7, None), wait_of(0, Some(9))], [0, 7, 9]);
}

#[test]
fn the_crawl_delay_of_a_host_is_the_longest_of_its_origins() {
    let mut frontier = with_pages(config(), &[link("https://a.example/1"), link("http://a.example/1")]);
    for delay in [7, 3] {
        let rules = Forbid {
            delay: Some(Duration::from_secs(delay)),
            ..Forbid::nothing()
        };
        let mut now = START;
        let lease = loop {
            let lease = next(&mut frontier, &mut now);
            if is_robots(&lease) {
                break lease;
            }
            settle(&mut frontier, &lease, Outcome::Done, now);
        };
        give_rules(&mut frontier, &lease, rules, now);
    }
    let receipt = frontier.host_reports(START).next().unwrap();
    assert_eq!(
        (receipt.delay, receipt.robots_at),
        (Duration::from_secs(7), Some(START))
    );
    let page = next(&mut frontier, &mut START.clone());
    assert!(page.pause >= Some(Duration::from_secs(7)), "{page:?}");
}

#[test]
fn rules_are_used_once_however_short_their_lifetime_is() {
    let mut frontier = with_pages(
        FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::from_secs(60),
                ..config().politeness
            },
            ..config()
        },
        &pages("https://a.example/", 3),
    );
    let mut now = START;
    let mut requests = Vec::new();
    while !frontier.report().is_drained() {
        assert!(requests.len() < 20, "{requests:?}");
        let lease = next(&mut frontier, &mut now);
        requests.push(if is_robots(&lease) { "robots" } else { "page" });
        if is_robots(&lease) {
            allow_for(&mut frontier, &lease, Duration::ZERO, now);
        } else {
            settle(&mut frontier, &lease, Outcome::Done, now);
        }
    }
    assert_eq!(requests, ["robots", "page"].repeat(3));
}
