//! Who embeds the library `crawler` compiles none of the command's dependencies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::collections::BTreeSet;
use std::process::Command;

/// What the command has for its arguments, progress, configuration file, allocator, logs and file limit.
const OF_THE_COMMAND: [&str; 6] = ["clap", "env_logger", "indicatif", "rlimit", "tikv-jemallocator", "toml"];

/// The names of all crates that a package compiles, itself included.
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
