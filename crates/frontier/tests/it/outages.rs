//! Outages: origins that are away, come back, or are given up.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Dropped, FailureKind, Fate, Frontier, FrontierConfig, Lease, Leasing, LimitConfig, NotFetched, Notice, Outcome,
    PolitenessConfig, Purpose, Refusal, Time, Verdict,
};

use crate::common::{
    self, Forbid, START, allow_for, answer, asking, at, config, failing, failure, frontier, give_rules, is_robots,
    link, names, next, offer, one, origin, pages, ready, seconds, settle, with_pages,
};

const PAGES: &str = "https://a.example/";

fn eight_at_once(ask_robots: bool) -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(8).unwrap(),
            ..asking(ask_robots).politeness
        },
        ..asking(ask_robots)
    }
}

/// A frontier with a hundred pages of one origin, which has answered.
fn crawling(ask_robots: bool) -> Frontier {
    let mut frontier = with_pages(eight_at_once(ask_robots), &pages(PAGES, 100));
    let first = one(&mut frontier, START);
    well(&mut frontier, &first, START);
    frontier
}

/// Answers whatever was asked for.
fn well(frontier: &mut Frontier, lease: &Lease, now: Time) -> Vec<Notice> {
    if is_robots(lease) {
        give_rules(frontier, lease, Forbid::nothing(), now).notices
    } else {
        settle(frontier, lease, Outcome::Done, now).notices
    }
}

/// Fails whatever was asked for.
fn badly(frontier: &mut Frontier, lease: &Lease, kind: FailureKind, now: Time) -> Vec<Notice> {
    if is_robots(lease) {
        answer(frontier, lease, Outcome::failed(failure(kind)), now).notices
    } else {
        settle(frontier, lease, failing(kind), now).notices
    }
}

/// Fetches all that is left, and returns how many pages that were.
fn fetch_all(frontier: &mut Frontier, mut now: Time) -> u64 {
    let before = frontier.report().pages.done;
    loop {
        match frontier.lease(now, 8).unwrap() {
            Leasing::Ready(leases) => leases.iter().for_each(|lease| drop(well(frontier, lease, now))),
            Leasing::NotUntil(time) => now = time,
            Leasing::Drained => return frontier.report().pages.done - before,
            other => panic!("{other:?}"),
        }
    }
}

fn all_dropped(frontier: &mut Frontier, now: Time) -> Vec<Dropped> {
    let mut all = Vec::new();
    while let Leasing::Dropped(dropped) = frontier.lease(now, 1).unwrap() {
        all.extend(dropped);
    }
    all
}

#[test]
fn all_requests_that_fail_together_are_one_incident_and_one_at_a_time_asks_whether_the_origin_is_back() {
    for (kind, ask_robots) in [(FailureKind::Connect, true), (FailureKind::Unresolved, false)] {
        let mut frontier = crawling(ask_robots);
        let out = ready(&mut frontier, START);
        assert_eq!(out.len(), 8);
        let mut notices: Vec<Notice> = Vec::new();
        for lease in &out {
            let settled = settle(&mut frontier, lease, failing(kind), START);
            assert!(matches!(settled.fate, Fate::Requeued { .. }));
            notices.extend(settled.notices);
        }
        let [
            Notice::Away {
                origin: who,
                cause,
                patience,
            },
        ] = notices.as_slice()
        else {
            panic!("{kind}: {notices:?}")
        };
        assert_eq!((who, &**cause), (&origin(PAGES), &failure(kind)));
        assert_eq!(*patience, Duration::from_secs(300));
        let mut now = START;
        let mut probes = Vec::new();
        for _ in 0..8 {
            let Leasing::NotUntil(time) = frontier.lease(now, 9).unwrap() else {
                panic!("the origin is away")
            };
            now = time;
            let probe = common::only(&mut frontier, now);
            assert_eq!(
                is_robots(&probe),
                ask_robots,
                "what asks is the robots.txt, if that is asked for"
            );
            assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::AllLeased, "one at a time");
            assert_eq!(badly(&mut frontier, &probe, kind, now), []);
            probes.push(seconds(now));
        }
        assert_eq!(
            probes,
            [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0, 183.0],
            "up to a minute apart"
        );
    }
}

