//! A durable frontier that is killed and opened again, beside one in memory that is not.

#![cfg(feature = "durable")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use ::frontier;

#[path = "../call_sequences/calls.rs"]
#[expect(dead_code, reason = "some calls are of the other test only")]
mod calls;
#[path = "../common/mod.rs"]
mod common;
#[path = "../call_sequences/pair.rs"]
mod pair;
#[path = "../call_sequences/seen_sets.rs"]
mod seen_sets;
#[path = "../call_sequences/settlements.rs"]
mod settlements;

mod clock;
mod damaged_files;
mod last_sync;
mod long_queues;
mod not_begun;
mod other_programs;
mod repaired_files;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frontier::{Frontier, FrontierConfig, Opened, RobotsRules, Time};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use calls::settings;
use common::Forbid;
use pair::{Pair, Place, events};
use seen_sets::seen_sets;
use settlements::config;

/// A directory that is removed at the end.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("frontier-{}-{number}", std::process::id())))
    }
}

impl Place for TemporaryDir {
    fn open(&self, config: FrontierConfig, now: Time) -> Opened {
        Frontier::open(&self.0, config, now, Arc::new(parse)).unwrap()
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn parse(text: &[u8]) -> Arc<dyn RobotsRules> {
    Arc::new(Forbid::of_text(text))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn a_frontier_that_is_killed_and_opened_again_answers_as_one_that_was_not(
        setting in settings(),
        seen_set in seen_sets(),
        events in prop::collection::vec(events(), 1..160),
    ) {
        let config = seen_set.config(config(&setting));
        Pair::new(config, TemporaryDir::new()).run(events);
    }
}
