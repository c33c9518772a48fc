//! Pages without an answer are tried again, their origins too, and what was counted of them is taken back.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::common::url;
use super::super::stores::SMALL;
use super::{Crawl, DAY, Sizes, asking_robots, impatient, page, sorted, urls};
use crate::durable::QueuedAgain;
use crate::{FailureKind, Lease, Leasing, Link, PageEnd, Refetch, Refusal, Verdict};

fn is_down(_: &Lease) -> Option<FailureKind> {
    Some(FailureKind::Connect)
}

#[test]
fn an_origin_that_was_given_up_is_asked_again_with_all_its_pages_also_from_disk() {
    for resident_bytes in [1, u64::MAX] {
        let sizes = Sizes {
            resident_bytes,
            ..SMALL
        };
        let mut crawl = Crawl::sized(asking_robots(), sizes);
        let pages: Vec<_> = (0..5).flat_map(|host| (0..4).map(move |n| page(host, n))).collect();
        crawl.offer(&pages);
        let is_one_down = |lease: &Lease| lease.entry.url.contains("host3").then_some(FailureKind::Connect);
        crawl.fetch(is_one_down);
        let report = crawl.frontier.report();
        assert_eq!((report.pages.lost_with_host, report.origins_given_up), (4, 1));
        assert_eq!(crawl.offer(&[page(3, 9)]), [Verdict::Refused(Refusal::HostDown)]);

        crawl.pass(DAY);
        crawl.kill();
        assert_eq!(crawl.retry(), (4, [(FailureKind::Connect, 4)].into()));
        let report = crawl.frontier.report();
        assert_eq!((report.pages.lost_with_host, report.origins_given_up), (0, 0));
        assert!(crawl.frontier.host_reports(crawl.now).all(|host| !host.given_up));
        crawl.kill();
        assert_eq!(crawl.frontier.report().origins_given_up, 0, "the calls made again");
        assert_eq!(crawl.offer(&[page(3, 9)]), [Verdict::Queued]);
        let asked = crawl.fetch(|_| None);
        assert_eq!(sorted(&asked), [0, 1, 2, 3, 9].map(|n| page(3, n)));
        assert_eq!(crawl.frontier.report().pages.done, 21);
        crawl.check_counts();
        // The origin has as much time as one that was never away.
        crawl.pass(DAY);
        let before = crawl.now;
        crawl.offer(&[page(3, 10)]);
        crawl.fetch(is_one_down);
        assert_eq!(crawl.now.since(before), Duration::from_secs(30));
        assert_eq!(crawl.retry().0, 1);
    }
}

#[test]
fn pages_of_an_origin_that_throttled_or_whose_robots_txt_failed_are_tried_again_at_once() {
    for kind in [FailureKind::Throttled, FailureKind::Status] {
        let mut crawl = Crawl::new(asking_robots());
        crawl.offer(&[page(0, 0), page(0, 1), page(1, 0)]);
        let asked = crawl.fetch(|lease| lease.entry.url.contains("host0").then_some(kind));
        assert_eq!(asked.len(), 1);
        assert_eq!(crawl.unanswered(), [page(0, 0), page(0, 1)], "{kind:?}");
        assert_eq!(crawl.retry().0, 2);
        let mut asked_again = 0;
        let asked = crawl.fetch(|_| {
            asked_again += 1;
            (kind == FailureKind::Throttled && asked_again == 1).then_some(kind)
        });
        assert_eq!(asked.len(), 2, "{kind:?}: an answer is enough");
        assert!(crawl.frontier.report().not_fetched.is_empty());
        crawl.check_counts();
        assert_eq!(crawl.retry().0, 0);
    }
}

#[test]
fn a_retry_begins_when_nothing_else_is_left_and_all_is_saved_and_answers_are_no_reason() {
    let mut config = impatient();
    config.limits.max_pages_per_host = Some(4);
    let mut crawl = Crawl::new(config);
    crawl.offer(&[page(0, 0), page(0, 1), page(0, 2)]);
    crawl.fetch(|lease| {
        Some(match lease.entry.path() {
            "/0" => FailureKind::Status,
            "/1" => FailureKind::Timeout,
            _ => FailureKind::Redirect,
        })
    });
    assert_eq!(crawl.frontier.report().pages.gave_up, 3);
    crawl.offer(&[page(0, 3)]);
    assert!(!crawl.begins_retry(), "a page waits");
    assert_eq!(crawl.again(Refetch::Unanswered, 9), QueuedAgain::default());
    let last = crawl.lease(8);
    crawl.settle(&last[0], None);
    assert!(
        crawl.frontier.report().is_drained() && !crawl.begins_retry(),
        "a page is not saved"
    );
    crawl.save();
    // The budget of the host is spent, and a page that had failed is not counted twice.
    assert_eq!(crawl.offer(&[page(0, 4)]), [Verdict::Refused(Refusal::HostBudget)]);
    assert!(crawl.begins_retry());
    let retried = crawl.again(Refetch::Unanswered, 9);
    assert_eq!(retried.pages.len(), 1);
    assert_eq!(retried.pages[0].end, PageEnd::GaveUp(FailureKind::Timeout));
    assert!(retried.next.is_none());
    assert_eq!(crawl.waiting(), [page(0, 1)]);
    assert_eq!(crawl.offer(&[page(0, 5)]), [Verdict::Queued]);
    assert_eq!(crawl.fetch(|_| None).len(), 1, "only one is left of the budget");
    let pages = crawl.frontier.report().pages;
    assert_eq!((pages.gave_up, pages.done), (2, 2));
}

