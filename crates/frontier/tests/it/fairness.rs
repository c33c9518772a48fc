//! Fairness: no origin waits for the robots.txt of another, and no host for a slow one.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{Frontier, Lease, Leasing, Outcome, Purpose, Time};

use crate::common::{self, Forbid, Orders as _, START, give_rules, is_robots, link, settle};

fn after(milliseconds: u64) -> Time {
    START + Duration::from_millis(milliseconds)
}

fn frontier(per_host: u32, delay: Duration, ask_robots: bool) -> Frontier {
    let mut config = common::config();
    config.politeness.per_host = NonZeroU32::new(per_host).unwrap();
    config.politeness.delay = delay;
    config.politeness.ask_robots = ask_robots;
    common::frontier(config)
}

fn offer(frontier: &mut Frontier, urls: impl IntoIterator<Item = String>) {
    let links: Vec<_> = urls.into_iter().map(|text| link(&text)).collect();
    frontier.offer(&links, START).unwrap();
}

#[track_caller]
fn ready(frontier: &mut Frontier, now: Time, up_to: usize) -> Vec<Lease> {
    match frontier.lease(now, up_to).unwrap() {
        Leasing::Ready(leases) => leases,
        other => panic!("something should be ready, not {other:?}"),
    }
}

fn done(frontier: &mut Frontier, lease: &Lease, now: Time) {
    if is_robots(lease) {
        give_rules(frontier, lease, Forbid::nothing(), now);
    } else {
        settle(frontier, lease, Outcome::Done, now);
    }
}

#[test]
fn an_origin_that_waits_for_its_robots_txt_delays_no_other_origin_of_its_host() {
    let mut frontier = frontier(5, Duration::ZERO, true);
    let pages = ["http://a.example/1", "http://a.example/2", "https://a.example/"];
    offer(&mut frontier, pages.map(str::to_owned));
    let robots = ready(&mut frontier, START, 9);
    let asked: Vec<_> = robots.iter().map(|lease| &*lease.entry.url).collect();
    assert_eq!(asked, ["http://a.example/robots.txt", "https://a.example/robots.txt"]);

    done(&mut frontier, &robots[1], after(1));
    let page = ready(&mut frontier, after(1), 9);
    assert_eq!(page.len(), 1);
    assert_eq!(&*page[0].entry.url, "https://a.example/");
    assert_eq!(frontier.lease(after(1), 9).unwrap(), Leasing::AllLeased);
}

#[test]
fn links_offered_while_robots_txt_is_in_flight_do_not_request_it_again() {
    let mut frontier = frontier(5, Duration::ZERO, true);
    offer(&mut frontier, ["http://a.example/1".to_owned()]);
    let robots = ready(&mut frontier, START, 9);
    assert_eq!(robots.len(), 1);
    offer(&mut frontier, ["http://a.example/2".to_owned()]);
    assert_eq!(frontier.lease(START, 9).unwrap(), Leasing::AllLeased);
    done(&mut frontier, &robots[0], START);
    assert_eq!(ready(&mut frontier, START, 9).len(), 2);
}

#[test]
fn the_origins_of_a_host_take_turns() {
    let mut frontier = frontier(1, Duration::ZERO, false);
    let crowd = (0..100).map(|n| format!("http://a.example/{n}"));
    offer(&mut frontier, crowd.chain(["https://a.example/".to_owned()]));
    let first = ready(&mut frontier, START, 1).remove(0);
    done(&mut frontier, &first, START);
    assert_eq!(&*first.entry.url, "http://a.example/0");
    assert_eq!(&*ready(&mut frontier, START, 1)[0].entry.url, "https://a.example/");
}

#[test]
fn the_first_page_of_a_host_follows_its_robots_txt_while_the_connection_is_open() {
    for delay in [Duration::ZERO, Duration::from_secs(1)] {
        let mut frontier = frontier(1, delay, true);
        let hosts = (0..50).flat_map(|host| (0..3).map(move |n| format!("http://host{host}.example/{n}")));
        offer(&mut frontier, hosts);
        let robots = ready(&mut frontier, START, 1).remove(0);
        assert_eq!(&*robots.entry.url, "http://host0.example/robots.txt");
        done(&mut frontier, &robots, START);
        let now = START + delay;
        let page = ready(&mut frontier, now, 1).remove(0);
        assert_eq!(&*page.entry.url, "http://host0.example/0", "49 other hosts wait");
        // Once: a host with a long queue comes to its turn with all others.
        done(&mut frontier, &page, now);
        let next = ready(&mut frontier, now + delay, 1).remove(0);
        assert_eq!(&*next.entry.url, "http://host1.example/robots.txt");
    }
}

