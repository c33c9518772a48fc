//! Stores from which something is missing are mended: to the state at an earlier commit, or without what is named.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::checkpoint::{MANIFEST, Manifest};
use super::super::repair::{self, RepairOutcome, RepairReport, Salvaged};
use super::super::shelf::SharedStore;
use super::super::sizes::SIZES;
use super::super::{open, record};
use super::common::{START, parse, url};
use super::crash_images::{check, records};
use super::damage::{changed_by, image, image_that, manifest};
use super::pair::picture;
use super::run::{self, steps_of};
use super::segments::{PAGES, config_of_many, long_queue};
use super::stores::{Recorder, SMALL, open_store, read_store};
use crate::rules::ParseRules;
use crate::store::{FoundRows, MemoryStore, Space};
use crate::{Frontier, Leasing, Time};

/// What a mended store reports, and hands out.
pub(super) struct Mended {
    pub(super) store: MemoryStore,
    pub(super) report: RepairReport,
    records: Vec<String>,
    pub(super) urls: BTreeSet<String>,
}

/// Mends a store that once was another.
pub(super) fn mend(store: &MemoryStore, whole: &MemoryStore) -> Mended {
    let recorder = Recorder::from(store.clone());
    let parse: ParseRules = Arc::new(parse);
    let found = Space::ALL.map(|space| FoundRows {
        found: store.space(space).len() as u64,
        written: Some(whole.space(space).len() as u64),
    });
    let mut report = RepairReport::new("told to be damaged".to_owned(), &found);
    let (mut records, mut urls) = (Vec::new(), BTreeSet::new());
    let mut put_out = |salvaged: Salvaged<'_>| match salvaged {
        Salvaged::Record(record) => records.push(format!("{record:?}")),
        Salvaged::Waiting(entry) => {
            urls.insert(entry.url.to_string());
        }
    };
    let shared = SharedStore::new(Box::new(recorder.clone()));
    repair::mend(&shared, &parse, SMALL, &mut report, &mut put_out).unwrap();
    Mended {
        store: recorder.image(),
        report,
        records,
        urls,
    }
}

pub(super) fn waiting(frontier: &Frontier) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut visit = |entry: crate::Entry| {
        found.insert(entry.url.to_string());
        ControlFlow::Continue(())
    };
    frontier.visit_waiting(&mut visit).unwrap();
    found
}

#[test]
fn a_whole_store_is_mended_to_its_last_commit() {
    let (_, image) = image();
    let mended = mend(&image, &image);
    assert_eq!(mended.report.outcome, RepairOutcome::Repaired);
    assert!(!mended.report.has_losses(), "{:?}", mended.report);
    let (before, after) = (
        read_store(image.clone()).unwrap(),
        read_store(mended.store.clone()).unwrap(),
    );
    assert_eq!(picture(&after.frontier), picture(&before.frontier));
    assert_eq!(
        (after.attachment, records(&mended.store)),
        (before.attachment, records(&image))
    );
}

#[test]
fn without_a_row_of_the_journal_it_is_the_state_before_that_row() {
    let (run, image) = image();
    let covered = manifest(&image).covered;
    // Those before are only to be removed.
    let rows: Vec<_> = image
        .space(Space::Journal)
        .keys()
        .filter(|row| **row > covered)
        .collect();
    for row in &rows {
        let row = *row;
        let gap = changed_by(&image, |batch| batch.delete(Space::Journal, *row..=*row));
        let mended = mend(&gap, &image);
        let report = &mended.report;
        assert!(report.has_losses());
        assert_eq!((report.outcome, report.last_row), (RepairOutcome::Repaired, row - 1));
        assert_eq!(report.journal_rows_dropped, covered + 1 + rows.len() as u64 - row);
        let until = changed_by(&image, |batch| batch.delete(Space::Journal, *row..=u64::MAX));
        let expected = read_store(until).unwrap();
        let attachment = read_store(mended.store.clone()).unwrap().attachment;
        assert_eq!(attachment, expected.attachment);
        assert_eq!(check(&run, &mended.store), steps_of(attachment.as_deref()));
        // No record is lost.
        let mut all = records(&mended.store);
        all.extend(mended.records);
        assert_eq!(all, records(&image));
    }
}

