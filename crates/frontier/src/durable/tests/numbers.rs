//! A number names one value for ever, also after crashes: what lies in free pages of the database is never taken for another value.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::checkpoint::REPLACED;
use super::super::removal::Removal;
use super::super::segments::{SharedStore, StoredSegments};
use super::pair::{Step, make};
use super::run::Run;
use super::stores::{Recorder, open_store};
use crate::hosts::SegmentStore as _;
use crate::store::{Batch, MAX_KEY, MemoryStore, Space, Store as _};
use crate::{Frontier, Time};

/// All values that ever were in a store.
#[derive(Clone, Default)]
struct History(BTreeMap<(usize, u64), Vec<u8>>);

impl History {
    /// Adds an image. Returns how many values were added.
    #[track_caller]
    fn add(&mut self, image: &MemoryStore, what: &str) -> usize {
        let before = self.0.len();
        for space in [
            Space::Journal,
            Space::Checkpoint,
            Space::Segment,
            Space::Tag,
            Space::Digest,
        ] {
            for (key, value) in image.space(space) {
                let known = self.0.entry((space as usize, *key)).or_insert_with(|| value.clone());
                assert_eq!(known, value, "{what}: {space:?} {key} is another value");
            }
        }
        self.0.len() - before
    }
}

/// Continues after a crash, with other calls than the run before.
fn go_on(frontier: &mut Frontier, run: &Run, mut now: Time) {
    for (number, (step, _)) in run.steps.iter().rev().take(40).enumerate() {
        now = now + Duration::from_secs(1);
        if matches!(step, Step::Offer(_) | Step::Lease(_)) {
            make(frontier, step, now);
        }
        frontier.persist(number.to_string().as_bytes(), now).unwrap();
    }
}

/// Makes a run whose store keeps an image of each commit.
fn recorded_run() -> (Run, Recorder) {
    let run = Run::new(300);
    let recorder = Recorder::keeping_images();
    run.drive_new(&recorder);
    (run, recorder)
}

#[test]
fn no_number_is_given_twice_across_crashes() {
    let (run, recorder) = recorded_run();
    let (mut history, mut added) = (History::default(), 0);
    for (number, image) in recorder.images().into_iter().enumerate() {
        history.add(&image, "before the crash");
        if number % 5 != 0 {
            continue;
        }
        let (mut history, mut left) = (history.clone(), image);
        for crash in 1..4 {
            let recorder = Recorder::from(left).and_images();
            let mut opened = open_store(recorder.clone(), run.config.clone(), run.time(300)).unwrap();
            go_on(&mut opened.frontier, &run, opened.now);
            let images = recorder.images();
            // The next crash comes somewhere on the way.
            let until = (number * (crash - 1)) % images.len();
            for image in &images[..=until] {
                added += history.add(image, &format!("image {number}, crash {crash}"));
            }
            left = images[until].clone();
        }
    }
    assert!(added > 1_000, "{added}");
}

#[test]
fn a_segment_of_a_run_that_has_ended_stays_until_a_greater_number_is_stored() {
    let mut store = MemoryStore::default();
    let mut batch = Batch::default();
    batch.put(Space::Segment, 4, b"of the checkpoint");
    batch.put(Space::Segment, 9, b"of the run that has ended");
    store.commit(&batch, false).unwrap();
    let recorder = Recorder::from(store);
    let numbers = || {
        recorder
            .image()
            .space(Space::Segment)
            .keys()
            .copied()
            .collect::<Vec<_>>()
    };
    let segments = || StoredSegments::new(SharedStore::new(Box::new(recorder.clone())), 5, 1);
    let write = |segments: &StoredSegments| {
        let mut batch = Batch::default();
        segments.write(&mut batch);
        recorder.clone().commit(&batch, false).unwrap();
    };
    // A run that ends before it has closed a segment.
    write(&segments());
    let next = segments();
    assert_eq!(next.put(Box::from(*b"new")), 10);
    write(&next);
    assert_eq!(numbers(), [4, 10]);
    // The same for one of this run that is no longer needed.
    next.discard(10);
    write(&next);
    assert_eq!(numbers(), [4, 10]);
    assert_eq!(segments().put(Box::from(*b"of a later run")), 11);
    assert_eq!(next.put(Box::from(*b"newer")), 11);
    write(&next);
    assert_eq!(numbers(), [4, 11]);
    // Until a checkpoint has the next number.
    next.discard(11);
    write(&next);
    assert_eq!(numbers(), [4, 11]);
    next.checkpoint_begun();
    write(&next);
    assert_eq!(numbers(), [4, 11]);
    finish_checkpoint(&next, &recorder);
    assert_eq!(numbers(), [4]);
}

