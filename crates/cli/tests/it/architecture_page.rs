//! ARCHITECTURE.md: what it names exists, and no room and no dependency is left out.

use std::collections::BTreeSet;
use std::fs;

use crate::source_tree::crates;

const CRATES: [&str; 7] = ["sieve", "frontier", "page", "crawler", "watch", "cluster", "cli"];

/// Returns the text from a heading to the next one of the same level or a higher one.
fn section(heading: &str) -> String {
    let page = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let level = heading.split(' ').next().unwrap().len();
    let (_, below) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let ends = |line: &&str| {
        let marks = line.len() - line.trim_start_matches('#').len();
        (1..=level).contains(&marks)
    };
    let lines = below.lines().take_while(|line| !ends(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns what stands between back quotes.
fn codes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn column(table: &str, at: usize) -> Vec<&str> {
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split(" | ").nth(at).unwrap().trim_matches(['|', ' ']))
        .collect()
}

#[test]
fn every_file_on_the_path_of_a_url_exists() {
    let path = section("## The path of a URL");
    let files: Vec<_> = codes(&path).into_iter().filter(|code| code.ends_with(".rs")).collect();
    assert!(files.len() > 10, "{files:?}");
    for file in files.iter().filter(|file| !file.starts_with("crates/")) {
        let (of, rest) = file.split_once('/').unwrap();
        assert!(crates().join(of).join("src").join(rest).is_file(), "{file}");
    }
}

#[test]
fn the_rooms_are_those_of_the_tree() {
    for of in CRATES {
        let table = section(&format!("### `{of}`"));
        let named: BTreeSet<_> = column(&table, 0).into_iter().flat_map(codes).collect();
        let entries = fs::read_dir(crates().join(of).join("src")).unwrap();
        let names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let files = names
            .iter()
            .map(String::as_str)
            .filter(|name| name.ends_with(".rs") && *name != "lib.rs");
        assert_eq!(named, files.collect(), "{of}: named, and there");
    }
}

#[test]
fn every_invariant_has_tests_that_exist() {
    let table = section("## Invariants");
    for tests in column(&table, 2) {
        let files = codes(tests);
        assert!(!files.is_empty() || tests == "by construction", "{tests}");
        for file in files {
            assert!(crates().join(file).is_file(), "{file}");
        }
    }
}

#[test]
fn every_dependency_has_a_reason() {
    let table = section("## Dependencies");
    let mut named: BTreeSet<_> = column(&table, 0)
        .into_iter()
        .flat_map(|cell| cell.split(", "))
        .collect();
    let (_, for_tests) = table.split_once("Tests alone use ").unwrap();
    let for_tests = for_tests.trim_end_matches(['.', '\n']).replace(" and ", ", ");
    named.extend(for_tests.split(", "));
    let mut used = BTreeSet::new();
    for of in CRATES.into_iter().chain(["../python"]) {
        let manifest = fs::read_to_string(crates().join(of).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let of_targets = manifest.get("target").and_then(toml::Value::as_table);
        let of_targets = of_targets.into_iter().flat_map(toml::Table::values);
        for part in of_targets.filter_map(toml::Value::as_table).chain([&manifest]) {
            for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let names = part.get(kind).and_then(toml::Value::as_table);
                used.extend(names.into_iter().flat_map(toml::Table::keys).cloned());
            }
        }
    }
    let used = used
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with("crawl-"));
    assert_eq!(named, used.collect(), "named, and used");
}
