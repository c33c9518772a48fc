//! What the HTTP fetcher keeps for a later run of a crawl with a state directory: cookies, and the first looks at addresses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cookies::SavedJar;

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    version: u32,
    /// Whether the names of seeds had a private address at the first look-up.
    pub(super) first_looks: BTreeMap<String, bool>,
    pub(super) jars: Vec<SavedJar>,
}

impl Kept {
    pub(super) fn new(first_looks: BTreeMap<String, bool>, jars: Vec<SavedJar>) -> Self {
        Self {
            version: VERSION,
            first_looks,
            jars,
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Plain values: they can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let kept: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match kept.version {
            VERSION => Ok(kept),
            found => Err(format!(
                "its format is {found}, and this program reads format {VERSION}"
            )),
        }
    }
}
