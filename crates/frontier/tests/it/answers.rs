//! From HTTP answers to settlements: `Lease::answered` and `Lease::failed`.

use std::sync::Arc;
use std::time::Duration;

use frontier::{
    Answer, Canonicalizer, FailureKind, Fate, Frontier, Lease, Leasing, Link, NotFetched, Outcome, PreviousFetch,
    Purpose, Settled, Validators, Verdict,
};

use crate::common::{
    Forbid, START, asking, at, commit, config, failing, failure, is_robots, links, next, one, with_pages,
};

fn status(status: u16) -> Answer {
    Answer {
        status,
        ..Answer::default()
    }
}

fn moved(status: u16, location: &str) -> Answer {
    Answer {
        status,
        location: Some(location.to_owned()),
        ..Answer::default()
    }
}

/// Settles a lease with an answer. Its robots.txt would forbid everything.
fn answered(frontier: &mut Frontier, lease: &Lease, answer: &Answer) -> Settled {
    let settlement = lease.answered(answer, &Canonicalizer::default(), || Forbid::below("/"));
    commit(frontier, settlement, START)
}

#[test]
fn each_status_has_its_outcome() {
    let rest = Some(Duration::from_secs(7));
    let later = |status| Answer {
        status,
        retry_after: rest,
        ..Answer::default()
    };
    for done in [200, 206] {
        assert_eq!(status(done).outcome(&Purpose::Page), Outcome::Done, "{done}");
    }
    for rejected in [300, 302, 400, 401, 404, 410, 600, 0] {
        assert_eq!(
            status(rejected).outcome(&Purpose::Page),
            Outcome::Rejected,
            "{rejected}"
        );
    }
    assert_eq!(moved(302, "/b").outcome(&Purpose::Page), Outcome::Redirected);
    let unchanged = |location: Option<&str>| Answer {
        conditional: true,
        ..moved(304, location.unwrap_or_default())
    };
    assert_eq!(unchanged(None).outcome(&Purpose::Page), Outcome::Done);
    assert_eq!(unchanged(Some("/b")).outcome(&Purpose::Page), Outcome::Done);
    let failed = |answer: &Answer| match answer.outcome(&Purpose::Page) {
        Outcome::Failed { failure, retry_after } => (failure.kind, retry_after),
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(&status(429)), (FailureKind::Throttled, None));
    assert_eq!(failed(&later(429)), (FailureKind::Throttled, rest));
    assert_eq!(failed(&later(503)), (FailureKind::Throttled, rest));
    for other in [408, 425, 500, 599] {
        assert_eq!(failed(&later(other)), (FailureKind::Status, None), "{other}");
    }
    assert_eq!(failed(&status(503)), (FailureKind::Status, None));
    for unasked in [100, 101, 199, 304] {
        assert_eq!(failed(&status(unasked)), (FailureKind::Status, None), "{unasked}");
    }
}

#[test]
fn a_304_without_validators_is_a_failed_attempt_and_with_those_of_an_earlier_crawl_it_is_done() {
    let [plain, known] = &links(&["https://a.example/", "https://b.example/"])[..] else {
        panic!("two links")
    };
    let validators = Validators {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
    };
    let previous = PreviousFetch {
        validators,
        ..PreviousFetch::default()
    };
    let known = Link {
        previous: Some(Arc::new(previous)),
        ..known.clone()
    };
    let mut frontier = with_pages(config(), &[plain.clone(), known]);
    for done in [false, true] {
        let lease = one(&mut frontier, START);
        let fate = answered(&mut frontier, &lease, &status(304)).fate;
        assert_eq!(fate == Fate::Final, done, "{}: {fate:?}", lease.entry.url);
    }
    assert_eq!(frontier.report().pages.done, 1);
}

