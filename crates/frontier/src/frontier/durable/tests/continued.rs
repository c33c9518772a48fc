//! Checkpoints that continue the hosts of those before.

use std::sync::Arc;

use super::super::checkpoint::{Checkpointer, Manifest};
use super::super::restore;
use super::super::state::EncodedState;
use super::common::{config, parse, url};
use super::stores::SMALL;
use crate::Time;
use crate::hosts::HostTable;
use crate::rules::ParseRules;
use crate::store::{Batch, MemoryStore, Space, Store as _};
use crate::url::HostKey;

/// Checkpoints of some hosts, and the store that has them.
struct Checkpoints {
    hosts: HostTable,
    checkpointer: Checkpointer,
    store: MemoryStore,
}

impl Checkpoints {
    fn new() -> Self {
        Self {
            hosts: HostTable::default(),
            checkpointer: Checkpointer::new(SMALL),
            store: MemoryStore::default(),
        }
    }

    /// Blocks a host, so that it differs.
    fn block(&mut self, host: u64, until: u64) {
        let until = Time::from_millis(until);
        self.hosts.change(&name(host), |host| host.block(until));
    }

    fn begin(&mut self) {
        self.begin_with(Vec::new());
    }

    fn begin_with(&mut self, seen_set: Vec<u8>) {
        let state = EncodedState {
            state: vec![7; 10],
            seen_set,
        };
        self.checkpointer
            .begin(state, &mut self.hosts, 0, &config(), b"")
            .unwrap();
    }

    /// Writes all hosts, and the manifest if the keys are written.
    fn write(&mut self, has_keys: bool) {
        for _ in 0..100 {
            let mut batch = Batch::default();
            let is_last = self.checkpointer.write_slice(&mut batch, &mut self.hosts, has_keys);
            self.store.commit(&batch, false).unwrap();
            if is_last.unwrap() {
                return;
            }
        }
        assert!(!has_keys, "it comes to no end");
    }

    fn manifest(&self) -> Manifest {
        restore::manifest(&self.store).unwrap().unwrap().0
    }

    /// Asserts that the last checkpoint has all hosts as they are.
    fn check(&self) {
        let rules: ParseRules = Arc::new(parse);
        let read = restore::hosts(&self.store, &self.manifest(), &rules).unwrap();
        assert_eq!(read.len(), self.hosts.len());
        for (key, host) in self.hosts.iter() {
            let read = read.get(key.as_str()).map(|host| host.blocked_until());
            assert_eq!(read, Some(host.blocked_until()), "{key:?}");
        }
    }
}

fn name(host: u64) -> HostKey {
    url(&format!("http://host-{host}.example/")).host()
}

#[test]
fn a_checkpoint_that_is_dropped_after_its_last_host_is_not_continued() {
    let mut checkpoints = Checkpoints::new();
    (0..50).for_each(|host| checkpoints.block(host, 1));
    checkpoints.begin();
    checkpoints.write(true);
    checkpoints.check();
    checkpoints.block(3, 2);
    checkpoints.begin();
    checkpoints.write(false);
    checkpoints.begin();
    checkpoints.write(true);
    checkpoints.check();
}

#[test]
fn hosts_are_written_whole_again_before_opening_reads_too_much_and_nothing_is_left_behind() {
    let mut checkpoints = Checkpoints::new();
    (0..50).for_each(|host| checkpoints.block(host, 1));
    let mut continued = Vec::new();
    for step in 0..60 {
        // As many as a whole copy has in five steps; then one alone, again and again.
        let some = if step < 20 { 10 } else { 1 };
        (0..some).for_each(|host| checkpoints.block(host + step % 40, step + 2));
        checkpoints.begin();
        checkpoints.write(true);
        checkpoints.check();
        continued.push(checkpoints.manifest().earlier.len());
    }
    let most = |steps: &[usize]| steps.iter().max().copied();
    assert_eq!(most(&continued[..20]), Some(6), "{continued:?}");
    assert_eq!(most(&continued), Some(15), "{continued:?}");
    let mut batch = Batch::default();
    checkpoints.checkpointer.remove_all(&mut batch);
    checkpoints.store.commit(&batch, false).unwrap();
    let manifest = checkpoints.manifest();
    let of_hosts: u64 = manifest.hosts().map(|hosts| hosts.count + hosts.names).sum();
    let left = checkpoints.store.space(Space::Checkpoint).len() as u64;
    assert_eq!(left, of_hosts + manifest.state_parts + manifest.seen_set_parts);
}

#[test]
fn after_opening_the_next_checkpoint_waits_until_the_journal_is_as_long_as_before() {
    let mut checkpoints = Checkpoints::new();
    // What a whole one has is not expected of the next; a second one continues it.
    (0..50).for_each(|host| checkpoints.block(host, 1));
    for until in 2..4 {
        checkpoints.block(0, until);
        checkpoints.begin_with(vec![1; 40 * SMALL.part_bytes]);
        checkpoints.write(true);
    }
    let mut opened = Checkpointer::new(SMALL);
    opened.resume(&checkpoints.manifest(), 0, None);
    let rows = |checkpointer: &mut Checkpointer| {
        let rows = (1..).find(|_| {
            checkpointer.count(SMALL.part_bytes);
            checkpointer.is_due()
        });
        rows.unwrap_or(usize::MAX)
    };
    let (before, after) = (rows(&mut checkpoints.checkpointer), rows(&mut opened));
    assert!((40..=42).contains(&before), "{before}");
    assert!(
        (before..before + 3).contains(&after),
        "{before}, but {after} after opening"
    );
}
