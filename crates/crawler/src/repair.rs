//! Repair of a damaged state directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use frontier::Frontier;
use frontier::durable::{RepairOutcome, RepairReport, Salvaged};

use crate::error::StartError;
use crate::saved_rules::{RULES_FILE, SavedRules, check_database, parse_robots};
use crate::state::{FETCHER_FILE, StateError};

/// A state directory that was repaired.
#[derive(Debug)]
#[non_exhaustive]
pub struct RepairedState {
    /// What became of the frontier.
    pub frontier: RepairReport,
    /// Files that are damaged, under the names that they have now. The next run makes them again. Of these, cookies are lost.
    pub set_aside: Vec<PathBuf>,
    /// Whether what they had is lost. The rules for URLs are those of the next run, which are refused if they differ.
    lacks_fetcher: bool,
}

impl RepairedState {
    /// Returns whether anything was lost, or may be.
    pub fn has_losses(&self) -> bool {
        self.frontier.has_losses() || self.lacks_fetcher
    }
}

/// Repairs the state directory of a crawl, as [`Frontier::repair`] does, and sets aside what is damaged beside the frontier.
///
/// # Errors
///
/// A directory without a crawl, in use, or of another version; a disk that is full or cannot be read.
pub fn repair(dir: &Path, put_out: &mut dyn FnMut(Salvaged<'_>)) -> Result<RepairedState, StartError> {
    check_database(dir)?;
    let frontier = Frontier::repair(dir, &parse_robots, put_out)?;
    let mut repaired = RepairedState {
        frontier,
        set_aside: Vec::new(),
        lacks_fetcher: false,
    };
    if repaired.frontier.outcome == RepairOutcome::NotContinued {
        return Ok(repaired);
    }
    if SavedRules::read(dir).is_err() {
        repaired.set_aside.push(set_aside(&dir.join(RULES_FILE))?);
    }
    let fetcher = dir.join(FETCHER_FILE);
    if fs::read(&fetcher).is_ok_and(|text| serde_json::from_slice::<serde_json::Value>(&text).is_err()) {
        repaired.set_aside.push(set_aside(&fetcher)?);
        repaired.lacks_fetcher = true;
    }
    Ok(repaired)
}

/// Gives a damaged file another name, and returns it.
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
