//! Why a call to a frontier fails.

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
}