#[test]
fn an_outage_costs_no_page_and_no_attempt_and_its_end_is_reported() {
    for ask_robots in [true, false] {
        let mut frontier = crawling(ask_robots);
        for lease in ready(&mut frontier, START) {
            settle(&mut frontier, &lease, failing(FailureKind::Connect), START);
        }
        let probe = one(&mut frontier, at(1));
        assert_eq!(badly(&mut frontier, &probe, FailureKind::Connect, at(1)), []);
        let probe = one(&mut frontier, at(3));
        let back = Notice::Back {
            origin: origin(PAGES),
            after: Duration::from_secs(4),
        };
        let mut notices = well(&mut frontier, &probe, at(4));
        assert_eq!(notices.is_empty(), ask_robots, "only robots.txt is answered");
        let done = frontier.report().pages.done;
        let mut attempts = Vec::new();
        let mut left = 0;
        while let Leasing::Ready(leases) = frontier.lease(at(4), 8).unwrap() {
            for lease in leases {
                attempts.push(lease.entry.attempts);
                left += 1;
                notices.extend(well(&mut frontier, &lease, at(4)));
            }
        }
        assert_eq!(notices, [back]);
        assert_eq!((done + left, frontier.report().pages.done), (100, 100));
        assert!(
            attempts.iter().all(|attempt| *attempt == 1),
            "the outage counts for none of them"
        );
        assert_eq!(frontier.report().pages.gave_up, 0);
        assert!(frontier.report().is_drained());
    }
}

#[test]
fn requests_from_before_the_end_of_an_outage_that_fail_later_change_nothing() {
    let mut frontier = crawling(true);
    let out = ready(&mut frontier, START);
    assert_eq!(
        names(&badly(&mut frontier, &out[0], FailureKind::Connect, START)),
        ["away"]
    );
    let probe = one(&mut frontier, at(1));
    well(&mut frontier, &probe, at(1));
    for lease in &out[1..4] {
        assert_eq!(badly(&mut frontier, lease, FailureKind::Connect, at(2)), []);
    }
    for lease in &out[4..] {
        assert_eq!(badly(&mut frontier, lease, FailureKind::Timeout, at(2)), []);
    }
    assert_eq!(ready(&mut frontier, at(2)).len(), 8, "it is asked as before");
}

#[test]
fn an_answer_to_what_was_sent_before_an_origin_went_away_does_not_bring_it_back() {
    let mut frontier = crawling(true);
    let out = ready(&mut frontier, START);
    badly(&mut frontier, &out[0], FailureKind::Connect, at(0.5));
    assert_eq!(well(&mut frontier, &out[1], at(0.6)), []);
    let wait = frontier.lease(at(0.6), 9).unwrap();
    assert_eq!(wait, Leasing::NotUntil(at(1.5)), "it is away");
}

#[test]
fn a_robots_txt_that_asks_whether_an_origin_is_back_is_not_asked_for_twice_at_a_time() {
    let mut frontier = with_pages(eight_at_once(true), &pages(PAGES, 100));
    let robots = one(&mut frontier, START);
    allow_for(&mut frontier, &robots, Duration::from_millis(500), START);
    let out = ready(&mut frontier, START);
    badly(&mut frontier, &out[0], FailureKind::Connect, START);
    let probe = one(&mut frontier, at(1));
    assert_eq!(
        names(&well(&mut frontier, &out[1], at(1))),
        ["back"],
        "it was sent no earlier"
    );
    let answered = frontier.lease(at(1), 9).unwrap();
    assert_eq!(
        answered,
        Leasing::AllLeased,
        "the rules have expired, and are asked for already"
    );
    well(&mut frontier, &probe, at(1));
    assert!(!is_robots(&one(&mut frontier, at(1))));
}

/// Lets an origin fail until it is given up. Returns when, and the last notice.
fn until_given_up(frontier: &mut Frontier, host: &str) -> (Time, Notice) {
    let mut now = START;
    loop {
        let lease = next(frontier, &mut now);
        let notices = if lease.entry.queue.as_str() == host && lease.entry.url.starts_with("https://a.example/") {
            badly(frontier, &lease, FailureKind::Connect, now)
        } else {
            well(frontier, &lease, now)
        };
        if let [notice @ Notice::GivenUp { .. }] = notices.as_slice() {
            return (now, notice.clone());
        }
    }
}

