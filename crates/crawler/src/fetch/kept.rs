//! What the HTTP fetcher keeps for a later run of a crawl with a state directory: cookies, the origins of seeds, and the first looks at
//! addresses.

use serde::{Deserialize, Serialize};

use super::cookies::SavedJar;
use super::guard::SavedGuard;

/// The version of the format. Version 1 has neither the origins of seeds, nor which cookies of a file a jar has.
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
            1..=VERSION => Ok(kept),
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
    fn what_an_older_version_wrote_is_read_and_what_a_later_one_wrote_is_refused() {
        let cookie =
            r#"{"raw_cookie":"id=1","path":["/",true],"domain":{"HostOnly":"a.example"},"expires":"SessionEnd"}"#;
        let text = |version: u32| {
            format!(
                r#"{{"version":{version},"first_looks":{{"a.example":true}},"jars":[{{"origin":"http://a.example","cookies":[{cookie}]}}]}}"#
            )
        };
        let kept = Kept::read(text(1).as_bytes()).unwrap();
        assert_eq!(kept.guard.first_looks.get("a.example"), Some(&true));
        assert!(kept.guard.seed_origins.is_empty());
        assert_eq!(kept.jars.len(), 1);
        let refused = Kept::read(text(3).as_bytes()).unwrap_err();
        assert!(refused.contains("format is 3"), "{refused}");
    }
}
