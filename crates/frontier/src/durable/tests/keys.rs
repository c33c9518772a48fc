//! The digests of keys: what is added is there, over freezes, merges, replays and crashes; and what is missing is an error.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::keys::SharedKeys;
use super::super::segments::SharedStore;
use super::super::sizes::Sizes;
use super::common::{START, config, pages, url};
use super::stores::{Recorder, SMALL, open_store};
use crate::config::{FrontierConfig, SeenSetConfig};
use crate::link::Link;
use crate::state::StoredKeys as _;
use crate::store::{Batch, MemoryStore, Space, Store as _};
use crate::{FrontierError, OpenError, StoreError, Verdict, Why};

const SIZES: Sizes = Sizes {
    digests_of_part: 4,
    fresh_digests: 16,
    ..SMALL
};

/// Digests in a store, as a frontier writes them.
struct Written {
    recorder: Recorder,
    keys: SharedKeys,
    row: u64,
    next: u64,
    /// All digests of a row.
    rows: Vec<Vec<u128>>,
    covered: u64,
    /// The rows of a checkpoint that is being written.
    begun: Option<u64>,
}

fn digest(number: u64) -> u128 {
    (u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64) | u128::from(number + 1)
}

impl Written {
    fn new() -> Self {
        let recorder = Recorder::default();
        let store = SharedStore::new(Box::new(recorder.clone()));
        Self {
            keys: SharedKeys::new(store, SIZES),
            recorder,
            row: 0,
            next: 0,
            rows: vec![Vec::new()],
            covered: 0,
            begun: None,
        }
    }

    /// Writes a row with this number of new keys.
    fn add_row(&mut self, keys: u64, begins_checkpoint: bool) {
        self.row += 1;
        let digests: Vec<_> = (self.next..self.next + keys).map(digest).collect();
        self.next += keys;
        let mut batch = Batch::default();
        digests
            .iter()
            .for_each(|digest| assert!(self.keys.insert(*digest, true)));
        let mut of = self.keys.lock();
        self.rows.push(digests);
        if begins_checkpoint {
            of.freeze(self.row);
            self.begun = Some(self.row);
        }
        of.write(&mut batch, self.row).unwrap();
        if of.are_written()
            && let Some(begun) = self.begun.take()
        {
            of.checkpoint_finished(begun);
            self.covered = begun;
        }
        drop(of);
        self.recorder.clone().commit(&batch, false).unwrap();
    }

    /// Opens the store again, and makes the calls since the last checkpoint again.
    fn kill(&mut self) {
        let store = SharedStore::new(Box::new(self.recorder.clone()));
        self.keys = SharedKeys::load(store, SIZES, self.covered).unwrap();
        self.begun = None;
        self.check(self.covered);
        for row in self.covered + 1..=self.row {
            for digest in &self.rows[row as usize] {
                self.keys.insert(*digest, true);
            }
            self.keys.lock().row_was_replayed(row);
            self.check(row);
        }
        self.keys.lock().journal_has_ended().unwrap();
        self.check(self.row);
    }

