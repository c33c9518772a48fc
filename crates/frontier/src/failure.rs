//! The failure policy: why a request failed, and what follows from it.
//!
//! | kind | counts against | attempt counted | what follows |
//! |---|---|---|---|
//! | `unresolved`, `connect` | the origin | no | the origin is **away**: one probe at a time checks whether it is back |
//! | `timeout`, `broken`, `incomplete` | the page | yes | the page is retried. The origin is probed after three different pages in a row, or one page in all its attempts, three at least, with no answer between, and away if a probe fails, too |
//! | `status` (408, 425, 5xx), `panic`, `other` | the page | yes | the page is retried |
//! | `throttled` (429, 503 with `Retry-After`) | the host, which rests | no | the page is retried after the rest. After twelve rests in a row the origin is given up |
//! | `out_of_handles` | nothing | no | the page is retried |
//! | `tls` | the origin | no | as `connect`, if the origin answered before, or is away. At the first contact what was asked for is given up at once |
//! | `redirect`, `malformed`, `head_too_large` | the page | yes | it is given up at once: another request would be answered the same |
//! | `address_forbidden`, `host_down` | the page | no request was made | it is given up at once. [`Outcome::NotFetched`](crate::Outcome::NotFetched) says the same, and counts as not fetched instead of failed |
//!
//! # Outages
//!
//! An outage is one incident, however many requests fail in it: requests that were in flight when the origin went away change
//! nothing when they fail later. The frontier probes the origin after 1, 2, 4 … seconds, up to
//! [`longest_probe_wait`](crate::RetryPolicy::longest_probe_wait). The probe is a request for its robots.txt, or for the next page if
//! robots.txt is ignored. Any HTTP answer ends the outage; [`Notice::Back`](crate::Notice::Back) waits for that of a page.
//!
//! Silent pages count their attempts as long as nothing else says that the origin is away: until a probe fails. So pages that never answer are
//! not asked for again and again. A page whose attempts are spent waits for the first probe.
//!
//! **An origin whose pages hang while its robots.txt is answered is never given up**: each page spends its attempts, each of a whole timeout.
//! While its [report](crate::Frontier::host_report) says [`pages_hang`](crate::HostHealth::pages_hang), ask it with a shorter timeout, or
//! settle its leases with [`NotFetched::HostDown`](crate::NotFetched::HostDown), without a request.
//! [`max_pages_per_host`](crate::LimitConfig::max_pages_per_host) bounds the loss, too.
//!
//! The origin is given up after [`max_host_downtime`](crate::RetryPolicy::max_host_downtime), or after
//! [`max_first_downtime`](crate::RetryPolicy::max_first_downtime) if it never answered in this crawl. Everything that is queued for it
//! is then dropped.
//!
//! # Retries
//!
//! Retries wait behind pages that were never requested.
//!
//! For a robots.txt, `timeout`, `broken` and `incomplete` start an outage if the origin never answered. Otherwise they count as
//! attempts, and after [`max_robots_attempts`](crate::RetryPolicy::max_robots_attempts) the origin is closed for a while. The kinds that are
//! given up at once close it at once.

use std::error::Error;
use std::{fmt, io, iter};

use serde::{Deserialize, Serialize};

/// Different silent pages in a row (timeout, broken or incomplete), with no answer between, after which their origin is probed.
pub(crate) const SILENT_PAGES: usize = 3;

/// How a request failed. Stored by its place in this list: a further one stands last, or `VERSION` of `sqlite/format.rs` goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The address guard forbids the host's address.
    AddressForbidden,
    /// The host name cannot be resolved.
    Unresolved,
    /// No TCP connection: refused, no route, or a timeout.
    Connect,
    /// No TLS connection: the certificate is not trusted, or no version or cipher is common.
    Tls,
    /// No answer before the timeout.
    Timeout,
    /// Too many or too long headers.
    HeadTooLarge,
    /// The connection broke.
    Broken,
    /// The body ended early, or did not end before the timeout.
    Incomplete,
    /// A status that allows a retry: 408, 425 or 5xx.
    Status,
    /// The server throttles: 429, or 503 with `Retry-After`.
    Throttled,
    /// No file handle was free for a connection: a limit of this machine, not a failure of the host.
    OutOfHandles,
    /// A redirect without a target that can be crawled, or a redirect loop. [`answer`](crate::answer) makes no failure of these: it is for
    /// clients that follow redirects themselves.
    Redirect,
    /// The origin was given up while the URL waited for it.
    HostDown,
    /// The task that fetched it panicked.
    Panic,
    /// Anything else that a fetcher of your own cannot do. It says nothing of the host.
    Other,
    /// An answer with a head that cannot be read, or that is not HTTP.
    Malformed,
}

