//! Segments of queues that cannot be read.

use std::num::NonZeroU32;

use super::common::{START, config, end, url};
use super::stores::{ALL_RESIDENT, Recorder, open_sized};
use crate::config::{FrontierConfig, PolitenessConfig};
use crate::link::Link;
use crate::store::{Batch, MemoryStore, Space, Store as _};
use crate::{Frontier, FrontierError, Leasing, OpenError, Outcome, StoreError};

pub(super) const PAGES: usize = 1_000;

pub(super) fn config_of_many() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(PAGES as u32).unwrap(),
            ..config().politeness
        },
        ..config()
    }
}

/// A frontier with a queue of several segments, in a checkpoint.
pub(super) fn long_queue() -> (Recorder, Frontier) {
    let recorder = Recorder::default();
    let mut frontier = open_sized(recorder.clone(), config_of_many(), START, ALL_RESIDENT)
        .unwrap()
        .frontier;
    let page = |n: usize| format!("http://site.example/{:040}/{n}", n * 7_919 % 10_007);
    let link = |n| Link::found(url(&page(n)), 1, "http://site.example/".into());
    frontier
        .offer(&(0..PAGES).map(link).collect::<Vec<_>>(), START)
        .unwrap();
    frontier.checkpoint(b"", START).unwrap();
    assert!(recorder.image().space(Space::Segment).len() > 1);
    (recorder, frontier)
}

fn without_segments(image: &MemoryStore) -> MemoryStore {
    let (mut copy, mut batch) = (image.clone(), Batch::default());
    batch.delete(Space::Segment, 0..=u64::MAX);
    copy.commit(&batch, false).unwrap();
    copy
}

#[test]
fn a_segment_that_is_missing_when_its_turn_comes_ends_the_call_with_an_error() {
    let (recorder, _) = long_queue();
    let damaged = Recorder::from(without_segments(&recorder.image()));
    let mut opened = open_sized(damaged, config_of_many(), START, ALL_RESIDENT).unwrap();
    let error = opened.frontier.lease(START, PAGES).unwrap_err();
    assert!(
        matches!(&error, FrontierError::Damaged(why) if why.contains("segment 0 is missing")),
        "{error}"
    );
    assert_eq!(opened.frontier.lease(START, 1), Err(FrontierError::Poisoned));
}

#[test]
fn a_segment_that_is_missing_for_the_journal_is_an_error_that_names_it() {
    let (recorder, mut frontier) = long_queue();
    let Leasing::Ready(leases) = frontier.lease(START, PAGES).unwrap() else {
        panic!("all pages are ready");
    };
    assert_eq!(leases.len(), PAGES);
    let settlements: Vec<_> = leases.iter().map(|lease| end(lease, Outcome::Done)).collect();
    frontier.settle(&settlements, START).unwrap();
    frontier.persist(b"", START).unwrap();
    let image = recorder.image();
    assert!(!image.space(Space::Journal).is_empty(), "the calls are made again");
    let opened = open_sized(
        Recorder::from(without_segments(&image)),
        config_of_many(),
        START,
        ALL_RESIDENT,
    );
    let error = opened.unwrap_err();
    let is_named = |what: &str| what.contains("segment 0 is missing");
    assert!(
        matches!(&error, OpenError::Store(StoreError::Damaged { what, .. }) if is_named(what)),
        "{error}"
    );
}

#[test]
fn a_segment_that_is_being_read_is_in_no_checkpoint_and_stays_on_disk_until_its_last_page_is_leased() {
    let (recorder, mut frontier) = long_queue();
    let in_space = |recorder: &Recorder, space| recorder.image().space(space).len();
    let in_checkpoint = |recorder: &Recorder| -> usize {
        let image = recorder.image();
        image.space(Space::Checkpoint).values().map(Vec::len).sum()
    };
    let (segments, bytes) = (in_space(&recorder, Space::Segment), in_checkpoint(&recorder));
    let lease = |frontier: &mut Frontier, most| match frontier.lease(START, most).unwrap() {
        Leasing::Ready(leases) => leases,
        other => panic!("all pages are ready, but: {other:?}"),
    };
    let mut leased: Vec<_> = lease(&mut frontier, 3)
        .into_iter()
        .map(|lease| lease.entry.url.clone())
        .collect();
    frontier.checkpoint(b"", START).unwrap();
    let grown = in_checkpoint(&recorder).saturating_sub(bytes);
    assert!(grown < 1_000, "three leases take {grown} bytes");
    assert_eq!(in_space(&recorder, Space::Segment), segments);

    // The process ends here, and the rest of the segment is read again.
    let image = Recorder::from(recorder.image());
    let mut opened = open_sized(image.clone(), config_of_many(), START, ALL_RESIDENT).unwrap();
    let rest = lease(&mut opened.frontier, PAGES);
    // The three that were in flight come again, last.
    assert_eq!(rest.len(), PAGES);
    leased.extend(rest.into_iter().map(|lease| lease.entry.url.clone()));
    let position = |n: usize| {
        let page = format!("http://site.example/{:040}/{n}", n * 7_919 % 10_007);
        leased.iter().position(|url| **url == page)
    };
    assert!(
        (0..PAGES).all(|n| position(n) == Some(n)),
        "each has its place in the queue"
    );
    opened.frontier.checkpoint(b"", START).unwrap();
    opened.frontier.checkpoint(b"", START).unwrap();
    assert_eq!(in_space(&image, Space::Segment), 0, "no checkpoint needs them any more");
}
