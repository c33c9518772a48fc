//! What a crawl is started from, checked once.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use frontier::{CanonicalUrl, Canonicalizer, FrontierConfig, NotCrawlable};
use url::Url;

use crate::fetch::{OwnHeaderError, OwnHeaders, ProxyError, Secret, UsableProxy};
use crate::page::robots::product_token;
use crate::page::select::{Field, SelectLimits};
use crate::page::sitemap::{DEFAULT_MAX_SITEMAP_BYTES, DEFAULT_MAX_SITEMAP_URLS};

/// Requests that may be out at a time in all, unless set.
pub const DEFAULT_CONCURRENCY: usize = 16;
/// The longest that one request may take in all, unless set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest that connecting may take, unless set.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most of a body that is read, in bytes after decompression, unless set.
pub const DEFAULT_MAX_BODY_BYTES: u64 = 10 * 1024 * 1024;
/// The most headers of one answer, unless set. Twice what large sites send.
pub const DEFAULT_MAX_HEADERS: usize = 200;
/// The most bytes of the headers of one answer, unless set: what Chromium takes.
pub const DEFAULT_MAX_HEADER_BYTES: usize = 256 * 1024;
/// The most connections that are kept open for later requests, unless set.
pub const DEFAULT_MAX_IDLE_CONNECTIONS: usize = 512;
/// The most links of one page that are followed, unless set.
pub const DEFAULT_MAX_LINKS_PER_PAGE: usize = 10_000;
/// The most values of a selected field on one page, unless set.
pub const DEFAULT_MAX_SELECT_VALUES: usize = 1000;
/// The most bytes of the values of a selected field on one page, unless set.
pub const DEFAULT_MAX_SELECT_BYTES: usize = 256 * 1024;
/// What the crawler calls itself, unless set.
pub const DEFAULT_USER_AGENT: &str = concat!("sieve-crawler/", env!("CARGO_PKG_VERSION"));

/// Everything that can be set for a crawl.
#[derive(Debug, Clone)]
pub struct CrawlOptions {
    /// Where to start. A bare `example.com` gets a scheme.
    pub seeds: Vec<String>,
    /// Capacity, scope, politeness, budgets and retries.
    pub frontier: FrontierConfig,
    /// Which URLs are the same.
    pub canonicalizer: Canonicalizer,
    /// Requests that may be out at a time in all.
    pub concurrency: NonZeroUsize,
    /// The `User-Agent` header. Its leading letters are what robots.txt is matched with.
    pub user_agent: String,
    /// The longest that one request may take in all.
    pub timeout: Duration,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// The most of a body that is read, in bytes after decompression.
    pub max_body_bytes: u64,
    /// The most links of one page that are followed; further ones are counted and dropped.
    pub max_links_per_page: usize,
    /// Whether what pages are made of is fetched too: images (those of `srcset` included), media, scripts, style sheets, and
    /// what these name. The scope and the budgets hold for them as for pages.
    pub assets: bool,
    /// After this time no request is started any more.
    pub max_time: Option<Duration>,
    /// Whether addresses that are not public may be dialled. A seed always opens its own origin.
    pub allow_private_addresses: bool,
    /// The most headers that an answer may have.
    pub max_headers: NonZeroUsize,
    /// The most bytes that the headers of an answer may have; with HTTP/1 never more than 400 KiB.
    pub max_header_bytes: usize,
    /// The most connections that are kept open for later requests, each a file handle. With more hosts than that at a
    /// time, connections are made anew.
    pub max_idle_connections: NonZeroUsize,
    /// Whether [`Response::exchange`](crate::Response::exchange) is filled, for archives. It costs as much memory again as bodies
    /// were compressed to, at most `max_body_bytes` for each request that is out.
    pub keep_exchanges: bool,
    /// Headers such as `Accept-Language: de`, sent to the origins of the seeds and to no other.
    pub headers: Vec<Secret>,
    /// Logins for HTTP's basic authentication: `USER:PASSWORD` for the origin of the first seed, or `ORIGIN=USER:PASSWORD`. Each is
    /// sent with every request to its origin, and to no other.
    pub logins: Vec<Secret>,
    /// Whether cookies are kept, for each origin in a jar of its own.
    pub cookies: bool,
    /// The URL of a proxy for all requests: `http`, `https`, `socks5` or `socks5h`. The address guard cannot see what it dials.
    pub proxy: Option<Secret>,
    /// Whether sitemaps are read. How many, and how deep, the frontier's configuration says.
    pub sitemaps: bool,
    /// The most of a sitemap that is read, in bytes after unpacking.
    pub max_sitemap_bytes: u64,
    /// The most URLs that are taken from one sitemap; further ones are counted and dropped.
    pub max_sitemap_urls: usize,
    /// What to select from pages, in the order in which it is told.
    pub fields: Vec<Field>,
    /// How much of a page is selected; further values are counted.
    pub select_limits: SelectLimits,
    /// Whether [`Event::Links`](crate::Event::Links) are told: all links of all pages, those that are not followed included.
    pub report_links: bool,
    /// Whether every page gets a content hash and a simhash, at about 3 ns per byte. If not, those pages do that the frontier wants
    /// to [compare](FrontierConfig::compare_one_of).
    pub fingerprints: bool,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            frontier: FrontierConfig::default(),
            canonicalizer: Canonicalizer::default(),
            concurrency: NonZeroUsize::MIN.saturating_add(DEFAULT_CONCURRENCY - 1),
            user_agent: DEFAULT_USER_AGENT.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            max_links_per_page: DEFAULT_MAX_LINKS_PER_PAGE,
            assets: false,
            max_time: None,
            allow_private_addresses: false,
            max_headers: NonZeroUsize::MIN.saturating_add(DEFAULT_MAX_HEADERS - 1),
            max_header_bytes: DEFAULT_MAX_HEADER_BYTES,
            max_idle_connections: NonZeroUsize::MIN.saturating_add(DEFAULT_MAX_IDLE_CONNECTIONS - 1),
            keep_exchanges: false,
            headers: Vec::new(),
            logins: Vec::new(),
            cookies: false,
            proxy: None,
            sitemaps: false,
            max_sitemap_bytes: DEFAULT_MAX_SITEMAP_BYTES,
            max_sitemap_urls: DEFAULT_MAX_SITEMAP_URLS,
            fields: Vec::new(),
            select_limits: SelectLimits {
                values: DEFAULT_MAX_SELECT_VALUES,
                bytes: DEFAULT_MAX_SELECT_BYTES,
            },
            report_links: false,
            fingerprints: false,
        }
    }
}

