//! A package that depends on the library `crawler` compiles none of the command's dependencies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

use std::collections::BTreeSet;
use std::process::Command;

/// The command's dependencies for arguments, logs, progress, file limit, allocator and configuration file.
const OF_THE_COMMAND: [&str; 6] = ["clap", "env_logger", "indicatif", "rlimit", "tikv-jemallocator", "toml"];

/// Returns the names of all crates that a package compiles, including itself.
fn tree(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--locked", "-p", package])
        .args(["-e", "normal", "--all-features", "--prefix", "none", "--format", "{p}"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_library_compiles_none_of_the_commands_dependencies() {
    let (library, command) = (tree("crawler"), tree("crawler-cli"));
    for name in OF_THE_COMMAND {
        assert!(
            command.contains(name),
            "the command no longer needs {name}: take it off the list"
        );
        assert!(!library.contains(name), "the library depends on {name}");
    }
}
