//! Why there is no answer, or none that can be used.

use std::error::Error;
use std::{io, iter};

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
    /// A connection was made, but no secure one: the certificate is not trusted, or the server does not speak TLS as we do. The origin
    /// is away.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The answer took too long to begin. The page is retried; the origin is away if several pages are silent.
    #[error("timed out")]
    Timeout,
    /// The headers of the answer are more or longer than may be. The page is retried.
    #[error("the headers of the answer are more than {0}")]
    HeadTooLarge(String),
    /// The connection broke or the answer made no sense. Counts as `Timeout` does.
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

/// Goes through the causes of an error. The last one is what went wrong; those before name the step.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&cause| {
        // An I/O error skips what it wraps when it is asked for its source.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map_or_else(|| cause.source(), |wrapped| Some(wrapped))
    })
}

fn find<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn has_io_error(error: &reqwest::Error, is_it: impl Fn(&io::Error) -> bool) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref()).any(is_it)
}

/// Says whether the time had run out.
pub(super) fn is_timeout(error: &reqwest::Error) -> bool {
    error.is_timeout() || has_io_error(error, |error| error.kind() == io::ErrorKind::TimedOut)
}

/// Says whether the connection ended, over TLS without the alert that announces it, or before all was there.
pub(super) fn is_unexpected_end(error: &reqwest::Error) -> bool {
    has_io_error(error, |error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// Says whether the limit of open files was met, the process's or the system's.
pub(super) fn is_out_of_handles(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Says what an error of TLS means to whoever runs the crawl.
fn explained(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            format!("the certificate is not trusted ({why:?}); a browser would warn of this site")
        }
        rustls::Error::InvalidMessage(why) => {
            format!("the server does not speak TLS here ({why:?}); try http:// instead of https://")
        }
        other => other.to_string(),
    }
}

/// How the HTTP library words that a head is longer than it reads, or has more headers. It has no other sign of that.
const HEAD_TOO_LARGE: &str = "message head is too large";

/// Classifies why no head of an answer was received.
pub(super) fn classify(error: &reqwest::Error) -> FetchError {
    if let Some(dialling) = find::<FetchError>(error) {
        return dialling.clone();
    }
    if has_io_error(error, is_out_of_handles) {
        return FetchError::OutOfHandles;
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return FetchError::Tls(explained(tls));
    }
    let last = causes(error).last().map(ToString::to_string).unwrap_or_default();
    match last {
        last if last == HEAD_TOO_LARGE => FetchError::HeadTooLarge("can be read".to_owned()),
        // Asked first: a connection that does not come about in time is both, and says that the host is down.
        last if error.is_connect() => FetchError::Connect(last),
        _ if is_timeout(error) => FetchError::Timeout,
        last => FetchError::Broken(last),
    }
}
