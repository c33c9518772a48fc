//! Pages without an answer are tried again, their origins too, and what was counted of them is taken back.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

use super::super::record;
use super::common::{START, config, failure, url};
use super::queued_again;
use super::stores::{Recorder, SMALL, open_sized, open_store};
use crate::config::{FrontierConfig, PolitenessConfig, RetryPolicy};
use crate::{
    FailureKind, Frontier, Lease, Leasing, Link, NotFetched, Outcome, PageEnd, Refetch, Refusal, RobotsOutcome,
    Settlement, Task, Time, Validators, Verdict,
};

pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// One attempt for each page, and half a minute for each origin.
pub(super) fn impatient() -> FrontierConfig {
    FrontierConfig {
        retries: RetryPolicy {
            max_attempts: NonZeroU32::MIN,
            max_robots_attempts: NonZeroU32::MIN,
            max_host_downtime: Duration::from_secs(30),
            jitter_percent: 0,
            ..RetryPolicy::default()
        },
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(8).unwrap(),
            ..config().politeness
        },
        ..config()
    }
}

pub(super) fn asking_robots() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots: true,
            ..impatient().politeness
        },
        ..impatient()
    }
}

pub(super) fn page(host: usize, n: usize) -> String {
    format!("http://host{host}.example/{n}")
}

pub(super) fn offer(frontier: &mut Frontier, urls: &[String], now: Time) -> Vec<Verdict> {
    let link = |text: &String| Link::found(url(text), 2, "http://host0.example/".into());
    frontier.offer(&urls.iter().map(link).collect::<Vec<_>>(), now).unwrap()
}

pub(super) fn settle(frontier: &mut Frontier, lease: &Lease, kind: Option<FailureKind>, now: Time) {
    let failed = |kind| Outcome::failed(failure(kind));
    let settlement = match lease.task() {
        Task::Page(page) => version_of(page.settle(kind.map_or(Outcome::Done, failed)), lease),
        Task::Robots(robots) => robots.settle(kind.map_or(RobotsOutcome::Unavailable, |kind| RobotsOutcome::Failed {
            failure: failure(kind),
            retry_after: None,
        })),
        other => panic!("{other:?}"),
    };
    frontier.settle(&[settlement], now).unwrap();
}

fn version_of(settlement: Settlement, lease: &Lease) -> Settlement {
    let etag = Some(lease.entry.url.to_string());
    let validators = Validators {
        etag,
        last_modified: None,
    };
    settlement.with_version(validators, Some(7.into()))
}