#[test]
fn without_a_part_of_the_hosts_the_others_go_on_and_nothing_is_counted_twice() {
    let (_, image) = image_that(|image| manifest(image).host_parts > 2);
    without_any_part(&image);
}

#[test]
fn without_a_part_of_an_earlier_copy_of_the_hosts_none_is_as_it_was_before() {
    let (_, image) = image_that(|image| manifest(image).earlier.len() > 1);
    without_any_part(&image);
}

#[test]
fn opening_keeps_all_parts_of_the_copies_that_are_continued() {
    let (run, image) = image_that(|image| manifest(image).earlier.iter().any(|copy| copy.names > 0));
    let kept: Vec<u64> = manifest(&image).all_keys().flatten().collect();
    let recorder = Recorder::from(image.clone());
    let now = run.time(steps_of(read_store(image).unwrap().attachment.as_deref()));
    let mut opened = open_store(recorder.clone(), run::config(), now).unwrap();
    opened.frontier.persist(b"once more", opened.now).unwrap();
    let image = recorder.image();
    let left = image.space(Space::Checkpoint);
    assert!(kept.iter().all(|key| left.contains_key(key)));
}

/// Repairs a store without each part of its hosts, one after the other, and once more without the names of the hosts.
fn without_any_part(image: &MemoryStore) {
    let manifest = manifest(image);
    let whole = read_store(without_journal(image)).unwrap().frontier;
    let mut kept_some = 0;
    let all = manifest
        .hosts()
        .flat_map(|copy| copy.keys().map(move |key| (key, copy)));
    for (key, copy) in all {
        let gap = changed_by(image, |batch| batch.delete(Space::Checkpoint, key..=key));
        let mut gaps = vec![gap];
        if let Some(last) = copy.keys_of_names().last() {
            gaps.push(changed_by(&gaps[0], |batch| {
                batch.delete(Space::Checkpoint, last..=last);
            }));
        }
        for gap in gaps {
            let mended = mend(&gap, image);
            let report = &mended.report;
            assert_eq!(report.outcome, RepairOutcome::Repaired);
            assert!(report.is_without_hosts && report.has_losses());
            let mut read = read_store(mended.store.clone()).unwrap().frontier;
            assert_eq!(read.hosts().sum_up(), 0, "all hosts that are counted are there");
            let left = waiting(&read);
            assert!(left.is_subset(&waiting(&whole)));
            assert_eq!(
                read.report().queued_pages + report.urls_lost_with_hosts,
                whole.report().queued_pages
            );
            assert_eq!(read.report().repairs.pages, report.urls_lost_with_hosts);
            kept_some += usize::from(!left.is_empty());
            drain(mended.store, run::config(), &left);
        }
    }
    assert!(kept_some > 0);
}

/// Opens a store, and settles all that it leases, until nothing is left. Every page that waited is leased or dropped.
fn drain(store: MemoryStore, config: crate::FrontierConfig, waiting: &BTreeSet<String>) {
    let mut opened = open_store(
        Recorder::from(store),
        config,
        Time::from_millis(START.as_millis() + 1_000_000_000),
    )
    .unwrap();
    let (mut now, mut met) = (opened.now, BTreeSet::new());
    for step in 0.. {
        assert!(step < 20_000, "it comes to no end: {:?}", opened.frontier.report());
        match opened.frontier.lease(now, 3).unwrap() {
            Leasing::Drained | Leasing::BudgetSpent => break,
            Leasing::NotUntil(time) => now = time,
            Leasing::AllLeased => panic!("it stalls"),
            Leasing::Dropped(dropped) => met.extend(dropped.into_iter().map(|one| one.entry.url.to_string())),
            Leasing::Ready(leases) => {
                for lease in leases {
                    met.insert(lease.entry.url.to_string());
                    let settlement = match lease.task() {
                        crate::Task::Page(page) => page.settle(crate::Outcome::Done),
                        crate::Task::Robots(robots) => robots.settle(crate::RobotsOutcome::Unavailable),
                        crate::Task::Address(address) => {
                            address.settle(None, std::time::Duration::from_secs(9_999_999))
                        }
                        crate::Task::Sitemap(sitemap) => sitemap.settle(crate::Outcome::Rejected),
                    };
                    opened.frontier.settle(&[settlement], now).unwrap();
                }
            }
        }
        opened.frontier.persist(b"", now).unwrap();
    }
    let not_met: Vec<_> = waiting.difference(&met).collect();
    assert!(not_met.is_empty(), "{not_met:?}");
}

