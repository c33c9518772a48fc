//! The durable frontier over stores in memory: random calls with kills, all crash images, failing stores, damage.

#![cfg(test)]

mod again;
mod between;
mod changed_options;
mod crash_images;
mod damage;
mod each_option;
mod eviction;
mod failing_store;
mod hosts_of_a_site;
mod keys;
mod numbers;
#[cfg(feature = "durable")]
mod other_logic;
mod run;
mod segments;
mod stored_seen_set;
mod stores;
mod unsynced;

#[path = "../../tests/shared/mod.rs"]
#[expect(
    dead_code,
    unreachable_patterns,
    reason = "some of it is for tests of the other folder, which are another crate"
)]
mod shared;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::sizes::Sizes;
use shared::{calls, common, pair, seen_sets, settlements};

use crate as frontier;
use calls::settings;
use pair::{Pair, events};
use seen_sets::seen_sets;
use settlements::config;
use stores::{Recorder, SMALL, SizedStore};

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(150), failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn a_frontier_that_is_killed_and_opened_again_answers_as_one_that_was_not(
        setting in settings(),
        seen_set in seen_sets(),
        resident_bytes in prop_oneof![2 => Just(1_u64), 1 => 1_u64..2_000, 1 => Just(u64::MAX)],
        events in prop::collection::vec(events(), 1..160),
    ) {
        let config = seen_set.config(config(&setting));
        let sizes = Sizes { resident_bytes, ..SMALL };
        Pair::new(config, SizedStore(Recorder::default(), sizes)).run(events);
    }
}
