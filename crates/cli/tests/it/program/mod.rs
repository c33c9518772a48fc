//! The command: runs it to its end, and checks its exit code and messages.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs the command with these arguments, without input and with the default width of help.
pub(crate) fn crawler(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawler"))
        .args(arguments)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What a command printed.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Checks that the command succeeds. Returns what it printed.
#[track_caller]
pub(crate) fn succeeds(arguments: &[&str]) -> Printed {
    let output = crawler(arguments);
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stdout}{stderr}");
    Printed { stdout, stderr }
}

/// Checks that the command fails with this code, and with all of the messages on standard error.
#[track_caller]
pub(crate) fn fails(arguments: &[&str], code: i32, messages: &[&str]) {
    let output = crawler(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    for message in messages {
        assert!(
            stderr.contains(message),
            "{arguments:?} should say {message:?}: {stderr}"
        );
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Returns the number in a row of the summary, such as `pages 325 (50.8 per second)`.
#[track_caller]
pub(crate) fn number(summary: &str, label: &str) -> u64 {
    let line = summary.lines().find_map(|line| line.trim().strip_prefix(label));
    let word = line
        .unwrap_or_else(|| panic!("{label}: {summary}"))
        .split_whitespace()
        .next();
    word.unwrap().trim_end_matches(',').parse().unwrap()
}

/// Makes a folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("crawler-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}