#[test]
fn without_a_part_of_the_state_all_records_and_urls_are_handed_out() {
    let (_, image) = image();
    let manifest = manifest(&image);
    let at_checkpoint = read_store(without_journal(&image)).unwrap().frontier;
    let expected = waiting(&at_checkpoint);
    assert!(!expected.is_empty());
    for part in 0..manifest.state_parts {
        let key = Manifest::key(manifest.generation, part);
        let gap = changed_by(&image, |batch| batch.delete(Space::Checkpoint, key..=key));
        let mended = mend(&gap, &image);
        assert_eq!(mended.report.outcome, RepairOutcome::NotContinued);
        assert_eq!(mended.records, records(&image));
        let missing: Vec<_> = expected.difference(&mended.urls).collect();
        assert!(missing.is_empty(), "part {part}: {missing:?}");
        assert_eq!(mended.report.records_put_out, mended.records.len() as u64);
    }
    let gap = changed_by(&image, |batch| batch.delete(Space::Meta, MANIFEST..=MANIFEST));
    let mended = mend(&gap, &image);
    assert_eq!(mended.report.outcome, RepairOutcome::NotContinued);
    assert_eq!(mended.records, records(&image));
    assert!(mended.report.urls_put_out > 0, "those of the journal");
}

fn without_journal(image: &MemoryStore) -> MemoryStore {
    changed_by(image, |batch| batch.delete(Space::Journal, 0..=u64::MAX))
}

/// Offers all pages of records again: none is new.
fn knows_all_records(store: &MemoryStore) {
    let mut links = Vec::new();
    let mut visit = |record: crate::PageRecord<'_>| links.push(crate::Link::found(url(&record.url), 1, "".into()));
    record::visit(store, &mut visit).unwrap();
    assert!(!links.is_empty());
    let now = Time::from_millis(START.as_millis() + 1_000_000_000);
    let mut opened = open_store(Recorder::from(store.clone()), run::config(), now).unwrap();
    let verdicts = opened.frontier.offer(&links, opened.now).unwrap();
    assert!(!verdicts.contains(&crate::Verdict::Queued), "{verdicts:?}");
}

#[test]
fn without_a_part_of_the_seen_set_it_is_made_of_records_and_queues() {
    let has_records = |image: &MemoryStore| {
        let covered = manifest(image).covered;
        image.space(Space::Record).keys().filter(|row| **row <= covered).count() > 5
    };
    let (_, image) = image_that(has_records);
    let manifest = manifest(&image);
    let at_checkpoint = read_store(without_journal(&image)).unwrap().frontier;
    for part in manifest.state_parts..manifest.state_parts + manifest.seen_set_parts {
        let key = Manifest::key(manifest.generation, part);
        let gap = changed_by(&image, |batch| batch.delete(Space::Checkpoint, key..=key));
        let mended = mend(&gap, &image);
        assert_eq!(
            (mended.report.outcome, mended.report.last_row),
            (RepairOutcome::Repaired, manifest.covered)
        );
        assert!(mended.report.has_new_seen_set);
        let read = read_store(mended.store.clone()).unwrap().frontier;
        assert_eq!(waiting(&read), waiting(&at_checkpoint));
        knows_all_records(&mended.store);
        drain(mended.store, run::config(), &waiting(&read));
        // With a record less, a key would be forgotten.
        let row = *image.space(Space::Record).keys().next().unwrap();
        let gaps = changed_by(&gap, |batch| batch.delete(Space::Record, row..=row));
        assert_eq!(mend(&gaps, &image).report.outcome, RepairOutcome::NotContinued);
    }
}

#[test]
fn digests_that_are_missing_are_made_of_records_and_queues() {
    let (_, image) = image();
    let expected = read_store(image.clone()).unwrap();
    let digests: Vec<_> = image.space(Space::Digest).keys().copied().collect();
    assert!(digests.len() > 1);
    for gone in digests {
        let gap = changed_by(&image, |batch| batch.delete(Space::Digest, gone..=gone));
        let mended = mend(&gap, &image);
        assert_eq!(mended.report.outcome, RepairOutcome::Repaired);
        assert!(!mended.report.has_losses(), "{:?}", mended.report);
        let read = read_store(mended.store.clone()).unwrap();
        assert_eq!(picture(&read.frontier), picture(&expected.frontier), "without {gone}");
        assert_eq!(read.attachment, expected.attachment);
        knows_all_records(&mended.store);
    }
}