/// Options that make sense.
#[derive(Debug, Clone)]
pub struct CrawlConfig {
    options: CrawlOptions,
    seeds: Vec<CanonicalUrl>,
    product_token: String,
    own_headers: OwnHeaders,
    proxy: Option<UsableProxy>,
}

/// Why a crawl cannot be started with such options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no seed.
    #[error("no seed URL: name at least one page to start from")]
    NoSeeds,
    /// A seed is no URL that can be crawled.
    #[error("the seed {seed:?} cannot be crawled: {why}")]
    Seed {
        /// As it was given.
        seed: String,
        /// What is wrong with it.
        why: NotCrawlable,
    },
    /// The user agent has no product token, or is no header value.
    #[error(
        "the user agent {0:?} cannot be used: start it with a name of letters, - and _, and use visible ASCII only"
    )]
    UserAgent(String),
    /// Two fields have the same name.
    #[error("two fields are named {0:?}: give each a name of its own, or select a list such as {0}=h1, h2")]
    FieldTwice(String),
    /// A header or a login cannot be used.
    #[error(transparent)]
    OwnHeader(#[from] OwnHeaderError),
    /// The proxy cannot be used.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// Requests are to count by address, but a proxy looks up the addresses.
    #[error(
        "through a proxy, which looks up the addresses itself, requests cannot count by address: leave out one of the two"
    )]
    AddressesBehindProxy,
}