/// Fetches everything, each request with the failure that `failure_of` says. Returns the requests for pages.
pub(super) fn crawl(
    frontier: &mut Frontier,
    now: &mut Time,
    mut failure_of: impl FnMut(&Lease) -> Option<FailureKind>,
) -> Vec<Lease> {
    let mut leased = Vec::new();
    loop {
        match frontier.lease(*now, 8).unwrap() {
            Leasing::Ready(leases) => {
                for lease in leases {
                    settle(frontier, &lease, failure_of(&lease), *now);
                    if matches!(lease.task(), Task::Page(_)) {
                        leased.push(lease);
                    }
                }
            }
            Leasing::Dropped(_) => {}
            Leasing::NotUntil(time) => *now = time,
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    frontier.persist(b"", *now).unwrap();
    leased
}

/// Returns the last record of each page, and the number of its records.
pub(super) fn ends(recorder: &Recorder) -> BTreeMap<String, (PageEnd, usize)> {
    let mut ends = BTreeMap::new();
    record::visit(&recorder.image(), &mut |record| {
        let times = ends.get(&*record.url).map_or(0, |(_, times)| *times);
        ends.insert(record.url.to_string(), (record.end, times + 1));
    })
    .unwrap();
    ends
}

pub(super) fn unanswered(recorder: &Recorder) -> Vec<String> {
    let ends = ends(recorder).into_iter();
    ends.filter(|(_, (end, _))| end.is_unanswered())
        .map(|(url, _)| url)
        .collect()
}

pub(super) fn waiting(frontier: &Frontier) -> Vec<String> {
    let mut urls = Vec::new();
    frontier
        .visit_waiting(&mut |entry| {
            urls.push(entry.url.to_string());
            ControlFlow::Continue(())
        })
        .unwrap();
    urls.sort();
    urls
}

/// What a report says of pages must be what the last records say.
pub(super) fn check_counts(frontier: &Frontier, recorder: &Recorder) {
    let (mut done, mut gave_up, mut lost, mut closed) = (0, 0, 0, 0);
    for (end, _) in ends(recorder).values() {
        match end {
            PageEnd::Done => done += 1,
            PageEnd::GaveUp(_) => gave_up += 1,
            PageEnd::NotFetched(NotFetched::HostDown) => lost += 1,
            PageEnd::NotFetched(NotFetched::RobotsUnreachable) => closed += 1,
            other => panic!("{other:?}"),
        }
    }
    let report = frontier.report();
    let pages = report.pages;
    assert_eq!((pages.gave_up, pages.lost_with_host), (gave_up, lost));
    let closed_then = report.not_fetched.get(&NotFetched::RobotsUnreachable);
    assert_eq!(closed_then.copied().unwrap_or_default(), closed);
    // A page that was fetched and failed later counts as both.
    assert!(
        pages.done >= done && pages.done <= done + gave_up + lost + closed,
        "{pages:?}"
    );
}

/// Returns whether a retry has begun, or goes on.
fn begins(frontier: &mut Frontier, now: Time) -> bool {
    frontier
        .queue_again(Refetch::Unanswered, 0, now)
        .unwrap()
        .next
        .is_some()
}

/// Queues all pages again that have no answer, in small steps.
pub(super) fn retry(frontier: &mut Frontier, now: Time) -> (u64, BTreeMap<FailureKind, u64>) {
    let (mut queued, mut dropped) = (0, BTreeMap::new());
    frontier.queue_again(Refetch::Unanswered, 0, now).unwrap();
    loop {
        let retried = frontier.queue_again(Refetch::Unanswered, 3, now).unwrap();
        queued += retried.pages.queued;
        for (kind, pages) in retried.pages.dropped {
            *dropped.entry(kind).or_default() += pages;
        }
        frontier.persist(b"", now).unwrap();
        if retried.next.is_none() {
            return (queued, dropped);
        }
    }
}

#[test]
fn an_origin_that_was_given_up_is_asked_again_with_all_its_pages_also_from_disk() {
    for resident_bytes in [1, u64::MAX] {
        let recorder = Recorder::default();
        let sizes = super::Sizes {
            resident_bytes,
            ..SMALL
        };
        let open = |now| {
            open_sized(recorder.clone(), asking_robots(), now, sizes)
                .unwrap()
                .frontier
        };
        let (mut frontier, mut now) = (open(START), START);
        let pages: Vec<_> = (0..5).flat_map(|host| (0..4).map(move |n| page(host, n))).collect();
        offer(&mut frontier, &pages, now);
        let is_down = |lease: &Lease| lease.entry.url.contains("host3").then_some(FailureKind::Connect);
        crawl(&mut frontier, &mut now, is_down);
        let report = frontier.report();
        assert_eq!((report.pages.lost_with_host, report.origins_given_up), (4, 1));
        assert_eq!(
            offer(&mut frontier, &[page(3, 9)], now),
            [Verdict::Refused(Refusal::HostDown)]
        );

        frontier = open(now + DAY);
        now = now + DAY;
        assert_eq!(retry(&mut frontier, now), (4, [(FailureKind::Connect, 4)].into()));
        let report = frontier.report();
        assert_eq!((report.pages.lost_with_host, report.origins_given_up), (0, 0));
        assert!(frontier.host_reports(now).all(|host| !host.given_up));
        frontier = open(now);
        assert_eq!(frontier.report().origins_given_up, 0, "after the calls were made again");
        assert_eq!(offer(&mut frontier, &[page(3, 9)], now), [Verdict::Queued]);
        let mut asked: Vec<_> = crawl(&mut frontier, &mut now, |_| None)
            .iter()
            .map(|lease| lease.entry.url.to_string())
            .collect();
        asked.sort();
        assert_eq!(asked, [page(3, 0), page(3, 1), page(3, 2), page(3, 3), page(3, 9)]);
        assert_eq!(frontier.report().pages.done, 21);
        check_counts(&frontier, &recorder);
        // The origin has as much time as one that was never away.
        let before = now;
        offer(&mut frontier, &[page(3, 10)], now + DAY * 2);
        now = now + DAY * 2;
        crawl(&mut frontier, &mut now, is_down);
        assert_eq!(now.since(before + DAY * 2), Duration::from_secs(30));
        assert_eq!(retry(&mut frontier, now).0, 1);
    }
}

#[test]
fn pages_of_an_origin_that_throttled_or_whose_robots_txt_failed_are_tried_again_at_once() {
    for kind in [FailureKind::Throttled, FailureKind::Status] {
        let recorder = Recorder::default();
        let mut frontier = open_store(recorder.clone(), asking_robots(), START).unwrap().frontier;
        let mut now = START;
        offer(&mut frontier, &[page(0, 0), page(0, 1), page(1, 0)], now);
        let asked = crawl(&mut frontier, &mut now, |lease| {
            lease.entry.url.contains("host0").then_some(kind)
        });
        assert_eq!(asked.len(), 1);
        assert_eq!(unanswered(&recorder), [page(0, 0), page(0, 1)], "{kind:?}");
        assert_eq!(retry(&mut frontier, now).0, 2);
        let mut asked_again = 0;
        let asked = crawl(&mut frontier, &mut now, |_| {
            asked_again += 1;
            (kind == FailureKind::Throttled && asked_again == 1).then_some(kind)
        });
        assert_eq!(asked.len(), 2, "{kind:?}: an answer is enough");
        assert!(frontier.report().not_fetched.is_empty());
        check_counts(&frontier, &recorder);
        assert_eq!(retry(&mut frontier, now).0, 0);
    }
}

#[test]
fn a_retry_begins_only_when_nothing_else_is_left_and_answers_are_no_reason() {
    let recorder = Recorder::default();
    let mut config = impatient();
    config.limits.max_pages_per_host = Some(4);
    let mut frontier = open_store(recorder, config, START).unwrap().frontier;
    let mut now = START;
    offer(&mut frontier, &[page(0, 0), page(0, 1), page(0, 2)], now);
    let kinds = [
        Some(FailureKind::Status),
        Some(FailureKind::Timeout),
        Some(FailureKind::Redirect),
    ];
    crawl(&mut frontier, &mut now, |lease| {
        kinds[lease.entry.path()[1..].parse::<usize>().unwrap()]
    });
    assert_eq!(frontier.report().pages.gave_up, 3);
    offer(&mut frontier, &[page(0, 3)], now);
    assert!(!begins(&mut frontier, now));
    assert_eq!(
        frontier.queue_again(Refetch::Unanswered, 9, now).unwrap(),
        crate::QueuedAgain::default()
    );
    crawl(&mut frontier, &mut now, |_| None);
    // The budget of the host is spent, and a page that had failed is not counted twice.
    assert_eq!(
        offer(&mut frontier, &[page(0, 4)], now),
        [Verdict::Refused(Refusal::HostBudget)]
    );
    assert!(begins(&mut frontier, now));
    let retried = frontier.queue_again(Refetch::Unanswered, 9, now).unwrap();
    assert_eq!(retried.pages.failed, [(FailureKind::Timeout, 1)].into());
    assert!(retried.next.is_none());
    assert_eq!(waiting(&frontier), [page(0, 1)]);
    assert_eq!(offer(&mut frontier, &[page(0, 5)], now), [Verdict::Queued]);
    let asked = crawl(&mut frontier, &mut now, |_| None);
    assert_eq!(asked.len(), 1, "only one is left of the budget");
    let report = frontier.report();
    assert_eq!((report.pages.gave_up, report.pages.done), (2, 2));
}

#[test]
fn a_refresh_that_failed_is_tried_again_with_the_version_of_the_last_fetch() {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), impatient(), START).unwrap().frontier;
    let mut now = START;
    offer(&mut frontier, &[page(0, 0), page(1, 0)], now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    frontier.queue_again(Refetch::OlderThan(DAY), 100, now).unwrap();
    crawl(&mut frontier, &mut now, |lease| {
        lease.entry.url.contains("host0").then_some(FailureKind::Timeout)
    });
    let pages = frontier.report().pages;
    assert_eq!((pages.done, pages.gave_up, pages.gave_up_again), (2, 1, 1));
    assert!(begins(&mut frontier, now));
    let retried = frontier.queue_again(Refetch::Unanswered, 9, now).unwrap();
    assert_eq!(retried.pages.failed_refreshes, [(FailureKind::Timeout, 1)].into());
    let asked = crawl(&mut frontier, &mut now, |_| None);
    let [lease] = &asked[..] else { panic!("{asked:?}") };
    let previous = lease.entry.metadata.previous.as_deref().unwrap();
    assert!(lease.entry.is_refresh() && previous.content == Some(7.into()));
    assert_eq!(previous.validators.etag, Some(page(0, 0)));
    let pages = frontier.report().pages;
    assert_eq!((pages.done, pages.gave_up, pages.gave_up_again), (2, 0, 0));
    assert_eq!(pages.refreshed, 2);
    check_counts(&frontier, &recorder);
}

#[test]
fn a_refresh_that_fails_spends_no_budget() {
    let mut config = impatient();
    config.limits.max_pages = Some(3);
    let mut frontier = open_store(Recorder::default(), config, START).unwrap().frontier;
    let mut now = START;
    offer(&mut frontier, &[page(0, 0), page(1, 0)], now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    frontier.queue_again(Refetch::OlderThan(DAY), 100, now).unwrap();
    crawl(&mut frontier, &mut now, |_| Some(FailureKind::Timeout));
    offer(&mut frontier, &[page(2, 0)], now);
    assert_eq!(crawl(&mut frontier, &mut now, |_| None).len(), 1);
}

#[test]
fn a_page_that_is_out_of_the_scope_now_is_refused_and_one_with_two_records_in_a_row_is_queued_once() {
    let recorder = Recorder::default();
    let mut now = START;
    let mut frontier = open_store(recorder.clone(), impatient(), now).unwrap().frontier;
    let near = Link::found(url(&page(0, 0)), 1, "http://host0.example/".into());
    frontier.offer(std::slice::from_ref(&near), now).unwrap();
    offer(&mut frontier, &[page(0, 1)], now);
    let fails = |_: &Lease| Some(FailureKind::Other);
    loop {
        match frontier.lease(now, 8).unwrap() {
            Leasing::Ready(leases) => leases
                .iter()
                .for_each(|lease| settle(&mut frontier, lease, fails(lease), now)),
            Leasing::Drained if ends(&recorder).is_empty() => {
                frontier.persist(b"", now).unwrap();
                frontier
                    .queue_again(Refetch::OlderThan(Duration::ZERO), 1, now)
                    .unwrap();
            }
            _ => break,
        }
    }
    frontier.persist(b"", now).unwrap();
    assert_eq!(ends(&recorder)[&page(0, 0)].1, 2);
    let mut config = impatient();
    config.scope.max_depth = Some(1);
    frontier = open_store(recorder.clone(), config.clone(), now).unwrap().frontier;
    assert!(begins(&mut frontier, now));
    let retried = frontier.queue_again(Refetch::Unanswered, 9, now).unwrap();
    assert_eq!((retried.pages.queued, retried.pages.refused), (1, 1));
    frontier.persist(b"", now).unwrap();
    frontier = open_store(recorder, config, now).unwrap().frontier;
    assert_eq!(waiting(&frontier), [page(0, 0)]);
    assert_eq!(crawl(&mut frontier, &mut now, |_| None).len(), 1);
}

#[test]
fn an_old_page_of_an_origin_that_was_given_up_is_fetched_again_while_the_crawl_runs() {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), impatient(), START).unwrap().frontier;
    let mut now = START;
    offer(&mut frontier, &[page(0, 0), page(0, 1)], now);
    crawl(&mut frontier, &mut now, |_| None);
    now = now + DAY;
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now), 2);
    crawl(&mut frontier, &mut now, |_| Some(FailureKind::Connect));
    assert_eq!(frontier.report().origins_given_up, 1);
    now = now + DAY;
    assert_eq!(queued_again(&mut frontier, Refetch::OlderThan(DAY), 100, now), 2);
    let asked = crawl(&mut frontier, &mut now, |_| None);
    assert!(asked.iter().all(|lease| {
        let previous = lease.entry.metadata.previous.as_deref().unwrap();
        previous.validators.etag.as_deref() == Some(&*lease.entry.url)
    }));
    assert_eq!((asked.len(), frontier.report().origins_given_up), (2, 0));
    check_counts(&frontier, &recorder);
}