#[test]
fn a_page_that_is_out_of_the_scope_now_is_refused_and_one_that_failed_twice_is_queued_once() {
    let mut crawl = Crawl::new(impatient());
    let near = Link::found(url(&page(0, 0)), 1, "http://host0.example/".into());
    crawl.frontier.offer(&[near], crawl.now).unwrap();
    crawl.offer(&[page(0, 1)]);
    for _ in 0..2 {
        while let Leasing::Ready(leases) = crawl.frontier.lease(crawl.now, 8).unwrap() {
            leases
                .iter()
                .for_each(|lease| crawl.settle(lease, Some(FailureKind::Other)));
        }
        if crawl.pages().is_empty() {
            crawl.save();
            crawl.again(Refetch::OlderThan(Duration::ZERO), 1);
        }
    }
    crawl.save();
    crawl.config.scope.max_depth = Some(1);
    crawl.kill();
    assert!(crawl.begins_retry());
    let retried = crawl.again(Refetch::Unanswered, 9);
    assert_eq!((retried.pages.len(), retried.refused), (1, 1));
    crawl.save();
    crawl.kill();
    assert_eq!(crawl.waiting(), [page(0, 0)]);
    assert_eq!(crawl.fetch(|_| None).len(), 1);
}

#[test]
fn pages_of_an_origin_that_is_given_up_once_more_wait_for_the_next_retry_and_so_do_those_of_hosts_without_room() {
    let mut crawl = Crawl::new(asking_robots());
    let mut pages: Vec<_> = (0..6).map(|n| page(0, n)).collect();
    pages.extend((1..6).map(|host| page(host, 0)));
    crawl.offer(&pages);
    crawl.fetch(is_down);
    crawl.config.limits.max_queued = 4;
    crawl.kill();
    let before = crawl.now;
    assert!(crawl.begins_retry());
    let mut refused = 0;
    loop {
        let retried = crawl.again(Refetch::Unanswered, 1_000);
        refused += retried.refused;
        crawl.fetch(is_down);
        if retried.next.is_none() {
            break;
        }
    }
    assert!(refused > 0, "pages that came after the end of their origin");
    // One patience for each of the hosts at most, and not one for each portion.
    let waited = crawl.now.since(before);
    assert!(waited <= Duration::from_secs(30 * 6), "{waited:?}");
    assert_eq!(crawl.unanswered().len(), pages.len());
    crawl.check_counts();

    crawl.config = asking_robots();
    crawl.config.limits.max_hosts = 3;
    crawl.kill();
    let mut fetched = 0;
    for _ in 0..4 {
        crawl.retry();
        fetched += crawl.fetch(|_| None).len();
    }
    assert_eq!((fetched, crawl.unanswered().len()), (pages.len(), 0));
    crawl.check_counts();
}

#[test]
fn an_origin_that_was_given_up_for_a_sitemap_is_asked_again() {
    let mut crawl = Crawl::new(impatient());
    let seed = url(&page(0, 0));
    crawl.frontier.add_seed(&seed, crawl.now).unwrap();
    crawl.fetch(|_| None);
    let sitemap = Link::sitemap(url("http://host0.example/s.xml"), seed.origin(), 0, None);
    assert_eq!(crawl.frontier.offer(&[sitemap], crawl.now).unwrap(), [Verdict::Queued]);
    crawl.fetch(is_down);
    assert_eq!(crawl.frontier.report().origins_given_up, 1);
    for _ in 0..2 {
        crawl.pass(DAY);
        crawl.kill();
        crawl.begins_retry();
        assert_eq!(crawl.frontier.report().origins_given_up, 0);
        crawl.offer(&[page(0, 1)]);
        // It is down once more. In the second round, the retry of the first has not come to its end.
        crawl.fetch(is_down);
    }
}

#[test]
fn a_page_that_was_in_flight_when_its_origin_was_given_up_is_tried_again() {
    for (is_given_back, is_opened_again) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut config = impatient();
        config.retries.max_throttles = NonZeroU32::MIN;
        let mut crawl = Crawl::new(config);
        let pages = [page(0, 0), page(0, 1), page(0, 2)];
        crawl.offer(&pages);
        let leases = crawl.lease(8);
        crawl.settle(&leases[0], Some(FailureKind::Throttled));
        assert_eq!(crawl.frontier.report().origins_given_up, 1);
        let in_flight = [leases[1].id, leases[2].id];
        let released = match is_given_back {
            true => crawl.frontier.give_back(&in_flight, crawl.now),
            false => crawl.frontier.release_leases(crawl.now),
        };
        assert_eq!(released, Ok(2));
        crawl.save();
        if is_opened_again {
            crawl.kill();
        }
        assert!(crawl.fetch(|_| None).is_empty());
        assert_eq!(crawl.unanswered(), pages);
        crawl.check_counts();
        assert_eq!(crawl.retry().0, 3);
        assert_eq!(urls(&crawl.fetch(|_| None)).len(), 3);
        assert!(crawl.unanswered().is_empty());
        crawl.check_counts();
    }
}
