//! What every crash leaves, and what every failure of the store leaves, is the state at a commit.

use std::collections::BTreeMap;
use std::time::Duration;

use super::common::START;
use super::damage::manifest;
use super::failing_store::{FailingStore, Failure};
use super::pair::{Step, make};
use super::run::{Run, config_of, is_checkpoint, steps_of};
use super::seen_sets::SeenSet;
use super::stores::{ALL_RESIDENT, Recorder, SMALL, open_sized, open_store, read_store};
use crate::store::{MemoryStore, Space, Store as _};
use crate::{Frontier, FrontierError, OpenError, StoredPage};

/// Opens a store after a crash, and compares it with a model that has made the steps that its attachment names. Returns their number.
pub(super) fn check(run: &Run, image: &MemoryStore) -> usize {
    let read = read_store(image.clone()).unwrap();
    let steps = steps_of(read.attachment.as_deref());
    let mut model = run.model(steps);
    assert_eq!(
        run.picture(&read.frontier),
        run.picture(&model),
        "read after {steps} steps"
    );

    let now = run.time(steps);
    let mut opened = open_store(Recorder::from(image.clone()), run.config.clone(), now).unwrap();
    assert_eq!(steps_of(opened.attachment.as_deref()), steps);
    let released = model.release_leases(now).unwrap();
    assert_eq!(opened.released, released);
    assert_eq!(
        run.picture(&opened.frontier),
        run.picture(&model),
        "opened after {steps} steps"
    );
    goes_on_alike(&mut opened.frontier, &mut model, run, steps);
    steps
}

fn goes_on_alike(opened: &mut Frontier, model: &mut Frontier, run: &Run, steps: usize) {
    let mut now = run.time(steps);
    for _ in 0..6 {
        let step = Step::Lease(3);
        assert_eq!(
            make(opened, &step, now).0,
            make(model, &step, now).0,
            "leased after {steps} steps"
        );
        now = now + Duration::from_secs(2);
    }
    if let Some((step @ Step::Offer(_), _)) = run.steps.get(steps) {
        assert_eq!(
            make(opened, step, now).0,
            make(model, step, now).0,
            "offered after {steps} steps"
        );
    }
    assert_eq!(run.picture(opened), run.picture(model));
}

/// The pages at each row of the journal.
pub(super) fn pages_at(images: &[MemoryStore]) -> BTreeMap<u64, BTreeMap<u64, Vec<u8>>> {
    let mut pages = BTreeMap::new();
    for image in images {
        let row = image.last_key(Space::Journal).unwrap_or(0).max(manifest(image).covered);
        pages.entry(row).or_insert_with(|| image.space(Space::Page).clone());
    }
    pages
}

pub(super) fn records(image: &MemoryStore) -> Vec<String> {
    let mut found = Vec::new();
    let mut visit = |page: StoredPage| found.push(format!("{page:?}"));
    super::super::pages::visit(image, false, &mut visit).unwrap();
    found
}

#[test]
fn after_every_commit_a_crash_leaves_the_state_at_that_commit() {
    for seen_set in [SeenSet::Exact(10), SeenSet::Growing(1)] {
        check_all_commits(&Run::with(420, config_of(seen_set)));
    }
}

fn check_all_commits(run: &Run) {
    let recorder = Recorder::keeping_images();
    let ended = run.drive_new(&recorder);
    assert_eq!((ended.error, ended.made), (None, 420));

    let images = recorder.images();
    let all_records = records(&recorder.image());
    let (mut steps_before, mut checkpoints, mut unfinished, mut with_journal) = (0, 0, 0, 0);
    let mut manifest = None;
    for image in &images {
        let steps = check(run, image);
        assert!(steps >= steps_before);
        steps_before = steps;
        let its_records = records(image);
        assert_eq!(its_records[..], all_records[..its_records.len()]);
        let its_manifest = image.space(Space::Meta).get(&0).cloned();
        checkpoints += usize::from(its_manifest != manifest);
        manifest = its_manifest;
        let generations: std::collections::HashSet<_> =
            image.space(Space::Checkpoint).keys().map(|key| key >> 32).collect();
        unfinished += usize::from(generations.len() > 1);
        with_journal += usize::from(!image.space(Space::Journal).is_empty());
    }
    assert_eq!(steps_before, 420);
    assert!(all_records.len() > 40, "{}", all_records.len());
    // The run has seen all that can happen.
    let seen = (images.len(), checkpoints, unfinished, with_journal);
    assert!(
        images.len() > 100 && checkpoints > 4 && unfinished > 12 && with_journal > 90,
        "{seen:?}"
    );
}

