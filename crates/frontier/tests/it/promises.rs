//! The guarantees of a frontier, each in a few lines of use.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::Link;
use frontier::{
    FailureKind, Fate, Frontier, FrontierConfig, Health, Leasing, LimitConfig, NotFetched, Outcome, PolitenessConfig,
    Purpose, Reach, Refusal, ScopeConfig, Verdict,
};

use crate::common::{
    self, Orders as _, START, allow_for, at, commit, end, failing, failure, frontier, link, links, only, origin, ready,
    settle, url,
};

const DELAY: Duration = Duration::from_secs(2);

fn config() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            delay: DELAY,
            ..common::config().politeness
        },
        ..common::config()
    }
}

fn offer(frontier: &mut Frontier, urls: &[&str]) -> Vec<Verdict> {
    common::offer(frontier, urls, START)
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
    let lease = only(&mut frontier, START);
    assert_eq!(&*lease.entry.url, "https://a.example/x");
    let again = end(&lease, Outcome::Done).with_links(links(&["https://a.example/x"]));
    assert_eq!(commit(&mut frontier, again, START).verdicts, [Verdict::Seen]);
    assert_eq!(frontier.lease(at(100), 1).unwrap(), Leasing::Drained);
    assert!(frontier.report().is_drained());
}

#[test]
fn the_delay_counts_from_the_end_of_the_last_request() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = only(&mut frontier, START);
    assert_eq!(
        frontier.lease(at(60), 9).unwrap(),
        Leasing::AllLeased,
        "however long it takes"
    );
    settle(&mut frontier, &first, Outcome::Done, at(60));
    assert_eq!(frontier.lease(at(60), 9).unwrap(), Leasing::NotUntil(at(62)));
    assert_eq!(frontier.lease(at(61.999), 9).unwrap(), Leasing::NotUntil(at(62)));
    only(&mut frontier, at(62));
}

#[test]
fn a_delay_is_remembered_when_the_queue_has_run_empty() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/1"]);
    let first = only(&mut frontier, START);
    settle(&mut frontier, &first, Outcome::Done, at(1));
    assert_eq!(frontier.lease(at(1.5), 9).unwrap(), Leasing::Drained);
    frontier.offer(&[link("https://a.example/2")], at(1.5)).unwrap();
    assert_eq!(frontier.lease(at(1.5), 9).unwrap(), Leasing::NotUntil(at(3)));
}

#[test]
fn hosts_take_turns_and_a_long_queue_delays_no_other_host() {
    let mut frontier = frontier(common::config());
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
        politeness: PolitenessConfig {
            per_host,
            ..common::config().politeness
        },
        ..common::config()
    });
    offer(&mut eager, &urls);
    assert_eq!(ready(&mut eager, START).len(), 3);
    assert_eq!(eager.lease(at(9), 9).unwrap(), Leasing::AllLeased);

    let mut patient = frontier(FrontierConfig {
        politeness: PolitenessConfig {
            per_host,
            ..config().politeness
        },
        ..config()
    });
    offer(&mut patient, &urls);
    only(&mut patient, START);
    assert_eq!(patient.lease(at(1), 9).unwrap(), Leasing::NotUntil(at(2)));
    only(&mut patient, at(2));
    only(&mut patient, at(4));
    assert_eq!(patient.lease(at(9), 9).unwrap(), Leasing::AllLeased);
}

#[test]
fn a_retry_bypasses_the_seen_set_up_to_the_limit_of_attempts() {
    let mut frontier = frontier(common::config());
    offer(&mut frontier, &["https://a.example/"]);
    let mut now = START;
    for (attempt, wait) in [(1, 1), (2, 2)] {
        let lease = only(&mut frontier, now);
        assert_eq!(lease.entry.attempts, attempt);
        let due = now + Duration::from_secs(wait);
        assert_eq!(
            settle(&mut frontier, &lease, failing(FailureKind::Status), now).fate,
            Fate::Requeued { due }
        );
        assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::NotUntil(due));
        now = due;
    }
    let last = only(&mut frontier, now);
    assert_eq!(
        settle(&mut frontier, &last, failing(FailureKind::Status), now).fate,
        Fate::GaveUp
    );
    assert_eq!(frontier.lease(now, 9).unwrap(), Leasing::Drained);
    let pages = frontier.report().pages;
    assert_eq!((pages.gave_up, pages.retries, pages.done), (1, 2, 0));
}