impl CrawlConfig {
    /// Checks the options and reads the seeds.
    ///
    /// # Errors
    ///
    /// No seed, a seed that cannot be crawled, a user agent that cannot be sent or matched with robots.txt, or a header, a
    /// login or a proxy that cannot be used.
    pub fn new(options: CrawlOptions) -> Result<Self, ConfigError> {
        let is_visible = options.user_agent.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let token = product_token(&options.user_agent).filter(|_| is_visible);
        let Some(product_token) = token.map(str::to_owned) else {
            return Err(ConfigError::UserAgent(options.user_agent));
        };
        if let Some(name) = repeated(&options.fields) {
            return Err(ConfigError::FieldTwice(name.to_owned()));
        }
        if options.seeds.is_empty() {
            return Err(ConfigError::NoSeeds);
        }
        let read = |seed: &String| {
            let url = options.canonicalizer.parse(&with_scheme(seed.trim()));
            url.map_err(|why| ConfigError::Seed {
                seed: seed.clone(),
                why,
            })
        };
        let seeds = options.seeds.iter().map(read).collect::<Result<_, _>>()?;
        // As they were given: a canonical URL has no user name and password any more.
        let urls = options
            .seeds
            .iter()
            .filter_map(|seed| Url::parse(&with_scheme(seed.trim())).ok());
        let urls: Vec<Url> = urls.collect();
        let own_headers = OwnHeaders::new(&urls, &options.headers, &options.logins)?;
        let proxy = options.proxy.as_ref().map(UsableProxy::new).transpose()?;
        if proxy.is_some() && options.frontier.per_address {
            return Err(ConfigError::AddressesBehindProxy);
        }
        Ok(Self {
            options,
            seeds,
            product_token,
            own_headers,
            proxy,
        })
    }

    /// Returns the seeds.
    pub fn seeds(&self) -> &[CanonicalUrl] {
        &self.seeds
    }

    /// Returns the options as they were given.
    pub fn options(&self) -> &CrawlOptions {
        &self.options
    }

    pub(crate) fn own_headers(&self) -> &OwnHeaders {
        &self.own_headers
    }

    pub(crate) fn proxy(&self) -> Option<&UsableProxy> {
        self.proxy.as_ref()
    }

    /// Returns the name that robots.txt is matched with.
    pub fn product_token(&self) -> &str {
        &self.product_token
    }
}

/// A name that two fields have; case is no difference, for it is none in SQL.
fn repeated(fields: &[Field]) -> Option<&str> {
    let mut names = HashSet::new();
    fields
        .iter()
        .map(Field::name)
        .find(|name| !names.insert(name.to_lowercase()))
}

/// Gives a bare host a scheme: `http` for this machine and for addresses, which seldom have a certificate, else `https`.
fn with_scheme(seed: &str) -> String {
    let end = seed.find(['/', '?', '#']).unwrap_or(seed.len());
    let authority = &seed[..end];
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, ""),
    };
    let has_scheme = authority.ends_with(':') && seed[end..].starts_with("//");
    let is_bare = !has_scheme && !host.is_empty() && (host.starts_with('[') || !host.contains([':', '@']));
    if !is_bare {
        return seed.to_owned();
    }
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let is_address = host.starts_with('[') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let scheme = if is_local || is_address || port == "80" {
        "http"
    } else {
        "https"
    };
    format!("{scheme}://{seed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(text: &str) -> Result<String, ConfigError> {
        let config = CrawlConfig::new(CrawlOptions {
            seeds: vec![text.to_owned()],
            ..CrawlOptions::default()
        })?;
        Ok(config.seeds()[0].url().to_string())
    }

    #[test]
    fn a_bare_host_gets_the_scheme_that_it_most_likely_speaks() {
        for (text, url) in [
            ("example.com", "https://example.com/"),
            ("example.com/a?b=c:d@e", "https://example.com/a?b=c:d@e"),
            ("example.com:8443/x", "https://example.com:8443/x"),
            ("localhost:8080", "http://localhost:8080/"),
            ("127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
            ("[::1]:8080", "http://[::1]:8080/"),
            ("  http://example.com  ", "http://example.com/"),
            ("HTTPS://EXAMPLE.com", "https://example.com/"),
        ] {
            assert_eq!(seed(text).unwrap(), url, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_crawled_is_refused_by_name() {
        for text in [
            "",
            "not a url",
            "http://",
            "mailto:someone@example.com",
            "ftp://example.com/",
            "javascript:alert(1)",
        ] {
            let error = seed(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{text:?}: {error}");
        }
        assert!(matches!(
            CrawlConfig::new(CrawlOptions::default()),
            Err(ConfigError::NoSeeds)
        ));
    }

    #[test]
    fn a_user_agent_must_have_a_name_and_fit_into_a_header() {
        for agent in ["", "1bot", "bot\r\nX: y", "böt", "(bot)"] {
            let options = CrawlOptions {
                seeds: vec!["example.com".to_owned()],
                user_agent: agent.to_owned(),
                ..CrawlOptions::default()
            };
            assert!(
                matches!(CrawlConfig::new(options), Err(ConfigError::UserAgent(_))),
                "{agent:?}"
            );
        }
    }
}
