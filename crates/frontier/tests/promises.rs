//! What a frontier promises, each promise in a few lines of use.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    CanonicalUrl, Canonicalizer, Fate, Frontier, FrontierConfig, Lease, Leasing, Link, NotFetched, Origin, Outcome,
    Purpose, Reach, Refusal, RetryPolicy, ScopeConfig, Settlement, Time, Verdict, Why,
};

const START: Time = Time::from_millis(1_700_000_000_000);
const DELAY: Duration = Duration::from_secs(2);

fn at(seconds: f64) -> Time {
    START + Duration::from_secs_f64(seconds)
}

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

fn link(text: &str, depth: u32) -> Link {
    Link::found(url(text), depth, "https://a.example/".into())
}

fn config() -> FrontierConfig {
    FrontierConfig {
        delay: DELAY,
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

fn frontier(config: FrontierConfig) -> Frontier {
    Frontier::in_memory(config).unwrap()
}

fn offer(frontier: &mut Frontier, urls: &[&str]) -> Vec<Verdict> {
    let links: Vec<_> = urls.iter().map(|text| link(text, 1)).collect();
    frontier.offer(&links, START).unwrap()
}

#[track_caller]
fn ready(frontier: &mut Frontier, now: Time) -> Vec<Lease> {
    match frontier.lease(now, 100).unwrap() {
        Leasing::Ready(leases) => leases,
        other => panic!("something should be ready, not {other:?}"),
    }
}

#[track_caller]
fn one(frontier: &mut Frontier, now: Time) -> Lease {
    let mut leases = ready(frontier, now);
    assert_eq!(leases.len(), 1, "{leases:?}");
    leases.remove(0)
}

fn settle(frontier: &mut Frontier, lease: &Lease, outcome: Outcome, now: Time) -> Fate {
    settle_with(frontier, lease, outcome, Vec::new(), now).0
}

fn settle_with(
    frontier: &mut Frontier,
    lease: &Lease,
    outcome: Outcome,
    links: Vec<Link>,
    now: Time,
) -> (Fate, Vec<Verdict>) {
    let mut settled = frontier
        .settle(
            &[Settlement {
                lease: lease.id,
                outcome,
                links,
            }],
            now,
        )
        .unwrap();
    let settled = settled.remove(0);
    (settled.fate, settled.verdicts)
}

#[test]
fn a_url_comes_out_once_whatever_leads_to_it() {
    let mut frontier = frontier(config());
    let verdicts = offer(
        &mut frontier,
        &[
            "https://a.example/x",
            "https://a.example/x#top",
            "https://A.example:443/x",
        ],
    );
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Seen, Verdict::Seen]);
    let lease = one(&mut frontier, START);
    assert_eq!(&*lease.entry.url, "https://a.example/x");
    settle_with(
        &mut frontier,
        &lease,
        Outcome::Done,
        vec![link("https://a.example/x", 2)],
        START,
    );
    assert_eq!(frontier.lease(at(100.0), 1).unwrap(), Leasing::Drained);
    assert!(frontier.is_drained());
}

#[test]
fn the_delay_counts_from_the_end_of_the_last_request() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = one(&mut frontier, START);
    assert_eq!(
        frontier.lease(at(60.0), 9).unwrap(),
        Leasing::AllLeased,
        "however long it takes"
    );
    settle(&mut frontier, &first, Outcome::Done, at(60.0));
    assert_eq!(frontier.lease(at(60.0), 9).unwrap(), Leasing::NotUntil(at(62.0)));
    assert_eq!(frontier.lease(at(61.999), 9).unwrap(), Leasing::NotUntil(at(62.0)));
    one(&mut frontier, at(62.0));
}

#[test]
fn a_delay_is_remembered_when_the_queue_has_run_empty() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/1"]);
    let first = one(&mut frontier, START);
    settle(&mut frontier, &first, Outcome::Done, at(1.0));
    assert_eq!(frontier.lease(at(1.5), 9).unwrap(), Leasing::Drained);
    frontier.offer(&[link("https://a.example/2", 1)], at(1.5)).unwrap();
    assert_eq!(frontier.lease(at(1.5), 9).unwrap(), Leasing::NotUntil(at(3.0)));
}

