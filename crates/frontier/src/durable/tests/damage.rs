//! Stores from which something is missing, or in which something is at a wrong place or has wrong bytes.

use super::super::checkpoint::{LOGIC, MANIFEST, Manifest};
use super::common::START;
use super::pair::picture;
use super::run::{self, Run, steps_of};
use super::stores::{Recorder, open_store, read_store};
use crate::store::{Batch, MemoryStore, Space, Store as _};
use crate::{FrontierError, OpenError, Opened, StoreError};

const STEPS: usize = 300;

/// The last store of a run that is as meant.
pub(super) fn image_that(is_meant: impl Fn(&MemoryStore) -> bool) -> (Run, MemoryStore) {
    let run = Run::new(STEPS);
    let recorder = Recorder::keeping_images();
    run.drive(&mut open_store(recorder.clone(), run::config(), START).unwrap().frontier);
    let image = recorder.images().into_iter().rfind(|image| is_meant(image)).unwrap();
    (run, image)
}

/// A store with a checkpoint of several parts, a journal of several rows, and an unfinished checkpoint.
pub(super) fn image() -> (Run, MemoryStore) {
    image_that(|image| {
        let generation = manifest(image).generation;
        let of_next = image
            .space(Space::Checkpoint)
            .keys()
            .filter(|key| *key >> 32 > generation);
        image.space(Space::Journal).len() > 7 && of_next.count() > 2 && generation > 1
    })
}

pub(super) fn manifest(image: &MemoryStore) -> Manifest {
    postcard::from_bytes(&image.space(Space::Meta)[&MANIFEST]).unwrap()
}

pub(super) fn with_manifest(image: &MemoryStore, change: impl FnOnce(&mut Manifest)) -> MemoryStore {
    let mut changed = manifest(image);
    change(&mut changed);
    changed_by(image, |batch| {
        batch.put(Space::Meta, MANIFEST, postcard::to_allocvec(&changed).unwrap());
    })
}

pub(super) fn changed_by(image: &MemoryStore, change: impl FnOnce(&mut Batch)) -> MemoryStore {
    let (mut copy, mut batch) = (image.clone(), Batch::default());
    change(&mut batch);
    copy.commit(&batch, false).unwrap();
    copy
}

fn open(image: &MemoryStore) -> Result<Opened, OpenError> {
    open_store(Recorder::from(image.clone()), run::config(), START)
}

#[track_caller]
fn is_damaged(opened: Result<Opened, OpenError>, word: &str) {
    let error = opened.unwrap_err();
    assert!(
        matches!(&error, OpenError::Damaged(what) if what.contains(word)),
        "{error}"
    );
}

#[test]
fn parts_of_an_unfinished_checkpoint_do_no_harm() {
    let (run, image) = image();
    let generation = manifest(&image).generation;
    let expected = picture(&read_store(image.clone()).unwrap().frontier);
    let without = changed_by(&image, |batch| {
        batch.delete(Space::Checkpoint, Manifest::key(generation + 1, 0)..=u64::MAX);
    });
    assert!(without != image);
    assert_eq!(picture(&read_store(without.clone()).unwrap().frontier), expected);

    // Longer than the next checkpoint will be, and of two that were not finished: the next one has none of their numbers.
    let garbage = changed_by(&image, |batch| {
        for (next, part) in (1..3).flat_map(|next| (0..100).map(move |part| (next, part))) {
            batch.put(Space::Checkpoint, Manifest::key(generation + next, part), vec![7; 300]);
        }
    });
    let recorder = Recorder::from(garbage);
    let mut opened = open_store(recorder.clone(), run::config(), run.time(STEPS)).unwrap();
    opened.frontier.checkpoint(b"next", run.time(STEPS)).unwrap();
    let expected = picture(&opened.frontier);
    drop(opened);
    let left = recorder.image();
    assert!(manifest(&left).generation > generation + 2);
    assert_eq!(picture(&read_store(left.clone()).unwrap().frontier), expected);
    // The checkpoint after it has removed them.
    let mut opened = open_store(recorder.clone(), run::config(), run.time(STEPS)).unwrap();
    opened.frontier.checkpoint(b"after", run.time(STEPS)).unwrap();
    let parts = recorder.image().space(Space::Checkpoint).len() as u64;
    let last = manifest(&recorder.image());
    assert_eq!(parts, last.state_parts + last.seen_set_parts + last.host_parts);
}

#[test]
fn a_missing_part_is_an_error() {
    let (_, image) = image();
    let manifest = manifest(&image);
    let parts = manifest.state_parts + manifest.seen_set_parts + manifest.host_parts;
    assert!(parts > 2);
    for key in (0..parts).map(|part| Manifest::key(manifest.generation, part)) {
        let missing = changed_by(&image, |batch| batch.delete(Space::Checkpoint, key..=key));
        is_damaged(open(&missing), "a part of the checkpoint is missing");
    }
}

#[test]
fn a_missing_row_is_an_error_and_the_last_one_is_the_state_before_it() {
    let (run, image) = image();
    // Those before are removed with one of the next commits.
    let first = manifest(&image).covered + 1;
    let rows: Vec<_> = image
        .space(Space::Journal)
        .range(first..)
        .map(|(row, _)| *row)
        .collect();
    assert!(rows.len() > 2);
    let (last, others) = rows.split_last().unwrap();
    for row in others {
        let missing = changed_by(&image, |batch| batch.delete(Space::Journal, *row..=*row));
        is_damaged(open(&missing), "the row before it is missing");
    }
    let missing = changed_by(&image, |batch| batch.delete(Space::Journal, *last..=*last));
    let read = read_store(missing.clone()).unwrap();
    let steps = steps_of(read.attachment.as_deref());
    assert_eq!(picture(&read.frontier), picture(&run.model(steps)));
}

