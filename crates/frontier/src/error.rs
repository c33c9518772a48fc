//! Why a call to a frontier fails, and why a directory cannot be opened.

use std::borrow::Cow;
use std::fmt;

use crate::config::FrontierConfigError;
use crate::store::StoreError;

/// Why a call to a frontier fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// An earlier call panicked, so that seen-set and queue may disagree.
    #[error(
        "an earlier call panicked or could not be saved, so the state of the frontier may be inconsistent: create or open it again"
    )]
    Poisoned,
    /// The changes cannot be saved. The text says why, and what to do.
    #[error("{0}")]
    NotSaved(Box<str>),
    /// What was read of the directory is not what was written. The text says where. `Directory::repair` (feature `durable`) goes back to the last whole state.
    #[error("{0}")]
    Damaged(Box<str>),
    /// A part of a queue cannot be read from the directory.
    #[error("a part of a queue cannot be read: restore the directory from a copy, or start again in another one")]
    NotRead,
    /// A durable frontier stores rules by their text, and these have none.
    #[error("the rules of a robots.txt have no text to store: implement RobotsRules::text")]
    RulesWithoutText,
    /// A pattern of an order cannot be used. Nothing has changed.
    #[error("{0}")]
    Pattern(Box<str>),
}

impl From<StoreError> for FrontierError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { .. } => Self::Damaged(error.to_string().into()),
            other => Self::not_saved(other),
        }
    }
}

impl FrontierError {
    pub(crate) fn not_saved(error: impl fmt::Display) -> Self {
        Self::NotSaved(error.to_string().into())
    }
}

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
    /// `Directory::discard_other_logic` (feature `durable`) goes back to the checkpoint before it.
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
    pub(crate) fn damaged(what: impl fmt::Display) -> Self {
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
