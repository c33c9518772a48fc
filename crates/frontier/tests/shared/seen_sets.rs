//! Seen-sets of durable frontiers.

use proptest::prelude::*;
use sieve::OnSaturation;

use super::frontier::{FrontierConfig, SeenSetConfig};

/// The seen-set of a frontier.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeenSet {
    /// Of 100 keys, which is too few.
    Fixed,
    /// Exact, with a filter of so many keys that is wrong half of the time even before it is full.
    Exact(u64),
    /// Growing from so many keys.
    Growing(u64),
}

pub(crate) fn seen_sets() -> impl Strategy<Value = SeenSet> {
    prop_oneof![
        Just(SeenSet::Fixed),
        prop_oneof![Just(1), Just(30)].prop_map(SeenSet::Exact),
        (1_u64..6).prop_map(SeenSet::Growing),
    ]
}

impl SeenSet {
    /// Sets it in a configuration.
    pub(crate) fn config(self, config: FrontierConfig) -> FrontierConfig {
        match self {
            Self::Fixed => FrontierConfig {
                seen_set: SeenSetConfig {
                    exact: false,
                    capacity: 100,
                    ..config.seen_set
                },
                ..config
            },
            Self::Exact(capacity) => FrontierConfig {
                seen_set: SeenSetConfig {
                    exact: true,
                    capacity,
                    false_positive_rate: 0.5,
                    ..config.seen_set
                },
                ..config
            },
            Self::Growing(capacity) => FrontierConfig {
                seen_set: SeenSetConfig {
                    exact: false,
                    capacity,
                    false_positive_rate: 1e-9,
                    on_saturation: OnSaturation::Grow,
                    ..config.seen_set
                },
                ..config
            },
        }
    }
}