#[test]
fn an_origin_is_given_up_after_five_minutes_or_thirty_seconds_if_it_never_answered_with_all_that_waits() {
    for (has_answered, ask_robots, patience) in [
        (true, true, 300_u32),
        (true, false, 300),
        (false, true, 30),
        (false, false, 30),
    ] {
        let mut frontier = if has_answered {
            crawling(ask_robots)
        } else {
            with_pages(eight_at_once(ask_robots), &pages(PAGES, 100))
        };
        let done = frontier.report().pages.done;
        let (now, notice) = until_given_up(&mut frontier, "a.example");
        let Notice::GivenUp {
            origin: who,
            cause,
            after,
            lost,
        } = notice
        else {
            unreachable!()
        };
        assert_eq!((who, &*cause), (origin(PAGES), &failure(FailureKind::Connect)));
        assert_eq!((now, after), (at(patience), Duration::from_secs(patience.into())));
        let dropped = all_dropped(&mut frontier, now);
        assert_eq!(dropped.len() as u64, lost);
        for one in &dropped {
            assert_eq!(
                (one.why, one.entry.purpose.clone()),
                (NotFetched::HostDown, Purpose::Page)
            );
            assert_eq!(one.cause.as_deref(), Some(&failure(FailureKind::Connect)));
        }
        let report = frontier.report();
        assert_eq!(report.pages.lost_with_host, lost);
        assert_eq!(done + lost + report.pages.gave_up, 100, "every page is accounted for");
        assert_eq!(report.origins_given_up, 1);
        assert!(frontier.report().is_drained());
        let late = offer(&mut frontier, &["https://a.example/late"], now);
        assert_eq!(late, [Verdict::Refused(Refusal::HostDown)]);
    }
}

#[test]
fn leases_come_between_the_batches_of_a_queue_that_was_given_up() {
    let mut frontier = with_pages(config(), &pages(PAGES, 1_000));
    let (now, _) = until_given_up(&mut frontier, "a.example");
    frontier.offer(&pages("https://b.example/", 9), now).unwrap();
    let kinds = [(); 6].map(|()| match frontier.lease(now, 1).unwrap() {
        Leasing::Ready(leases) => {
            well(&mut frontier, &leases[0], now);
            0
        }
        Leasing::Dropped(dropped) => dropped.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds, [256, 0, 256, 0, 256, 0]);
}

#[test]
fn only_the_origin_is_given_up_and_other_ports_of_its_host_go_on() {
    let mut all = pages(PAGES, 5);
    all.extend(pages("http://a.example/", 5));
    all.extend(pages("https://a.example:8443/", 5));
    let mut frontier = with_pages(eight_at_once(true), &all);
    let (now, notice) = until_given_up(&mut frontier, "a.example");
    assert!(matches!(notice, Notice::GivenUp { lost: 5, .. }), "{notice:?}");
    assert_eq!(all_dropped(&mut frontier, now).len(), 5);
    assert_eq!(frontier.report().pages.done, 10, "meanwhile the others were fetched");
    let more = ["https://a.example/x", "https://a.example:8443/x"];
    let verdicts = offer(&mut frontier, &more, now);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostDown), Verdict::Queued]);
    assert_eq!(fetch_all(&mut frontier, now), 1);
}

#[test]
fn a_failure_after_its_origin_was_given_up_is_no_new_incident() {
    let mut frontier = crawling(true);
    let out = ready(&mut frontier, START);
    badly(&mut frontier, &out[0], FailureKind::Connect, START);
    let mut now = START;
    let given_up = loop {
        let probe = next(&mut frontier, &mut now);
        let notices = badly(&mut frontier, &probe, FailureKind::Connect, now);
        if !notices.is_empty() {
            break notices;
        }
    };
    assert_eq!(names(&given_up), ["given up"]);
    assert_eq!(badly(&mut frontier, &out[1], FailureKind::Connect, now), []);
    let settled = settle(&mut frontier, &out[2], failing(FailureKind::Status), now);
    assert_eq!(settled.fate, Fate::GaveUp, "it is not asked again");
    assert_eq!(well(&mut frontier, &out[3], now), []);
    for lease in &out[4..] {
        assert_eq!(badly(&mut frontier, lease, FailureKind::Timeout, now), []);
    }
    let lost = all_dropped(&mut frontier, now).len() as u64;
    assert!(frontier.report().is_drained());
    let pages = frontier.report().pages;
    assert_eq!((pages.done + pages.gave_up + lost, pages.lost_with_host), (100, lost));
}

