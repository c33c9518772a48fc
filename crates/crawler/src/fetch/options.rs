//! What only the HTTP fetcher needs to know.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::cookie_file::CookieFile;

/// The options of the [`HttpFetcher`](crate::HttpFetcher). A crawl with a [`Fetcher`](crate::Fetcher) of your own has none of them.
///
/// The `User-Agent` header is not here: robots.txt is matched with it too, so it is
/// [`CrawlOptions::user_agent`](crate::CrawlOptions::user_agent).
///
/// Later versions may add fields: fill the rest with `..HttpOptions::default()`.
///
/// ```
/// use std::time::Duration;
///
/// use crawler::{Crawl, CrawlOptions, HttpOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["http://localhost:8080".to_owned()], ..CrawlOptions::default() };
/// let http = HttpOptions { timeout: Duration::from_secs(5), cookies: true, ..HttpOptions::default() };
/// let crawl = Crawl::builder(options)?.http(http).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The maximum time of one request, from its start to the end of the body: by default 30 s.
    pub timeout: Duration,
    /// The maximum time to connect: by default 10 s.
    pub connect_timeout: Duration,
    /// The maximum size of a body, in bytes after decompression: by default 10 MiB. A longer one is truncated.
    pub max_body_bytes: u64,
    /// The maximum number of headers of an answer: by default 200, twice what large sites send. More than 16 384 are never read.
    pub max_headers: NonZeroUsize,
    /// The maximum size of all headers of an answer, in bytes: by default 256 KiB, the limit of Chromium. HTTP/1 has a fixed limit of 400 KiB
    /// besides. What precedes the final head, such as interim heads (1xx), is bounded by [`timeout`](Self::timeout) alone.
    pub max_header_bytes: usize,
    /// The maximum number of idle connections, each a file handle: by default 512. A crawl of more hosts than that reconnects more often.
    pub max_idle_connections: NonZeroUsize,
    /// Whether to connect to addresses that are not public ([`is_public`](super::address_guard::is_public)). The origin of a seed is
    /// always allowed, also of a seed that only an earlier run of the crawl had.
    pub allow_private_addresses: bool,
    /// Whether seeds are no more trusted than links: their addresses must be public, too, unless
    /// [all](Self::allow_private_addresses) are allowed. For seeds that somebody else has chosen, such as links of a crawled page. With
    /// [`headers`](Self::headers) or [`logins`](Self::logins) it is an error.
    pub untrusted_seeds: bool,
    /// Headers such as `Accept-Language: de`, sent to the origins of the seeds and to no other.
    pub headers: Vec<Secret>,
    /// Logins for HTTP basic authentication: `USER:PASSWORD` for the origin of the first seed, or `ORIGIN=USER:PASSWORD`. Each is
    /// sent with every request to its origin, and to no other.
    pub logins: Vec<Secret>,
    /// Whether to keep cookies, in a separate jar per origin. A jar holds up to 50 cookies and 8 KiB; 2 000 jars are kept.
    pub cookies: bool,
    /// Cookies to start from; they switch `cookies` on. In a crawl that is continued, they win over saved ones if the text of
    /// the file is not that of the run before: all of its cookies are set anew, also for sites that have replaced theirs since.
    pub cookie_file: Option<CookieFile>,
    /// Whether to accept any certificate: expired, of another host, or signed by nobody. Whoever is on the way can then read and change what
    /// is sent and received, logins and cookies included.
    pub accept_any_certificate: bool,
    /// Whether to use HTTP/1.1 only. Servers that offer HTTP/2 but do not mean it need no option.
    pub only_http1: bool,
    /// The URL of a proxy for all requests: `http`, `https`, `socks5` or `socks5h`. The address guard cannot see to which addresses
    /// the proxy connects.
    pub proxy: Option<Secret>,
    /// Without a `proxy`, whether to use those of the environment: `http_proxy` and `https_proxy`, or `all_proxy` where these are not set, but
    /// for the hosts of `no_proxy`; each also in upper case if it is not set in lower case. Requests to loopback never go through them, and
    /// with `untrusted_seeds` none does. They are logged when the fetcher is made.
    pub environment_proxies: bool,
    /// Whether to fill [`Response::exchange`](crate::Response::exchange), which archives need: each answer is then reported as
    /// [`Event::Captured`](crate::Event::Captured). It costs as much memory again as the compressed bodies, at most `max_body_bytes` per
    /// request in flight.
    pub keep_exchanges: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_body_bytes: 10 << 20,
            max_headers: NonZeroUsize::MIN.saturating_add(199),
            max_header_bytes: 256 * 1024,
            max_idle_connections: NonZeroUsize::MIN.saturating_add(511),
            allow_private_addresses: false,
            untrusted_seeds: false,
            headers: Vec::new(),
            logins: Vec::new(),
            cookies: false,
            cookie_file: None,
            accept_any_certificate: false,
            only_http1: false,
            proxy: None,
            environment_proxies: true,
            keep_exchanges: false,
        }
    }
}

/// A text that may hold a password: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Why the HTTP fetcher cannot be set up. No message repeats a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A header has no colon, or no name before it.
    #[error("a header cannot be read: write its name, a colon and its value, as in \"Accept-Language: de\"")]
    HeaderName,
    /// The value of a header has a line break or another control character.
    #[error("the header {0} cannot be sent: its value has a line break or another control character")]
    HeaderValue(String),
    /// The client makes this header itself.
    #[error(
        "the header {0} cannot be set: it is made for each request (set the user agent of the crawl instead of the header)"
    )]
    ReservedHeader(String),
    /// A login has no colon between user name and password.
    #[error("a login cannot be read: write USER:PASSWORD for the origin of the first seed, or ORIGIN=USER:PASSWORD")]
    Login,
    /// The origin of a login cannot be read.
    #[error(
        "{0:?} is no origin to log in to: write scheme and host, as in https://example.com or http://localhost:8080"
    )]
    LoginOrigin(String),
    /// The proxy of [`HttpOptions::proxy`] cannot be used.
    #[error(
        "the proxy cannot be used: write http://, https://, socks5:// (names are looked up here) or socks5h:// (by the proxy), then \
         host and port"
    )]
    Proxy,
    /// The proxy of this variable of the environment cannot be used.
    #[error(
        "the proxy of the environment variable {0} cannot be used: it starts with http://, https://, socks5:// or socks5h://; correct it, or \
         ignore the proxies of the environment with --set environment-proxies=false"
    )]
    EnvironmentProxy(String),
    /// Requests are to be counted per address ([`per_address`](frontier::PolitenessConfig::per_address)), but a proxy resolves the names.
    #[error(
        "requests cannot be counted per address through a proxy, which resolves the names itself: leave out one of the two, proxies of \
         the environment with --set environment-proxies=false"
    )]
    AddressesBehindProxy,
    /// Headers or logins were given for seeds that are not trusted.
    #[error("headers and logins would be sent to seeds that are not trusted: leave them out, or trust the seeds")]
    SecretsForUntrustedSeeds,
    /// The options are right, but the certificates that the system trusts cannot be read.
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}
