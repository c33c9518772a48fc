//! Repair of a damaged state directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use frontier::Directory;
use frontier::directory::{Exported, RepairOutcome, RepairReport};

use crate::error::StartError;
use crate::saved_rules::{RULES_FILE, SavedRules, check_database, parse_robots};
use crate::state::{FETCHER_FILE, StateError};

/// Repairs the state directory of a crawl, as [`Directory::repair`] does, and sets aside what is damaged beside the frontier: the next run makes
/// it again, but for cookies. Returns what became of the frontier, and the names that these files have now.
///
/// # Errors
///
/// A directory without a crawl, in use, of another version, or of which nothing can be read; a disk that is full or cannot be read.
pub fn repair(dir: &Path, export: &mut dyn FnMut(Exported)) -> Result<(RepairReport, Vec<PathBuf>), StartError> {
    check_database(dir)?;
    let report = Directory::new(dir).repair(&parse_robots, export)?;
    let mut aside = Vec::new();
    if report.outcome != RepairOutcome::Exported {
        if SavedRules::read(dir).is_err() {
            aside.push(set_aside(&dir.join(RULES_FILE))?);
        }
        let fetcher = dir.join(FETCHER_FILE);
        if fs::read(&fetcher).is_ok_and(|text| serde_json::from_slice::<serde_json::Value>(&text).is_err()) {
            aside.push(set_aside(&fetcher)?);
        }
    }
    Ok((report, aside))
}

fn set_aside(file: &Path) -> Result<PathBuf, StateError> {
    let mut name = file.as_os_str().to_owned();
    name.push(".damaged");
    let name = PathBuf::from(name);
    match fs::rename(file, &name) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StateError::NotWritten(format!("{}: {error}", file.display())))
        }
        _ => Ok(name),
    }
}
