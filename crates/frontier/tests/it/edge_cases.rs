//! Edge cases: outages that follow one another, dropped entries that were not returned yet, rules that are evicted.

use std::time::Duration;

use frontier::config::MAX_ORIGINS_PER_HOST;
use frontier::rules::MAX_RULES_BYTES;
use frontier::{
    FailureKind, Fate, Frontier, FrontierConfig, LimitConfig, Notice, Outcome, PolitenessConfig, Refusal, Time,
    Verdict, Why,
};

use crate::common::{
    self, Forbid, Orders as _, START, answer, asking, at, config, failing, failure, give_rules, is_robots, link, names,
    next, offer, one, pages, settle, url, with_pages,
};

fn refused() -> Outcome {
    Outcome::failed(failure(FailureKind::Connect))
}

/// An origin that was away for one second, and whose robots.txt has answered since, is given up at its first failure
/// 301 seconds later, with all that waits: a host that rests, or waits long for its turn, in between.
#[test]
fn two_short_outages_five_minutes_apart_do_not_give_up_an_origin() {
    let mut frontier = with_pages(asking(true), &pages("https://a.example/", 100));
    let mut now = START;
    let robots = next(&mut frontier, &mut now);
    answer(&mut frontier, &robots, refused(), now);
    let robots = next(&mut frontier, &mut now);
    assert!(is_robots(&robots));
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    // Nothing of it is asked for a while: an operator's block, a long line at its address, a busy crawl.
    frontier.block(&url("https://a.example/").host(), at(302), now).unwrap();
    let page = next(&mut frontier, &mut now);
    assert!(now >= at(302));
    let settled = settle(&mut frontier, &page, failing(FailureKind::Connect), now);
    assert_eq!(
        names(&settled.notices),
        ["away"],
        "it was away for 1 s, five minutes ago: {:?}",
        settled.notices
    );
    assert!(matches!(settled.fate, Fate::Requeued { .. }), "{:?}", settled.fate);
}

fn given_up_with(count: usize) -> (Frontier, Time) {
    let mut frontier = with_pages(asking(true), &pages("https://a.example/", count));
    let mut now = START;
    loop {
        let robots = next(&mut frontier, &mut now);
        if names(&answer(&mut frontier, &robots, refused(), now).notices) == ["given up"] {
            return (frontier, now);
        }
    }
}

/// Between giving up and handing over, pages are in no number. A crawl whose time is up just then says "0 URLs left".
#[test]
fn the_counts_add_up_while_dropped_entries_are_returned() {
    let (frontier, _) = given_up_with(1_000);
    let report = frontier.report();
    assert_eq!(
        report.queued + report.leased + report.pages.lost_with_host + report.pages.gave_up,
        report.links.queued,
        "1000 pages were queued; none is queued, leased, or lost"
    );
}

/// And `why` says of them that they were handed out, or never met.
#[test]
fn why_reports_entries_that_were_dropped() {
    let (frontier, now) = given_up_with(10);
    let why = frontier.why(&url("https://a.example/5"), now);
    assert!(!matches!(why, Why::Seen { .. }), "{why}");
}

/// An origin that was given up for throttling was not away at all.
#[test]
fn the_notice_of_a_host_given_up_for_throttling_names_no_outage() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 100));
    let mut now = START;
    loop {
        let page = next(&mut frontier, &mut now);
        let notices = settle(&mut frontier, &page, failing(FailureKind::Throttled), now).notices;
        if let [notice @ Notice::GivenUp { .. }] = notices.as_slice() {
            assert!(now.since(START) > Duration::from_secs(600));
            assert!(!notice.to_string().contains("after"), "{notice}");
            assert!(notice.to_string().contains("is given up: "), "{notice}");
            return;
        }
    }
}

/// A panic of ours in the task of a robots.txt is no answer of an origin that is away (as it is none for a page).
#[test]
fn a_panic_while_fetching_robots_txt_does_not_end_an_outage() {
    let mut frontier = with_pages(asking(true), &pages("https://a.example/", 3));
    let mut now = START;
    let robots = next(&mut frontier, &mut now);
    answer(&mut frontier, &robots, refused(), now);
    let robots = next(&mut frontier, &mut now);
    let panic = Outcome::failed(failure(FailureKind::Panic));
    let settled = answer(&mut frontier, &robots, panic, now);
    assert_eq!(names(&settled.notices), ["robots failing"]);
}

fn large(delay: Option<Duration>) -> Forbid {
    Forbid {
        bytes: MAX_RULES_BYTES / 2 + 1,
        delay,
        ..Forbid::nothing()
    }
}