#[test]
fn a_row_at_a_wrong_place_is_an_error() {
    let (_, image) = image();
    let rows = image.space(Space::Journal);
    let last = *rows.keys().next_back().unwrap();
    for (row, value) in rows {
        for to in [last + 2, last + 3_000_000_000] {
            let moved = changed_by(&image, |batch| batch.put(Space::Journal, to, value.clone()));
            is_damaged(open(&moved), "the row before it is missing");
        }
        // It changes what was changed already: a call has another result, unless the row changes nothing but times.
        let twice = changed_by(&image, |batch| batch.put(Space::Journal, last + 1, value.clone()));
        if let Err(error) = open(&twice) {
            assert!(matches!(error, OpenError::Damaged(_)), "row {row}: {error}");
        }
    }
}

/// The store of a directory has checksums, and never returns such bytes. Here they are read, and must not panic.
#[test]
fn wrong_bytes_are_an_error_or_another_state_and_never_a_panic() {
    let (_, image) = image();
    let generation = manifest(&image).generation;
    let (mut refused, mut read) = (0, 0);
    // Fewer bytes in the short form.
    let step = (10 / crate::cases::cases(10)) as usize;
    let spaces = [
        (Space::Meta, 13),
        (Space::Checkpoint, 53),
        (Space::Journal, 71),
        (Space::Digest, 5),
    ];
    for (space, each) in spaces {
        let is_read = |key: u64| space != Space::Checkpoint || key >> 32 == generation;
        for (key, value) in image.space(space).iter().filter(|(key, _)| is_read(**key)) {
            for at in (0..value.len()).step_by(each * step) {
                for wrong in [value[at] ^ (1 << (at % 8)), 0xff] {
                    let mut bytes = value.clone();
                    bytes[at] = wrong;
                    let damaged = changed_by(&image, |batch| batch.put(space, *key, bytes));
                    match read_store(damaged.clone()) {
                        Ok(_) => read += 1,
                        Err(
                            OpenError::Damaged(_)
                            | OpenError::OtherLogic { .. }
                            | OpenError::Config(_)
                            | OpenError::Store(StoreError::Damaged { .. }),
                        ) => {
                            refused += 1;
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            for cut in [0, value.len() / 2, value.len().saturating_sub(1)] {
                let short = changed_by(&image, |batch| batch.put(space, *key, &value[..cut]));
                let _ = read_store(short.clone());
            }
        }
    }
    assert!(refused > 20 && read > 5, "{refused} refused, {read} read");
}

#[test]
fn numbers_of_a_manifest_that_cannot_be_are_an_error() {
    let (_, image) = image();
    let changes: [fn(&mut Manifest); 7] = [
        |manifest| manifest.covered = u64::MAX,
        |manifest| manifest.generation = u64::MAX,
        |manifest| manifest.generation = 1 << 31,
        |manifest| manifest.state_parts = u64::MAX,
        |manifest| manifest.seen_set_parts = u64::MAX,
        |manifest| manifest.host_parts = u64::MAX,
        |manifest| (manifest.state_parts, manifest.seen_set_parts) = (1 << 32, 0),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let error = open(&with_manifest(&image, change)).err();
        assert!(matches!(error, Some(OpenError::Damaged(_))), "change {at}: {error:?}");
    }
}

#[test]
fn a_journal_of_another_logic_is_refused() {
    let (_, image) = image();
    let other = with_manifest(&image, |manifest| manifest.logic = LOGIC + 1);
    for opened in [open(&other), read_store(other.clone())] {
        let error = opened.unwrap_err();
        assert!(
            matches!(error, OpenError::OtherLogic { found, supported } if (found, supported) == (LOGIC + 1, LOGIC)),
            "{error}"
        );
    }
}

#[test]
fn a_checkpoint_of_another_logic_is_continued_and_the_journal_after_it_is_of_this_logic() {
    let run = Run::new(STEPS);
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), run::config(), START).unwrap().frontier;
    run.drive(&mut frontier);
    let now = run.time(STEPS);
    // Requests are in flight.
    frontier.lease(now + std::time::Duration::from_secs(100), 3).unwrap();
    frontier.checkpoint(b"300", now).unwrap();
    assert!(frontier.report().leased > 0);
    let expected = picture(&frontier);
    let other = with_manifest(&recorder.image(), |manifest| manifest.logic = LOGIC - 1);
    assert_eq!(picture(&read_store(other.clone()).unwrap().frontier), expected);

    let recorder = Recorder::from(other).and_images();
    let mut opened = open_store(recorder.clone(), run::config(), now).unwrap();
    opened.frontier.lease(now, 1).unwrap();
    opened.frontier.persist(b"301", now).unwrap();
    let expected = picture(&opened.frontier);
    assert_eq!(picture(&read_store(recorder.image()).unwrap().frontier), expected);
    for image in recorder.images() {
        open(&image).unwrap();
        let has_journal = !image.space(Space::Journal).is_empty();
        assert!(
            !has_journal || manifest(&image).logic == LOGIC,
            "calls of two versions in one journal"
        );
    }
}

#[test]
fn an_error_of_the_first_commit_is_named() {
    use super::failing_store::{FailingStore, Failure};
    let store = FailingStore::new(MemoryStore::default(), 1, Failure::Full);
    let error = open_store(store, run::config(), START).unwrap_err();
    assert!(
        matches!(&error, OpenError::Frontier(FrontierError::NotSaved(_))),
        "{error}"
    );
    assert!(error.to_string().contains("make room"), "{error}");
}
