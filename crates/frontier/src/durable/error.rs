//! Why a directory cannot be opened.

use std::borrow::Cow;

use crate::config::FrontierConfigError;
use crate::error::FrontierError;
use crate::state::StateError;
use crate::store::StoreError;

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] FrontierConfigError),
    /// An option differs from that of the first run, and the state depends on it.
    #[error(
        "the crawl was begun {}: give the same again, or start in a new directory",
        change(option, was, wanted)
    )]
    Changed {
        /// The option.
        option: Cow<'static, str>,
        /// Its value in the first run.
        was: String,
        /// Its value now.
        wanted: String,
    },
    /// The journal was written by a version of this crate that decides differently.
    /// [`Directory::discard_other_logic`](crate::Directory::discard_other_logic) goes back to the checkpoint before it.
    #[error(
        "another version of this program was interrupted in this crawl, and this one cannot read what it did since the last checkpoint \
         (logic {found}, this one has {supported}): let that version stop cleanly, or continue the crawl, which goes back to that checkpoint"
    )]
    OtherLogic {
        /// The version that wrote the journal.
        found: u32,
        /// The version of this crate.
        supported: u32,
    },
    /// The crawl was ended before anything was saved, or has only just begun.
    #[error("the crawl has saved nothing yet: ask again in a moment, or start it again in this directory")]
    NotBegun,
    /// What was read is not what was written.
    #[error("the state of the crawl is damaged: {0}. Restore the directory from a copy, or start again in another one")]
    Damaged(String),
    /// The frontier that was read cannot be changed or saved.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl OpenError {
    pub(crate) fn damaged(what: impl std::fmt::Display) -> Self {
        Self::Damaged(what.to_string())
    }
}

/// Says what an option was, and that it cannot be what it is now.
fn change(option: &str, was: &str, wanted: &str) -> String {
    match was {
        "true" => format!("with {option}, which cannot be taken away"),
        "false" => format!("without {option}, which cannot be added"),
        was => format!("with {option} {was}, which cannot become {wanted}"),
    }
}

impl From<StateError> for OpenError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Config(error) => Self::Config(error),
            other => Self::damaged(other),
        }
    }
}