#[test]
fn hosts_take_turns_and_a_long_queue_delays_nobody() {
    let mut frontier = frontier(FrontierConfig {
        delay: Duration::ZERO,
        ..config()
    });
    let many: Vec<_> = (0..50).map(|n| format!("https://big.example/{n}")).collect();
    offer(&mut frontier, &many.iter().map(String::as_str).collect::<Vec<_>>());
    offer(&mut frontier, &["https://small.example/", "https://tiny.example/"]);
    let leases = ready(&mut frontier, START);
    let hosts: Vec<_> = leases.iter().map(|lease| lease.entry.queue.as_str()).collect();
    assert_eq!(hosts, ["big.example", "small.example", "tiny.example"]);
}

#[test]
fn per_host_leases_are_never_exceeded_and_starts_keep_the_delay() {
    let per_host = NonZeroU32::new(3).unwrap();
    let urls: Vec<_> = (0..10).map(|n| format!("https://a.example/{n}")).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();

    let mut eager = frontier(FrontierConfig {
        per_host,
        delay: Duration::ZERO,
        ..config()
    });
    offer(&mut eager, &urls);
    assert_eq!(ready(&mut eager, START).len(), 3);
    assert_eq!(eager.lease(at(9.0), 9).unwrap(), Leasing::AllLeased);

    let mut patient = frontier(FrontierConfig { per_host, ..config() });
    offer(&mut patient, &urls);
    one(&mut patient, START);
    assert_eq!(patient.lease(at(1.0), 9).unwrap(), Leasing::NotUntil(at(2.0)));
    one(&mut patient, at(2.0));
    one(&mut patient, at(4.0));
    assert_eq!(patient.lease(at(9.0), 9).unwrap(), Leasing::AllLeased);
}

#[test]
fn a_retry_comes_back_past_the_filter_and_only_so_often() {
    let mut frontier = frontier(FrontierConfig {
        delay: Duration::ZERO,
        ..config()
    });
    offer(&mut frontier, &["https://a.example/"]);
    let mut now = START;
    for (attempt, wait) in [(1, 1), (2, 2)] {
        let lease = one(&mut frontier, now);
        assert_eq!(lease.attempt, attempt);
        let due = now + Duration::from_secs(wait);
        assert_eq!(
            settle(&mut frontier, &lease, Outcome::Retry { after: None }, now),
            Fate::Requeued { due }
        );
        assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::NotUntil(due));
        now = due;
    }
    let last = one(&mut frontier, now);
    assert_eq!(
        settle(&mut frontier, &last, Outcome::Retry { after: None }, now),
        Fate::GaveUp
    );
    assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::Drained);
    let pages = frontier.report().pages;
    assert_eq!((pages.gave_up, pages.retries, pages.done), (1, 2, 0));
}

#[test]
fn a_retry_does_not_hold_up_the_rest_of_its_host() {
    let mut frontier = frontier(FrontierConfig {
        delay: Duration::ZERO,
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = one(&mut frontier, START);
    let wait = Some(Duration::from_secs(60));
    settle(&mut frontier, &first, Outcome::Retry { after: wait }, START);
    let second = one(&mut frontier, START);
    assert_eq!(&*second.entry.url, "https://a.example/2");
    settle(&mut frontier, &second, Outcome::Done, START);
    assert_eq!(one(&mut frontier, at(60.0)).entry.url, first.entry.url);
}

#[test]
fn a_lease_is_settled_once() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/"]);
    let lease = one(&mut frontier, START);
    assert_eq!(settle(&mut frontier, &lease, Outcome::Done, START), Fate::Final);
    let links = vec![link("https://a.example/late", 1)];
    let (fate, verdicts) = settle_with(&mut frontier, &lease, Outcome::Done, links, START);
    assert_eq!((fate, verdicts.len()), (Fate::Stale, 0));
    assert!(frontier.is_drained(), "the links of a stale settlement are not taken");
    assert_eq!(frontier.report().pages.done, 1);
}

#[test]
fn a_refused_link_is_not_marked_as_seen() {
    let mut frontier = frontier(FrontierConfig {
        max_queued: 1,
        delay: Duration::ZERO,
        ..config()
    });
    let full = Verdict::Refused(Refusal::QueueFull);
    assert_eq!(
        offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]),
        [Verdict::Queued, full]
    );
    assert_eq!(
        offer(&mut frontier, &["https://a.example/1"]),
        [Verdict::Seen],
        "a full queue does not hide a duplicate"
    );
    let lease = one(&mut frontier, START);
    settle(&mut frontier, &lease, Outcome::Done, START);
    assert_eq!(
        offer(&mut frontier, &["https://a.example/2"]),
        [Verdict::Queued],
        "there is room now"
    );
    assert_eq!(frontier.report().links.refused[&Refusal::QueueFull], 1);
}