#[test]
fn a_retry_does_not_hold_up_the_rest_of_its_host() {
    let mut frontier = frontier(common::config());
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = only(&mut frontier, START);
    let failed = Outcome::Failed {
        failure: failure(FailureKind::Status),
        retry_after: Some(Duration::from_secs(60)),
    };
    settle(&mut frontier, &first, failed, START);
    let second = only(&mut frontier, START);
    assert_eq!(&*second.entry.url, "https://a.example/2");
    settle(&mut frontier, &second, Outcome::Done, START);
    assert_eq!(only(&mut frontier, at(60)).entry.url, first.entry.url);
}

#[test]
fn a_lease_is_settled_once() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/"]);
    let lease = only(&mut frontier, START);
    assert_eq!(settle(&mut frontier, &lease, Outcome::Done, START).fate, Fate::Final);
    let late = end(&lease, Outcome::Done).with_links(links(&["https://a.example/late"]));
    let settled = commit(&mut frontier, late, START);
    assert_eq!((settled.fate, settled.verdicts.len()), (Fate::Stale, 0));
    assert!(
        frontier.report().is_drained(),
        "the links of a stale settlement are not taken"
    );
    assert_eq!(frontier.report().pages.done, 1);
}

#[test]
fn a_refused_link_is_not_marked_as_seen() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_queued: 1,
            ..common::config().limits
        },
        ..common::config()
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
    let lease = only(&mut frontier, START);
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
        limits: LimitConfig {
            max_pages: Some(2),
            ..common::config().limits
        },
        ..common::config()
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
    settle(&mut frontier, &leases[0], Outcome::Redirected, START);
    let third = only(&mut frontier, START);
    settle(&mut frontier, &leases[1], Outcome::Done, START);
    settle(&mut frontier, &third, Outcome::Rejected, START);
    offer(&mut frontier, &["https://d.example/"]);
    assert_eq!(frontier.lease(START, 9).unwrap(), Leasing::BudgetSpent);
    assert_eq!(frontier.report().queued, 1);
}

#[test]
fn a_hosts_budget_counts_pages_in_flight_and_done_and_drops_the_rest() {
    for per_host in [1, 4] {
        let mut frontier = frontier(FrontierConfig {
            limits: LimitConfig {
                max_pages_per_host: Some(2),
                ..common::config().limits
            },
            politeness: PolitenessConfig {
                per_host: NonZeroU32::new(per_host).unwrap(),
                ..common::config().politeness
            },
            ..common::config()
        });
        let urls: Vec<_> = (0..9).map(|n| format!("https://a.example/{n}")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).chain(["https://b.example/"]).collect();
        assert_eq!(offer(&mut frontier, &urls), [Verdict::Queued; 10]);
        let (mut done, mut over, mut moved) = (0, Vec::new(), 0);
        loop {
            let leases = match frontier.lease(START, 9).unwrap() {
                Leasing::Ready(leases) => leases,
                Leasing::Dropped(dropped) => {
                    over.extend(dropped);
                    continue;
                }
                other => break assert_eq!(other, Leasing::Drained),
            };
            let of_a = leases.iter().filter(|lease| lease.entry.queue.as_str() == "a.example");
            assert!(of_a.count() + done <= 2, "more are out than may be had");
            for lease in leases {
                let is_of_a = lease.entry.queue.as_str() == "a.example";
                // The first two lead elsewhere, and spend nothing.
                let outcome = if is_of_a && moved < 2 {
                    Outcome::Redirected
                } else {
                    Outcome::Done
                };
                moved += usize::from(outcome == Outcome::Redirected);
                done += usize::from(is_of_a && outcome == Outcome::Done);
                settle(&mut frontier, &lease, outcome, START);
            }
        }
        assert_eq!((done, over.len()), (2, 5), "{per_host} at a time");
        assert!(over.iter().all(|dropped| dropped.why == NotFetched::HostBudget));
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
fn the_queue_of_a_host_with_a_budget_is_bounded() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_pages_per_host: Some(2),
            ..config().limits
        },
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
fn a_full_table_of_hosts_refuses_new_ones_until_some_are_forgotten() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_hosts: 1,
            ..config().limits
        },
        ..config()
    });
    let urls = ["https://a.example/", "https://b.example/"];
    assert_eq!(
        offer(&mut frontier, &urls),
        [Verdict::Queued, Verdict::Refused(Refusal::TooManyHosts)]
    );
    let lease = only(&mut frontier, START);
    settle(&mut frontier, &lease, Outcome::Done, START);
    assert_eq!(frontier.report().hosts, 1, "its delay is not over");
    assert_eq!(frontier.lease(at(3), 1).unwrap(), Leasing::Drained);
    assert_eq!(
        frontier.offer(&[link("https://b.example/")], at(3)).unwrap(),
        [Verdict::Queued]
    );
}

