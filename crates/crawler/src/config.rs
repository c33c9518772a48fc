//! The options of a crawl, checked once before it starts.

use std::collections::HashSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use frontier::{CanonicalUrl, Canonicalizer, FrontierConfig, Link, NotCrawlable, OwnDataTooLong};
use page::ReadOptions;
use page::fingerprint::content_hash;
use page::links::{DEFAULT_MAX_LINKS, LinkOptions};
use page::robots::product_token;
use page::select::{Field, SelectLimits};
use page::sitemap::{DEFAULT_MAX_SITEMAP_BYTES, DEFAULT_MAX_SITEMAP_URLS, SitemapLimits};
use url::Url;

/// The least that [`default_concurrency`] returns.
const LEAST_BY_DEFAULT: usize = 16;
/// The most that it returns.
const MOST_BY_DEFAULT: usize = 64;

/// Returns a [concurrency](CrawlOptions::concurrency) for a maximum number of requests in flight to one host: four times that, but at least
/// 16, which is the default, and at most 64.
pub fn default_concurrency(per_host: NonZeroU32) -> NonZeroUsize {
    let of_host = usize::try_from(per_host.get()).unwrap_or(usize::MAX);
    let in_total = of_host.saturating_mul(4).clamp(LEAST_BY_DEFAULT, MOST_BY_DEFAULT);
    NonZeroUsize::MIN.saturating_add(in_total - 1)
}

/// The bytes of [`CrawlOptions::max_memory`] for the program itself: its code, its threads and its caches.
pub const MEMORY_BESIDE_FRONTIER: u64 = 32 << 20;
/// The bytes of [`CrawlOptions::max_memory`] for each request that may be in flight: its connection, its page and the links on it.
pub const MEMORY_PER_REQUEST: u64 = 512 << 10;

/// The options of a crawl, for any fetcher. Those of the HTTP fetcher are [`HttpOptions`](crate::HttpOptions).
///
/// Later versions may add fields: set what you need and fill the rest with `..CrawlOptions::default()`, and likewise in each group.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
///
/// use crawler::frontier::{FrontierConfig, LimitConfig, PolitenessConfig};
/// use crawler::{Crawl, CrawlOptions, ReportOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions {
///     seeds: vec!["example.com".to_owned()],
///     frontier: FrontierConfig {
///         politeness: PolitenessConfig { delay: Duration::from_secs(2), ..PolitenessConfig::default() },
///         limits: LimitConfig { max_pages: Some(1_000), ..LimitConfig::default() },
///         ..FrontierConfig::default()
///     },
///     concurrency: NonZeroUsize::new(32).ok_or("at least one")?,
///     reports: ReportOptions {
///         fields: vec!["price=.price::text".parse()?], // NAME=SELECTOR
///         ..ReportOptions::default()
///     },
///     ..CrawlOptions::default()
/// };
/// let crawl = Crawl::builder(options)?; // checks them
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CrawlOptions {
    /// Where to start. A bare `example.com` gets a scheme. What follows a tab are the [data](Link::data) of the seed.
    pub seeds: Vec<String>,
    /// Links to pages that are known from elsewhere, such as an earlier crawl: [`KnownLinks`](crate::KnownLinks) reads them. They are offered after
    /// the seeds, as if a page had them: within the scope, to public addresses, without credentials.
    pub links: Vec<Link>,
    /// Capacity, scope, politeness, budgets and retries.
    pub frontier: FrontierConfig,
    /// Which URLs are treated as the same.
    pub canonicalizer: Canonicalizer,
    /// The maximum number of requests in flight. With a state directory, requests that have ended count until they are committed, so that no more
    /// than these are sent again after a crash.
    ///
    /// Let it be several times [`per_host`](frontier::PolitenessConfig::per_host): then one host cannot have all requests, and a host without
    /// a delay is kept busy while results are collected for a commit. [`default_concurrency`] chooses it so.
    pub concurrency: NonZeroUsize,
    /// The name of the crawler. The HTTP fetcher sends it as `User-Agent`. Its [`product_token`] selects the groups of robots.txt, unless
    /// [`robots_name`](frontier::PolitenessConfig::robots_name) names another; without any, only the groups for all crawlers count.
    pub user_agent: String,
    /// The maximum duration of one run of the crawl. After it no request starts.
    pub max_time: Option<Duration>,
    /// The memory that the process may take, in bytes. It needs a state directory, in which hosts lie that were not used for long. The frontier
    /// gets what [`MEMORY_BESIDE_FRONTIER`] and [`MEMORY_PER_REQUEST`] leave. Bodies that are longer than usual, and what observers keep,
    /// come on top.
    pub max_memory: Option<u64>,
    /// The age from which pages are fetched again, by conditional requests. Only a crawl with a state directory has such pages. They have
    /// [`unchanged`](crate::PageRecord::unchanged) set. A content hash is computed of every page. It goes before [`FreshnessConfig::keeps_fresh`](frontier::FreshnessConfig::keeps_fresh).
    pub refresh: Option<Duration>,
    /// What is read from pages.
    pub pages: PageOptions,
    /// What is reported of pages.
    pub reports: ReportOptions,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            links: Vec::new(),
            frontier: FrontierConfig::default(),
            canonicalizer: Canonicalizer::default(),
            concurrency: default_concurrency(NonZeroU32::MIN),
            user_agent: concat!("sieve-crawler/", env!("CARGO_PKG_VERSION")).to_owned(),
            max_time: None,
            max_memory: None,
            refresh: None,
            pages: PageOptions::default(),
            reports: ReportOptions::default(),
        }
    }
}

