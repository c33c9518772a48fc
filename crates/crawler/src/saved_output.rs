//! Where an output was at a commit, so that a later run can continue it.

use serde::{Deserialize, Serialize};

/// What an output needs to continue after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOutput {
    /// Which output of the crawl it is, such as `links`. The program that attaches the output chooses it.
    pub name: String,
    /// The file, as it was at the commit.
    pub file: SavedFile,
    /// What else the format needs, in a form of its own; empty for most formats.
    pub extra: String,
}

/// A file of an output, as it was at a commit. `output/saved_file.rs` has what is checked before it is continued.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// The path of the first file of its series, for messages. It may be shown only approximately if it is not Unicode.
    pub path: String,
    /// Its number in the series: 0 for the first.
    pub number: u32,
    /// Its length, in bytes.
    pub length: u64,
    /// A hash of its last 4 KiB, or of all of it if it is shorter; of an empty file, the number by which the file system knows it.
    pub tail: u64,
}
