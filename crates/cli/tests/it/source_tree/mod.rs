//! The source files of the workspace's crates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the crates.
pub(crate) fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the code of every file under `src` by its path from there.
pub(crate) fn sources(of: &str) -> BTreeMap<String, String> {
    let root = crates().join(of).join("src");
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                found.insert(name, code_of(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "{} has no sources", root.display());
    found
}

/// Returns the code before the unit tests, without comments and without imports for tests or docs only.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line.trim() {
            // A file of tests.
            "#![cfg(test)]" => return String::new(),
            "#[cfg(test)]" | "#[cfg(doc)]" => {
                let item = lines.next().unwrap_or_default();
                if item.starts_with("mod ") {
                    return code;
                }
                let is_cut = item.contains("use ") && !item.ends_with(';');
                assert!(!is_cut, "an import of several lines cannot be left out: {item}");
            }
            comment if comment.starts_with("//") => {}
            _ => code.extend([line.split(" // ").next().unwrap_or(line), "\n"]),
        }
    }
    code
}