#[test]
fn robots_txt_is_the_first_lease_of_an_origin_and_its_pages_wait_for_it() {
    let mut frontier = frontier(FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots: true,
            ..config().politeness
        },
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let robots = only(&mut frontier, START);
    let whose = origin("https://a.example/");
    assert_eq!(robots.entry.purpose, Purpose::Robots(whose.clone()));
    assert_eq!(&*robots.entry.url, "https://a.example/robots.txt");
    assert_eq!(frontier.lease(at(100), 9).unwrap(), Leasing::AllLeased);
    allow_for(&mut frontier, &robots, Duration::from_secs(999), at(1));
    assert_eq!(
        frontier.lease(at(1), 9).unwrap(),
        Leasing::NotUntil(at(3)),
        "it counts as a request"
    );
    let page = only(&mut frontier, at(3));
    assert_eq!(page.entry.purpose, Purpose::Page);
    settle(&mut frontier, &page, Outcome::Done, at(3));
    let again = only(&mut frontier, at(1000));
    assert_eq!(
        again.entry.purpose,
        Purpose::Robots(whose),
        "it is asked for anew when it has expired"
    );
    assert_eq!(frontier.report().pages.done, 1, "robots.txt is no page");
}

#[test]
fn an_entry_that_is_not_fetched_spends_neither_delay_nor_budget() {
    let mut frontier = frontier(FrontierConfig {
        limits: LimitConfig {
            max_pages: Some(1),
            ..config().limits
        },
        ..config()
    });
    offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
    let first = only(&mut frontier, START);
    settle(
        &mut frontier,
        &first,
        Outcome::NotFetched(NotFetched::AddressForbidden),
        START,
    );
    let second = only(&mut frontier, START);
    assert_eq!(&*second.entry.url, "https://a.example/2");
    assert_eq!(frontier.report().not_fetched[&NotFetched::AddressForbidden], 1);
}

#[test]
fn a_lease_that_is_given_back_spends_neither_delay_nor_attempts_nor_budget() {
    for ask_robots in [true, false] {
        let mut frontier = frontier(FrontierConfig {
            politeness: PolitenessConfig {
                ask_robots,
                ..config().politeness
            },
            limits: LimitConfig {
                max_pages: Some(1),
                ..config().limits
            },
            ..config()
        });
        offer(&mut frontier, &["https://a.example/1"]);
        for _ in 0..10 {
            let lease = only(&mut frontier, START);
            assert_eq!((lease.entry.attempts, frontier.report().leased), (1, 1));
            assert_eq!(frontier.give_back(&[lease.id], START).unwrap(), 1);
            assert_eq!(frontier.give_back(&[lease.id], START).unwrap(), 0, "it has ended");
        }
        let requests: u64 = frontier.host_reports(START).map(|host| host.requests).sum();
        let report = frontier.report();
        assert_eq!((report.queued_pages, report.pages.retries, requests), (1, 0, 0));
    }
}

