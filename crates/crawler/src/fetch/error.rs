//! Why there is no answer, or none that can be used.

use std::error::Error;
use std::io;

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

/// What the chain of causes of an error says. Its end is what went wrong; what stands before names the step.
#[derive(Default)]
struct Causes {
    dial: Option<FetchError>,
    tls: Option<String>,
    timed_out: bool,
    unexpected_end: bool,
    last: String,
}

impl Causes {
    fn of(error: &reqwest::Error) -> Self {
        let mut causes = Self {
            timed_out: error.is_timeout(),
            ..Self::default()
        };
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
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
        if let Some(error) = cause.downcast_ref::<FetchError>() {
            self.dial = Some(error.clone());
        }
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            self.tls = Some(explained(error));
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            self.timed_out |= error.kind() == io::ErrorKind::TimedOut;
            self.unexpected_end |= error.kind() == io::ErrorKind::UnexpectedEof;
            if is_out_of_handles(error) {
                self.dial = Some(FetchError::OutOfHandles);
            }
        }
        self.last = cause.to_string();
    }
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
    let causes = Causes::of(error);
    match (causes.dial, causes.tls) {
        (Some(error), _) => error,
        (None, Some(why)) => FetchError::Tls(why),
        _ if causes.last == HEAD_TOO_LARGE => FetchError::HeadTooLarge("can be read".to_owned()),
        // Asked first: a connection that does not come about in time is both, and says that the host is down.
        _ if error.is_connect() => FetchError::Connect(causes.last),
        _ if causes.timed_out => FetchError::Timeout,
        _ => FetchError::Broken(causes.last),
    }
}

/// How the body of an answer broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokenBody {
    TimedOut,
    /// The connection ended, over TLS without the alert that announces it, or before all was there.
    UnexpectedEnd,
    Other,
}

/// Says how the body of an answer broke off.
pub(super) fn classify_body(error: &reqwest::Error) -> BrokenBody {
    match Causes::of(error) {
        causes if causes.timed_out => BrokenBody::TimedOut,
        causes if causes.unexpected_end => BrokenBody::UnexpectedEnd,
        _ => BrokenBody::Other,
    }
}
