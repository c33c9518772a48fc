//! A package that depends on a library compiles nothing that only those above it need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::{Table, Value};

/// The command's dependencies for arguments, logs, progress, file limit, allocator and configuration file.
const OF_THE_COMMAND: [&str; 6] = ["clap", "env_logger", "indicatif", "rlimit", "tikv-jemallocator", "toml"];

/// The packages of the workspace, with their folders: the lock file does not tell what only their tests need.
const OF_THE_WORKSPACE: [(&str, &str); 5] = [
    ("crawl-sieve", "sieve"),
    ("crawl-frontier", "frontier"),
    ("crawl-page", "page"),
    ("crawl-engine", "crawler"),
    ("crawl-cli", "cli"),
];

fn read(path: &str) -> Table {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap().parse().unwrap()
}

/// Returns the dependencies of each package, for all features and systems.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for package in read("Cargo.lock")["package"].as_array().unwrap() {
        // Behind the name may be a version.
        let names = package.get("dependencies").and_then(Value::as_array);
        let names = names.into_iter().flatten().map(|name| name.as_str().unwrap());
        let of_package = all.entry(package["name"].as_str().unwrap().to_owned()).or_default();
        of_package.extend(names.map(|name| name.split(' ').next().unwrap().to_owned()));
    }
    for (name, folder) in OF_THE_WORKSPACE {
        let manifest = read(&format!("crates/{folder}/Cargo.toml"));
        let mut names: BTreeSet<_> = manifest["dependencies"].as_table().unwrap().keys().cloned().collect();
        let targets = manifest.get("target").and_then(Value::as_table);
        for target in targets.into_iter().flat_map(Table::values) {
            names.extend(
                target
                    .get("dependencies")
                    .and_then(Value::as_table)
                    .into_iter()
                    .flat_map(Table::keys)
                    .cloned(),
            );
        }
        all.insert(name.to_owned(), names);
    }
    all
}

/// Returns the names of all packages that a package needs.
fn needed(package: &str, dependencies: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(name) = open.pop() {
        let of_package = dependencies
            .get(&name)
            .unwrap_or_else(|| panic!("the lock file lacks {name}"));
        open.extend(
            of_package
                .iter()
                .filter(|other| needed.insert((*other).clone()))
                .cloned(),
        );
    }
    needed
}

#[test]
fn the_library_compiles_none_of_the_commands_dependencies() {
    let dependencies = dependencies();
    let (library, command) = (
        needed("crawl-engine", &dependencies),
        needed("crawl-cli", &dependencies),
    );
    assert!(
        library.contains("tokio") && library.contains("fastmurmur3"),
        "{library:?}"
    );
    for name in OF_THE_COMMAND {
        assert!(
            command.contains(name),
            "the command no longer needs {name}: take it off the list"
        );
        assert!(!library.contains(name), "the library depends on {name}");
    }
}

#[test]
fn pages_are_read_without_a_runtime_or_a_client() {
    let needed = needed("crawl-page", &dependencies());
    assert!(
        needed.contains("html5ever") && needed.contains("crawl-sieve"),
        "{needed:?}"
    );
    for name in ["crawl-engine", "tokio", "reqwest", "rustls"] {
        assert!(!needed.contains(name), "the crate page depends on {name}");
    }
}