#[test]
fn hosts_that_become_due_together_have_their_first_pages_in_the_order_of_their_robots_txt() {
    let delay = Duration::from_secs(1);
    let mut frontier = frontier(1, delay, true);
    offer(&mut frontier, (0..20).map(|host| format!("http://host{host}.example/")));
    let robots = ready(&mut frontier, START, 4);
    for (lease, milliseconds) in robots.iter().zip(0..) {
        done(&mut frontier, lease, after(milliseconds));
    }
    let pages = ready(&mut frontier, after(2_000), 5);
    let urls: Vec<_> = pages.iter().map(|lease| &*lease.entry.url).collect();
    let first = (0..4).map(|host| format!("http://host{host}.example/"));
    assert_eq!(
        urls,
        first
            .chain(["http://host4.example/robots.txt".to_owned()])
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_lease_of_zero_entries_says_whether_one_is_ready() {
    let delay = Duration::from_secs(1);
    let mut frontier = frontier(1, delay, false);
    assert_eq!(frontier.lease(START, 0).unwrap(), Leasing::Drained);
    offer(&mut frontier, [1, 2].map(|n| format!("http://a.example/{n}")));
    assert_eq!(frontier.lease(START, 0).unwrap(), Leasing::Ready(Vec::new()));

    let lease = ready(&mut frontier, START, 9).remove(0);
    assert_eq!(frontier.lease(START, 0).unwrap(), Leasing::AllLeased);
    done(&mut frontier, &lease, START);
    assert_eq!(frontier.lease(after(999), 0).unwrap(), Leasing::NotUntil(after(1000)));
    assert_eq!(
        frontier.lease(after(1000), 0).unwrap(),
        Leasing::Ready(Vec::new()),
        "the host is due now, though nobody has looked at it since"
    );
    frontier.block(&lease.entry.queue, after(5000), after(1000)).unwrap();
    assert_eq!(frontier.lease(after(1000), 0).unwrap(), Leasing::NotUntil(after(5000)));
    assert_eq!(ready(&mut frontier, after(5000), 9).len(), 1);
}

/// Crawls with requests that take their time, and checks that each of the small hosts is asked in the very millisecond in
/// which it may be.
#[test]
fn a_slow_host_with_a_hundred_thousand_urls_delays_nobody() {
    let delay = Duration::from_secs(1);
    let mut frontier = frontier(1, delay, true);
    offer(&mut frontier, (0..100_000).map(|n| format!("http://huge.example/{n}")));
    let small = (0..30).flat_map(|host| (0..10).map(move |n| format!("http://host{host}.example/{n}")));
    offer(&mut frontier, small);
    let mut now = START;
    let mut out: Vec<(Time, Lease)> = Vec::new();
    let mut free_from: HashMap<String, Time> = HashMap::new();
    let mut pages_of_small = 0;
    while pages_of_small < 300 {
        let mut wake = None;
        match frontier.lease(now, 64).unwrap() {
            Leasing::Ready(leases) => {
                for lease in leases {
                    let host = lease.entry.queue.to_string();
                    let is_huge = host == "huge.example";
                    let due = free_from.get(&host).copied().unwrap_or(START);
                    assert_eq!(
                        lease_time(now, is_huge),
                        lease_time(due, is_huge),
                        "{}",
                        lease.entry.url
                    );
                    pages_of_small += u32::from(!is_huge && lease.entry.purpose == Purpose::Page);
                    let takes = Duration::from_millis(if is_huge { 29_000 } else { 70 });
                    out.push((now + takes, lease));
                }
                continue;
            }
            Leasing::NotUntil(time) => wake = Some(time),
            Leasing::AllLeased => {}
            other => panic!("{other:?}"),
        }
        let next_end = out.iter().map(|(end, _)| *end).min();
        now = [wake, next_end].into_iter().flatten().min().unwrap();
        let (back, still_out) = out.drain(..).partition(|(end, _)| *end <= now);
        out = still_out;
        let back: Vec<(Time, Lease)> = back;
        for (_, lease) in back {
            done(&mut frontier, &lease, now);
            free_from.insert(lease.entry.queue.to_string(), now + delay);
        }
    }
    let longest = Duration::from_millis(11 * 1070);
    assert!(now.since(START) <= longest, "it took {:?}", now.since(START));
}

/// Of the huge host nothing is asked here but that it lets the others be.
fn lease_time(time: Time, is_huge: bool) -> Option<Time> {
    (!is_huge).then_some(time)
}
