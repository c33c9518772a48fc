//! Pages that wait to be fetched again stay when the budget of their host is spent, or their path prefix is closed.

use std::num::NonZeroU32;

use super::super::common::one;
use super::super::segments::config_of_many;
use super::{Crawl, DAY, asking_robots, impatient, page, sorted, urls};
use crate::config::FrontierConfig;
use crate::store::Space;
use crate::{FailureKind, Fingerprint, Leasing, NotFetched, Outcome, Refetch};

fn with_budget(pages: u64) -> FrontierConfig {
    let mut config = config_of_many();
    config.limits.max_pages_per_host = Some(pages);
    config
}

/// Returns all that was dropped for the budget, in order.
fn dropped(crawl: &mut Crawl) -> Vec<String> {
    let mut urls = Vec::new();
    while let Leasing::Dropped(dropped) = crawl.frontier.lease(crawl.now, 0).unwrap() {
        assert!(dropped.len() <= 256);
        assert!(dropped.iter().all(|one| one.why == NotFetched::HostBudget));
        urls.extend(dropped.into_iter().map(|one| one.entry.url.to_string()));
    }
    urls
}

#[test]
fn pages_that_are_fetched_again_spend_no_budget_and_wait_while_the_queue_is_full() {
    let mut config = config_of_many();
    config.limits.max_pages = Some(4);
    config.limits.max_pages_per_host = Some(3);
    config.limits.max_queued = 3;
    let mut crawl = Crawl::new(config);
    crawl.offer(&[page(0, 0), page(0, 1), page(0, 2)]);
    crawl.fetch(|_| None);
    for _ in 1..4 {
        crawl.pass(DAY);
        for (up_to, expected) in [(2, (2, Some(crawl.now))), (100, (1, None)), (100, (0, None))] {
            assert_eq!(crawl.refresh(up_to), expected);
        }
        assert_eq!(crawl.fetch(|_| None).len(), 3);
    }
    assert_eq!(crawl.frontier.report().pages.refreshed, 9);
}

#[test]
fn a_budget_that_is_spent_drops_new_pages_only_and_so_does_a_changed_option() {
    let mut crawl = Crawl::new(with_budget(5));
    let pages: Vec<_> = (0..7).map(|n| page(0, n)).collect();
    crawl.offer(&pages[..4]);
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    assert_eq!(crawl.refresh(1).0, 1);
    crawl.offer(&pages[4..6]);
    assert_eq!(crawl.refresh(100).0, 3);
    crawl.offer(&pages[6..]);
    let retried = one(&mut crawl.frontier, crawl.now);
    assert_eq!(*retried.entry.url, page(0, 0));
    // The last one of the budget waits for no page that is fetched again.
    let last = one(&mut crawl.frontier, crawl.now);
    assert_eq!(*last.entry.url, page(0, 4));
    crawl.settle(&retried, Some(FailureKind::Timeout));
    crawl.settle(&last, None);
    assert_eq!(dropped(&mut crawl), [page(0, 5), page(0, 6)]);
    assert_eq!(crawl.frontier.report().pages_left(), 4);
    // Its retry waits for its time.
    assert_eq!(urls(&crawl.fetch(|_| None)), [1, 2, 3, 0].map(|n| page(0, n)));

    for refreshed in [4, 9] {
        let report = crawl.frontier.report();
        assert_eq!((report.pages.done, report.pages.refreshed), (5, refreshed));
        assert_eq!(report.not_fetched, [(NotFetched::HostBudget, 2)].into());
        crawl.pass(DAY);
        assert_eq!(crawl.refresh(100).0, 5);
        crawl.save();
        crawl.config.limits.max_hosts -= 1;
        crawl.kill();
        assert_eq!(crawl.fetch(|_| None).len(), 5);
    }
}