/// Finishes a checkpoint, and removes what it replaces.
fn finish_checkpoint(segments: &StoredSegments, recorder: &Recorder) {
    let (mut batch, mut replaced) = (Batch::default(), Removal::default());
    segments.checkpoint_finished(&mut batch, &mut replaced);
    while replaced.write(&mut batch, 1) {}
    recorder.clone().commit(&batch, false).unwrap();
}

#[test]
fn young_segments_are_removed_together_but_for_the_greatest() {
    let recorder = Recorder::default();
    let segments = StoredSegments::new(SharedStore::new(Box::new(recorder.clone())), 0, 3);
    let write = || {
        let mut batch = Batch::default();
        segments.write(&mut batch);
        recorder.clone().commit(&batch, false).unwrap();
        let image = recorder.image();
        image.space(Space::Segment).keys().copied().collect::<Vec<_>>()
    };
    for number in 0..5 {
        assert_eq!(segments.put(Box::from(*b"one")), number);
    }
    write();
    segments.discard(0);
    segments.discard(4);
    assert_eq!(write(), [0, 1, 2, 3, 4], "two are too few");
    segments.discard(1);
    assert_eq!(
        write(),
        [2, 3, 4],
        "the number of the last would be given again after a crash"
    );
    segments.discard(2);
    segments.discard(3);
    assert_eq!(write(), [4]);
    assert_eq!(segments.put(Box::from(*b"two")), 5);
    assert_eq!(write(), [4, 5], "one is too few");
    segments.checkpoint_begun();
    finish_checkpoint(&segments, &recorder);
    assert_eq!(write(), [5], "a checkpoint ends the wait");
}

#[test]
fn what_checkpoints_have_replaced_is_removed_in_slices_also_after_a_crash() {
    let (run, recorder) = recorded_run();
    let images = recorder.images();
    let unfinished: Vec<_> = images
        .into_iter()
        .filter(|image| image.space(Space::Meta).contains_key(&REPLACED))
        .collect();
    assert!(unfinished.len() > 20, "{}", unfinished.len());
    for image in unfinished {
        let recorder = Recorder::from(image);
        let mut opened = open_store(recorder.clone(), run.config.clone(), run.time(300)).unwrap();
        opened.frontier.checkpoint(b"", opened.now).unwrap();
        let image = recorder.image();
        assert_eq!(image.space(Space::Journal).len(), 0, "the checkpoint has all calls");
        let parts = image.space(Space::Checkpoint).keys();
        let generations: BTreeSet<_> = parts.map(|key| key >> 32).collect();
        assert_eq!(generations.len(), 1, "{generations:?}");
        assert!(!image.space(Space::Meta).contains_key(&REPLACED));
    }
}

#[test]
fn a_part_with_a_number_that_cannot_be_is_no_obstacle() {
    let run = Run::new(40);
    let recorder = Recorder::default();
    run.drive_new(&recorder);
    for generation in [1 << 31, (1 << 31) - 1, (1 << 31) - 2, (1 << 31) - 3, 1 << 30] {
        let mut image = recorder.image();
        let mut batch = Batch::default();
        batch.put(Space::Checkpoint, (generation << 32).min(MAX_KEY), b"a part");
        image.commit(&batch, false).unwrap();
        let damaged = Recorder::from(image);
        for _ in 0..3 {
            let mut opened = open_store(damaged.clone(), run.config.clone(), run.time(40)).unwrap();
            opened.frontier.checkpoint(b"40", opened.now).unwrap();
            opened.frontier.checkpoint(b"40", opened.now).unwrap();
        }
    }
}
