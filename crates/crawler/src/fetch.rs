//! One request, one answer.
//!
//! Redirects are never followed here: a redirect is an answer, and its target goes through scope, robots.txt and
//! politeness like any other link. The [`HttpFetcher`] takes proxies from the environment, sends no `Referer`, and keeps cookies on
//! request only.

mod address_cache;
pub mod address_guard;
mod body;
mod classify;
mod client;
mod connections;
mod cookie_date;
mod cookie_file;
mod cookies;
mod decoding;
mod error;
mod exchange;
mod guard;
mod headers;
mod options;
mod own_headers;
mod proxy;
mod tls;

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frontier::Validators;
use url::Url;

pub use address_cache::CachedResolver;
pub use client::HttpFetcher;
pub use cookie_file::{CookieFile, CookieFileError};
pub use error::FetchError;
pub use exchange::{Header, HttpExchange, HttpVersion};
pub use guard::{AddressGuard, Resolver, Resolving, SystemResolver};
pub use options::{ClientError, HttpOptions, Secret};

/// The maximum size of a body that is not HTML, in bytes, both announced and after decompression; a longer one is skipped.
const MAX_OTHER_BODY_BYTES: u64 = 256 * 1024;

/// The longest `ETag` or `Last-Modified` header that is kept, in bytes; a longer one is ignored, or it would fill the queue of the
/// next crawl.
pub(crate) const MAX_VALIDATOR_BYTES: usize = 1024;

/// The maximum size of a robots.txt that is read: what RFC 9309, section 2.5, asks for, and one byte to see that there is more.
const MAX_ROBOTS_BYTES: u64 = 500 * 1024 + 1;

/// Locks what is whole between any two calls, so that a poisoned lock is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request. Later versions may add fields: make one by [`new`](Self::new).
#[derive(Debug, Clone)]
pub struct Request {
    /// The URL.
    pub url: Url,
    /// What the answer is used as.
    pub kind: ResourceKind,
    /// The validators of an earlier fetch: if the page has not changed, the answer is 304 without a body.
    pub validators: Option<Validators>,
}

impl Request {
    /// Makes a request without validators.
    pub fn new(url: Url, kind: ResourceKind) -> Self {
        Self {
            url,
            kind,
            validators: None,
        }
    }
}

/// What an answer is used as, which decides how much of its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResourceKind {
    /// A page: the body is wanted if it is HTML, or short.
    #[default]
    Page,
    /// A robots.txt, whose body is wanted whatever its type.
    Robots,
    /// A sitemap, whose body is wanted whatever its type.
    Sitemap,
}

/// One answer.
///
/// Later versions may add fields: fill the rest with `..Response::default()`.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header; of several, the last valid one. Without one that can be used, the body is read as HTML unless it is plainly
    /// something else.
    pub content_type: Option<String>,
    /// The `Location` header, its bytes beyond ASCII escaped.
    pub location: Option<String>,
    /// The `Refresh` header, its bytes beyond ASCII escaped.
    pub refresh: Option<String>,
    /// The time of the `Retry-After` header, from now on (RFC 9110, section 10.2.3).
    pub retry_after: Option<Duration>,
    /// The `X-Robots-Tag` headers.
    pub robots_tags: Vec<String>,
    /// Cookies that were dropped because a jar is full.
    pub cookies_dropped: usize,
    /// What cookies have to do with the target of a redirect, or with a page that sets some and refreshes itself.
    pub target_cookies: TargetCookies,
    /// The `ETag` and `Last-Modified` headers, for a later request for the same URL.
    pub validators: Validators,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// How much of the body was read. A body with a reason to be truncated counts as truncated, whatever this says.
    pub extent: BodyExtent,
    /// Why the body is truncated; `None` if it is not. [`Time`](TruncationReason::Time) and [`Connection`](TruncationReason::Connection)
    /// make the crawl request the page again.
    pub truncation: Option<TruncationReason>,
    /// From the start of the request to the end of the body.
    pub elapsed: Duration,
    /// Whether the request had a condition that the crawl did not ask for, such as an `If-Modified-Since` of the user's. Without one, and without
    /// validators, 304 is a failed attempt.
    pub has_own_condition: bool,
    /// Request and answer as they were sent, for archives. A crawl reports one that is there as
    /// [`Event::Captured`](crate::Event::Captured).
    pub exchange: Option<Box<HttpExchange>>,
}

