//! The integration tests of `cli`: one binary, a module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

mod architecture;
mod architecture_page;
mod arguments;
mod clusters;
mod command;
mod demo_site;
mod documentation;
mod file_handles;
mod held_up;
mod hostile_http2;
mod import_cycles;
mod kept_files;
mod light_library;
mod limits;
mod logs;
#[cfg(unix)]
mod orders;
mod outputs;
mod program;
#[path = "../../../cluster/tests/it/redis_server.rs"]
mod redis_server;
mod repair;
mod servers;
mod signals;
mod source_tree;
mod state;
mod state_commands;
mod state_outputs;
#[path = "../../../crawler/tests/it/system_start.rs"]
mod system_start;
mod trust;
mod watching;