#[test]
fn a_host_that_is_closed_until_a_time_rests_and_the_last_order_counts() {
    let mut frontier = frontier(config());
    offer(&mut frontier, &["https://a.example/"]);
    let host = url("https://a.example/").host();
    frontier.block(&host, at(30), START).unwrap();
    frontier.block(&host, at(10), START).unwrap();
    assert_eq!(frontier.lease(at(9), 9).unwrap(), Leasing::NotUntil(at(10)));
    let rest = |at| frontier.hosts_by_health(at).into_keys().collect::<Vec<_>>();
    assert_eq!([at(9), at(10)].map(rest), [[Health::Resting], [Health::Asked]]);
    only(&mut frontier, at(10));
}

#[test]
fn a_delay_of_the_host_counts_also_where_it_is_shorter() {
    for (own, counts) in [(5.0, 5.0), (0.5, 0.5)] {
        let mut frontier = frontier(config());
        offer(&mut frontier, &["https://a.example/1", "https://a.example/2"]);
        let first = only(&mut frontier, START);
        settle(&mut frontier, &first, Outcome::Done, START);
        let host = &first.entry.queue;
        frontier.set_delay(host, Duration::from_secs_f64(own), START).unwrap();
        assert_eq!(frontier.lease(at(0.1), 9).unwrap(), Leasing::NotUntil(at(counts)));
    }
}

#[test]
fn a_redirected_seed_takes_its_target_into_the_scope() {
    let scope = ScopeConfig {
        reach: Reach::Host,
        ..ScopeConfig::default()
    };
    let mut frontier = frontier(FrontierConfig {
        scope,
        ..common::config()
    });
    frontier.add_seed(&url("http://example.com/"), START).unwrap();
    let seed = only(&mut frontier, START);
    let target = seed.entry.redirected(url("https://www.example.com/"));
    assert_eq!(
        (target.hops, target.redirected_from.as_deref()),
        (1, Some("http://example.com/"))
    );
    let moved = end(&seed, Outcome::Redirected).with_links(vec![target]);
    let verdicts = commit(&mut frontier, moved, START).verdicts;
    assert_eq!(verdicts, [Verdict::Queued]);
    let page = only(&mut frontier, START);
    let found = links(&["https://www.example.com/about", "https://other.example/"]);
    let verdicts = commit(&mut frontier, end(&page, Outcome::Done).with_links(found), START).verdicts;
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Refused(Refusal::OtherHost)]);
}

#[test]
fn an_offered_seed_joins_the_scope() {
    let mut frontier = frontier(FrontierConfig {
        scope: ScopeConfig::default(),
        ..common::config()
    });
    let page = link("https://b.example/1");
    let offered = [
        page.clone(),
        Link::seed(url("https://b.example/")),
        page,
        Link::seed(url("https://c.example/")),
        link("https://d.example/"),
    ];
    let refused = Verdict::Refused(Refusal::OtherHost);
    let verdicts = frontier.offer(&offered, START).unwrap();
    assert_eq!(
        verdicts,
        [refused, Verdict::Queued, Verdict::Queued, Verdict::Queued, refused]
    );
    assert!(frontier.reaches(&url("https://c.example/about")));
}

#[test]
fn host_reports_have_the_shortest_gap_between_requests() {
    let mut frontier = frontier(config());
    offer(
        &mut frontier,
        &["https://a.example/1", "https://a.example/2", "https://a.example/3"],
    );
    for (start, end, pause) in [(0.0, 1.0, None), (3.5, 4.0, Some(2_500)), (6.0, 7.0, Some(2_000))] {
        let lease = only(&mut frontier, at(start));
        assert_eq!((lease.pause, lease.delay), (pause.map(Duration::from_millis), DELAY));
        settle(&mut frontier, &lease, Outcome::Done, at(end));
    }
    let receipt = frontier.host_reports(START).next().unwrap();
    assert_eq!(
        (receipt.requests, receipt.delay, receipt.shortest_gap),
        (3, DELAY, Some(DELAY))
    );
}
