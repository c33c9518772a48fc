//! A durable frontier that is killed and opened again, beside one in memory that is not.

#![cfg(feature = "durable")]
mod clock;
mod damaged_files;
mod last_sync;
mod long_queues;
mod not_begun;
mod other_programs;
mod own_data;
mod partitions;
mod policies;
mod repaired_files;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frontier::{Directory, Frontier, FrontierConfig, OpenError, Opened, Time};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::common::parse;
use crate::shared::calls::settings;
use crate::shared::pair::{Pair, Place, events};
use crate::shared::seen_sets::seen_sets;
use crate::shared::settlements::config;

/// A directory that is removed at the end.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("frontier-{}-{number}", std::process::id())))
    }

    fn read(&self) -> Result<Opened, OpenError> {
        Directory::new(&self.0).read(Arc::new(parse))
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

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(20), failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

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
