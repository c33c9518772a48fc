//! One request, one answer. The only file that names reqwest.
//!
//! Redirects are never followed here: a redirect is an answer, and its target goes through scope, robots.txt and
//! politeness like any other link. Cookies are not kept, no proxy is taken from the environment, and no `Referer` is sent.

use std::collections::HashSet;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use frontier::Origin;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use tokio::time::Instant;
use url::{Host, Url};

use crate::address_guard::is_public;
use crate::config::CrawlConfig;

/// A body of another type than HTML is read when it is announced with at most so many bytes; else it is skipped.
pub const MAX_OTHER_BODY_BYTES: u64 = 256 * 1024;

/// At most so much of a robots.txt is read: what RFC 9309, section 2.5, asks for, and one byte to see that there is more.
const MAX_ROBOTS_BYTES: u64 = 500 * 1024 + 1;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Its URL.
    pub url: Url,
    /// What it is wanted as.
    pub want: Want,
}

/// What an answer is wanted as, which decides how much of its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A page: the body is wanted if it is HTML, or short.
    Page,
    /// A robots.txt, whose body is wanted whatever its type.
    Robots,
}

/// What was answered.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The `Location` header, its bytes beyond ASCII escaped.
    pub location: Option<String>,
    /// The `Retry-After` header, from now on (RFC 9110, section 10.2.3).
    pub retry_after: Option<Duration>,
    /// The `X-Robots-Tag` headers.
    pub robots_tags: Vec<String>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// How much of the body that is.
    pub extent: Extent,
    /// From the start of the request to the end of the body.
    pub elapsed: Duration,
}

/// How much of a body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of it.
    #[default]
    Complete,
    /// It was cut, at the cap or where parsing it became too costly.
    Truncated,
    /// None of it: not HTML, and large or of unknown size.
    Skipped,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The host's address is not public, and no seed points there.
    #[error("its address is not public; name it as a seed, or allow private addresses, to crawl it")]
    AddressForbidden,
    /// The host's name cannot be resolved.
    #[error("the name of the host cannot be resolved: {0}")]
    Unresolved(String),
    /// No connection could be made, TLS included.
    #[error("no connection: {0}")]
    Connect(String),
    /// The answer took too long.
    #[error("timed out")]
    Timeout,
    /// The connection broke or the answer made no sense.
    #[error("broken answer: {0}")]
    Broken(String),
}

/// Something that fetches: over HTTP, or from a script in a test.
pub trait Fetcher: Send + Sync + 'static {
    /// Asks once, and follows nothing.
    fn fetch(&self, ask: Ask) -> impl Future<Output = Result<Answer, FetchError>> + Send;
}

