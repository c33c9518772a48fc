//! Pages that wait to be fetched again stay when the budget of their host is spent, or their path prefix is closed.

use std::num::NonZeroU32;

use super::common::{START, config, one};
use super::queued_again;
use super::retry::{DAY, asking_robots, crawl, offer, page, settle};
use super::segments::config_of_many;
use super::stores::{Recorder, open_store};
use crate::config::{FrontierConfig, LimitConfig};
use crate::store::Space;
use crate::{FailureKind, Fingerprint, Frontier, Lease, Leasing, NotFetched, Outcome, Refetch, Task, Time, Verdict};

fn with_budget(pages: u64) -> FrontierConfig {
    FrontierConfig {
        limits: LimitConfig {
            max_pages_per_host: Some(pages),
            ..config_of_many().limits
        },
        ..config_of_many()
    }
}

fn open(recorder: &Recorder, config: FrontierConfig, now: Time) -> Frontier {
    open_store(recorder.clone(), config, now).unwrap().frontier
}

fn pages(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| page(0, n)).collect()
}

fn offer_pages(frontier: &mut Frontier, numbers: std::ops::Range<usize>, now: Time) {
    let count = numbers.len();
    assert_eq!(offer(frontier, &pages(numbers), now), vec![Verdict::Queued; count]);
}

/// Returns all that was dropped for the budget, in order.
fn dropped(frontier: &mut Frontier, now: Time) -> Vec<String> {
    let mut urls = Vec::new();
    while let Leasing::Dropped(dropped) = frontier.lease(now, 0).unwrap() {
        assert!(dropped.len() <= 256);
        assert!(dropped.iter().all(|one| one.why == NotFetched::HostBudget));
        urls.extend(dropped.into_iter().map(|one| one.entry.url.to_string()));
    }
    urls
}

fn urls_of(leases: &[Lease]) -> Vec<String> {
    leases.iter().map(|lease| lease.entry.url.to_string()).collect()
}

#[test]
fn pages_that_wait_to_be_fetched_again_stay_when_an_option_changes() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open(&recorder, with_budget(3), now);
    offer_pages(&mut frontier, 0..3, now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now), 3);
    frontier.persist(b"", now).unwrap();
    let changed = FrontierConfig {
        limits: LimitConfig {
            max_hosts: 1_000,
            ..with_budget(3).limits
        },
        ..with_budget(3)
    };
    let mut frontier = open(&recorder, changed, now);
    assert_eq!(crawl(&mut frontier, &mut now, |_| None).len(), 3);
    let report = frontier.report();
    assert_eq!((report.pages.refreshed, report.not_fetched.len()), (3, 0));
    now = now + DAY;
    assert_eq!(
        queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now),
        3,
        "and so on"
    );
}

#[test]
fn a_budget_that_is_spent_drops_new_pages_only() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open(&recorder, with_budget(5), now);
    offer_pages(&mut frontier, 0..4, now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 1, now), 1);
    offer_pages(&mut frontier, 4..6, now);
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now), 3);
    offer_pages(&mut frontier, 6..7, now);
    // Its retry waits for its time.
    let retried = one(&mut frontier, now);
    assert_eq!(*retried.entry.url, page(0, 0));
    settle(&mut frontier, &retried, Some(FailureKind::Timeout), now);
    let last = one(&mut frontier, now);
    assert_eq!(*last.entry.url, page(0, 4));
    settle(&mut frontier, &last, None, now);
    assert_eq!(dropped(&mut frontier, now), [page(0, 5), page(0, 6)]);
    assert_eq!(frontier.report().pages_left(), 4);
    let again = crawl(&mut frontier, &mut now, |_| None);
    assert_eq!(urls_of(&again), [page(0, 1), page(0, 2), page(0, 3), page(0, 0)]);
    let report = frontier.report();
    assert_eq!((report.pages.done, report.pages.refreshed), (5, 4));
    assert_eq!(report.not_fetched, [(NotFetched::HostBudget, 2)].into());
}

