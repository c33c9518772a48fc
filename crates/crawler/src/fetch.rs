//! One request, one answer.
//!
//! Redirects are never followed here: a redirect is an answer, and its target goes through scope, robots.txt and
//! politeness like any other link. No proxy is taken from the environment, no `Referer` is sent, and cookies are kept on request
//! only.

pub mod address_guard;
mod body;
mod capture;
mod client;
mod cookies;
mod decoding;
mod error;
mod exchange;
mod guard;
mod headers;
mod own_headers;
mod pools;
mod proxy;
mod trust;

use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use frontier::Validators;
use url::Url;

pub use capture::Capture;
pub use client::HttpFetcher;
pub use cookies::{MAX_COOKIE_BYTES, MAX_COOKIES, MAX_JAR_BYTES, MAX_JARS};
pub use decoding::MAX_LAYERS;
pub use error::FetchError;
pub use exchange::{Exchange, Header, HttpVersion};
pub use guard::{Resolver, Resolving, SystemResolver};
pub(crate) use headers::{is_css, is_html};
pub(crate) use own_headers::OwnHeaders;
pub use own_headers::{OwnHeaderError, Secret};
pub use pools::ClientError;
pub use proxy::ProxyError;
pub(crate) use proxy::UsableProxy;

/// A body of another type than HTML is read when it is announced with at most so many bytes, and to so many bytes after
/// decompression; else it is skipped.
pub const MAX_OTHER_BODY_BYTES: u64 = 256 * 1024;

/// The longest `ETag` or `Last-Modified` header that is kept, in bytes; a longer one is taken for none, or it would fill the queue of the
/// next crawl.
pub const MAX_VALIDATOR_BYTES: usize = 1024;

/// At most so much of a robots.txt is read: what RFC 9309, section 2.5, asks for, and one byte to see that there is more.
const MAX_ROBOTS_BYTES: u64 = 500 * 1024 + 1;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its URL.
    pub url: Url,
    /// What it is wanted as.
    pub kind: ResourceKind,
    /// What is known of it from an earlier fetch: if it is still the same, the answer is 304 and has no body.
    pub validators: Option<Validators>,
}

impl Request {
    /// Asks for something of which nothing is known.
    pub fn new(url: Url, kind: ResourceKind) -> Self {
        Self {
            url,
            kind,
            validators: None,
        }
    }
}

/// What an answer is wanted as, which decides how much of its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A page: the body is wanted if it is HTML, or short.
    Page,
    /// A robots.txt, whose body is wanted whatever its type.
    Robots,
    /// A sitemap, whose body is wanted whatever its type.
    Sitemap,
}

/// What was answered.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The `Location` header, its bytes beyond ASCII escaped.
    pub location: Option<String>,
    /// The `Refresh` header, its bytes beyond ASCII escaped.
    pub refresh: Option<String>,
    /// The `Retry-After` header, from now on (RFC 9110, section 10.2.3).
    pub retry_after: Option<Duration>,
    /// The `X-Robots-Tag` headers.
    pub robots_tags: Vec<String>,
    /// Cookies that found no room, if cookies are kept.
    pub cookies_dropped: usize,
    /// What to send with the next request for the same URL.
    pub validators: Validators,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// How much of the body that is.
    pub extent: BodyExtent,
    /// Why it is not all of it.
    pub cut: Option<TruncationReason>,
    /// From the start of the request to the end of the body.
    pub elapsed: Duration,
    /// Request and answer as they were sent, if the crawl keeps them.
    pub exchange: Option<Box<Exchange>>,
}

impl Response {
    /// Returns the body as it was received: without transfer codings, with content codings. Without an
    /// [`exchange`](Self::exchange) it is known only if there were no codings.
    pub fn received_body(&self) -> &[u8] {
        let encoded = self
            .exchange
            .as_ref()
            .and_then(|exchange| exchange.encoded_body.as_deref());
        encoded.unwrap_or(&self.body)
    }
}

/// How much of a body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyExtent {
    /// All of it.
    #[default]
    Complete,
    /// It was cut; [`TruncationReason`] says why.
    Truncated,
    /// None of it: not HTML, and large or of unknown size.
    Skipped,
}

/// Why a body was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TruncationReason {
    /// It is longer than may be read, decompressed or as it was received.
    Size,
    /// The time for the request was up.
    Time,
    /// The connection broke, or ended before as much was sent as was announced.
    Connection,
    /// It is not what its `Content-Encoding` says, ends in the middle, or has more than [`MAX_LAYERS`] codings.
    Coding,
    /// Parsing its markup became too costly.
    Markup,
}

impl TruncationReason {
    /// Returns the reason as one word in snake case, for counters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::Connection => "connection",
            Self::Coding => "coding",
            Self::Markup => "markup",
        }
    }

    /// Says whether another request may get more.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Time | Self::Connection)
    }
}

/// Something that fetches: over HTTP, or from a script in a test.
pub trait Fetcher: Send + Sync + 'static {
    /// Asks once, and follows nothing.
    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, FetchError>> + Send;

    /// Looks up the IP address by which requests to a host count, where they count by address: a name, or an address as it
    /// stands in a URL. The same one for all hosts that have the same addresses; `None` if there is none, and by default.
    fn address(&self, _host: &str) -> impl Future<Output = Option<IpAddr>> + Send {
        std::future::ready(None)
    }
}
