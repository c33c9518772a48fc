//! A retry within the limits of the queue, the hosts and their budgets, and when it begins.

use std::num::NonZeroU32;
use std::time::Duration;

use super::common::{START, failure, url};
use super::queued_again;
use super::retry::{DAY, asking_robots, check_counts, crawl, impatient, offer, page, retry, settle, unanswered};
use super::stores::{Recorder, open_store};
use crate::{FailureKind, Lease, Leasing, Link, NotFetched, Outcome, Refetch, Task, Verdict};

#[test]
fn retried_pages_are_dropped_if_the_others_of_their_host_have_spent_its_budget() {
    let recorder = Recorder::default();
    let mut config = asking_robots();
    config.limits.max_pages_per_host = Some(2);
    let mut frontier = open_store(recorder, config, START).unwrap().frontier;
    let mut now = START;
    let down: Vec<_> = (0..9).map(|n| format!("http://host0.example:81/{n}")).collect();
    offer(&mut frontier, &down, now);
    crawl(&mut frontier, &mut now, |lease| {
        lease.entry.url.contains(":81").then_some(FailureKind::Connect)
    });
    offer(&mut frontier, &[page(0, 0), page(0, 1)], now);
    crawl(&mut frontier, &mut now, |_| None);
    assert!(
        frontier
            .queue_again(Refetch::Unanswered, 0, now)
            .unwrap()
            .next
            .is_some()
    );
    assert_eq!(queued_again(&mut frontier, Refetch::Unanswered, 1_000, now), 9);
    assert_eq!(crawl(&mut frontier, &mut now, |_| None).len(), 0);
    let report = frontier.report();
    assert_eq!((report.pages.done, report.pages.lost_with_host), (2, 0));
    assert_eq!(report.not_fetched[&NotFetched::HostBudget], 9);
}

#[test]
fn pages_of_an_origin_that_is_given_up_once_more_wait_for_the_next_retry_and_so_do_those_of_hosts_without_room() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open_store(recorder.clone(), asking_robots(), now).unwrap().frontier;
    let pages: Vec<_> = (0..6)
        .map(|n| page(0, n))
        .chain((1..6).map(|host| page(host, 0)))
        .collect();
    offer(&mut frontier, &pages, now);
    let is_down = |_: &Lease| Some(FailureKind::Connect);
    crawl(&mut frontier, &mut now, is_down);
    let mut config = asking_robots();
    config.limits.max_queued = 4;
    frontier = open_store(recorder.clone(), config, now).unwrap().frontier;
    let before = now;
    assert!(
        frontier
            .queue_again(Refetch::Unanswered, 0, now)
            .unwrap()
            .next
            .is_some()
    );
    let mut refused = 0;
    loop {
        let retried = frontier.queue_again(Refetch::Unanswered, 1_000, now).unwrap();
        refused += retried.pages.refused;
        crawl(&mut frontier, &mut now, is_down);
        if retried.next.is_none() {
            break;
        }
    }
    assert!(refused > 0, "pages that came after the end of their origin");
    // One patience for each of the hosts at most, and not one for each portion.
    assert!(
        now.since(before) <= Duration::from_secs(30 * 6),
        "{:?}",
        now.since(before)
    );
    assert_eq!(unanswered(&recorder).len(), pages.len());
    check_counts(&frontier, &recorder);

    let mut config = asking_robots();
    config.limits.max_hosts = 3;
    frontier = open_store(recorder.clone(), config, now).unwrap().frontier;
    let mut fetched = 0;
    for _ in 0..4 {
        retry(&mut frontier, now);
        fetched += crawl(&mut frontier, &mut now, |_| None).len();
    }
    assert_eq!((fetched, unanswered(&recorder).len()), (pages.len(), 0));
    check_counts(&frontier, &recorder);
}

