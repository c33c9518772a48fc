//! The integration tests of `cluster`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod address;
mod cluster_mode;
mod entries;
mod failures;
mod joining;
mod member;
mod redis_server;
mod server;
mod simulation;
mod tls;
mod words;
