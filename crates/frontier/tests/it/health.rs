//! What a host does at present: its state, since when, why, and until when.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    FailureKind, Frontier, FrontierConfig, Health, HostHealth, HostKey, Link, Notice, Outcome, PolitenessConfig, Time,
};

use crate::common::{
    self, Forbid, START, answer, asking, at, config, failing, failure, give_rules, is_robots, link, names, one, settle,
    url, with_pages,
};

fn host() -> HostKey {
    url("http://a.example/").host()
}

fn health(frontier: &Frontier, now: Time) -> HostHealth {
    frontier.host_report(&host(), now).unwrap().health
}

/// The state, and seconds since the start: since when and until when.
fn seen(frontier: &Frontier, now: Time) -> (Health, Option<f64>, Option<f64>) {
    let health = health(frontier, now);
    let states: Vec<_> = frontier.hosts_by_health(now).into_iter().collect();
    assert_eq!(states, [(health.state, 1)]);
    let is_listed = frontier.held_up(now).iter().any(|one| one.health == health);
    let is_held_up = (Health::Resting..Health::Closed).contains(&health.state);
    assert_eq!(is_listed, is_held_up, "{health:?}");
    (
        health.state,
        health.since.map(common::seconds),
        health.until.map(common::seconds),
    )
}

fn throttled(seconds: u64) -> Outcome {
    Outcome::failed_until(failure(FailureKind::Throttled), Some(Duration::from_secs(seconds)))
}

fn pages(config: FrontierConfig) -> Frontier {
    with_pages(config, &common::pages("http://a.example/", 4))
}

/// Asks for the robots.txt, which fails.
fn robots_fail(frontier: &mut Frontier, kind: FailureKind, now: Time) -> Vec<Notice> {
    let lease = one(frontier, now);
    assert!(is_robots(&lease));
    answer(frontier, &lease, Outcome::failed(failure(kind)), now).notices
}

#[test]
fn a_host_that_answers_is_asked_and_one_that_throttles_rests_longer_each_time_and_says_what_was_asked_for() {
    let mut frontier = pages(config());
    assert_eq!(seen(&frontier, START), (Health::Asked, None, None));
    let mut now = START;
    for (times, rest) in [(1, 4.0), (2, 4.0), (3, 4.0), (4, 8.0), (5, 16.0)] {
        let lease = one(&mut frontier, now);
        let notices = settle(&mut frontier, &lease, throttled(4), now).notices;
        let said: &[_] = if times == 1 { &["throttled"] } else { &[] };
        assert_eq!(names(&notices), said, "once in a row");
        let until = now + Duration::from_secs_f64(rest);
        let expected = (Health::Resting, Some(0.0), Some(common::seconds(until)));
        assert_eq!(seen(&frontier, now), expected);
        let found = health(&frontier, now);
        assert_eq!((found.asked_for, found.times), (Some(Duration::from_secs(4)), times));
        assert_eq!(found.cause.unwrap().kind, FailureKind::Throttled);
        now = until;
    }
    assert_eq!(
        seen(&frontier, now),
        (Health::Resting, Some(0.0), None),
        "it is asked next"
    );
    let lease = one(&mut frontier, now);
    settle(&mut frontier, &lease, Outcome::Done, now);
    assert_eq!(seen(&frontier, now), (Health::Asked, None, None));
    let lease = one(&mut frontier, now);
    assert_eq!(
        names(&settle(&mut frontier, &lease, throttled(4), now).notices),
        ["throttled"]
    );
    let report = frontier.host_report(&host(), now).unwrap();
    let second = Duration::from_secs(1);
    let left = Duration::from_secs(4 + report.queued);
    assert_eq!(
        report.time_left(second, 1.0, now),
        Some(left),
        "its rest, and a second for each"
    );
    let later = now + Duration::from_secs(3);
    let resting = frontier.host_report(&host(), later).unwrap();
    let left = Duration::from_secs(1 + report.queued);
    assert_eq!(
        resting.time_left(second, 1.0, later),
        Some(left),
        "the rest of its rest"
    );
    for (requests, each) in [(0.0, 1), (2.0, 2), (3.0, 3)] {
        let left = Duration::from_secs(4 + report.queued * each);
        assert_eq!(
            report.time_left(second, requests, now),
            Some(left),
            "{requests}: one at least"
        );
    }
}

