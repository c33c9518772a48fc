//! The integration tests of `page`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod assets;
mod links;
mod robots;
mod select;
mod sitemaps;
