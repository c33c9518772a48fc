//! Why there is no answer, or none that can be used.

use frontier::{Failure, FailureKind};

/// Why there is no answer. What follows from each is the table of [`frontier::failure`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The host's address is not public, and no seed points there. The page counts as not fetched.
    #[error("its address is not public; name it as a seed, or allow private addresses, to crawl it")]
    AddressForbidden,
    /// The host's name cannot be resolved. The origin is away.
    #[error("the name of the host cannot be resolved: {0}")]
    Unresolved(String),
    /// This process may open no more files or sockets, which counts against nothing. The page is retried.
    #[error("out of file handles; raise the limit (ulimit -n), or lower the concurrency or the idle connections")]
    OutOfHandles,
    /// No connection could be made. The origin is away.
    #[error("no connection: {0}")]
    Connect(String),
    /// A connection was made, but no secure one: the certificate is not trusted, or the server does not speak TLS as we do. Another request
    /// would fare the same, so the page is given up.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The answer took too long to begin. The page is retried; the origin is away if several pages are silent.
    #[error("timed out")]
    Timeout,
    /// The head of the answer cannot be read, though the server answers. The page is given up.
    #[error("malformed answer: {0}")]
    Malformed(String),
    /// The headers of the answer are more or longer than may be. The page is given up.
    #[error("the headers of the answer are more than {0}; try to allow more of them")]
    HeadTooLarge(String),
    /// The connection broke before an answer. Counts as `Timeout` does.
    #[error("broken answer: {0}")]
    Broken(String),
    /// The task that fetched it panicked. The page is retried.
    #[error("the task that fetched it failed: {0}")]
    Panicked(String),
    /// Anything else, from a fetcher of your own. It counts against the page, which is retried, and not against its host.
    #[error("{0}")]
    Other(String),
}

impl FetchError {
    /// Returns the kind of failure.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::AddressForbidden => FailureKind::AddressForbidden,
            Self::Unresolved(_) => FailureKind::Unresolved,
            Self::OutOfHandles => FailureKind::OutOfHandles,
            Self::Connect(_) => FailureKind::Connect,
            Self::Tls(_) => FailureKind::Tls,
            Self::Timeout => FailureKind::Timeout,
            Self::Malformed(_) => FailureKind::Malformed,
            Self::HeadTooLarge(_) => FailureKind::HeadTooLarge,
            Self::Broken(_) => FailureKind::Broken,
            Self::Panicked(_) => FailureKind::Panic,
            Self::Other(_) => FailureKind::Other,
        }
    }

    /// Returns the failure as the frontier keeps it.
    pub fn failure(&self) -> Failure {
        Failure::new(self.kind(), self.to_string())
    }
}
