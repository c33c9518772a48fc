//! Recall: a crawl whose filter is often wrong fetches what an exact one fetches, over kills and failures of the store.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use sieve::OnSaturation;

use super::super::keys::KeySizes;
use super::super::sizes::Sizes;
use super::common::{START, config, url};
use super::stores::{Recorder, SMALL, open_sized, open_store, read_store};
use crate::config::FrontierConfig;
use crate::link::Link;
use crate::store::{FailingStore, Failure, Space};
use crate::{Frontier, FrontierError, Lease, Leasing, OpenError, Outcome, Settlement, Task};

const PAGES: usize = 300;

/// Looks links up at the end only.
const PATIENT: Sizes = Sizes {
    keys: KeySizes {
        spooled_links: usize::MAX,
        ..SMALL.keys
    },
    ..SMALL
};

/// Looks links up at once.
const EAGER: Sizes = Sizes {
    keys: KeySizes {
        spooled_links: 1,
        ..SMALL.keys
    },
    ..SMALL
};

/// Looks all of them up with the first row.
pub(super) const ALL_AT_ONCE: Sizes = Sizes {
    keys: KeySizes {
        parts_at_once: 1_000,
        ..EAGER.keys
    },
    ..EAGER
};

/// With a filter for forty pages, which is wrong about a half of three hundred.
pub(super) fn recalling() -> FrontierConfig {
    FrontierConfig {
        exact: false,
        recall: true,
        capacity: 40,
        false_positive_rate: 0.2,
        per_host: NonZeroU32::new(7).unwrap(),
        ..config()
    }
}

fn page(number: usize) -> String {
    format!("http://site.example/{number}")
}

fn links_of(text: &str) -> Vec<Link> {
    let number: usize = text.rsplit('/').next().unwrap().parse().unwrap();
    let to = [2 * number + 1, 2 * number + 2, (number * 7 + 3) % PAGES, number / 2];
    let to = to.into_iter().filter(|number| *number < PAGES);
    to.map(|number| Link::found(url(&page(number)), 1, text.into()))
        .collect()
}

fn settled(lease: &Lease) -> Settlement {
    match lease.task() {
        Task::Page(page) => page.settle(Outcome::Done).with_links(links_of(&lease.entry.url)),
        other => panic!("{other:?}"),
    }
}

/// Fetches pages, each batch with a persist, until nothing is left or `batches` batches are done. Returns whether nothing is left.
fn fetch(frontier: &mut Frontier, fetched: &mut Vec<String>, batches: usize) -> Result<bool, FrontierError> {
    for _ in 0..batches {
        let leases = match frontier.lease(START, 5)? {
            Leasing::Ready(leases) => leases,
            Leasing::Drained => return Ok(true),
            other => panic!("{other:?}"),
        };
        fetched.extend(leases.iter().map(|lease| lease.entry.url.to_string()));
        let settlements: Vec<_> = leases.iter().map(settled).collect();
        frontier.settle(&settlements, START)?;
        frontier.persist(b"", START)?;
    }
    Ok(false)
}

fn begin(frontier: &mut Frontier) -> Result<(), FrontierError> {
    frontier.add_seed(&url(&page(0)), START)?;
    frontier.persist(b"", START)
}

/// Makes a crawl with a kill after each `batches` batches.
fn crawl(config: &FrontierConfig, batches: usize) -> (Vec<String>, Frontier, Recorder) {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), config.clone(), START).unwrap().frontier;
    begin(&mut frontier).unwrap();
    let mut fetched = Vec::new();
    while !fetch(&mut frontier, &mut fetched, batches).unwrap() {
        let before = counts(&frontier);
        drop(frontier);
        // Opening may look up some more.
        assert_eq!(counts(&read_store(recorder.image()).unwrap().frontier), before);
        frontier = open_store(recorder.clone(), config.clone(), START).unwrap().frontier;
    }
    frontier.persist(b"", START).unwrap();
    (fetched, frontier, recorder)
}

/// Without the links that wait: after a kill, some wait again that were looked up with others that were not.
fn counts(frontier: &Frontier) -> String {
    let report = frontier.report();
    format!("{:?} {:?} {}", report.links, report.pages, report.queued)
}

fn all() -> BTreeSet<String> {
    (0..PAGES).map(page).collect()
}

#[test]
fn what_was_taken_for_seen_is_fetched_in_the_end_each_page_once() {
    let lossy = FrontierConfig {
        recall: false,
        ..recalling()
    };
    assert!(
        crawl(&lossy, usize::MAX).0.len() < PAGES * 3 / 4,
        "the filter must be wrong for this test"
    );

    let growing = FrontierConfig {
        on_saturation: OnSaturation::Grow,
        max_seen_set_bytes: Some(1),
        ..recalling()
    };
    for (config, is_lossy) in [(recalling(), true), (growing, false)] {
        for batches in [usize::MAX, 11, 3, 1] {
            let (fetched, frontier, recorder) = crawl(&config, batches);
            let missing: Vec<_> = all().difference(&fetched.iter().cloned().collect()).cloned().collect();
            assert!(missing.is_empty(), "{missing:?} with a kill after {batches}");
            assert_eq!(fetched.len(), PAGES, "a page was fetched twice");
            let report = frontier.report();
            assert_eq!(report.to_recall, Some(0));
            assert!(frontier.is_drained());
            assert_eq!(report.links.recalled > 20, is_lossy, "{report:?}");
            assert_eq!(report.links.queued, PAGES as u64);
            // What is read stays no longer than needed.
            assert_eq!(recorder.image().space(Space::Spool).len(), 0);
        }
    }
}

