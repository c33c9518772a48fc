//! Pages without an answer are tried again once each, over any failures and kills.

use std::time::Duration;

use proptest::prelude::*;

use super::common::START;
use super::retry::{DAY, asking_robots, check_counts, crawl, ends, offer, page, settle, unanswered, waiting};
use super::stores::{Recorder, open_store};
use crate::{FailureKind, Frontier, Lease, Leasing, Refetch, Time};

#[derive(Debug, Clone)]
enum Happening {
    Kill,
    Persist,
    /// Retries up to so many pages.
    Retry(usize),
    /// Queues up to so many pages that have an end.
    Refresh(usize),
    /// Leases so many, and settles each as failed or not.
    Fetch(Vec<Option<FailureKind>>),
}

fn happenings() -> impl Strategy<Value = Happening> {
    let kind = prop_oneof![
        3 => Just(None),
        3 => Just(Some(FailureKind::Timeout)),
        2 => Just(Some(FailureKind::Connect)),
        1 => Just(Some(FailureKind::Status)),
    ];
    prop_oneof![
        1 => Just(Happening::Kill),
        2 => Just(Happening::Persist),
        3 => (1_usize..4).prop_map(Happening::Retry),
        1 => (1_usize..6).prop_map(Happening::Refresh),
        3 => prop::collection::vec(kind, 1..5).prop_map(Happening::Fetch),
    ]
}

/// A frontier with the requests of this run, and the time.
struct Run {
    max_queued: u64,
    recorder: Recorder,
    frontier: Frontier,
    now: Time,
    leases: Vec<Lease>,
}

impl Run {
    fn open(recorder: Recorder, now: Time, max_queued: u64) -> Self {
        let mut config = asking_robots();
        config.limits.max_queued = max_queued;
        let frontier = open_store(recorder.clone(), config, now).unwrap().frontier;
        Self {
            max_queued,
            recorder,
            frontier,
            now,
            leases: Vec::new(),
        }
    }

    fn kill(self) -> Self {
        Self::open(self.recorder, self.now + Duration::from_secs(1), self.max_queued)
    }

