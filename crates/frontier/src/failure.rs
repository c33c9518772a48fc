//! Why a request failed, and what follows: the failure policy.
//!
//! | kind | counts against | attempt counted | what follows |
//! |---|---|---|---|
//! | `unresolved`, `connect`, `tls` | the origin | no | the origin is **away**: one request at a time asks whether it is back |
//! | `timeout`, `broken`, `incomplete` | the page | yes | the page is retried; three different pages in a row with no answer between, or one page in all its attempts: the origin is away |
//! | `status` (408, 425, 5xx), `head_too_large`, `panic` | the page | yes | the page is retried |
//! | `throttled` (429, 503 with `Retry-After`) | the host, which rests | no | the page is retried after the rest; twelve rests in a row: the origin is given up |
//! | `out_of_handles` | nobody | no | the page is retried |
//!
//! **Away** is counted by incident, not by request: what was in flight when the origin went away, and fails later, changes nothing.
//! The origin is asked after 1, 2, 4 … seconds, up to a minute
//! ([`RetryPolicy::longest_probe_wait`](crate::RetryPolicy::longest_probe_wait)), by its robots.txt, or by the next page where
//! robots.txt is ignored. Any HTTP answer brings it back. After
//! [`max_host_downtime`](crate::RetryPolicy::max_host_downtime), or
//! [`max_first_downtime`](crate::RetryPolicy::max_first_downtime) if it never answered in this crawl, it is given up with all that
//! waits for it.
//!
//! **Retries wait behind pages that were never asked for.** Of a robots.txt, `timeout`, `broken` and `incomplete` make the origin away
//! if it never answered; otherwise they count as attempts, and after
//! [`max_robots_attempts`](crate::RetryPolicy::max_robots_attempts) the origin is closed for a while.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The host's address may not be dialled.
    AddressForbidden,
    /// The host's name cannot be resolved.
    Unresolved,
    /// No connection: refused, no route, or not in time.
    Connect,
    /// No secure connection.
    Tls,
    /// No answer in time.
    Timeout,
    /// Too many or too long headers.
    HeadTooLarge,
    /// The connection broke, or the answer is no HTTP.
    Broken,
    /// The body broke off, or did not end in time.
    Incomplete,
    /// A status that asks for another try: 408, 425 or 5xx.
    Status,
    /// The server asks for less traffic: 429, or 503 with `Retry-After`.
    Throttled,
    /// No file handle was left for a connection; a limit of this machine, not the host's failure.
    OutOfHandles,
    /// A redirect without a target that can be crawled, or one that leads back to itself.
    Redirect,
    /// The origin was given up while the URL waited for it.
    HostDown,
    /// The task that fetched it panicked.
    Panic,
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
            Self::HeadTooLarge => "head_too_large",
            Self::Broken => "broken",
            Self::Incomplete => "incomplete",
            Self::Status => "status",
            Self::Throttled => "throttled",
            Self::OutOfHandles => "out_of_handles",
            Self::Redirect => "redirect",
            Self::HostDown => "host_down",
            Self::Panic => "panic",
        }
    }

    /// Returns how a status has failed: 429, and 503 with `Retry-After`, are throttling (RFC 6585, section 4; RFC 9110, section
    /// 15.6.4); 408, 425 and any other 5xx ask for another try. `None` if the status is final.
    pub fn of_status(status: u16, has_retry_after: bool) -> Option<Self> {
        match status {
            429 => Some(Self::Throttled),
            // One that does not say when to come back may be a page that fails.
            503 if has_retry_after => Some(Self::Throttled),
            408 | 425 | 500..=599 => Some(Self::Status),
            _ => None,
        }
    }

    /// Returns what a failure of this kind counts against.
    pub(crate) fn blame(self) -> Blame {
        match self {
            Self::Unresolved | Self::Connect | Self::Tls => Blame::Origin,
            Self::Timeout | Self::Broken | Self::Incomplete => Blame::SilentPage,
            Self::Throttled => Blame::Traffic,
            Self::OutOfHandles => Blame::Us,
            Self::AddressForbidden
            | Self::HeadTooLarge
            | Self::Status
            | Self::Redirect
            | Self::HostDown
            | Self::Panic => Blame::Page,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a failure counts against: the rows of the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Nothing of the origin can be had.
    Origin,
    /// The page, and the origin if several pages are as silent.
    SilentPage,
    /// The page alone.
    Page,
    /// The traffic: the host rests.
    Traffic,
    /// This machine.
    Us,
}

/// One failure: its kind, and what went wrong in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, which decides what follows.
    pub kind: FailureKind,
    /// What went wrong, for people. At most [`MAX_MESSAGE_BYTES`](Self::MAX_MESSAGE_BYTES) of it are kept.
    pub message: Box<str>,
}

impl Failure {
    /// The longest message that is kept, in bytes.
    pub const MAX_MESSAGE_BYTES: usize = 500;

    /// Makes a failure. A longer message is cut.
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
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