#[test]
fn the_page_budget_stops_leasing_and_refuses_no_offer() {
    let mut frontier = frontier(FrontierConfig {
        max_pages: Some(2),
        delay: Duration::ZERO,
        ..config()
    });
    let urls = ["https://a.example/", "https://b.example/", "https://c.example/"];
    assert_eq!(offer(&mut frontier, &urls), [Verdict::Queued; 3]);
    let leases = ready(&mut frontier, START);
    assert_eq!(leases.len(), 2);
    assert_eq!(
        frontier.lease(START, 9).unwrap(),
        Leasing::AllLeased,
        "a redirect would give its page back"
    );
    settle(&mut frontier, &leases[0], Outcome::Moved, START);
    let third = one(&mut frontier, START);
    settle(&mut frontier, &leases[1], Outcome::Done, START);
    settle(&mut frontier, &third, Outcome::Gone, START);
    offer(&mut frontier, &["https://d.example/"]);
    assert_eq!(frontier.lease(START, 9).unwrap(), Leasing::BudgetSpent);
    assert_eq!(frontier.report().queued, 1);
}

#[test]
fn a_hosts_budget_counts_what_is_out_and_done_and_tells_of_what_waited() {
    for per_host in [1, 4] {
        let mut frontier = frontier(FrontierConfig {
            max_pages_per_host: Some(2),
            per_host: NonZeroU32::new(per_host).unwrap(),
            delay: Duration::ZERO,
            ..config()
        });
        let urls: Vec<_> = (0..9).map(|n| format!("https://a.example/{n}")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).chain(["https://b.example/"]).collect();
        assert_eq!(offer(&mut frontier, &urls), [Verdict::Queued; 10]);
        let (mut done, mut over, mut moved) = (0, Vec::new(), 0);
        loop {
            let leases = match frontier.lease(START, 9).unwrap() {
                Leasing::Ready(leases) => leases,
                other => break assert_eq!(other, Leasing::Drained),
            };
            let of_a = leases.iter().filter(|lease| lease.entry.queue.as_str() == "a.example");
            assert!(of_a.count() + done <= 2, "more are out than may be had");
            for lease in leases {
                let is_of_a = lease.entry.queue.as_str() == "a.example";
                // The first two lead elsewhere, and spend nothing.
                let outcome = if is_of_a && moved < 2 {
                    Outcome::Moved
                } else {
                    Outcome::Done
                };
                moved += usize::from(outcome == Outcome::Moved);
                done += usize::from(is_of_a && outcome == Outcome::Done);
                let settlement = Settlement {
                    lease: lease.id,
                    outcome,
                    links: Vec::new(),
                };
                over.extend(frontier.settle(&[settlement], START).unwrap().remove(0).over_budget);
            }
        }
        assert_eq!((done, over.len()), (2, 5), "{per_host} at a time");
        assert_eq!(frontier.report().not_fetched[&NotFetched::HostBudget], 5);
        let spent = Verdict::Refused(Refusal::HostBudget);
        assert_eq!(
            offer(&mut frontier, &["https://a.example/new"]),
            [spent],
            "an idle host's count is kept"
        );
    }
}