/// What is read from pages. A part of [`CrawlOptions`].
#[derive(Debug, Clone)]
pub struct PageOptions {
    /// The maximum number of links that are followed from one page; further ones are counted and dropped.
    pub max_links_per_page: usize,
    /// Whether to fetch the parts of pages too: images (those of `srcset` included), media, scripts, style sheets, and the files that
    /// style sheets name. The scope and the budgets apply to them as to pages.
    pub assets: bool,
    /// Whether to follow links that say `nofollow`, or whose page does. robots.txt is obeyed all the same.
    pub follow_nofollow: bool,
    /// Whether to read sitemaps. [`FrontierConfig`] limits their number and their nesting.
    pub sitemaps: bool,
    /// The maximum size of a sitemap, in bytes after unpacking; the rest is not read.
    pub max_sitemap_bytes: u64,
    /// The maximum number of URLs that are taken from one sitemap; further ones are counted and dropped.
    pub max_sitemap_urls: usize,
    /// Whether links inherit the [data](Link::data) of their page.
    pub inherit_data: bool,
}

impl Default for PageOptions {
    fn default() -> Self {
        Self {
            max_links_per_page: DEFAULT_MAX_LINKS,
            assets: false,
            follow_nofollow: false,
            sitemaps: false,
            max_sitemap_bytes: DEFAULT_MAX_SITEMAP_BYTES,
            max_sitemap_urls: DEFAULT_MAX_SITEMAP_URLS,
            inherit_data: false,
        }
    }
}

impl PageOptions {
    pub(crate) fn sitemap_limits(&self) -> SitemapLimits {
        SitemapLimits {
            max_bytes: self.max_sitemap_bytes,
            max_urls: self.max_sitemap_urls,
        }
    }
}

/// What is reported of pages, beside their records. A part of [`CrawlOptions`].
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// The fields to select from pages, in the order of the output. Each is parsed from a text: `"title=h1".parse()?`.
    pub fields: Vec<Field>,
    /// The limits of what is selected from one page, for each field; further values are counted and dropped.
    pub select_limits: SelectLimits,
    /// Whether to report [`Event::Links`](crate::Event::Links): all links of all pages, those that are not followed included.
    pub links: bool,
    /// Whether to report [`Event::Content`](crate::Event::Content): the decoded text of each page, with all its links.
    pub content: bool,
    /// Whether to report [`Event::Body`](crate::Event::Body). The HTTP fetcher then reads bodies of every type whole, up to its
    /// `max_body_bytes`.
    pub bodies: bool,
    /// Whether to compute a content hash and a simhash of every page, at about 3 ns per byte. Otherwise only the pages that the
    /// frontier [compares](frontier::TrapConfig::compare_one_of) get them.
    pub fingerprints: bool,
}

impl ReportOptions {
    pub(crate) fn needs_all_links(&self) -> bool {
        self.links || self.content
    }
}

/// The checked options of a crawl.
#[derive(Debug, Clone)]
pub struct CrawlConfig {
    options: CrawlOptions,
    seeds: Vec<Link>,
    pub(crate) read_options: ReadOptions,
}

