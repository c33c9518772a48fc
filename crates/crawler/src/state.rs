//! What a crawl stores beside its frontier, in the same commit.
//!
//! It is written at every commit, up to thousands of times per second. So it is small: some hundred bytes, and a microsecond to encode.

use std::path::PathBuf;
use std::time::Duration;

use frontier::Time;
use serde::{Deserialize, Serialize};

use crate::saved_output::{SavedFile, SavedOutput};
use crate::summary::{Counts, Ending};

/// The version of the format. Raise it with every change of [`Counts`], of [`Commit`] and of what they contain, the order of fields and variants
/// included.
const VERSION: u32 = 19;

/// The file in the state directory with what the fetcher keeps.
pub(crate) const FETCHER_FILE: &str = "fetcher.json";

/// The file in the state directory that is there while the crawl is paused.
pub(crate) const PAUSED_FILE: &str = "paused";

/// What a commit has besides the counts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// The duration of all runs so far.
    pub(crate) elapsed: Duration,
    /// Why the last run ended; `None` while it runs, or if it was killed.
    pub(crate) ending: Option<Ending>,
    /// When it was written, as the time of day.
    pub(crate) time: Time,
    /// The hash of the seeds and links that were all offered; `None` if none were yet.
    pub(crate) seeds: Option<u64>,
    /// The hash of the rules of which URLs are the same.
    pub(crate) rules: u64,
    pub(crate) outputs: Vec<SavedOutput>,
    /// What is kept of the other processes that share the crawl.
    pub(crate) peers: Vec<u8>,
    /// The files of the outputs as they were at the last sync.
    pub(crate) synced: Vec<SavedFile>,
}

/// Why the state of a crawl cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another version of this program wrote it.
    #[error(
        "the state of the crawl has format {found}, and this program reads format {VERSION}: let the version that wrote it finish the crawl, or list its \
         pages, and begin again in another directory"
    )]
    Version {
        /// The version of the format.
        found: u32,
    },
    /// It is not what was written.
    #[error("the state of the crawl is damaged: {0}. Restore the directory from a copy, or start again in another one")]
    Damaged(String),
    /// Another version of this program was killed in this partition, and the other processes may know what this one cannot read.
    #[error(
        "another version of this program was killed in this partition, and this one cannot read what it did since the last checkpoint, of which the \
         other processes may know: let that version stop cleanly, or give --accept-loss: the crawl goes back to that checkpoint, and ends as \
         incomplete"
    )]
    OtherLogic,
    /// A file of it cannot be read.
    #[error(
        "the state of the crawl cannot be read: {0}. Check that this is the directory of a crawl, and that you may read it: \
         only the user of the crawl may"
    )]
    NotRead(String),
    /// The crawl was begun under other rules of which URLs are the same. Under these, it would fetch pages twice.
    #[error(
        "the crawl was begun under other rules of which URLs count as the same: continue it under the same rules, or start \
         again in another directory"
    )]
    OtherRules,
    /// The database of the crawl is not there, but files are that stand beside it.
    #[error(
        "{} has a crawl that lacks its database: restore {} from a copy, or remove the directory to start again",
        dir.display(), dir.join("frontier.sqlite").display()
    )]
    NoDatabase {
        /// The directory.
        dir: PathBuf,
    },
    /// It cannot be encoded, or what the fetcher keeps cannot be written.
    #[error("the state of the crawl cannot be written: {0}")]
    NotWritten(String),
}

impl Commit {
    /// Reads what [`write`](Self::write) wrote; `None` from a run that ended before its first commit.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Counts, Self)>, StateError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let damaged = |error: postcard::Error| StateError::Damaged(error.to_string());
        let (version, state) = postcard::take_from_bytes::<u32>(bytes).map_err(damaged)?;
        if version != VERSION {
            return Err(StateError::Version { found: version });
        }
        postcard::from_bytes(state).map(Some).map_err(damaged)
    }

    /// Encodes the state with these counts.
    pub(crate) fn write(&self, counts: &Counts) -> Result<Vec<u8>, StateError> {
        let encoded = postcard::to_allocvec(&(VERSION, counts, self));
        encoded.map_err(|error| StateError::NotWritten(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use frontier::{Entry, Failure, FailureKind, Fate};
    use page::fingerprint::content_hash;

    use super::*;
    use crate::event::{Event, PageRecord};
    use crate::fetch::TruncationReason;

    fn counts() -> Counts {
        let mut counts = Counts::default();
        let seed = frontier::Canonicalizer::default().parse("http://a.example/").unwrap();
        let page = PageRecord {
            status: 200,
            bytes: 1000,
            truncation: Some(TruncationReason::Size),
            ..PageRecord::default()
        };
        counts.count(&Event::Page(&page));
        counts.count(&Event::Failed {
            entry: &Entry::of(&frontier::Link::seed(seed)),
            failure: &Failure::new(FailureKind::Connect, "refused"),
            fate: Fate::Final,
        });
        counts
    }

    #[test]
    fn what_is_written_is_read_again_and_damage_is_an_error() {
        let outputs = [SavedOutput {
            name: "output".to_owned(),
            file: SavedFile {
                path: "pages.jsonl".to_owned(),
                number: 0,
                length: 12_345,
                tail: 77,
            },
            extra: String::new(),
        }];
        let state = Commit {
            elapsed: Duration::from_millis(1_234_567),
            ending: Some(Ending::TimeUp),
            time: Time::from_millis(9),
            seeds: Some(5),
            rules: u64::MAX,
            outputs: outputs.to_vec(),
            synced: vec![outputs[0].file.clone()],
            peers: Vec::new(),
        };
        let bytes = state.write(&counts()).unwrap();
        assert!(bytes.len() < 160, "{}", bytes.len());
        // If the form of a state has changed since a release, raise VERSION. Then write the hash of the new form here.
        let hash = content_hash(&bytes).unwrap().value() as u64;
        assert_eq!(
            (VERSION, hash),
            (19, 12_196_036_726_371_333_055),
            "the form has changed without its number"
        );
        let (read_counts, read) = Commit::read(&bytes).unwrap().unwrap();
        assert_eq!(
            (read.elapsed, read.time, read.seeds),
            (state.elapsed, state.time, Some(5))
        );
        assert_eq!(read.rules, u64::MAX);
        assert_eq!(read.outputs, outputs);
        assert_eq!(read.synced, [outputs[0].file.clone()]);
        assert_eq!(format!("{:?}", read_counts), format!("{:?}", counts()));
        assert!(Commit::read(&[]).unwrap().is_none());
        for end in 1..bytes.len() {
            assert!(Commit::read(&bytes[..end]).is_err(), "{end}");
        }
        let mut other = bytes;
        other[0] = 99;
        assert_eq!(Commit::read(&other).unwrap_err(), StateError::Version { found: 99 });
    }
}