#[test]
fn an_origin_that_is_away_or_given_up_is_remembered_while_nothing_is_queued_for_it() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_hosts: 1,
            ..config().limits
        },
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1"], START);
    let (now, _) = until_given_up(&mut frontier, "a.example");
    assert_eq!(frontier.lease(at(9_999), 1).unwrap(), Leasing::Drained);
    let verdicts = frontier.offer(&[link("https://a.example/2")], at(9_999)).unwrap();
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostDown)], "given up at {now}");
}

#[test]
fn a_probe_that_is_never_sent_is_replaced_by_another() {
    for unsent in [
        Outcome::NotFetched(NotFetched::AddressForbidden),
        failing(FailureKind::OutOfHandles),
        failing(FailureKind::Panic),
    ] {
        let mut frontier = crawling(false);
        let first = one(&mut frontier, START);
        badly(&mut frontier, &first, FailureKind::Connect, START);
        let probe = one(&mut frontier, at(1));
        assert_eq!(settle(&mut frontier, &probe, unsent.clone(), at(1)).notices, []);
        let probe = one(&mut frontier, at(1));
        assert_eq!(names(&well(&mut frontier, &probe, at(1))), ["back"], "{unsent:?}");
    }
}

#[test]
fn an_origin_that_is_away_and_becomes_forbidden_is_closed_and_not_probed_forever() {
    let mut frontier = crawling(true);
    let page = one(&mut frontier, START);
    badly(&mut frontier, &page, FailureKind::Connect, START);
    let probe = one(&mut frontier, at(1));
    let inside = Outcome::NotFetched(NotFetched::AddressForbidden);
    answer(&mut frontier, &probe, inside, at(1));
    let dropped = all_dropped(&mut frontier, at(1));
    assert_eq!(dropped.len(), 100);
    assert!(dropped.iter().all(|one| one.why == NotFetched::AddressForbidden));
    assert!(frontier.report().is_drained());
}

#[test]
fn an_origin_without_a_certificate_to_trust_is_away_if_it_answered_before_and_otherwise_given_up_at_once() {
    for ask_robots in [true, false] {
        for first in [FailureKind::Connect, FailureKind::Tls] {
            let mut frontier = crawling(ask_robots);
            let page = one(&mut frontier, START);
            assert_eq!(names(&badly(&mut frontier, &page, first, START)), ["away"]);
            let mut now = START;
            while now < at(100) {
                let probe = next(&mut frontier, &mut now);
                assert_eq!(badly(&mut frontier, &probe, FailureKind::Tls, now), [], "{first}");
            }
            fetch_all(&mut frontier, now);
            assert_eq!(frontier.report().pages.done, 100, "{first}");
        }
        let mut unknown = with_pages(asking(ask_robots), &pages(PAGES, 2));
        let lease = one(&mut unknown, START);
        let closed = if ask_robots { vec!["closed"] } else { Vec::new() };
        assert_eq!(
            names(&badly(&mut unknown, &lease, FailureKind::Tls, START)),
            closed,
            "it is not away"
        );
        assert_eq!(unknown.report().pages.retries, 0);
    }
}

#[test]
fn an_outage_in_which_requests_time_out_costs_no_page() {
    for (per_host, max_attempts, is_throttled) in [(1, 3, false), (8, 3, false), (8, 2, false), (1, 3, true)] {
        let mut config = asking(true);
        config.politeness.per_host = NonZeroU32::new(per_host).unwrap();
        config.retries.max_attempts = NonZeroU32::new(max_attempts).unwrap();
        let count = if is_throttled { 1 } else { 40 };
        let mut frontier = with_pages(config, &pages(PAGES, count));
        let mut now = START;
        let robots = one(&mut frontier, now);
        well(&mut frontier, &robots, now);
        if is_throttled {
            let page = next(&mut frontier, &mut now);
            badly(&mut frontier, &page, FailureKind::Throttled, now);
        }
        while now < at(200) {
            let first = next(&mut frontier, &mut now);
            let mut out = vec![first];
            if let Leasing::Ready(more) = frontier.lease(now, 8).unwrap() {
                out.extend(more);
            }
            now = now + Duration::from_secs(30);
            for lease in &out {
                badly(&mut frontier, lease, FailureKind::Timeout, now);
            }
        }
        fetch_all(&mut frontier, now);
        let lost = count as u64 - frontier.report().pages.done;
        assert_eq!(
            lost, 0,
            "{per_host} at once, {max_attempts} attempts, throttled: {is_throttled}"
        );
    }
}