    /// Checks that the keys are those of the rows up to this one.
    fn check(&self, row: u64) {
        let mut keys = self.keys.lock();
        let there: HashSet<u128> = self.rows[..=row as usize].iter().flatten().copied().collect();
        assert_eq!(keys.len(), there.len() as u64);
        for number in 0..self.next + 20 {
            let digest = digest(number);
            assert_eq!(
                keys.contains(digest),
                there.contains(&digest),
                "key {number} of row {row}"
            );
        }
        assert!(keys.take_error().is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_added_is_there_and_nothing_else(
        rows in prop::collection::vec((0_u64..20, prop::bool::weighted(0.1), prop::bool::weighted(0.05)), 1..120),
    ) {
        let mut written = Written::new();
        for (keys, begins_checkpoint, is_killed) in rows {
            written.add_row(keys, begins_checkpoint);
            if is_killed {
                written.kill();
            }
        }
        written.check(written.row);
        written.kill();
    }
}

/// The numbers of the runs that a store has values of.
fn runs(image: &MemoryStore) -> HashSet<u64> {
    image.space(Space::Digest).keys().map(|key| key >> 32).collect()
}

#[test]
fn runs_are_few_and_those_that_were_merged_are_removed() {
    let mut written = Written::new();
    for row in 0..3_000 {
        written.add_row(7, row % 5 == 0);
    }
    // 21 000 digests are five tiers above sixteen.
    let left = runs(&written.recorder.image());
    assert!((4..=22).contains(&left.len()), "{left:?}");
    let image = written.recorder.image();
    let values = Space::ALL.iter().flat_map(|space| image.space(*space).values());
    let bytes: u64 = values.map(|value| value.len() as u64).sum();
    let digests = written.next * 16;
    // Half of them may be there twice, while they are merged, with the first of each four.
    assert!((digests..digests * 5 / 2).contains(&bytes), "{bytes} for {digests}");
    written.check(written.row);
}

#[test]
fn a_missing_list_of_runs_is_an_error_and_no_empty_set() {
    let mut written = Written::new();
    written.add_row(7, true);
    written.kill();
    let mut batch = Batch::default();
    batch.delete(Space::Meta, 1..=1);
    written.recorder.commit(&batch, false).unwrap();
    let store = SharedStore::new(Box::new(written.recorder));
    let error = SharedKeys::load(store, SIZES, written.covered).unwrap_err();
    assert!(error.to_string().contains("list of runs"), "{error}");
}

#[test]
fn what_an_unfinished_run_left_is_removed_in_slices() {
    let mut written = Written::new();
    for row in 0..40 {
        written.add_row(7, row % 5 == 0);
    }
    let store = &mut written.recorder;
    let next = *runs(&store.image()).iter().max().unwrap() + 3;
    let mut garbage = Batch::default();
    for part in 0..200 {
        garbage.put(Space::Digest, (next << 32) | part, vec![1; 64]);
    }
    store.commit(&garbage, false).unwrap();
    written.kill();
    let left = |written: &Written| {
        let image = written.recorder.image();
        image
            .space(Space::Digest)
            .keys()
            .filter(|key| *key >> 32 == next)
            .count()
    };
    let mut before = left(&written);
    let mut rows = 0;
    while before > 0 {
        written.add_row(7, false);
        let now = left(&written);
        assert!((1..=100).contains(&(before - now)), "{before} to {now}");
        before = now;
        rows += 1;
    }
    assert!(rows > 1);
    written.kill();
}

fn exact() -> FrontierConfig {
    FrontierConfig {
        seen_set: SeenSetConfig {
            capacity: 1,
            false_positive_rate: 0.5,
            ..config().seen_set
        },
        ..config()
    }
}

fn links(numbers: std::ops::Range<usize>) -> Vec<Link> {
    pages("http://site.example/", numbers.end).split_off(numbers.start)
}

fn without(image: &MemoryStore, keys: impl Fn(u64) -> bool) -> MemoryStore {
    let (mut copy, mut batch) = (image.clone(), Batch::default());
    for key in image.space(Space::Digest).keys().filter(|key| keys(**key)) {
        batch.delete(Space::Digest, *key..=*key);
    }
    copy.commit(&batch, false).unwrap();
    copy
}

#[test]
fn an_exact_seen_set_takes_every_new_link_though_its_filter_says_seen_to_all() {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), exact(), START).unwrap().frontier;
    for round in 0..40 {
        let verdicts = frontier.offer(&links(0..round * 25 + 25), START).unwrap();
        let (seen, new) = verdicts.split_at(round * 25);
        assert!(seen.iter().all(|verdict| *verdict == Verdict::Seen));
        assert!(new.iter().all(|verdict| *verdict == Verdict::Queued));
        frontier.persist(b"", START).unwrap();
        if round % 7 == 6 {
            drop(frontier);
            frontier = open_store(recorder.clone(), exact(), START).unwrap().frontier;
        }
    }
    assert!(runs(&recorder.image()).len() > 2);
    assert!(frontier.report().saturation.memory_bytes > 0, "that of the filter");
    let why = frontier.why(&url("http://site.example/7"), START);
    assert!(matches!(why, Why::Queued { .. }), "{why:?}");
    let why = frontier.why(&url("http://site.example/never"), START);
    assert_eq!(why, Why::NeverOffered);
    // The state has no keys: they are in runs.
    frontier.checkpoint(b"", START).unwrap();
    let state: usize = recorder.image().space(Space::Checkpoint).values().map(Vec::len).sum();
    assert!(state < 60_000, "{state}");
}

#[test]
fn a_part_of_the_keys_that_is_missing_ends_the_call_or_the_opening_with_an_error() {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), exact(), START).unwrap().frontier;
    frontier.offer(&links(0..100), START).unwrap();
    frontier.checkpoint(b"", START).unwrap();
    drop(frontier);

    let is_part = |key: u64| key & (1 << 31) == 0;
    let no_parts = Recorder::from(without(&recorder.image(), is_part));
    let mut frontier = open_store(no_parts, exact(), START).unwrap().frontier;
    let error = frontier.offer(&links(0..100), START).unwrap_err();
    assert!(
        matches!(&error, FrontierError::Damaged(why) if why.contains("of the keys is missing")),
        "{error}"
    );
    assert_eq!(frontier.offer(&[], START), Err(FrontierError::Poisoned));

    let no_fences = Recorder::from(without(&recorder.image(), |key| !is_part(key)));
    let error = open_store(no_fences, exact(), START).unwrap_err();
    assert!(
        matches!(&error, OpenError::Store(StoreError::Damaged { what, .. }) if what.contains("other parts")),
        "{error}"
    );

    // The links of a redirect are offered again by the journal; here it is enough that a replay reads nothing that is missing.
    let mut frontier = open_store(recorder.clone(), exact(), START).unwrap().frontier;
    frontier.offer(&links(90..110), START).unwrap();
    frontier.persist(b"", START).unwrap();
    drop(frontier);
    let error = open_store(Recorder::from(without(&recorder.image(), is_part)), exact(), START).unwrap_err();
    assert!(
        matches!(&error, OpenError::Store(StoreError::Damaged { what, .. }) if what.contains("of the keys is missing")),
        "{error}"
    );
}