impl Response {
    fn target(&self, url: &Url) -> Option<Url> {
        let location = self.location.as_deref().filter(|_| (300..400).contains(&self.status))?;
        let mut target = frontier::reference::resolve(Some(url), location, None).ok()?;
        target.set_fragment(None);
        Some(target)
    }
}

/// What cookies have to do with the target of a redirect, or of a refresh to the page itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TargetCookies {
    /// Nothing that is known.
    #[default]
    AsBefore,
    /// It was redirected when it was asked last, and would now get other cookies. So it is asked again, if the limit of redirects allows.
    New,
    /// The site sets cookies, and the fetcher does not keep them.
    NotKept,
}

/// How much of a body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyExtent {
    /// All of it.
    #[default]
    Complete,
    /// The beginning; [`TruncationReason`] says why.
    Truncated,
    /// None of it: it is not HTML, and larger than 256 KiB or of unknown size.
    Skipped,
}

/// Why a body is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TruncationReason {
    /// It is longer than may be read, decompressed or as it was received.
    Size,
    /// The request took too long.
    Time,
    /// The connection broke, or ended before as much was sent as was announced.
    Connection,
    /// It is not what its `Content-Encoding` says, ends in the middle, or has more than two codings.
    Coding,
    /// The server sent a part of it, with status 206, that was not asked for.
    Part,
}

impl TruncationReason {
    /// Returns the reason as one word in snake case, for counters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::Connection => "connection",
            Self::Coding => "coding",
            Self::Part => "part",
        }
    }

    /// Says whether another request may get the whole body.
    pub(crate) fn is_temporary(self) -> bool {
        matches!(self, Self::Time | Self::Connection)
    }
}

/// Something that fetches: over HTTP, or from memory in a test.
///
/// The crawl decides when to fetch what; a fetcher sends one request and returns one answer.
///
/// ```
/// use crawler::{Crawl, CrawlOptions, FetchError, Fetcher, Request, Response};
///
/// /// A site in memory.
/// struct Site;
///
/// impl Fetcher for Site {
///     async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
///         let (status, body) = match request.url.path() {
///             "/" => (200, "<a href=/a>a</a> <a href=/b>b</a>"),
///             "/a" => (200, "<title>The only page</title>"),
///             _ => (404, ""),
///         };
///         Ok(Response { status, body: body.into(), ..Response::default() })
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = CrawlOptions { seeds: vec!["http://site.example".to_owned()], ..CrawlOptions::default() };
/// options.frontier.politeness.delay = std::time::Duration::ZERO;
/// let summary = Crawl::builder(options)?.build_with(Site)?.run().await?;
/// assert_eq!(summary.pages, 2);
/// # Ok(())
/// # }
/// ```
pub trait Fetcher: Send + Sync + 'static {
    /// Sends one request, and follows no redirect.
    ///
    /// # Errors
    ///
    /// [`FetchError`] says what went wrong; the crawl decides whether to retry.
    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, FetchError>> + Send;

    /// Looks up the IP address of a host, for crawls that count requests [per address](frontier::PolitenessConfig::per_address).
    ///
    /// `host` is a name, or an address as it stands in a URL. Hosts with the same addresses must get the same one. `None`, the
    /// default, means that the host has no address.
    fn address(&self, _host: &str) -> impl Future<Output = Option<IpAddr>> + Send {
        std::future::ready(None)
    }

    /// Returns what a later run of this crawl needs besides the answers, such as cookies; `None`, the default, if it has not changed
    /// since the last call. A crawl with a state directory calls it about once per second and at its end, and keeps the last text. It
    /// may be as secret as a login.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes what [`save`](Self::save) returned in an earlier run, before the first request.
    ///
    /// # Errors
    ///
    /// Says why the text cannot be read.
    fn restore(&self, _saved: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