impl FailureKind {
    /// Returns the kind as one word in snake case, for counters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AddressForbidden => "address_forbidden",
            Self::Unresolved => "unresolved",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::HeadTooLarge => "head_too_large",
            Self::Broken => "broken",
            Self::Incomplete => "incomplete",
            Self::Status => "status",
            Self::Throttled => "throttled",
            Self::OutOfHandles => "out_of_handles",
            Self::Redirect => "redirect",
            Self::HostDown => "host_down",
            Self::Panic => "panic",
            Self::Other => "other",
        }
    }

    /// Returns the failure that an HTTP status stands for; `None` if the status is final.
    ///
    /// 429, and 503 with `Retry-After`, are throttling (RFC 6585, section 4; RFC 9110, section 15.6.4). 408, 425 and any other 5xx
    /// allow a retry.
    pub fn of_status(status: u16, has_retry_after: bool) -> Option<Self> {
        match status {
            429 => Some(Self::Throttled),
            // Without `Retry-After` it may be one page that fails.
            503 if has_retry_after => Some(Self::Throttled),
            408 | 425 | 500..=599 => Some(Self::Status),
            _ => None,
        }
    }

    /// Returns the kind that an error of an HTTP client stands for. It reads the error and its causes, which need not be of a known type: I/O
    /// errors by their kind, others by the words that reqwest, hyper, ureq and rustls use. [`Other`](Self::Other) if it knows none of
    /// them.
    ///
    /// ```
    /// use std::io::{Error, ErrorKind};
    /// use frontier::FailureKind;
    ///
    /// let cause = Error::new(ErrorKind::ConnectionRefused, "port 80");
    /// assert_eq!(FailureKind::of_error(&Error::other(cause)), FailureKind::Connect);
    /// ```
    pub fn of_error(error: &(dyn Error + 'static)) -> Self {
        let mut words = String::new();
        for cause in causes(error) {
            // A URL, a host or a path may have any words.
            let is_name = |word: &&str| word.contains('/') || word.trim_end_matches(['.', ':', ',']).contains('.');
            for word in cause.to_string().split_whitespace().filter(|word| !is_name(word)) {
                words += word;
                words.push(' ');
            }
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                words += &error.kind().to_string();
            }
            words.push('\n');
        }
        words.make_ascii_lowercase();
        let found = WORDS
            .iter()
            .find(|(_, any)| any.split('|').any(|one| words.contains(one)));
        found.map_or(Self::Other, |(kind, _)| *kind)
    }

    pub(crate) fn blame(self) -> Blame {
        match self {
            Self::Unresolved | Self::Connect | Self::Tls => Blame::Origin,
            Self::Timeout | Self::Broken | Self::Incomplete => Blame::SilentPage,
            Self::Throttled => Blame::Traffic,
            Self::OutOfHandles => Blame::Us,
            Self::Redirect | Self::Malformed | Self::HeadTooLarge => Blame::Answer,
            Self::AddressForbidden | Self::HostDown => Blame::NotRequested,
            Self::Status => Blame::Page,
            Self::Panic | Self::Other => Blame::Caller,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Blame {
    pub(crate) fn was_requested(self) -> bool {
        !matches!(self, Self::Us | Self::NotRequested)
    }
}

/// What a failure counts against, as in the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The origin: no request to it can succeed.
    Origin,
    /// The page, which was silent; the origin, too, if several pages are.
    SilentPage,
    /// The page alone.
    Page,
    /// The page, of whose request nothing is known: it says nothing of the host.
    Caller,
    /// The page, whose answer is final.
    Answer,
    /// The page, for which no request will be made.
    NotRequested,
    /// The rate of requests: the host rests.
    Traffic,
    /// This machine.
    Us,
}

/// What errors say. The first row that has a word of the error decides: a time that runs out while a connection is made is a failure to
/// connect, and one that runs out in a body leaves it incomplete. "TLS" alone is no such word: connections over it break as others do.
#[rustfmt::skip]
const WORDS: [(FailureKind, &str); 11] = [
    (FailureKind::OutOfHandles, "too many open files"),
    (FailureKind::Redirect, "too many redirects|redirect failed"),
    (FailureKind::Unresolved, "dns error|lookup address|host not found|timeout: resolve"),
    (FailureKind::Tls, "certificate|tls handshake|fatal alert|corrupt message|peer is incompatible|peer misbehaved|ssl routines"),
    (FailureKind::HeadTooLarge, "head is too large|header is too|too many headers"),
    (FailureKind::Malformed, "invalid http|http parse|content-length|transfer-encoding"),
    (FailureKind::Connect, "(connect)|tcp connect|connection refused|connection failed"),
    (FailureKind::Connect, "no route|unreachable|network down|address not|timeout: connect"),
    (FailureKind::Incomplete, "a body|or response body|message length|receive body"),
    (FailureKind::Timeout, "timed out|timeout|deadline|would block"),
    (FailureKind::Broken, "connection|not connected|broken pipe|end of file|http2 error"),
];

/// Goes through the causes of an error, itself first. The last one is what went wrong; those before name the step.
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let all = iter::successors(Some(error), |&cause| {
        // An I/O error skips what it wraps when it is asked for its source.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map_or_else(|| cause.source(), |wrapped| Some(wrapped))
    });
    // An error may be its own cause.
    all.take(100)
}

/// One failure: its kind, and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, which decides what follows.
    pub kind: FailureKind,
    /// A message for people, of at most [`MAX_MESSAGE_BYTES`](Self::MAX_MESSAGE_BYTES).
    pub message: Box<str>,
}

impl Failure {
    /// The longest message that is kept, in bytes.
    pub const MAX_MESSAGE_BYTES: usize = 500;

    /// Creates a failure. A longer message is cut at the end of a character.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > Self::MAX_MESSAGE_BYTES {
            let end = (0..=Self::MAX_MESSAGE_BYTES)
                .rev()
                .find(|&at| message.is_char_boundary(at));
            message.truncate(end.unwrap_or(0));
        }
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Creates the failure that an error of an HTTP client stands for: its [kind](FailureKind::of_error), and what it and its causes say.
    pub fn of_error(error: &(dyn Error + 'static)) -> Self {
        let mut message = String::new();
        for cause in causes(error).map(|cause| cause.to_string()) {
            // Many say what their causes say.
            if !message.ends_with(&cause) {
                message += if message.is_empty() { "" } else { ": " };
                message += &cause;
            }
        }
        Self::new(FailureKind::of_error(error), message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