/// Why the options of a crawl are not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlOptionsError {
    /// There is no seed.
    #[error("no seed URL: name at least one page to start from")]
    NoSeeds,
    /// A seed is not a URL that can be crawled.
    #[error("the seed {seed:?} cannot be crawled: {why}")]
    Seed {
        /// The seed, as it was given, but without user name and password.
        seed: String,
        /// Why it cannot be crawled.
        why: NotCrawlable,
    },
    /// The data of a seed are too long.
    #[error("the seed {seed:?} cannot be used: {why}")]
    SeedData {
        /// The seed, as it was given, but without data, user name and password.
        seed: String,
        /// How long they are.
        why: OwnDataTooLong,
    },
    /// The user agent is empty, or not a valid header value.
    #[error("the user agent {0:?} cannot be used: write visible ASCII only")]
    UserAgent(String),
    /// The name for robots.txt is no product token.
    #[error("the name {0:?} cannot be used for robots.txt: write letters, - and _ only")]
    RobotsName(String),
    /// Two fields have the same name.
    #[error("two fields are named {0:?}: give each a name of its own, or select a list such as {0}=h1, h2")]
    FieldTwice(String),
}

impl CrawlConfig {
    /// Checks the options and reads the seeds.
    ///
    /// # Errors
    ///
    /// When there is no seed, a seed cannot be crawled, the user agent cannot be sent, its name for robots.txt is none, or two fields have the
    /// same name.
    pub fn new(mut options: CrawlOptions) -> Result<Self, CrawlOptionsError> {
        let is_visible = options.user_agent.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !is_visible || options.user_agent.trim().is_empty() {
            return Err(CrawlOptionsError::UserAgent(options.user_agent));
        }
        let name = &mut options.frontier.politeness.robots_name;
        if name.is_empty() {
            product_token(&options.user_agent).unwrap_or("*").clone_into(name);
        } else if product_token(name) != Some(name.as_str()) {
            return Err(CrawlOptionsError::RobotsName(name.clone()));
        }
        if let Some(name) = repeated(&options.reports.fields) {
            return Err(CrawlOptionsError::FieldTwice(name.to_owned()));
        }
        if options.seeds.is_empty() {
            return Err(CrawlOptionsError::NoSeeds);
        }
        let read = |seed: &String| parse_seed(seed, &options.canonicalizer);
        let seeds = options.seeds.iter().map(read).collect::<Result<_, _>>()?;
        let (pages, reports) = (&options.pages, &options.reports);
        let read_options = ReadOptions {
            links: LinkOptions {
                max_links: pages.max_links_per_page,
                agent: options.frontier.politeness.robots_name.to_ascii_lowercase().into(),
                assets: pages.assets,
                ..LinkOptions::default()
            },
            follow_nofollow: pages.follow_nofollow,
            linked_sitemaps: pages.sitemaps,
            unfollowed: reports.needs_all_links(),
            fields: reports.fields.as_slice().into(),
            select_limits: reports.select_limits,
            text: reports.content,
            ..ReadOptions::default()
        };
        Ok(Self {
            options,
            seeds,
            read_options,
        })
    }

    pub(crate) fn memory_beside_frontier(&self) -> u64 {
        let requests = self.options.concurrency.get() as u64;
        MEMORY_BESIDE_FRONTIER.saturating_add(requests.saturating_mul(MEMORY_PER_REQUEST))
    }

    /// Returns the seeds.
    pub fn seeds(&self) -> &[Link] {
        &self.seeds
    }

    /// Returns the options as they were given, with the name for robots.txt, and without the links once the crawl is built.
    pub fn options(&self) -> &CrawlOptions {
        &self.options
    }

    pub(crate) fn seeds_with_logins(&self) -> Vec<Url> {
        let seeds = self.options.seeds.iter();
        seeds
            .filter_map(|seed| Url::parse(&with_scheme(split_data(seed).0)).ok())
            .collect()
    }

    pub(crate) fn take_links(&mut self) -> Vec<Link> {
        std::mem::take(&mut self.options.links)
    }

    /// So that a later run knows whether it has the same seeds and links.
    pub(crate) fn hash_of_seeds(&self) -> u64 {
        let links = self.options.links.iter().map(|link| &link.url);
        hash_of_urls(self.seeds.iter().map(|seed| &seed.url)) ^ hash_of_urls(links).rotate_left(1)
    }

    /// Returns the name that selects the groups of robots.txt; `*` if there is none.
    pub fn product_token(&self) -> &str {
        &self.options.frontier.politeness.robots_name
    }

    /// Returns the same if the crawl asks for robots.txt.
    pub(crate) fn robots_name(&self) -> Option<&str> {
        let is_asked = self.options.frontier.politeness.ask_robots;
        is_asked.then(|| self.product_token())
    }
}