    fn fetch(&mut self, kinds: &[Option<FailureKind>]) {
        match self.frontier.lease(self.now, kinds.len()).unwrap() {
            Leasing::Ready(leases) => self.leases.extend(leases),
            Leasing::NotUntil(time) => self.now = time,
            _ => {}
        }
        for (lease, kind) in self.leases.drain(..).zip(kinds) {
            settle(&mut self.frontier, &lease, *kind, self.now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn over_any_failures_and_kills_each_page_without_an_answer_is_fetched_once_more(
        first in prop::collection::vec(happenings(), 0..60),
        between in prop::collection::vec(happenings(), 0..40),
        with_refresh in any::<bool>(),
        max_queued in prop_oneof![Just(1_000_u64), 1_u64..8],
    ) {
        let recorder = Recorder::default();
        let mut run = Run::open(recorder.clone(), START, 1_000);
        let pages: Vec<_> = (0..3).flat_map(|host| (0..5).map(move |n| page(host, n))).collect();
        offer(&mut run.frontier, &pages, START);
        run.frontier.persist(b"", START).unwrap();
        for happening in first {
            match happening {
                Happening::Kill => run = run.kill(),
                Happening::Persist => run.frontier.persist(b"", run.now).unwrap(),
                Happening::Fetch(kinds) => run.fetch(&kinds),
                Happening::Refresh(up_to) => {
                    run.frontier.queue_again(Refetch::OlderThan(Duration::ZERO), up_to, run.now).unwrap();
                }
                // Not before the end of the first crawl.
                Happening::Retry(_) => {}
            }
        }
        run = run.kill();
        crawl(&mut run.frontier, &mut run.now, |lease| lease.entry.url.contains("host1").then_some(FailureKind::Connect));
        check_counts(&run.frontier, &recorder);
        let before = ends(&recorder);
        prop_assert_eq!(before.len(), pages.len());
        let again = unanswered(&recorder);
        run.max_queued = max_queued;
        run = run.kill();

        for happening in between {
            match happening {
                Happening::Kill => run = run.kill(),
                Happening::Persist => run.frontier.persist(b"", run.now).unwrap(),
                Happening::Fetch(kinds) => {
                    // Only answers: a page that fails again may be tried once more.
                    let kinds: Vec<_> = kinds.iter().map(|_| None).collect();
                    run.fetch(&kinds);
                }
                // Not before the end of the retry.
                Happening::Refresh(_) => {}
                Happening::Retry(up_to) => {
                    run.frontier.queue_again(Refetch::Unanswered, 0, run.now).unwrap();
                    run.frontier.queue_again(Refetch::Unanswered, up_to, run.now).unwrap();
                }
            }
        }
        // A kill may have undone the last step of a retry that had fetched all the others.
        for _ in 0..2 {
            run.frontier.queue_again(Refetch::Unanswered, 0, run.now).unwrap();
            while run.frontier.queue_again(Refetch::Unanswered, 2, run.now).unwrap().next.is_some() {
                crawl(&mut run.frontier, &mut run.now, |_| None);
            }
            crawl(&mut run.frontier, &mut run.now, |_| None);
        }
        prop_assert_eq!(unanswered(&recorder), Vec::<String>::new());
        for (page, (_, times)) in ends(&recorder) {
            let more = times - before[&page].1;
            prop_assert_eq!(more, usize::from(again.contains(&page)), "{}", page);
        }
        check_counts(&run.frontier, &recorder);
        prop_assert_eq!(run.frontier.report().origins_given_up, 0);
        if with_refresh {
            run.now = run.now + DAY;
            run = run.kill();
            let mut seen = Vec::new();
            while run.frontier.queue_again(Refetch::OlderThan(DAY), 100, run.now).unwrap().pages.queued > 0 {
                seen.extend(waiting(&run.frontier));
                crawl(&mut run.frontier, &mut run.now, |_| None);
            }
            let mut sorted = pages.clone();
            sorted.sort();
            seen.sort();
            prop_assert_eq!(seen, sorted, "each page comes of age once");
        }
    }
}

#[test]
fn a_row_with_more_pages_than_the_queue_takes_is_read_in_portions_by_retries_and_refreshes() {
    let recorder = Recorder::default();
    let pages: Vec<_> = (0..9).map(|n| page(n, n)).collect();
    let mut run = Run::open(recorder.clone(), START, 1_000);
    offer(&mut run.frontier, &pages, START);
    // All records are in one row.
    crawl(&mut run.frontier, &mut run.now, |_| Some(FailureKind::Other));
    run.max_queued = 4;
    run = run.kill();
    assert!(
        run.frontier
            .queue_again(Refetch::Unanswered, 0, run.now)
            .unwrap()
            .next
            .is_some()
    );
    let mut fetched = Vec::new();
    loop {
        let retried = run.frontier.queue_again(Refetch::Unanswered, 1_000, run.now).unwrap();
        assert!(retried.pages.queued <= 2, "the other half is for links: {retried:?}");
        assert_eq!(retried.pages.refused, 0);
        fetched.push(crawl(&mut run.frontier, &mut run.now, |_| None).len());
        if retried.next.is_none() {
            break;
        }
        // The place within the row is kept.
        run = run.kill();
    }
    assert_eq!((fetched.iter().sum::<usize>(), unanswered(&recorder).len()), (9, 0));
    check_counts(&run.frontier, &recorder);

    run.now = run.now + DAY;
    let mut refreshed = 0;
    loop {
        let next = run
            .frontier
            .queue_again(Refetch::OlderThan(DAY), 1_000, run.now)
            .unwrap();
        assert!(next.pages.queued <= 4 && next.pages.refused == 0, "{next:?}");
        refreshed += crawl(&mut run.frontier, &mut run.now, |_| None).len();
        if next.pages.queued == 0 {
            break;
        }
        run = run.kill();
    }
    assert_eq!(refreshed, 9);
}
