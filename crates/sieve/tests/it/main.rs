//! The integration tests of `sieve`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod algebra;
mod articles;
mod batches;
mod concurrent;
mod forgetting;
mod hostile_file;
mod loss;
mod model;
mod packed_queue;
mod rate;
mod serialized;
mod snapshot;
mod statistics;
