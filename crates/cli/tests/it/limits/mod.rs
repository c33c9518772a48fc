//! The command under a limit of the system.

use std::process::{Command, Output, Stdio};

/// Runs the command in a process whose limit is set by `ulimit` with these options. Files are limited in units of 512 bytes.
pub(crate) fn run_with_limit(ulimit: &str, arguments: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_crawler"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}
