//! Why a crawl cannot start or continue.

use std::io;

use frontier::FrontierError;

use crate::config::CrawlOptionsError;
use crate::fetch::ClientError;
use crate::peers::PeersError;
use crate::state::StateError;

/// Why a crawl cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options are not valid.
    #[error(transparent)]
    Options(#[from] CrawlOptionsError),
    /// The frontier cannot be built.
    #[error(transparent)]
    Frontier(#[from] frontier::FrontierConfigError),
    /// The memory is bounded, and there is no state directory.
    #[error("the memory can be bounded only with a state directory, in which the rest lies")]
    MemoryWithoutState,
    /// The bound of the memory is too small.
    #[error(
        "{} MiB of memory is too little: at least {} MiB is needed, with this capacity and concurrency",
        most >> 20,
        least.div_ceil(1 << 20)
    )]
    TooLittleMemory {
        /// The bound.
        most: u64,
        /// The least bound.
        least: u64,
    },
    /// The state directory cannot be opened.
    #[error(transparent)]
    Open(#[from] frontier::OpenError),
    /// The state of the crawl cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The HTTP fetcher cannot be set up: its options, or the system's TLS roots.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl StartError {
    /// Returns whether the state directory has what only another version of this program reads.
    pub fn is_of_other_version(&self) -> bool {
        use frontier::{OpenError, StoreError};
        matches!(
            self,
            Self::State(StateError::Version { .. })
                | Self::Open(OpenError::OtherLogic { .. } | OpenError::Store(StoreError::Version { .. }))
        )
    }
}

/// Why a crawl cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// An observer, such as an output file, returned an error. The requests in flight ended first.
    #[error("an observer ended the crawl: {0}")]
    Observer(#[source] io::Error),
    /// The frontier failed, and its state is no longer reliable.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The state of the crawl cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The crawl cannot continue with the other processes that share it. The text says what to do.
    #[error(transparent)]
    Peers(#[from] PeersError),
    /// The frontier waits for a lease that has no task. This is a defect of the crawler.
    #[error("the crawl cannot continue: a lease has no fetch task: please report this defect")]
    Stalled,
}