#[test]
fn a_redirect_is_followed_and_one_that_leads_nowhere_is_settled_at_once() {
    let mut frontier = with_pages(config(), &links(&["https://a.example/old", "https://b.example/"]));
    let old = one(&mut frontier, START);
    let settled = answered(&mut frontier, &old, &moved(301, "../new"));
    assert_eq!((settled.fate, settled.verdicts), (Fate::Final, vec![Verdict::Queued]));
    let mail = one(&mut frontier, START);
    let settled = answered(&mut frontier, &mail, &moved(301, "mailto:a@b.example"));
    assert_eq!((settled.fate, settled.verdicts.len()), (Fate::Final, 0));
    let mut now = START;
    let new = next(&mut frontier, &mut now);
    assert_eq!((&*new.entry.url, new.entry.hops), ("https://a.example/new", 1));
}

#[test]
fn a_robots_txt_that_broke_off_or_moved_never_allows_everything() {
    let page = ["https://a.example/private"];
    let mut frontier = with_pages(asking(true), &links(&page));
    let mut now = START;
    let robots = next(&mut frontier, &mut now);
    assert!(is_robots(&robots));
    let broken = robots.failed(failure(FailureKind::Incomplete));
    commit(&mut frontier, broken, now);

    let again = next(&mut frontier, &mut now);
    assert!(is_robots(&again), "no page before its rules are known");
    let to = again.answered(
        &moved(301, "https://b.example/rules.txt"),
        &Canonicalizer::default(),
        Forbid::nothing,
    );
    commit(&mut frontier, to, now);
    let target = next(&mut frontier, &mut now);
    assert!(is_robots(&target));
    assert_eq!(&*target.entry.url, "https://b.example/rules.txt");
    let rules = target.answered(&status(200), &Canonicalizer::default(), || Forbid::below("/private"));
    commit(&mut frontier, rules, now);
    let Leasing::Dropped(dropped) = frontier.lease(now, 1).unwrap() else {
        panic!("it is forbidden")
    };
    assert_eq!(dropped[0].why, NotFetched::RobotsForbid);
}

#[test]
fn a_robots_txt_that_is_not_there_allows_everything_and_one_that_fails_nothing() {
    for allowing in [
        status(404),
        status(401),
        status(408),
        status(302),
        moved(301, "mailto:a@b.example"),
    ] {
        let mut frontier = with_pages(asking(true), &links(&["https://a.example/"]));
        let robots = one(&mut frontier, START);
        answered(&mut frontier, &robots, &allowing);
        let mut now = START;
        assert!(!is_robots(&next(&mut frontier, &mut now)), "{allowing:?}");
    }
    for failing in [101, 304, 412, 416, 429, 500, 503, 600].map(status) {
        let mut frontier = with_pages(asking(true), &links(&["https://a.example/"]));
        let robots = one(&mut frontier, START);
        let settled = answered(&mut frontier, &robots, &failing);
        assert!(matches!(settled.fate, Fate::Requeued { .. }), "{failing:?}");
        let mut now = START;
        assert!(is_robots(&next(&mut frontier, &mut now)), "{failing:?}");
    }
}

#[test]
fn a_failed_page_is_retried() {
    let mut frontier = with_pages(config(), &links(&["https://a.example/"]));
    let page = one(&mut frontier, START);
    let by_parts = page.failed(failure(FailureKind::Incomplete));
    assert_eq!(by_parts.outcome(), &failing(FailureKind::Incomplete));
    let settled = commit(&mut frontier, by_parts, START);
    assert_eq!(settled.fate, Fate::Requeued { due: at(1) });
}

#[test]
fn the_report_is_a_few_lines() {
    let mut frontier = with_pages(config(), &links(&["https://a.example/", "https://b.example/"]));
    let page = one(&mut frontier, START);
    answered(&mut frontier, &page, &status(404));
    let text = frontier.report().to_string();
    assert!(
        text.starts_with(
            "pages: 0 fetched, 0 redirects, 1 rejected, 0 given up, 0 lost with their origin; 0 retries\n"
        ),
        "{text}"
    );
    assert!(text.contains("left: 1 pages queued, 0 leases in flight\n"), "{text}");
    assert!(text.lines().count() == 5, "{text}");
}