#[test]
fn a_robots_txt_that_fails_says_so_once_until_it_is_closed_and_then_until_when() {
    let mut frontier = with_pages(asking(true), &[Link::seed(url("http://a.example/"))]);
    let notices = robots_fail(&mut frontier, FailureKind::Status, at(2));
    let [Notice::RobotsFailing { next, .. }] = &notices[..] else {
        panic!("{notices:?}")
    };
    assert_eq!(next.as_secs(), 1);
    assert_eq!(seen(&frontier, at(2)), (Health::RobotsFailing, Some(2.0), Some(3.0)));
    assert!(robots_fail(&mut frontier, FailureKind::Status, at(3)).is_empty());
    assert_eq!(seen(&frontier, at(3)), (Health::RobotsFailing, Some(2.0), Some(5.0)));
    assert_eq!(health(&frontier, at(3)).times, 2);
    let lease = one(&mut frontier, at(5));
    assert_eq!(
        seen(&frontier, at(5)),
        (Health::RobotsFailing, Some(2.0), None),
        "in flight"
    );
    give_rules(&mut frontier, &lease, Forbid::nothing(), at(5));
    assert_eq!(seen(&frontier, at(5)), (Health::Asked, None, None));
    let page = one(&mut frontier, at(5));
    settle(&mut frontier, &page, Outcome::Done, at(5));
    common::offer(&mut frontier, &["http://a.example/next"], at(5));
    let expired = at(5) + Duration::from_secs(25 * 60 * 60);
    robots_fail(&mut frontier, FailureKind::Status, expired);
    let found = health(&frontier, expired);
    assert_eq!(
        (found.state, found.given_up_at),
        (Health::RobotsFailing, None),
        "it continues by its rules"
    );

    let mut endless = asking(true);
    (endless.retries.retry_wait, endless.retries.max_retry_wait) = (Duration::MAX, Duration::MAX);
    let mut endless = with_pages(endless, &[link("http://a.example/")]);
    robots_fail(&mut endless, FailureKind::Status, START);
    assert!(health(&endless, START).given_up_at.is_some());

    let mut closed = with_pages(asking(true), &[link("http://a.example/")]);
    let (mut now, mut closed_at) = (START, None);
    for failed in 0..8 {
        let notices = robots_fail(&mut closed, FailureKind::Status, now);
        let said: &[_] = if failed == 0 { &["robots failing"] } else { &[] };
        assert!(failed == 7 || names(&notices) == said, "{notices:?}");
        if failed == 7 {
            assert_eq!(names(&notices), ["closed"]);
            break;
        }
        let said = health(&closed, now);
        let report = closed.host_report(&host(), now).unwrap();
        let left = report.time_left(Duration::ZERO, 1.0, now);
        let until_closed = said.given_up_at.unwrap().since(now);
        assert!(said.times < 2 || left == Some(until_closed), "{left:?}");
        assert_eq!(said.given_up_at, *closed_at.get_or_insert(said.given_up_at), "{failed}");
        now = said.until.unwrap();
    }
    assert_eq!(closed_at, Some(Some(now)));
    let since = common::seconds(now);
    assert_eq!(seen(&closed, now), (Health::Closed, Some(since), Some(since + 600.0)));
    assert_eq!(health(&closed, now).cause.unwrap().kind, FailureKind::Status);
}

#[test]
fn a_request_in_flight_for_ten_seconds_hangs_and_so_does_a_host_whose_requests_are_silent() {
    let mut frontier = pages(config());
    let lease = one(&mut frontier, at(1));
    assert!(frontier.began_to_hang(at(9), at(10)).is_empty());
    assert_eq!(seen(&frontier, at(10)), (Health::Asked, None, None));
    let notices = frontier.began_to_hang(at(10), at(11));
    assert_eq!(names(&notices), ["hanging"]);
    assert!(notices[0].to_string().contains(&*lease.entry.url), "{notices:?}");
    assert!(frontier.began_to_hang(at(11), at(12)).is_empty(), "once");
    assert_eq!(seen(&frontier, at(12)), (Health::Hanging, Some(1.0), None));
    let report = frontier.host_report(&host(), at(12)).unwrap();
    let left = |answer| {
        report
            .time_left(Duration::from_secs(answer), 1.0, at(12))
            .unwrap()
            .as_secs()
    };
    assert_eq!(
        [0, 2].map(left),
        [11, 11 + 4 * 2],
        "as long again, and then the four as its others"
    );

    settle(&mut frontier, &lease, failing(FailureKind::Timeout), at(20));
    assert_eq!(seen(&frontier, at(20)), (Health::Hanging, Some(20.0), None));
    assert_eq!(health(&frontier, at(20)).cause.unwrap().kind, FailureKind::Timeout);
    let lease = one(&mut frontier, at(21));
    assert!(frontier.began_to_hang(at(30), at(31)).is_empty(), "the same incident");
    settle(&mut frontier, &lease, Outcome::Done, at(32));
    assert_eq!(seen(&frontier, at(32)), (Health::Asked, None, None));
    one(&mut frontier, at(33));
    assert_eq!(names(&frontier.began_to_hang(at(40), at(43))), ["hanging"]);
}