#[test]
fn urls_of_a_missing_segment_are_counted_and_all_others_are_leased() {
    let (recorder, _) = long_queue();
    let image = recorder.image();
    let numbers: Vec<_> = image.space(Space::Segment).keys().copied().collect();
    for gone in [
        &numbers[..1],
        &numbers[1..2],
        &numbers[numbers.len() - 1..],
        &numbers[..],
    ] {
        let gap = changed_by(&image, |batch| {
            for number in gone {
                batch.delete(Space::Segment, *number..=*number);
            }
        });
        let mended = mend(&gap, &image);
        let lost = mended.report.urls_lost["site.example"];
        assert!(lost > 5 && (lost as usize) < PAGES, "{lost}");
        assert!(mended.report.has_losses());
        let read = read_store(mended.store.clone()).unwrap().frontier;
        let left = waiting(&read);
        assert_eq!(left.len() + lost as usize, PAGES);
        assert_eq!(read.report().queued_pages, left.len() as u64);
        assert_eq!(read.report().queued, left.len() as u64);
        assert_eq!(read.report().repairs.pages, lost);
        drain(mended.store, config_of_many(), &left);
    }
}

#[test]
fn a_segment_that_the_journal_makes_again_is_not_lost() {
    let recorder = Recorder::default();
    let rules: ParseRules = Arc::new(parse);
    // No checkpoint is due.
    let opened = open::open(Box::new(recorder.clone()), config_of_many(), START, &rules, SIZES);
    let mut frontier = opened.unwrap().frontier;
    let link = |n: usize| {
        crate::Link::found(
            url(&format!("http://site.example/{:060}/{n}", n * 7)),
            1,
            "http://site.example/".into(),
        )
    };
    frontier
        .offer(&(0..PAGES).map(link).collect::<Vec<_>>(), START)
        .unwrap();
    frontier.persist(b"", START).unwrap();
    drop(frontier);
    let image = recorder.image();
    assert!(!image.space(Space::Segment).is_empty() && !image.space(Space::Journal).is_empty());
    let mended = mend(
        &changed_by(&image, |batch| batch.delete(Space::Segment, 0..=u64::MAX)),
        &image,
    );
    assert!(!mended.report.has_losses(), "{:?}", mended.report);
    let left = waiting(&read_store(mended.store.clone()).unwrap().frontier);
    assert_eq!(left.len(), PAGES);
    drain(mended.store, config_of_many(), &left);
}

#[test]
fn wrong_bytes_of_any_value_never_make_a_repair_panic() {
    let (_, image) = image();
    let parts: Vec<_> = manifest(&image).all_keys().collect();
    let (mut repaired, mut not_continued) = (0, 0);
    for (space, each) in [
        (Space::Meta, 37),
        (Space::Checkpoint, 211),
        (Space::Journal, 173),
        (Space::Record, 97),
    ] {
        let is_read = |key: u64| space != Space::Checkpoint || parts.iter().any(|keys| keys.contains(&key));
        for (key, value) in image.space(space).iter().filter(|(key, _)| is_read(**key)) {
            for at in (0..value.len()).step_by(each) {
                let mut bytes = value.clone();
                bytes[at] ^= 1 << (at % 8);
                let damaged = changed_by(&image, |batch| batch.put(space, *key, bytes));
                let recorder = Recorder::from(damaged);
                let parse: ParseRules = Arc::new(parse);
                let mut report = RepairReport::new(String::new(), &[]);
                let shared = SharedStore::new(Box::new(recorder));
                if repair::mend(&shared, &parse, SMALL, &mut report, &mut |_| {}).is_ok() {
                    repaired += u32::from(report.outcome == RepairOutcome::Repaired);
                    not_continued += u32::from(report.outcome == RepairOutcome::NotContinued);
                }
            }
        }
    }
    assert!(
        repaired > 20 && not_continued > 0,
        "{repaired} repaired, {not_continued} not continued"
    );
}
