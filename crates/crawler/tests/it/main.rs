//! The integration tests of `crawler`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod address_suite;
mod assets;
mod certificates_and_cookies;
mod client_errors;
mod completeness;
mod connections;
mod content;
mod continued_outputs;
mod continued_over_http;
mod durable;
mod fetching;
mod folder;
mod giving_up;
mod held_up;
mod hostile;
mod hostile_addresses;
mod hostile_sites;
mod hostile_web;
mod interim_heads;
mod kept_fresh;
mod known_links;
mod memory_file;
mod missing;
mod numbers;
mod observing;
mod orders;
mod output;
mod pauses;
mod policies;
mod proxies;
mod reach;
mod refresh;
mod reported_once;
mod requests;
mod retried;
mod saved_again;
mod scripted;
mod seen_link_cache;
mod silent_losses;
mod sitemaps;
mod system_start;
mod traps;
mod verdicts;
mod warc;