/// Rules that were evicted take their crawl delay with them, once another origin of the host is read.
#[test]
fn an_evicted_file_keeps_its_crawl_delay_until_it_is_read_again() {
    let mut frontier = with_pages(asking(true), &[link("http://a.example/1")]);
    let host = url("http://a.example/").host();
    let delay = |frontier: &Frontier| frontier.host_reports(START).find(|one| one.host == host).unwrap().delay;
    let robots = one(&mut frontier, START);
    give_rules(&mut frontier, &robots, large(Some(Duration::from_secs(30))), START);
    let page = one(&mut frontier, at(30));
    settle(&mut frontier, &page, Outcome::Done, at(30));
    // Another site's file makes room for itself.
    offer(&mut frontier, &["https://b.example/"], at(30));
    let robots = one(&mut frontier, at(30));
    give_rules(&mut frontier, &robots, large(None), at(30));
    assert_eq!(delay(&frontier), Duration::from_secs(30), "evicted, and its delay kept");
    offer(&mut frontier, &["https://a.example/1"], at(60));
    let mut now = at(60);
    let robots = loop {
        let lease = next(&mut frontier, &mut now);
        if lease.entry.url.starts_with("https://a.") {
            break lease;
        }
        if is_robots(&lease) {
            give_rules(&mut frontier, &lease, Forbid::nothing(), now);
        } else {
            settle(&mut frontier, &lease, Outcome::Done, now);
        }
    };
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    assert_eq!(
        delay(&frontier),
        Duration::from_secs(30),
        "http://a.example asks for 30 s, and has not changed"
    );
}

/// Three hosts with large files and a delay ask for their robots.txt for ever, and never for a page.
#[test]
fn rules_are_used_once_before_they_make_room() {
    let all = ["a", "b", "c", "d"].map(|host| link(&format!("https://{host}.example/")));
    let mut frontier = with_pages(
        FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::from_secs(10),
                ..asking(true).politeness
            },
            ..asking(true)
        },
        &all,
    );
    let mut now = START;
    let mut robots = 0;
    while !frontier.report().is_drained() {
        let lease = next(&mut frontier, &mut now);
        if is_robots(&lease) {
            robots += 1;
            give_rules(&mut frontier, &lease, large(None), now);
        } else {
            settle(&mut frontier, &lease, Outcome::Done, now);
        }
        assert!(
            robots < 1_000,
            "{:?} after {robots} robots.txt in {:?}",
            frontier.report().pages,
            now.since(START)
        );
    }
}

/// Two outages of a few seconds in which the server hangs cost the page that both met: the attempts that the first incident
/// has spent are not given back.
#[test]
fn two_hangs_cost_no_page() {
    let mut frontier = with_pages(asking(true), &pages("https://a.example/", 3));
    let mut now = START;
    let robots = next(&mut frontier, &mut now);
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    let first = next(&mut frontier, &mut now);
    settle(&mut frontier, &first, Outcome::Done, now);
    // The first hang: until the origin may be away. Two pages are left, and both were in it.
    let robots = loop {
        let lease = next(&mut frontier, &mut now);
        if is_robots(&lease) {
            break lease;
        }
        now = now + Duration::from_secs(2);
        let settled = settle(&mut frontier, &lease, failing(FailureKind::Timeout), now);
        assert_eq!(settled.notices, [], "it is not known whether it is its pages alone");
    };
    // It is back, and answers one of the two.
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    let second = next(&mut frontier, &mut now);
    settle(&mut frontier, &second, Outcome::Done, now);
    // The second hang meets the last page once.
    let third = next(&mut frontier, &mut now);
    now = now + Duration::from_secs(2);
    let settled = settle(&mut frontier, &third, failing(FailureKind::Timeout), now);
    assert!(
        matches!(settled.fate, Fate::Requeued { .. }),
        "{:?}, attempt {}",
        settled.fate,
        third.entry.attempts
    );
}

/// A budget of no page is one page of each host that is met for the first time.
#[test]
fn a_budget_of_none_is_none() {
    let mut frontier = common::frontier(FrontierConfig {
        limits: LimitConfig {
            max_pages_per_host: Some(0),
            ..config().limits
        },
        ..config()
    });
    let verdicts = offer(&mut frontier, &["https://a.example/"], START);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostBudget)]);
}

/// A page could link to all ports of a host, each with a robots.txt of its own.
#[test]
fn a_host_has_a_limit_of_ports_except_for_seeds() {
    let urls: Vec<_> = (0..400).map(|n| format!("http://a.example:{}/", 65_000 - n)).collect();
    let mut frontier = common::frontier(config());
    let verdicts = offer(
        &mut frontier,
        &urls.iter().map(String::as_str).collect::<Vec<_>>(),
        START,
    );
    let queued = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued).count();
    assert_eq!(queued, MAX_ORIGINS_PER_HOST);
    assert_eq!(verdicts[399], Verdict::Refused(Refusal::TooManyPorts));
    let more = ["http://a.example:65000/more"];
    assert_eq!(
        offer(&mut frontier, &more, START),
        [Verdict::Queued],
        "a port that is known"
    );
    assert_eq!(
        frontier.add_seed(&url("http://a.example:1/"), START).unwrap(),
        Verdict::Queued
    );
}
