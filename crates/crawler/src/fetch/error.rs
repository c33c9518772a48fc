//! Why there is no answer, or none that can be used.

use std::error::Error;
use std::io;

use frontier::{Failure, FailureKind};
use hyper::http::Extensions;
use hyper_util::client::legacy;
use rustls::OtherError;

use super::head_limit::HeadLimit;

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
    /// The headers of the answer are more or longer than may be, or too much precedes its final head. The page is retried.
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

/// Why a name gave no address to dial. It travels through the error chain of the HTTP library.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum DialError {
    #[error("no public address")]
    Forbidden,
    #[error("{0}")]
    Unresolved(String),
    #[error("out of file handles")]
    OutOfHandles,
}

impl From<DialError> for FetchError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Forbidden => Self::AddressForbidden,
            DialError::Unresolved(why) => Self::Unresolved(why),
            DialError::OutOfHandles => Self::OutOfHandles,
        }
    }
}

/// What the chain of causes of an error says. Its end is what went wrong; what stands before names the step.
#[derive(Default)]
struct Causes {
    dial: Option<FetchError>,
    tls: Option<String>,
    head_too_large: bool,
    timed_out: bool,
    last: String,
}

impl Causes {
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut causes = Self::default();
        let mut next = Some(error);
        while let Some(cause) = next {
            causes.note(cause);
            next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                // An I/O error skips what it wraps when it is asked for its source.
                Some(wrapped) => Some(wrapped),
                None => cause.source(),
            };
        }
        causes
    }

    fn note(&mut self, cause: &(dyn Error + 'static)) {
        if let Some(error) = cause.downcast_ref::<DialError>() {
            self.dial = Some(error.clone().into());
        }
        if cause.downcast_ref().is_some_and(is_out_of_handles) {
            self.dial = Some(FetchError::OutOfHandles);
        }
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            self.tls = Some(explained(error));
            if is_lack_of_handles(error) {
                self.dial = Some(FetchError::OutOfHandles);
            }
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            self.head_too_large |= error.is_parse_too_large();
            self.timed_out |= error.is_timeout();
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            self.timed_out |= error.kind() == io::ErrorKind::TimedOut;
        }
        self.last = cause.to_string();
    }
}

/// Says whether the limit of open files was met, the process's or the system's.
pub(super) fn is_out_of_handles(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Says whether no file handle was left for the certificates that a secure connection needs.
pub(super) fn is_lack_of_handles(error: &rustls::Error) -> bool {
    let rustls::Error::Other(OtherError(cause)) = error else {
        return false;
    };
    cause.downcast_ref().is_some_and(is_out_of_handles)
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

/// Classifies why no head of an answer was received.
pub(super) fn classify(error: &legacy::Error) -> FetchError {
    if let Some(limit) = exceeded_limit(error) {
        return FetchError::HeadTooLarge(format!("{} bytes, with all that precedes the final head", limit.max()));
    }
    let causes = Causes::of(error);
    if let Some(error) = causes.dial {
        return error;
    }
    if let Some(why) = causes.tls {
        return FetchError::Tls(why);
    }
    if causes.head_too_large {
        return FetchError::HeadTooLarge("can be read".to_owned());
    }
    // Asked first: a connection that does not come about in time is both, and says that the host is down.
    if error.is_connect() {
        FetchError::Connect(causes.last)
    } else if causes.timed_out {
        FetchError::Timeout
    } else {
        FetchError::Broken(causes.last)
    }
}

/// The limit of the connection on which a request failed, if it was exceeded. The error of HTTP/2 does not hold its cause.
fn exceeded_limit(error: &legacy::Error) -> Option<HeadLimit> {
    let mut known = Extensions::new();
    error.connect_info()?.get_extras(&mut known);
    known.remove::<HeadLimit>().filter(HeadLimit::is_exceeded)
}

/// Says whether the body of an answer stopped because the network was silent for too long.
pub(super) fn has_timed_out(error: &hyper::Error) -> bool {
    Causes::of(error).timed_out
}
