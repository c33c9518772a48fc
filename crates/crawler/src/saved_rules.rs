//! The rules that a crawl reads robots.txt files and URLs by. Those for URLs are kept beside its state, and the name for robots.txt files
//! in it, so that whoever reads the state reads both as the crawl does.

use std::io;
use std::path::Path;
use std::sync::Arc;

use frontier::canonical::Rules;
use frontier::{Canonicalizer, Directory, ParseRules};
use page::fingerprint::content_hash;
use page::robots::RobotsTxt;
use serde::{Deserialize, Serialize};

use crate::config::CrawlConfig;
use crate::output::replace_file;
use crate::state::StateError;

/// The file in the state directory.
pub(crate) const RULES_FILE: &str = "rules.json";

/// Checks that a directory with rules has a database: they are written when it is there. Outputs of its crawl must not be begun anew.
pub(crate) fn check_database(state: &Path) -> Result<(), StateError> {
    if state.join(RULES_FILE).exists() && Directory::new(state).is_missing() {
        return Err(StateError::NoDatabase { dir: state.to_owned() });
    }
    Ok(())
}

/// Returns how the text of a robots.txt is read by a name, which selects its group.
pub(crate) fn parse_robots(name: &str) -> ParseRules {
    let name = name.to_owned();
    Arc::new(move |text| Arc::new(RobotsTxt::of_text(text.into(), &name)))
}

/// The rules for URLs of the last run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SavedRules {
    canonicalizer: Rules,
}

impl SavedRules {
    pub(crate) fn of(config: &CrawlConfig) -> Self {
        Self {
            canonicalizer: config.options().canonicalizer.rules().clone(),
        }
    }

    /// Reads those of a state directory; `None` if there are none yet.
    pub(crate) fn read(state: &Path) -> Result<Option<Self>, StateError> {
        let path = state.join(RULES_FILE);
        let damaged = |why: &dyn std::fmt::Display| StateError::Damaged(format!("{}: {why}", path.display()));
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|why| damaged(&why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::NotRead(format!("{}: {error}", path.display()))),
        }
    }

    pub(crate) fn write(&self, state: &Path) -> Result<(), StateError> {
        let not_written = |error: &dyn std::fmt::Display| StateError::NotWritten(error.to_string());
        let text = serde_json::to_vec(self).map_err(|error| not_written(&error))?;
        replace_file(&state.join(RULES_FILE), &text).map_err(|error| not_written(&error))
    }

    pub(crate) fn hash_of_urls(&self) -> u64 {
        let text = serde_json::to_vec(&self.canonicalizer).unwrap_or_default();
        content_hash(&text).map_or(0, |hash| hash.value() as u64)
    }

    pub(crate) fn canonicalizer(&self) -> Canonicalizer {
        Canonicalizer::new(self.canonicalizer.clone())
    }
}
