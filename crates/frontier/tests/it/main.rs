//! The integration tests of `frontier`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod answers;
mod budgets;
mod call_sequences;
mod canonical;
mod canonical_suite;
#[path = "../shared/cases.rs"]
mod cases;
mod classes;
mod configuration;
mod durable;
mod edge_cases;
mod exchange;
mod failures;
mod fairness;
mod health;
mod hosts;
mod near_duplicates;
mod outages;
mod own_data;
mod policies;
mod promises;
mod random_walks;
mod redirects;
mod reference;
mod robots_rules;
#[path = "../shared/mod.rs"]
#[cfg_attr(
    not(feature = "durable"),
    expect(dead_code, reason = "some of it is for durable frontiers")
)]
mod shared;
mod sitemaps;
mod why;

use ::frontier;
use shared::common;