#[test]
fn not_without_end_may_wait_for_a_budget() {
    let mut frontier = frontier(FrontierConfig {
        max_pages_per_host: Some(2),
        ..config()
    });
    let urls: Vec<_> = (0..2000).map(|n| format!("https://a.example/{n}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let queued = offer(&mut frontier, &urls)
        .into_iter()
        .filter(|verdict| *verdict == Verdict::Queued)
        .count();
    assert_eq!(queued, 1020);
}

#[test]
fn a_table_full_of_hosts_refuses_further_ones_until_it_has_forgotten_some() {
    let mut frontier = frontier(FrontierConfig {
        max_hosts: 1,
        ..config()
    });
    let urls = ["https://a.example/", "https://b.example/"];
    assert_eq!(
        offer(&mut frontier, &urls),
        [Verdict::Queued, Verdict::Refused(Refusal::TooManyHosts)]
    );
    let lease = one(&mut frontier, START);
    settle(&mut frontier, &lease, Outcome::Done, START);
    assert_eq!(frontier.report().hosts, 1, "its delay is not over");
    assert_eq!(frontier.lease(at(3.0), 1).unwrap(), Leasing::Drained);
    assert_eq!(
        frontier.offer(&[link("https://b.example/", 1)], at(3.0)).unwrap(),
        [Verdict::Queued]
    );
}

#[test]
fn robots_txt_is_the_first_lease_of_an_origin_and_its_pages_wait_for_it() {
    let mut frontier = frontier(FrontierConfig {
        ask_robots: true,
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let robots = one(&mut frontier, START);
    let origin = Origin::of(url("https://a.example/").url()).unwrap();
    assert_eq!(robots.entry.purpose, Purpose::Robots(origin.clone()));
    assert_eq!(&*robots.entry.url, "https://a.example/robots.txt");
    settle(&mut frontier, &robots, Outcome::Done, at(1.0));
    assert_eq!(
        frontier.lease(at(100.0), 9).unwrap(),
        Leasing::AllLeased,
        "nobody has said yet what it says"
    );
    frontier.robots_known(&origin, at(1000.0), at(1.0)).unwrap();
    assert_eq!(
        frontier.lease(at(1.0), 9).unwrap(),
        Leasing::NotUntil(at(3.0)),
        "it counts as a request"
    );
    let page = one(&mut frontier, at(3.0));
    assert_eq!(page.entry.purpose, Purpose::Page);
    settle(&mut frontier, &page, Outcome::Done, at(3.0));
    let again = one(&mut frontier, at(1000.0));
    assert_eq!(
        again.entry.purpose,
        Purpose::Robots(origin),
        "it is asked for anew when it has expired"
    );
    assert_eq!(frontier.report().pages.done, 1, "robots.txt is no page");

    settle(&mut frontier, &again, Outcome::Done, at(1000.0));
    let origin = Origin::of(url("https://a.example/").url()).unwrap();
    frontier.robots_known(&origin, at(9000.0), at(1000.0)).unwrap();
    frontier.robots_known(&origin, Time::EPOCH, at(1000.0)).unwrap();
    let forgotten = one(&mut frontier, at(1002.0));
    assert_ne!(
        forgotten.entry.purpose,
        Purpose::Page,
        "it is asked for anew when the caller has forgotten it"
    );
}

#[test]
fn what_robots_txt_forbids_spends_neither_delay_nor_budget() {
    let mut frontier = frontier(FrontierConfig {
        max_pages: Some(1),
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = one(&mut frontier, START);
    settle(
        &mut frontier,
        &first,
        Outcome::NotFetched(NotFetched::RobotsForbid),
        START,
    );
    let second = one(&mut frontier, START);
    assert_eq!(&*second.entry.url, "https://a.example/2");
    assert_eq!(frontier.report().not_fetched[&NotFetched::RobotsForbid], 1);
}

#[test]
fn a_blocked_host_rests_and_a_longer_block_is_not_shortened() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/"]);
    let host = url("https://a.example/").host();
    frontier.block(&host, at(30.0), START).unwrap();
    frontier.block(&host, at(10.0), START).unwrap();
    assert_eq!(frontier.lease(at(29.0), 9).unwrap(), Leasing::NotUntil(at(30.0)));
    one(&mut frontier, at(30.0));
}

#[test]
fn a_crawl_delay_of_the_host_counts_where_it_is_longer() {
    for (own, counts) in [(5.0, 5.0), (0.5, 2.0)] {
        let mut frontier = frontier(config());
        offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
        let first = one(&mut frontier, START);
        settle(&mut frontier, &first, Outcome::Done, START);
        let host = &first.entry.queue;
        frontier.set_delay(host, Duration::from_secs_f64(own), START).unwrap();
        assert_eq!(frontier.lease(at(0.1), 9).unwrap(), Leasing::NotUntil(at(counts)));
    }
}

#[test]
fn a_host_that_stays_down_rests_longer_each_time_and_is_given_up_with_its_queue() {
    let mut frontier = frontier(config());
    let urls: Vec<_> = (0..20).map(|n| format!("https://down.example/{n}")).collect();
    offer(&mut frontier, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let mut now = START;
    let mut waits = Vec::new();
    let given_up = loop {
        let lease = one(&mut frontier, now);
        let down = Settlement {
            lease: lease.id,
            outcome: Outcome::HostDown { until: None },
            links: Vec::new(),
        };
        let settled = frontier.settle(&[down], now).unwrap().remove(0);
        if !settled.given_up.is_empty() {
            break settled.given_up;
        }
        let Leasing::NotUntil(next) = frontier.lease(now, 9).unwrap() else {
            panic!("the host rests")
        };
        waits.push(next.since(now).as_secs());
        now = next;
    };
    assert_eq!(waits, [2, 2, 4, 8, 16], "its delay, then 2, 4, 8, 16 s");
    assert!(frontier.is_drained());
    let pages = frontier.report().pages;
    assert_eq!(pages.lost_with_host, given_up.len() as u64);
    assert_eq!(
        pages.lost_with_host + pages.gave_up,
        20,
        "every URL is accounted for: {pages:?}"
    );
    assert_eq!(
        offer(&mut frontier, &["https://down.example/new"]),
        [Verdict::Refused(Refusal::HostDead)]
    );
}

#[test]
fn a_host_that_was_given_up_stays_given_up_whatever_was_still_out() {
    let mut frontier = frontier(FrontierConfig {
        delay: Duration::ZERO,
        per_host: NonZeroU32::new(9).unwrap(),
        ..config()
    });
    let urls: Vec<_> = (0..9).map(|n| format!("https://down.example/{n}")).collect();
    offer(&mut frontier, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let out = ready(&mut frontier, START);
    assert_eq!(out.len(), 9);
    let down = Outcome::HostDown { until: None };
    for lease in &out[..6] {
        settle(&mut frontier, lease, down, START);
    }
    let fate = settle(&mut frontier, &out[6], Outcome::Retry { after: None }, START);
    assert_eq!(fate, Fate::GaveUp, "it is not asked again");
    settle(&mut frontier, &out[7], Outcome::Done, START);
    settle(&mut frontier, &out[8], down, START);
    assert_eq!(
        offer(&mut frontier, &["https://down.example/new"]),
        [Verdict::Refused(Refusal::HostDead)]
    );
    assert!(frontier.is_drained());
    let pages = frontier.report().pages;
    assert_eq!(
        pages.done + pages.gave_up + pages.lost_with_host,
        9,
        "every URL is accounted for: {pages:?}"
    );
}

#[test]
fn an_answer_forgives_a_hosts_failures() {
    let mut frontier = frontier(FrontierConfig {
        delay: Duration::ZERO,
        ..config()
    });
    let urls: Vec<_> = (0..40).map(|n| format!("https://shaky.example/{n}")).collect();
    offer(&mut frontier, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let mut now = START;
    let mut failing = true;
    loop {
        match frontier.lease(now, 1).unwrap() {
            Leasing::Ready(leases) => {
                let outcome = if failing {
                    Outcome::HostDown { until: None }
                } else {
                    Outcome::Done
                };
                failing = !failing;
                settle(&mut frontier, &leases[0], outcome, now);
            }
            Leasing::NotUntil(time) => now = time,
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    let pages = frontier.report().pages;
    assert_eq!(pages.lost_with_host, 0, "{pages:?}");
    assert_eq!(pages.done + pages.gave_up, 40, "{pages:?}");
}

#[test]
fn a_redirected_seed_takes_its_target_into_the_scope() {
    let scope = ScopeConfig {
        reach: Reach::Host,
        ..ScopeConfig::default()
    };
    let mut frontier = frontier(FrontierConfig {
        scope,
        delay: Duration::ZERO,
        ..config()
    });
    frontier.add_seed(&url("http://example.com/"), START).unwrap();
    let seed = one(&mut frontier, START);
    let target = seed.entry.redirected(url("https://www.example.com/"));
    assert_eq!(
        (target.hops, target.redirected_from.as_deref()),
        (1, Some("http://example.com/"))
    );
    let (_, verdicts) = settle_with(&mut frontier, &seed, Outcome::Moved, vec![target], START);
    assert_eq!(verdicts, [Verdict::Queued]);
    let page = one(&mut frontier, START);
    let links = vec![
        link("https://www.example.com/about", 1),
        link("https://other.example/", 1),
    ];
    let (_, verdicts) = settle_with(&mut frontier, &page, Outcome::Done, links, START);
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Refused(Refusal::OtherHost)]);
}

#[test]
fn why_names_what_decided() {
    let scope = ScopeConfig {
        reach: Reach::Host,
        ..ScopeConfig::default()
    };
    let mut frontier = frontier(FrontierConfig { scope, ..config() });
    frontier.add_seed(&url("https://a.example/"), START).unwrap();
    let lease = one(&mut frontier, START);
    assert_eq!(frontier.why(&url("https://a.example/")), Why::Leased { attempt: 1 });
    let links = vec![link("https://a.example/next", 1)];
    settle_with(&mut frontier, &lease, Outcome::Done, links, at(1.0));
    assert!(
        matches!(frontier.why(&url("https://a.example/")), Why::Seen { false_positive_rate } if false_positive_rate < 1e-9)
    );
    let host = url("https://a.example/").host();
    assert_eq!(
        frontier.why(&url("https://a.example/next")),
        Why::Queued {
            host,
            host_free_from: at(3.0)
        }
    );
    assert_eq!(
        frontier.why(&url("https://b.example/")),
        Why::Refused(Refusal::OtherHost)
    );
    assert_eq!(frontier.why(&url("https://a.example/never")), Why::NeverOffered);
}

#[test]
fn receipts_show_the_shortest_pause_that_was_left() {
    let mut frontier = frontier(config());
    offer(
        &mut frontier,
        &["https://a.example/1", "https://a.example/2", "https://a.example/3"],
    );
    for (start, end) in [(0.0, 1.0), (3.5, 4.0), (6.0, 7.0)] {
        let lease = one(&mut frontier, at(start));
        settle(&mut frontier, &lease, Outcome::Done, at(end));
    }
    let receipt = frontier.receipts().next().unwrap();
    assert_eq!(
        (receipt.requests, receipt.delay, receipt.shortest_gap),
        (3, DELAY, Some(DELAY))
    );
}

#[test]
fn seeds_pass_patterns_and_links_do_not() {
    let scope = ScopeConfig {
        reach: Reach::Any,
        include: vec!["/docs/".to_owned()],
        ..ScopeConfig::default()
    };
    let mut frontier = frontier(FrontierConfig { scope, ..config() });
    assert_eq!(
        frontier.add_seed(&url("https://a.example/"), START).unwrap(),
        Verdict::Queued
    );
    let refused = Verdict::Refused(Refusal::NotIncluded);
    let verdicts = offer(&mut frontier, &["https://a.example/docs/x", "https://a.example/blog"]);
    assert_eq!(verdicts, [Verdict::Queued, refused]);
}