/// Makes the run over a store that fails, as long as it does; returns how many steps were persisted, how many made, and what is left.
fn run_until_failure(run: &Run, calls_before: u64, failure: Failure) -> Option<(usize, usize, MemoryStore)> {
    let recorder = Recorder::default();
    let store = FailingStore::new(recorder.clone(), calls_before, failure);
    // Only some of the calls that read hosts fail: each costs a run.
    let sizes = if failure == Failure::Io { SMALL } else { ALL_RESIDENT };
    let (persisted, made) = match open_sized(store, run.config.clone(), START, sizes) {
        Ok(opened) => {
            let mut frontier = opened.frontier;
            let ended = run.drive(&mut frontier);
            let error = ended.error?;
            let FrontierError::NotSaved(text) = &error else {
                panic!("{error}");
            };
            assert_eq!(text.contains("the disk is full"), failure == Failure::Full, "{text}");
            is_poisoned(&mut frontier, run.time(ended.made));
            (ended.persisted, ended.made)
        }
        Err(OpenError::Store(_) | OpenError::Frontier(FrontierError::NotSaved(_))) => (0, 0),
        Err(other) => panic!("{other}"),
    };
    Some((persisted, made, recorder.image()))
}

fn is_poisoned(frontier: &mut Frontier, now: crate::Time) {
    let poisoned = Some(FrontierError::Poisoned);
    assert_eq!(frontier.lease(now, 1).err(), poisoned);
    assert_eq!(frontier.offer(&[], now).err(), poisoned);
    assert_eq!(frontier.settle(&[], now).err(), poisoned);
    assert_eq!(frontier.release_leases(now).err(), poisoned);
    assert_eq!(frontier.persist(b"again", now).err(), poisoned);
    assert_eq!(frontier.checkpoint(b"again", now).err(), poisoned);
}

#[test]
fn a_store_that_fails_at_any_call_loses_nothing_that_was_persisted() {
    let steps = 20 + crate::cases::cases(200) as usize;
    fail_at_any_call(&Run::with(steps, config_of(SeenSet::Growing(1))));
    fail_at_any_call(&Run::new(steps));
}

fn fail_at_any_call(run: &Run) {
    for failure in [Failure::Full, Failure::Io, Failure::IoAfterwards] {
        let failures = (0..).map_while(|calls| run_until_failure(run, calls, failure));
        let failures: Vec<_> = failures.collect();
        assert!(failures.len() > run.steps.len() / 4, "{}", failures.len());
        for (persisted, made, left) in failures {
            if left == MemoryStore::default() {
                assert_eq!(persisted, 0);
                continue;
            }
            let steps = check(run, &left);
            // A checkpoint persists first.
            if failure == Failure::IoAfterwards || is_checkpoint(made) {
                assert!(steps == persisted || steps == made, "{steps} of {persisted} and {made}");
            } else {
                assert_eq!(steps, persisted);
            }
        }
    }
}

#[test]
fn a_store_that_fails_while_it_is_opened_can_be_opened_later() {
    let run = Run::new(220);
    let recorder = Recorder::default();
    run.drive_new(&recorder);
    let now = run.time(220);
    let mut failed = 0;
    for failure in [Failure::Full, Failure::Io, Failure::IoAfterwards] {
        for calls in 0.. {
            let left = Recorder::from(recorder.image());
            let store = FailingStore::new(left.clone(), calls, failure);
            match open_store(store, run.config.clone(), now) {
                Ok(_) => break,
                Err(OpenError::Store(_) | OpenError::Frontier(FrontierError::NotSaved(_))) => failed += 1,
                Err(other) => panic!("{other}"),
            }
            // What was in flight may have been released already.
            let opened = open_store(left, run.config.clone(), now).unwrap();
            let mut model = run.model(220);
            model.release_leases(now).unwrap();
            assert_eq!(run.picture(&opened.frontier), run.picture(&model));
        }
    }
    assert!(failed >= 12, "{failed}");
}