/// Returns a name that two fields share. Case is ignored, as in SQL.
fn repeated(fields: &[Field]) -> Option<&str> {
    let mut names = HashSet::new();
    fields
        .iter()
        .map(Field::name)
        .find(|name| !names.insert(name.to_lowercase()))
}

/// Reads a seed as a crawl does: a URL, or a host without a scheme; behind a tab its data.
///
/// # Errors
///
/// When it cannot be crawled, or its data are too long. The message names it.
pub fn parse_seed(seed: &str, canonicalizer: &Canonicalizer) -> Result<Link, CrawlOptionsError> {
    let (text, data) = split_data(seed);
    let url = canonicalizer.parse(&with_scheme(text));
    let link = Link::seed(url.map_err(|why| CrawlOptionsError::Seed {
        seed: without_login(text),
        why,
    })?);
    match data {
        Some(data) => link
            .with_data(data.as_bytes())
            .map_err(|why| CrawlOptionsError::SeedData {
                seed: without_login(text),
                why,
            }),
        None => Ok(link),
    }
}

/// Splits a seed at its first tab, into what is crawled and the data.
pub fn split_data(seed: &str) -> (&str, Option<&str>) {
    let (text, data) = seed.trim().split_once('\t').unwrap_or((seed, ""));
    (text.trim(), Some(data.trim()).filter(|data| !data.is_empty()))
}

fn hash_of_urls<'u>(urls: impl Iterator<Item = &'u CanonicalUrl>) -> u64 {
    let mut text = Vec::new();
    for url in urls {
        text.extend_from_slice(url.url().as_str().as_bytes());
        text.push(b'\n');
    }
    content_hash(&text).map_or(0, |hash| hash.value() as u64)
}

pub(crate) fn with_scheme(seed: &str) -> String {
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
    let is_plain = is_local || is_address || port == "80";
    let scheme = if is_plain { "http" } else { "https" };
    format!("{scheme}://{seed}")
}

/// Hides user name and password. The text is no URL, so all that may belong to them is hidden; a mail address has none.
fn without_login(seed: &str) -> String {
    if seed.starts_with("mailto:") {
        return seed.to_owned();
    }
    let start = seed.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = seed.split_at(start);
    match rest.rfind('@') {
        Some(at) => format!("{scheme}…{}", &rest[at..]),
        None => seed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use frontier::PolitenessConfig;

    use super::*;

    fn seed(text: &str) -> Result<String, CrawlOptionsError> {
        let config = CrawlConfig::new(CrawlOptions {
            seeds: vec![text.to_owned()],
            ..CrawlOptions::default()
        })?;
        Ok(config.seeds()[0].url.url().to_string())
    }

    #[test]
    fn the_password_of_a_seed_that_cannot_be_crawled_is_not_shown() {
        for (text, shown) in [
            ("http://user:secret@exa mple/", "http://…@exa mple/"),
            ("ftp://user:secret@example.com/", "ftp://…@example.com/"),
            ("http://user:sec/ret@example.com/", "http://…@example.com/"),
            ("user:secret@example.com", "…@example.com"),
        ] {
            let error = seed(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{shown:?}")), "{error}");
            assert!(!error.contains("sec"), "{error}");
        }
    }

    #[test]
    fn a_bare_host_gets_https_and_a_local_host_or_address_gets_http() {
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
    fn the_error_names_the_seed_that_cannot_be_crawled() {
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
            Err(CrawlOptionsError::NoSeeds)
        ));
    }

    #[test]
    fn a_user_agent_must_be_a_header_value_and_its_name_for_robots_txt_a_product_token() {
        let with = |agent: &str, name: &str| {
            CrawlConfig::new(CrawlOptions {
                seeds: vec!["example.com".to_owned()],
                user_agent: agent.to_owned(),
                frontier: FrontierConfig {
                    politeness: PolitenessConfig {
                        robots_name: name.to_owned(),
                        ..PolitenessConfig::default()
                    },
                    ..FrontierConfig::default()
                },
                ..CrawlOptions::default()
            })
        };
        for agent in ["", " ", "bot\r\nX: y", "böt"] {
            assert!(
                matches!(with(agent, ""), Err(CrawlOptionsError::UserAgent(_))),
                "{agent:?}"
            );
        }
        for name in ["1bot", "a/1", "*"] {
            assert!(
                matches!(with("bot", name), Err(CrawlOptionsError::RobotsName(_))),
                "{name:?}"
            );
        }
        assert_eq!(with("1bot", "").unwrap().product_token(), "*");
        assert_eq!(with("1bot", "bot").unwrap().product_token(), "bot");
    }
}
