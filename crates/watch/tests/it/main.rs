//! The integration tests of `crawl-watch`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod metrics;
mod monitoring;
mod server;