#[test]
fn a_page_that_was_never_fetched_is_dropped_without_those_that_are_fetched_again() {
    let mut config = asking_robots();
    config.limits.max_pages_per_host = Some(2);
    for is_retry in [false, true] {
        let recorder = Recorder::default();
        let mut now = START;
        let mut frontier = open(&recorder, config.clone(), now);
        let mut urls = vec![page(0, 0)];
        urls.extend((0..300).map(|n| format!("http://host0.example:81/{n}")));
        offer(&mut frontier, &urls, now);
        crawl(&mut frontier, &mut now, |lease| {
            lease.entry.url.contains(":81").then_some(FailureKind::Connect)
        });
        offer(&mut frontier, &[page(0, 1)], now);
        crawl(&mut frontier, &mut now, |_| None);
        assert_eq!(frontier.report().pages.lost_with_host, 300);
        now = now + DAY;
        if is_retry {
            assert!(
                frontier
                    .queue_again(Refetch::Unanswered, 0, now)
                    .unwrap()
                    .next
                    .is_some()
            );
            while frontier
                .queue_again(Refetch::Unanswered, 1_000, now)
                .unwrap()
                .next
                .is_some()
            {}
            assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 1_000, now), 2);
        } else {
            assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 1_000, now), 302);
        }
        assert_eq!(dropped(&mut frontier, now).len(), 300);
        let mut again = urls_of(&crawl(&mut frontier, &mut now, |_| None));
        again.sort();
        assert_eq!(again, [page(0, 0), page(0, 1)]);
        let report = frontier.report();
        assert_eq!((report.pages.lost_with_host, report.pages.refreshed), (0, 2));
        assert_eq!(report.not_fetched, [(NotFetched::HostBudget, 300)].into());
    }
}

#[test]
fn of_a_long_queue_on_disk_the_pages_that_are_fetched_again_stay_in_order() {
    const FETCHED: usize = 400;
    let recorder = Recorder::default();
    let mut now = START;
    let config = with_budget(FETCHED as u64 + 1);
    let mut frontier = open(&recorder, config.clone(), now);
    let page = |n: usize| format!("http://site.example/{:040}/{n}", n * 7_919 % 10_007);
    let pages = |numbers: std::ops::Range<usize>| numbers.map(page).collect::<Vec<_>>();
    offer(&mut frontier, &pages(0..FETCHED), now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    offer(&mut frontier, &pages(1_000..1_300), now);
    assert_eq!(
        queued_again(&mut frontier, Refetch::OlderThan(DAY), FETCHED / 2, now),
        200
    );
    offer(&mut frontier, &pages(1_300..1_600), now);
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), FETCHED, now), 200);
    frontier.checkpoint(b"", now).unwrap();
    let segments = |recorder: &Recorder| recorder.image().space(Space::Segment).len();
    assert!(segments(&recorder) > 2, "{}", segments(&recorder));
    let last = one(&mut frontier, now);
    settle(&mut frontier, &last, None, now);
    frontier.persist(b"", now).unwrap();
    drop(frontier);

    let mut frontier = open(&recorder, config, now);
    assert_eq!(frontier.report().queued_pages, FETCHED as u64);
    assert_eq!(dropped(&mut frontier, now), pages(1_001..1_600));
    assert_eq!(urls_of(&crawl(&mut frontier, &mut now, |_| None)), pages(0..FETCHED));
    frontier.checkpoint(b"", now).unwrap();
    frontier.checkpoint(b"", now).unwrap();
    assert_eq!(segments(&recorder), 0, "nothing waits any more");
}

#[test]
fn new_pages_wait_for_no_page_that_is_fetched_again() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open(&recorder, with_budget(2), now);
    offer_pages(&mut frontier, 0..1, now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 1, now), 1);
    offer_pages(&mut frontier, 1..2, now);
    assert_eq!(*one(&mut frontier, now).entry.url, page(0, 0));
    assert_eq!(
        *one(&mut frontier, now).entry.url,
        page(0, 1),
        "it is the last one of the budget"
    );
}

#[test]
fn pages_under_a_prefix_that_was_closed_since_are_fetched_again() {
    let mut config = config();
    config.traps.max_near_duplicates = NonZeroU32::new(1);
    config.traps.max_near_duplicates_in_all = NonZeroU32::new(3);
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open(&recorder, config, now);
    offer_pages(&mut frontier, 0..9, now);
    let mut done = 0;
    loop {
        match frontier.lease(now, 1).unwrap() {
            Leasing::Ready(leases) => {
                let Task::Page(page) = leases[0].task() else {
                    panic!("{leases:?}")
                };
                let alike = Fingerprint::new(None, Some(1.into()));
                let settlement = page.settle(Outcome::Done).with_fingerprint(alike);
                frontier.settle(&[settlement], now).unwrap();
                done += 1;
            }
            Leasing::Dropped(_) => {}
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    frontier.persist(b"", now).unwrap();
    let not_fetched = frontier.report().not_fetched;
    assert_eq!(not_fetched, [(NotFetched::NearDuplicates, 9 - done)].into());
    assert!(done < 9);
    for day in 1..3 {
        now = now + DAY;
        assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now), done);
        assert_eq!(crawl(&mut frontier, &mut now, |_| None).len() as u64, done);
        assert_eq!(frontier.report().pages.refreshed, day * done);
        assert_eq!(frontier.report().not_fetched, not_fetched);
    }
}