#[test]
fn a_host_that_is_away_says_when_it_is_probed_and_one_that_is_given_up_says_why() {
    let mut frontier = pages(config());
    let lease = one(&mut frontier, START);
    settle(&mut frontier, &lease, failing(FailureKind::Connect), START);
    let mut now = START;
    while let (Health::Away, since, until) = seen(&frontier, now) {
        assert_eq!(since, Some(0.0));
        now = at(until.unwrap());
        let probe = one(&mut frontier, now);
        assert_eq!(seen(&frontier, now).2, None, "the probe is in flight");
        let report = frontier.host_report(&host(), now).unwrap();
        let end = report.health.given_up_at.unwrap();
        let lasts = report.health.times > 1;
        let left = if lasts { end.since(now) } else { now.since(START) };
        assert_eq!(report.time_left(Duration::ZERO, 1.0, now), Some(left));
        settle(&mut frontier, &probe, failing(FailureKind::Connect), now);
    }
    assert_eq!(
        seen(&frontier, now),
        (Health::GivenUp, Some(common::seconds(now)), None)
    );
    assert_eq!(health(&frontier, now).cause.unwrap().kind, FailureKind::Connect);
    frontier.lease(now, 9).unwrap();
    let report = frontier.host_report(&host(), now).unwrap();
    assert_eq!(report.time_left(Duration::ZERO, 1.0, now), None, "nothing waits");
}

#[test]
fn a_host_that_throttles_or_is_away_is_given_up_no_later_than_it_says() {
    for outcome in [throttled(4), failing(FailureKind::Connect)] {
        let mut frontier = pages(config());
        let (mut now, mut latest) = (START, None);
        while health(&frontier, now).state < Health::GivenUp {
            let lease = common::next(&mut frontier, &mut now);
            settle(&mut frontier, &lease, outcome.clone(), now);
            let said = health(&frontier, now).given_up_at;
            assert!(
                said.is_none_or(|said| latest.is_none_or(|latest| said <= latest)),
                "{said:?}"
            );
            latest = said.or(latest);
            let left = frontier
                .host_report(&host(), now)
                .unwrap()
                .time_left(Duration::ZERO, 1.0, now);
            assert!(said.is_none_or(|said| left.unwrap() <= said.since(now)), "{left:?}");
        }
        assert!(
            latest.unwrap() >= now && latest.unwrap().since(now) < Duration::from_secs(10),
            "{latest:?} {now:?}"
        );
        let given_up = Some(common::seconds(now));
        assert_eq!(seen(&frontier, now).1, given_up, "not since its trouble began");
    }
}

#[test]
fn a_host_that_always_throttles_says_from_the_first_time_on_when_it_is_given_up() {
    for retry_after in [None, Some(4), Some(86_400)].map(|after| after.map(Duration::from_secs)) {
        let mut config = config();
        config.retries.max_throttles = NonZeroU32::new(6).unwrap();
        let mut frontier = pages(config);
        let (mut now, mut said) = (START, Vec::new());
        while health(&frontier, now).state < Health::GivenUp {
            let lease = common::next(&mut frontier, &mut now);
            let in_flight = frontier.host_report(&host(), now).unwrap();
            if in_flight.health.lasts() {
                let left = in_flight.time_left(Duration::ZERO, 1.0, now).unwrap();
                said.push(now + left);
            }
            let answer = Outcome::failed_until(failure(FailureKind::Throttled), retry_after);
            settle(&mut frontier, &lease, answer, now);
            said.extend(health(&frontier, now).given_up_at);
        }
        assert!(said.len() > 8, "after two in a row it lasts: {said:?}");
        assert!(
            said.iter().all(|said| *said == now),
            "{retry_after:?}: {said:?}, and it was at {now:?}"
        );
    }
}

#[test]
fn a_host_for_which_nothing_waits_holds_nothing_up() {
    let mut config = config();
    config.retries.max_attempts = NonZeroU32::MIN;
    let mut frontier = with_pages(config, &[link("http://a.example/1"), link("http://a.example/2")]);
    for expected in [Health::Hanging, Health::Asked] {
        let lease = one(&mut frontier, START);
        settle(&mut frontier, &lease, failing(FailureKind::Timeout), START);
        assert_eq!(seen(&frontier, START).0, expected);
    }
}

/// Port 81 is away until it is given up, and port 80 is asked meanwhile: what waits decides.
#[test]
fn an_origin_with_nothing_waiting_does_not_decide_the_state_of_its_host() {
    let delay = Duration::from_secs(1);
    let mut frontier = with_pages(
        FrontierConfig {
            politeness: PolitenessConfig {
                delay,
                ..config().politeness
            },
            ..config()
        },
        &[link("http://a.example:81/")],
    );
    let lease = one(&mut frontier, START);
    settle(&mut frontier, &lease, failing(FailureKind::Connect), START);
    frontier.offer(&common::pages("http://a.example/", 500), START).unwrap();
    let found = health(&frontier, START);
    let away = Some(common::origin("http://a.example:81/"));
    assert_eq!((found.state, found.origin), (Health::Away, away));
    let mut now = START;
    while frontier.report().origins_given_up == 0 {
        let lease = common::next(&mut frontier, &mut now);
        let is_away = lease.entry.url.contains(":81");
        let outcome = if is_away {
            failing(FailureKind::Connect)
        } else {
            Outcome::Done
        };
        settle(&mut frontier, &lease, outcome, now);
    }
    let asked = Some(common::origin("http://a.example/"));
    let found = health(&frontier, now);
    assert_eq!((found.state, found.origin), (Health::Asked, asked));
}
