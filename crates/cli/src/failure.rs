//! Why the command fails: the messages, with the names of its options, and the exit codes.

mod damage;

use std::borrow::Cow;
use std::io;
use std::path::Path;

use cluster::{JoinError, MemberError};
use crawler::fetch::{ClientError, CookieFileError};
use crawler::{CrawlError, StartError, StateError};
use frontier::{FrontierError, OpenError, StoreError};

use crate::flag;
use crate::options::SeedsError;
use crate::outputs::OutputError;
use crate::watching::WatchError;
pub(crate) use damage::{hint_at_start, is_damaged_frontier, repair_hint};

/// Why the command fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Arguments(#[from] crawler::CrawlOptionsError),
    #[error("{}", not_started(.0))]
    Start(#[from] StartError),
    #[error("{0}")]
    Damaged(String),
    #[error("{}", crawl_failed(.0))]
    Crawl(#[from] CrawlError),
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    #[error(transparent)]
    Cookies(#[from] CookieFileError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(
        "the limit of open files is {limit}, and a crawl needs at least {needed}: raise the hard limit (ulimit -Hn)"
    )]
    OpenFiles { limit: usize, needed: usize },
    #[error(transparent)]
    Cluster(#[from] JoinError),
    #[error("nothing was fetched: {0}")]
    NothingFetched(String),
    #[error(
        "nothing was fetched: {0}; the crawl has ended, and another start requests nothing: add a seed, or begin in another directory"
    )]
    NothingLeft(String),
    #[error("the crawl is incomplete: {0}")]
    Incomplete(String),
    #[error("the runtime or the demo server cannot be started: {0}")]
    System(#[from] io::Error),
    #[error("the command cannot be kept in the state directory: {0}")]
    CommandNotKept(io::Error),
    #[error("the system cannot supply a random seed for the seen-set: {0}")]
    Random(getrandom::Error),
    #[error("the crawl was cancelled: {0}")]
    Cancelled(String),
    #[error("the demo site has {reachable} reachable pages, but the crawl found {pages}")]
    DemoIncomplete { reachable: usize, pages: u64 },
}

/// Says why a crawl cannot start, with the names of the command's options.
fn not_started(error: &StartError) -> String {
    match error {
        StartError::Open(OpenError::Changed { option, was, wanted }) => {
            let changed = OpenError::Changed {
                option: Cow::Owned(flag::of(option)),
                was: was.clone(),
                wanted: wanted.clone(),
            };
            changed.to_string()
        }
        StartError::TooLittleMemory { .. } => format!("--memory: {error}"),
        StartError::State(StateError::OtherRules) => {
            format!("{error}. They follow from --drop-query-param and settings such as sort-query and ignore-www")
        }
        other => other.to_string(),
    }
}

/// Says why a crawl failed. All observers of the command that can fail are outputs.
fn crawl_failed(error: &CrawlError) -> String {
    match error {
        CrawlError::Observer(error) => format!("the output cannot be written: {error}"),
        other => other.to_string(),
    }
}

impl Failure {
    pub(crate) fn at_start(error: StartError, state: Option<&Path>) -> Self {
        match state.and_then(|state| hint_at_start(&error, state)) {
            Some(hint) => Self::Damaged(format!("{error}. {hint}")),
            None => Self::Start(error),
        }
    }

    pub(crate) fn of_crawl(error: CrawlError, state: Option<&Path>) -> Self {
        match (&error, state) {
            (CrawlError::Frontier(why), Some(state)) if is_damaged_frontier(why) => {
                Self::Damaged(format!("{why}. {}", repair_hint(state)))
            }
            _ => Self::Crawl(error),
        }
    }

    /// Returns whether the reader of an output closed its pipe, as `head` does. This needs no message.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Crawl(CrawlError::Observer(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // These may pass by themselves.
            Self::Start(StartError::Client(ClientError::Setup(_)) | StartError::State(StateError::NotWritten(_))) => 1,
            Self::Start(StartError::Open(OpenError::Frontier(FrontierError::NotSaved(_)))) => 1,
            Self::Start(StartError::Open(OpenError::Store(
                StoreError::Locked { .. } | StoreError::Full { .. } | StoreError::Moved { .. },
            ))) => 1,
            Self::Start(StartError::Open(OpenError::Store(StoreError::Io { source: error, .. })))
            | Self::Watch(WatchError::Address(_, error) | WatchError::File { error, .. })
            | Self::Output(OutputError::Open(error))
            | Self::CommandNotKept(error) => 1 + u8::from(needs_a_person(error)),
            Self::Arguments(_)
            | Self::Seeds(_)
            | Self::Cookies(_)
            | Self::OpenFiles { .. }
            | Self::Output(_)
            | Self::Start(_)
            | Self::Damaged(_) => 2,
            Self::Cluster(error) if error.is_usage() => 2,
            Self::Crawl(CrawlError::Peers(error)) if error.downcast_ref().is_some_and(MemberError::is_usage) => 2,
            Self::Incomplete(_) | Self::NothingLeft(_) => 3,
            _ => 1,
        }
    }
}

pub(crate) fn needs_a_person(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        AddrNotAvailable
            | AlreadyExists
            | InvalidData
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | ReadOnlyFilesystem
            | Unsupported
    )
}