/// Why a fetcher cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {0}")]
pub struct ClientError(#[from] reqwest::Error);

/// Fetches over HTTP/1.1 and HTTP/2, with TLS by rustls.
#[derive(Debug)]
pub struct HttpFetcher {
    guarded: reqwest::Client,
    open: reqwest::Client,
    /// Origins that may be dialled whatever their address: the seeds'.
    opened: HashSet<Origin>,
    allow_private: bool,
    max_body: u64,
}

impl HttpFetcher {
    /// Sets up connection pools for a crawl.
    ///
    /// # Errors
    ///
    /// When the TLS roots of the system cannot be read or the user agent is no header value.
    pub fn new(config: &CrawlConfig) -> Result<Self, ClientError> {
        // Only the first call of a process has an effect, and a provider that the program chose itself stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let seeds = config.seeds();
        Ok(Self {
            guarded: client(config, Guard::PublicOnly)?,
            open: client(config, Guard::Off)?,
            opened: seeds.iter().map(frontier::CanonicalUrl::origin).collect(),
            allow_private: config.options().allow_private_addresses,
            max_body: config.options().max_body_bytes,
        })
    }

    /// Chooses the pool: connections that were opened without the guard are never used for a guarded origin.
    fn client_for(&self, url: &Url) -> Result<&reqwest::Client, FetchError> {
        if self.allow_private || Origin::of(url).is_some_and(|origin| self.opened.contains(&origin)) {
            return Ok(&self.open);
        }
        // Addresses are dialled without asking the resolver, which guards the names.
        let literal = match url.host() {
            Some(Host::Ipv4(v4)) => Some(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => Some(IpAddr::V6(v6)),
            _ => None,
        };
        match literal {
            Some(address) if !is_public(address) => Err(FetchError::AddressForbidden),
            _ => Ok(&self.guarded),
        }
    }
}

fn client(config: &CrawlConfig, guard: Guard) -> Result<reqwest::Client, reqwest::Error> {
    let options = config.options();
    reqwest::Client::builder()
        .user_agent(options.user_agent.as_str())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(options.timeout.min(options.connect_timeout))
        .read_timeout(options.timeout)
        .timeout(options.timeout)
        .pool_max_idle_per_host(options.frontier.per_host.get() as usize)
        .tcp_nodelay(true)
        .dns_resolver(Arc::new(guard))
        .build()
}

impl Fetcher for HttpFetcher {
    async fn fetch(&self, ask: Ask) -> Result<Answer, FetchError> {
        let started = Instant::now();
        let client = self.client_for(&ask.url)?;
        let request = client
            .get(ask.url.clone())
            .header(ACCEPT, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5");
        let mut response = request.send().await.map_err(|error| classify(&error))?;
        let mut answer = Answer {
            status: response.status().as_u16(),
            content_type: header(response.headers(), &CONTENT_TYPE),
            location: response.headers().get(LOCATION).map(|value| escaped(value.as_bytes())),
            retry_after: header(response.headers(), &RETRY_AFTER).and_then(|value| parse_retry_after(&value)),
            robots_tags: robots_tags(response.headers()),
            ..Answer::default()
        };
        let cap = match ask.want {
            Want::Robots => Some(MAX_ROBOTS_BYTES),
            Want::Page => self.cap(&answer, response.content_length()),
        };
        match cap {
            None => answer.extent = Extent::Skipped,
            Some(cap) => read_body(&mut response, cap, &mut answer).await?,
        }
        answer.elapsed = started.elapsed();
        Ok(answer)
    }
}

impl HttpFetcher {
    /// Returns how many bytes of the body to read; `None` to skip it.
    fn cap(&self, answer: &Answer, announced: Option<u64>) -> Option<u64> {
        let is_small = announced.is_some_and(|bytes| bytes <= MAX_OTHER_BODY_BYTES);
        (is_small || is_html(answer.content_type.as_deref())).then_some(self.max_body)
    }
}

/// Says whether a `Content-Type` is that of a page with links; a missing one is taken for HTML, as browsers mostly do.
pub(crate) fn is_html(content_type: Option<&str>) -> bool {
    let Some(value) = content_type else { return true };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/html") || essence.eq_ignore_ascii_case("application/xhtml+xml")
}

async fn read_body(response: &mut reqwest::Response, cap: u64, answer: &mut Answer) -> Result<(), FetchError> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    while let Some(chunk) = response.chunk().await.map_err(|error| classify(&error))? {
        let room = cap - answer.body.len();
        answer.body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            answer.extent = Extent::Truncated;
            return Ok(());
        }
    }
    Ok(())
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    // Latin-1, as browsers read header bytes (Fetch standard, "isomorphic decode").
    headers
        .get(name)
        .map(|value| value.as_bytes().iter().map(|&byte| char::from(byte)).collect())
}

/// Reads a `Location`: bytes beyond ASCII are escaped as they are, as browsers do, for most are a path in bare UTF-8.
fn escaped(location: &[u8]) -> String {
    let piece = |&byte: &u8| match byte {
        0..=0x7f => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    location.iter().map(piece).collect()
}

fn robots_tags(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all("x-robots-tag")
        .iter()
        .filter_map(|value| Some(value.to_str().ok()?.to_owned()))
        .collect()
}

/// Reads `Retry-After`: seconds, or an HTTP date.
fn parse_retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number that is too large cannot be read.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

fn classify(error: &reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut root = error.to_string();
    while let Some(current) = cause {
        match current.downcast_ref() {
            Some(DialError::Forbidden) => return FetchError::AddressForbidden,
            Some(DialError::Unresolved(why)) => return FetchError::Unresolved(why.clone()),
            None => {}
        }
        root = current.to_string();
        cause = current.source();
    }
    // Asked first: a connection that does not come about in time is both, and says that the host is down.
    if error.is_connect() {
        FetchError::Connect(root)
    } else if error.is_timeout() {
        FetchError::Timeout
    } else {
        FetchError::Broken(root)
    }
}

/// Why a name gave no address to dial. It travels through reqwest's error chain.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("no public address")]
    Forbidden,
    #[error("{0}")]
    Unresolved(String),
}

/// The resolver of the system, behind the address guard. What it lets through is what is dialled: a second look-up that
/// could answer otherwise does not happen.
#[derive(Debug, Clone, Copy)]
enum Guard {
    PublicOnly,
    Off,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let found = look_up(name.as_str())
                .await
                .map_err(|error| DialError::Unresolved(error.to_string()))?;
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|at| matches!(guard, Self::Off) || is_public(at.ip()))
                .collect();
            if allowed.is_empty() {
                return Err(DialError::Forbidden.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

async fn look_up(name: &str) -> io::Result<Vec<SocketAddr>> {
    let bare = name.trim_end_matches('.');
    if bare == "localhost" || bare.ends_with(".localhost") {
        // RFC 6761, section 6.3: never asked of a name server.
        return Ok(vec![(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()]);
    }
    let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        assert_eq!(parse_retry_after(" 120 "), Some(Duration::from_secs(120)));
        let in_an_hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        let read = parse_retry_after(&in_an_hour).unwrap().as_secs();
        assert!((3590..=3600).contains(&read), "{read}");
        assert_eq!(parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(
            parse_retry_after("99999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        assert_eq!(parse_retry_after(""), None);
        assert_eq!(parse_retry_after("soon"), None);
        assert_eq!(parse_retry_after("-1"), None);
    }

    #[test]
    fn html_is_told_by_its_media_type() {
        for html in ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"] {
            assert!(is_html(Some(html)), "{html}");
        }
        assert!(is_html(None));
        for other in ["text/plain", "image/png", "application/pdf", "text/htmlx", ""] {
            assert!(!is_html(Some(other)), "{other}");
        }
    }
}
