//! The rules that a crawl reads robots.txt files and URLs by. They are kept beside its state, so that whoever reads the state reads it
//! by the same rules.

use std::io;
use std::path::Path;
use std::sync::Arc;

use frontier::canonical::Rules;
use frontier::{Canonicalizer, ParseRules};
use serde::{Deserialize, Serialize};

use crate::config::{CrawlConfig, DEFAULT_USER_AGENT};
use crate::output::replace_file;
use crate::page::fingerprint::content_hash;
use crate::page::robots::{RobotsTxt, product_token};
use crate::state::StateError;

/// The file in the state directory.
pub(crate) const RULES_FILE: &str = "rules.json";

/// The rules of the last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedRules {
    /// The name that selects the group of a robots.txt.
    product_token: String,
    canonicalizer: Rules,
}

impl SavedRules {
    pub(crate) fn of(config: &CrawlConfig) -> Self {
        Self {
            product_token: config.product_token().to_owned(),
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

    /// Returns whether robots.txt files are read by the same rules.
    pub(crate) fn read_robots_as(&self, other: &Self) -> bool {
        self.product_token == other.product_token
    }

    /// Returns whether the same URLs have the same keys.
    pub(crate) fn read_urls_as(&self, other: &Self) -> bool {
        self.canonicalizer == other.canonicalizer
    }

    /// Returns a hash of the rules of which URLs have the same keys.
    pub(crate) fn hash_of_urls(&self) -> u64 {
        let text = serde_json::to_vec(&self.canonicalizer).unwrap_or_default();
        content_hash(&text).map_or(0, |hash| hash.value() as u64)
    }

    /// Returns how the text of a robots.txt is read.
    pub(crate) fn parse_robots(&self) -> ParseRules {
        let agent = self.product_token.clone();
        Arc::new(move |text| Arc::new(RobotsTxt::of_text(text.into(), &agent)))
    }

    pub(crate) fn canonicalizer(&self) -> Canonicalizer {
        Canonicalizer::new(self.canonicalizer.clone())
    }
}

impl Default for SavedRules {
    fn default() -> Self {
        Self {
            product_token: product_token(DEFAULT_USER_AGENT).unwrap_or_default().to_owned(),
            canonicalizer: Rules::default(),
        }
    }
}