#[test]
fn an_origin_that_was_given_up_for_a_sitemap_is_asked_again() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open_store(recorder.clone(), impatient(), now).unwrap().frontier;
    let seed = url(&page(0, 0));
    frontier.add_seed(&seed, now).unwrap();
    crawl(&mut frontier, &mut now, |_| None);
    let sitemap = Link::sitemap(url("http://host0.example/s.xml"), seed.origin(), 0, None);
    assert_eq!(frontier.offer(&[sitemap], now).unwrap(), [Verdict::Queued]);
    loop {
        match frontier.lease(now, 8).unwrap() {
            Leasing::Ready(leases) => {
                for lease in leases {
                    let Task::Sitemap(task) = lease.task() else {
                        panic!("{lease:?}")
                    };
                    let settlement = task.settle(Outcome::failed(failure(FailureKind::Connect)));
                    frontier.settle(&[settlement], now).unwrap();
                }
            }
            Leasing::NotUntil(time) => now = time,
            Leasing::Dropped(_) => {}
            _ => break,
        }
    }
    frontier.persist(b"", now).unwrap();
    assert_eq!(frontier.report().origins_given_up, 1);
    for _ in 0..2 {
        now = now + DAY;
        frontier = open_store(recorder.clone(), impatient(), now).unwrap().frontier;
        frontier.queue_again(Refetch::Unanswered, 0, now).unwrap();
        assert_eq!(frontier.report().origins_given_up, 0);
        offer(&mut frontier, &[page(0, 1)], now);
        // It is down once more. In the second round, the retry of the first has not come to its end.
        crawl(&mut frontier, &mut now, |_| Some(FailureKind::Connect));
    }
}

#[test]
fn nothing_begins_before_all_records_are_saved() {
    let mut frontier = open_store(Recorder::default(), impatient(), START).unwrap().frontier;
    offer(&mut frontier, &[page(0, 0), page(1, 0)], START);
    let mut now = START;
    crawl(&mut frontier, &mut now, |_| Some(FailureKind::Other));
    now = now + DAY;
    frontier.queue_again(Refetch::OlderThan(DAY), 100, now).unwrap();
    let Leasing::Ready(leases) = frontier.lease(now, 8).unwrap() else {
        panic!()
    };
    leases.iter().for_each(|lease| settle(&mut frontier, lease, None, now));
    offer(&mut frontier, &[page(2, 0)], now);
    let Leasing::Ready(leases) = frontier.lease(now, 8).unwrap() else {
        panic!()
    };
    leases
        .iter()
        .for_each(|lease| settle(&mut frontier, lease, Some(FailureKind::Other), now));
    assert!(
        frontier.report().is_drained()
            && frontier
                .queue_again(Refetch::Unanswered, 0, now)
                .unwrap()
                .next
                .is_none()
    );
    frontier.persist(b"", now).unwrap();
    assert!(
        frontier
            .queue_again(Refetch::Unanswered, 0, now)
            .unwrap()
            .next
            .is_some()
    );
    assert_eq!(queued_again(&mut frontier, Refetch::Unanswered, 9, now), 1);
}

#[test]
fn a_page_that_was_in_flight_when_its_origin_was_given_up_is_tried_again() {
    for (is_given_back, is_opened_again) in [(true, true), (true, false), (false, true), (false, false)] {
        let recorder = Recorder::default();
        let mut config = impatient();
        config.retries.max_throttles = NonZeroU32::MIN;
        let open = |now| open_store(recorder.clone(), config.clone(), now).unwrap().frontier;
        let (mut frontier, mut now) = (open(START), START);
        let pages = [page(0, 0), page(0, 1), page(0, 2)];
        offer(&mut frontier, &pages, now);
        let Leasing::Ready(leases) = frontier.lease(now, 8).unwrap() else {
            panic!("no page was leased");
        };
        settle(&mut frontier, &leases[0], Some(FailureKind::Throttled), now);
        assert_eq!(frontier.report().origins_given_up, 1);
        if is_given_back {
            let in_flight = [leases[1].id, leases[2].id];
            assert_eq!(frontier.give_back(&in_flight, now).unwrap(), 2);
        } else {
            assert_eq!(frontier.release_leases(now).unwrap(), 2);
        }
        frontier.persist(b"", now).unwrap();
        if is_opened_again {
            frontier = open(now);
        }
        assert!(crawl(&mut frontier, &mut now, |_| None).is_empty());
        assert_eq!(unanswered(&recorder), pages);
        check_counts(&frontier, &recorder);
        assert_eq!(retry(&mut frontier, now).0, 3);
        assert_eq!(crawl(&mut frontier, &mut now, |_| None).len(), 3);
        assert_eq!(unanswered(&recorder), Vec::<String>::new());
        check_counts(&frontier, &recorder);
    }
}
