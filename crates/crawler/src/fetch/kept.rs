//! What the HTTP fetcher keeps for a later run of a crawl with a state directory: cookies, the origins of seeds, and the first looks at
//! addresses.

use serde::{Deserialize, Serialize};

use super::cookies::SavedJar;
use super::guard::SavedGuard;

/// The version of the format.
const VERSION: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    version: u32,
    #[serde(flatten)]
    pub(super) guard: SavedGuard,
    pub(super) jars: Vec<SavedJar>,
}

impl Kept {
    pub(super) fn new(guard: SavedGuard, jars: Vec<SavedJar>) -> Self {
        Self {
            version: VERSION,
            guard,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_format_is_refused_with_its_number() {
        let text = |version: u32| format!(r#"{{"version":{version},"first_looks":{{"a.example":true}},"jars":[]}}"#);
        let kept = Kept::read(text(2).as_bytes()).unwrap();
        assert_eq!(kept.guard.first_looks.get("a.example"), Some(&true));
        for other in [1, 3] {
            let refused = Kept::read(text(other).as_bytes()).unwrap_err();
            assert!(refused.contains(&format!("format is {other}")), "{refused}");
        }
    }
}