#[test]
fn a_page_that_was_never_fetched_is_dropped_without_those_that_are_fetched_again() {
    let mut config = asking_robots();
    config.limits.max_pages_per_host = Some(2);
    for is_retry in [false, true] {
        let mut crawl = Crawl::new(config.clone());
        crawl.offer(&[page(0, 0)]);
        crawl.offer(
            &(0..300)
                .map(|n| format!("http://host0.example:81/{n}"))
                .collect::<Vec<_>>(),
        );
        crawl.fetch(|lease| lease.entry.url.contains(":81").then_some(FailureKind::Connect));
        crawl.offer(&[page(0, 1)]);
        crawl.fetch(|_| None);
        assert_eq!(crawl.frontier.report().pages.lost_with_host, 300);
        crawl.pass(DAY);
        if is_retry {
            assert!(crawl.begins_retry());
            assert_eq!(crawl.again(Refetch::Unanswered, 1_000).pages.len(), 300);
            assert!(!crawl.begins_retry());
            assert_eq!(crawl.refresh(1_000).0, 2);
        } else {
            assert_eq!(crawl.refresh(1_000).0, 302);
        }
        assert_eq!(dropped(&mut crawl).len(), 300);
        assert_eq!(sorted(&crawl.fetch(|_| None)), [page(0, 0), page(0, 1)]);
        let report = crawl.frontier.report();
        assert_eq!((report.pages.lost_with_host, report.pages.refreshed), (0, 2));
        assert_eq!(report.not_fetched, [(NotFetched::HostBudget, 300)].into());
    }
}

#[test]
fn of_a_long_queue_on_disk_the_pages_that_are_fetched_again_stay_in_order() {
    const FETCHED: usize = 400;
    let mut crawl = Crawl::new(with_budget(FETCHED as u64 + 1));
    let page = |n: usize| format!("http://site.example/{:040}/{n}", n * 7_919 % 10_007);
    let pages = |numbers: std::ops::Range<usize>| numbers.map(page).collect::<Vec<_>>();
    crawl.offer(&pages(0..FETCHED));
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    crawl.offer(&pages(1_000..1_300));
    assert_eq!(crawl.refresh(FETCHED / 2).0, 200);
    crawl.offer(&pages(1_300..1_600));
    assert_eq!(crawl.refresh(FETCHED).0, 200);
    crawl.frontier.checkpoint(b"", crawl.now).unwrap();
    let segments = |crawl: &Crawl| crawl.recorder.image().space(Space::Segment).len();
    assert!(segments(&crawl) > 2, "{}", segments(&crawl));
    let last = one(&mut crawl.frontier, crawl.now);
    crawl.settle(&last, None);
    crawl.save();

    crawl.kill();
    assert_eq!(crawl.frontier.report().queued_pages, FETCHED as u64);
    assert_eq!(dropped(&mut crawl), pages(1_001..1_600));
    assert_eq!(urls(&crawl.fetch(|_| None)), pages(0..FETCHED));
    crawl.frontier.checkpoint(b"", crawl.now).unwrap();
    crawl.frontier.checkpoint(b"", crawl.now).unwrap();
    assert_eq!(segments(&crawl), 0, "nothing waits any more");
}

#[test]
fn pages_under_a_prefix_that_was_closed_since_are_fetched_again() {
    let mut config = impatient();
    config.politeness.per_host = NonZeroU32::MIN;
    config.traps.max_near_duplicates = NonZeroU32::new(1);
    config.traps.max_near_duplicates_in_all = NonZeroU32::new(3);
    let mut crawl = Crawl::new(config);
    crawl.offer(&(0..9).map(|n| page(0, n)).collect::<Vec<_>>());
    let mut done = 0;
    loop {
        match crawl.frontier.lease(crawl.now, 1).unwrap() {
            Leasing::Ready(leases) => {
                let alike = Fingerprint::new(None, Some(1.into()));
                let settlement = leases[0].settle(Outcome::Done).with_fingerprint(alike);
                crawl.frontier.settle(&[settlement], crawl.now).unwrap();
                done += 1;
            }
            Leasing::Dropped(_) => {}
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    crawl.save();
    let not_fetched = crawl.frontier.report().not_fetched;
    assert_eq!(not_fetched, [(NotFetched::NearDuplicates, 9 - done)].into());
    assert!(done < 9);
    for day in 1..3 {
        crawl.pass(DAY);
        assert_eq!(crawl.refresh(100).0, done);
        assert_eq!(crawl.fetch(|_| None).len() as u64, done);
        assert_eq!(crawl.frontier.report().pages.refreshed, day * done);
        assert_eq!(crawl.frontier.report().not_fetched, not_fetched);
    }
}