/// An origin that was away is back when a page is answered, also if its robots.txt answered 5xx in between until its rules were extended.
#[test]
fn after_extended_rules_it_is_back_when_a_page_is_answered() {
    let mut frontier = with_pages(eight_at_once(true), &pages(PAGES, 100));
    let robots = one(&mut frontier, START);
    allow_for(&mut frontier, &robots, Duration::from_secs(1), START);
    let page = one(&mut frontier, START);
    well(&mut frontier, &page, START);
    let page = one(&mut frontier, START);
    let mut told = Vec::new();
    told.extend(badly(&mut frontier, &page, FailureKind::Connect, START));
    let mut now = START;
    loop {
        let lease = next(&mut frontier, &mut now);
        if is_robots(&lease) {
            told.extend(badly(&mut frontier, &lease, FailureKind::Status, now));
        } else {
            told.extend(well(&mut frontier, &lease, now));
            break;
        }
    }
    assert_eq!(names(&told), ["away", "robots failing", "extended", "back"], "{now:?}");
}

/// A frontier whose origin was away for a second, and whose robots.txt forbade all until three days later.
fn away_for_a_second_three_days_ago() -> (Frontier, Time) {
    let mut frontier = with_pages(asking(true), &pages(PAGES, 2));
    let mut now = START;
    let robots = next(&mut frontier, &mut now);
    assert_eq!(
        names(&badly(&mut frontier, &robots, FailureKind::Connect, now)),
        ["away"]
    );
    let robots = next(&mut frontier, &mut now);
    assert_eq!(give_rules(&mut frontier, &robots, Forbid::below("/"), now).notices, []);
    all_dropped(&mut frontier, now);
    assert!(frontier.report().is_drained());
    now = now + Duration::from_secs(3 * 86_400);
    offer(&mut frontier, &["https://a.example/later"], now);
    let robots = next(&mut frontier, &mut now);
    assert!(is_robots(&robots));
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    (frontier, now)
}

/// A real outage long after a short one of which no page was answered since.
#[test]
fn an_outage_days_later_is_reported() {
    let (mut frontier, mut now) = away_for_a_second_three_days_ago();
    let mut reported = Vec::new();
    while !names(&reported).contains(&"given up") {
        let lease = next(&mut frontier, &mut now);
        reported.extend(badly(&mut frontier, &lease, FailureKind::Connect, now));
    }
    assert_eq!(names(&reported), ["away", "given up"]);
}

/// It was away for a second; how long nothing of it was asked for afterwards is no outage.
#[test]
fn back_says_how_long_it_was_away() {
    let (mut frontier, mut now) = away_for_a_second_three_days_ago();
    let page = next(&mut frontier, &mut now);
    let back = Notice::Back {
        origin: origin(PAGES),
        after: Duration::from_secs(1),
    };
    assert_eq!(well(&mut frontier, &page, now), [back]);
}

/// A page that was requested before the outage is no sign that it is over.
#[test]
fn a_late_answer_after_robots_txt_is_no_back() {
    let mut frontier = crawling(true);
    let out = ready(&mut frontier, START);
    assert_eq!(
        names(&badly(&mut frontier, &out[0], FailureKind::Connect, at(1))),
        ["away"]
    );
    let probe = one(&mut frontier, at(2));
    assert!(is_robots(&probe));
    well(&mut frontier, &probe, at(2));
    assert_eq!(well(&mut frontier, &out[1], at(2.5)), [], "sent before it went away");
}

/// Away, reported as away, and told, agree.
#[test]
fn what_is_reported_away_was_told() {
    let mut frontier = crawling(true);
    let out = ready(&mut frontier, START);
    let mut told = Vec::new();
    for lease in &out[..3] {
        told.extend(badly(&mut frontier, lease, FailureKind::Timeout, at(9)));
    }
    let state = |frontier: &Frontier, now| frontier.host_report(&out[0].entry.queue, now).unwrap().health.state;
    assert_eq!(state(&frontier, at(9)), frontier::Health::Hanging);
    // A late answer to a request from before the outage.
    told.extend(well(&mut frontier, &out[3], at(9.2)));
    let is_away = state(&frontier, at(9.2)) == frontier::Health::Away;
    assert_eq!(
        is_away,
        names(&told).contains(&"away"),
        "{:?} {told:?}",
        state(&frontier, at(9.2))
    );
}