#[test]
fn links_are_looked_up_before_the_end_if_many_wait() {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), recalling(), START).unwrap().frontier;
    begin(&mut frontier).unwrap();
    let (mut fetched, mut most) = (Vec::new(), 0);
    while !fetch(&mut frontier, &mut fetched, 1).unwrap() {
        most = most.max(frontier.report().to_recall.unwrap());
        assert!(!frontier.is_drained() || frontier.report().to_recall == Some(0));
    }
    // Ten may wait, and what came with a row.
    assert!((5..40).contains(&most), "{most}");
}

/// A frontier that was offered all pages at once, with links that wait.
pub(super) fn spooled() -> (Recorder, Frontier) {
    let recorder = Recorder::default();
    let mut frontier = open_sized(recorder.clone(), recalling(), START, PATIENT)
        .unwrap()
        .frontier;
    let links = (0..PAGES).map(|n| Link::found(url(&page(n)), 1, page(0).into()));
    frontier.offer(&links.collect::<Vec<_>>(), START).unwrap();
    frontier.persist(b"", START).unwrap();
    (recorder, frontier)
}

#[test]
fn a_value_has_few_links_because_it_is_read_for_each() {
    let (recorder, frontier) = spooled();
    let waiting = frontier.report().to_recall.unwrap();
    assert!(waiting > 64, "{waiting}");
    let longest = recorder.image().space(Space::Spool).values().map(Vec::len).max();
    // A link of them takes about 60 bytes with its digest.
    assert!(longest.is_some_and(|bytes| bytes < 64 * 80), "{longest:?}");
    drop(frontier);
    let mut frontier = open_store(recorder, recalling(), START).unwrap().frontier;
    let mut fetched = Vec::new();
    assert!(fetch(&mut frontier, &mut fetched, usize::MAX).unwrap());
    assert_eq!(fetched.len(), PAGES);
}

#[test]
fn a_link_that_is_refused_after_all_is_counted_once_over_any_number_of_kills() {
    let (recorder, frontier) = spooled();
    drop(frontier);
    let full = FrontierConfig {
        max_queued: 1,
        ..recalling()
    };
    let recall = |rows_per_kill: u32| {
        let recorder = Recorder::from(recorder.image());
        loop {
            let mut frontier = open_sized(recorder.clone(), full.clone(), START, EAGER)
                .unwrap()
                .frontier;
            for row in 0..rows_per_kill {
                frontier.persist(&row.to_le_bytes(), START).unwrap();
            }
            if frontier.report().to_recall == Some(0) {
                break frontier.report().links;
            }
        }
    };
    let once = recall(1_000);
    assert!(once.recalled > 20, "{once:?}");
    assert_eq!(recall(1), once);
    assert_eq!(recall(7), once);
}

#[test]
fn an_opening_with_other_options_ends_with_a_checkpoint_before_any_row() {
    let (recorder, frontier) = spooled();
    let queued = frontier.report().links.queued;
    drop(frontier);
    // Under these options no link is recalled that is under the others.
    let other = FrontierConfig {
        max_queued: 1,
        ..recalling()
    };
    let images = Recorder::from(recorder.image()).and_images();
    let opened = open_sized(images.clone(), other.clone(), START, ALL_AT_ONCE);
    drop(opened.unwrap());
    assert!(images.images().len() > 1);
    for image in images.images() {
        let opened = open_sized(Recorder::from(image), other.clone(), START, PATIENT).unwrap();
        assert_eq!(opened.frontier.report().links.queued, queued);
    }
}

#[test]
fn a_store_that_fails_at_any_call_loses_no_link() {
    for failure in [Failure::Io, Failure::IoAfterwards] {
        let mut failures = 0;
        // Each 61st call; all would take minutes.
        for calls in (0..).step_by(61) {
            let recorder = Recorder::default();
            let store = FailingStore::new(recorder.clone(), calls, failure);
            let mut fetched = Vec::new();
            let ended = open_store(store, recalling(), START).map(|opened| {
                let mut frontier = opened.frontier;
                begin(&mut frontier).and_then(|()| fetch(&mut frontier, &mut fetched, usize::MAX))
            });
            match ended {
                Ok(Ok(is_done)) => {
                    assert!(is_done && failures > 4, "{failures}");
                    break;
                }
                Ok(Err(FrontierError::NotSaved(_))) | Err(OpenError::Store(_) | OpenError::Frontier(_)) => {
                    failures += 1;
                }
                Ok(Err(other)) => panic!("{other}"),
                Err(other) => panic!("{other}"),
            }
            let mut frontier = open_store(recorder, recalling(), START).unwrap().frontier;
            begin(&mut frontier).unwrap();
            assert!(fetch(&mut frontier, &mut fetched, usize::MAX).unwrap());
            let fetched: BTreeSet<_> = fetched.into_iter().collect();
            let missing: Vec<_> = all().difference(&fetched).cloned().collect();
            assert!(missing.is_empty(), "{missing:?} when call {calls} failed");
        }
    }
}

#[test]
fn recall_cannot_be_begun_in_the_middle_of_a_crawl() {
    let (_, _, recorder) = crawl(&recalling(), usize::MAX);
    let without = FrontierConfig {
        recall: false,
        ..recalling()
    };
    let error = open_store(recorder, without, START).unwrap_err();
    assert!(
        matches!(&error, OpenError::Changed { option, .. } if option == "recall"),
        "{error}"
    );
}
