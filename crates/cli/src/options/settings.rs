//! Settings: limits, waits and rules that few crawls need. `--set NAME=VALUE` and a configuration file change them.

use std::fmt::Display;
use std::num::{NonZeroU32, NonZeroU64, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use crawler::{CrawlOptions, HttpOptions};
use frontier::canonical::Rules;
use sieve::Hashing;

use super::closest::closest;
use super::values::{parse_count, parse_duration, parse_duration_above_zero, parse_size};
use super::values::{show_count, show_duration, show_size};

/// What the settings change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(super) crawl: CrawlOptions,
    pub(super) http: HttpOptions,
    /// Which URLs are the same.
    pub(super) rules: Rules,
    pub(super) hash: HashKind,
    pub(super) hash_seed: Option<u64>,
    pub(crate) warc_operator: Option<String>,
    pub(crate) output_max_bytes: Option<NonZeroU64>,
}

/// The hash function of the seen-set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HashKind {
    #[default]
    Murmur3,
    Xxh3,
    Hardened,
}

impl HashKind {
    const ALL: [(&'static str, Self); 3] = [
        ("murmur3", Self::Murmur3),
        ("xxh3", Self::Xxh3),
        ("hardened", Self::Hardened),
    ];

    pub(super) fn with(self, secret: u128) -> Hashing {
        let seed = secret as u64;
        match self {
            Self::Murmur3 => Hashing::Murmur3 { seed },
            Self::Xxh3 => Hashing::Xxh3 { seed },
            Self::Hardened => Hashing::Hardened {
                key: secret.to_le_bytes(),
            },
        }
    }
}

/// One setting.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    show: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// Each setting: its name, the kind of its value, its place, and what it is.
macro_rules! settings {
    ($($name:literal $kind:ident $($place:ident).+: $about:literal;)+) => {
        &[$(Setting {
            name: $name,
            about: $about,
            show: |settings| $kind::show(&settings.$($place).+),
            set: |settings, text| Ok(settings.$($place).+ = $kind::read(text)?),
        },)+]
    };
}

#[rustfmt::skip]
pub(crate) const ALL: &[Setting] = settings! {
    "robots-name" Line crawl.robots_name: "Name that selects the robots.txt group, if it is not the one in --user-agent";
    "max-redirects" Count crawl.frontier.scope.max_hops: "Maximum redirects in a row to follow";
    "max-links-per-page" Count crawl.max_links_per_page: "Maximum links to follow from one page";
    "max-select-values" Count crawl.select_limits.values: "Maximum values of one --select field on a page";
    "max-select-bytes" Size crawl.select_limits.bytes: "Maximum size of all values of one --select field on a page";
    "output-max-bytes" Limited output_max_bytes: "Size of a file of --output, --links, --refused or --warc after which FILE-00001.jsonl and so on follow";
    "warc-operator" Line warc_operator: "Name or address of the archive's operator, for the header of --warc";
    "connect-timeout" LongTime http.connect_timeout: "Maximum time to connect";
    "max-headers" Positive http.max_headers: "Maximum headers of one response, never more than 16 384";
    "max-header-bytes" Size http.max_header_bytes: "Maximum size of the headers of one response";
    "max-idle-connections" Positive http.max_idle_connections: "Maximum connections to keep open for later requests";
    "only-http1" Switch http.only_http1: "Use HTTP/1.1 only; servers that offer HTTP/2 and refuse it do not need this";
    "environment-proxies" Switch http.environment_proxies: "Use the proxies of HTTP_PROXY, HTTPS_PROXY and ALL_PROXY";
    "max-crawl-delay" Time crawl.frontier.politeness.max_crawl_delay: "Maximum Crawl-delay of a robots.txt to obey; with 0, only --delay counts";
    "max-sitemaps" Count crawl.frontier.limits.max_sitemaps: "Maximum sitemaps to read in total";
    "max-sitemap-nesting" Count crawl.frontier.scope.max_sitemap_nesting: "Maximum sitemap indexes in a row above a sitemap";
    "max-sitemap-bytes" Size crawl.max_sitemap_bytes: "Maximum size of a sitemap, after decompression";
    "max-sitemap-urls" Count crawl.max_sitemap_urls: "Maximum URLs to take from one sitemap";
    "drop-empty-query" Switch rules.drop_empty_query: "Treat /a? and /a as the same URL";
    "drop-trailing-slash" Switch rules.drop_trailing_slash: "Treat /a/ and /a as the same URL";
    "sort-query" Switch rules.sort_query: "Treat /?a&b and /?b&a as the same URL";
    "ignore-scheme" Switch rules.ignore_scheme: "Treat http and https as the same URL";
    "ignore-www" Switch rules.ignore_www: "Treat www.example.com and example.com as the same host";
    "lower-case-path" Switch rules.lower_case_path: "Treat /Index.html and /index.html as the same URL";
    "retry-wait" Time crawl.frontier.retries.first_wait: "Wait before the second request for a URL; it doubles with each further one";
    "max-retry-wait" Time crawl.frontier.retries.longest_wait: "Maximum wait before a retry, even if the server asks for more";
    "retry-jitter" Count crawl.frontier.retries.jitter_percent: "Random addition to each wait before a retry, in percent";
    "max-host-downtime" Time crawl.frontier.retries.max_host_downtime: "How long to retry an origin that stopped responding; then its queued URLs are dropped";
    "max-first-downtime" Time crawl.frontier.retries.max_first_downtime: "How long to retry an origin that has never responded";
    "throttle-wait" Time crawl.frontier.retries.first_throttle: "Wait after a 429 without Retry-After; it doubles each time in a row";
    "max-throttles" Positive crawl.frontier.retries.max_throttles: "Throttling answers (429, 503 with Retry-After) in a row after which an origin is given up";
    "max-near-duplicates" Limit crawl.frontier.traps.max_near_duplicates: "Near-duplicates after which a path prefix or a site goes last; 0: no limit";
    "max-near-duplicates-in-all" Limit crawl.frontier.traps.max_near_duplicates_in_all: "Near-duplicates after which a path prefix or a site is closed; 0: no limit";
    "max-fingerprints" Positive crawl.frontier.traps.max_fingerprints: "Number of recent pages to compare each page with, at about 200 bytes each";
    "max-queries-per-path" Limit crawl.frontier.traps.max_queries_per_path: "Maximum different queries of one path to follow; 0: no limit";
    "max-hosts-per-site" Limit crawl.frontier.traps.max_hosts_per_site: "Maximum hosts of one registrable domain to follow; 0: no limit";
    "max-hosts" Positive crawl.frontier.limits.max_hosts: "Maximum hosts to remember; URLs of further hosts are refused";
    "max-queued" Count crawl.frontier.limits.max_queued: "Maximum URLs that wait, in memory without --state; further ones are refused, and counted";
    "max-outbox" Positive crawl.frontier.limits.max_outbox: "Maximum links for other partitions that wait on disk; beyond it, no page is fetched until some are received";
    "max-path-repeats" Positive crawl.frontier.scope.max_segment_repeats: "Maximum repetitions of one path segment in a URL, as in /a/b/a/b";
    "max-url-bytes" Size crawl.frontier.scope.max_url_bytes: "Maximum length of a URL";
    "hash" Hash hash: "Hash function of the seen-set: murmur3, xxh3, or hardened (SipHash-2-4, against crafted URLs)";
    "hash-seed" Seed hash_seed: "Seed or key of the hash; the same number repeats a crawl exactly, and must be kept secret";
};

impl Setting {
    pub(crate) fn default_value(&self) -> String {
        (self.show)(&Settings::default())
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.name == name)
}

/// `NAME=VALUE`, with a valid value.
#[derive(Clone)]
pub(crate) struct Assignment {
    setting: &'static Setting,
    value: String,
}

impl std::fmt::Debug for Assignment {
    /// The value may be the secret of the hash.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.setting.name)
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as max-hosts=100k")?;
        let setting = find(name).ok_or_else(|| match closest(name, ALL.iter().map(|setting| setting.name)) {
            Some(similar) => format!("there is no setting {name:?}: a similar one is {similar:?}"),
            None => format!("there is no setting {name:?}: crawler man lists all of them"),
        })?;
        let assignment = Self {
            setting,
            value: value.to_owned(),
        };
        assignment.write_to(&mut Settings::default())?;
        Ok(assignment)
    }
}

impl Assignment {
    fn write_to(&self, settings: &mut Settings) -> Result<(), String> {
        (self.setting.set)(settings, &self.value)
    }
}

impl Settings {
    /// Applies assignments; of several for one setting, the last one counts.
    pub(super) fn of(assignments: &[Assignment]) -> Self {
        let mut settings = Self::default();
        for assignment in assignments {
            // It was checked when it was read.
            let _ = assignment.write_to(&mut settings);
        }
        settings
    }
}

/// A kind of value: how it is read and written.
macro_rules! kind {
    ($(#[doc = $doc:literal])* $kind:ident<$value:ty>: $read:expr, $show:expr) => {
        $(#[doc = $doc])*
        struct $kind;

        impl $kind {
            fn read(text: &str) -> Result<$value, String> {
                ($read)(text)
            }

            fn show(value: &$value) -> String {
                ($show)(value)
            }
        }
    };
}

kind!(Time<Duration>: parse_duration, |time: &Duration| show_duration(*time));
kind!(
    /// A time above zero.
    LongTime<Duration>: parse_duration_above_zero, |time: &Duration| show_duration(*time)
);
kind!(Switch<bool>: |text: &str| text.parse().map_err(|_| "write true or false".to_owned()), bool::to_string);
kind!(
    /// A number, or 0 for no limit.
    Limit<Option<NonZeroU32>>: |text| parse_count(text).map(NonZeroU32::new),
    |limit: &Option<NonZeroU32>| show_count(limit.map_or(0, NonZeroU32::get))
);
kind!(
    /// A size of 1 byte or more; nothing for no limit.
    Limited<Option<NonZeroU64>>: |text| parse_size(text).map(Some), |_: &_| String::new()
);
kind!(Seed<Option<u64>>: |text| parse_count(text).map(Some), |_: &_| String::new());
kind!(
    /// One line of text.
    Line<Option<String>>: |text: &str| match text.is_empty() || text.contains(char::is_control) {
        true => Err("give one line of text".to_owned()),
        false => Ok(Some(text.to_owned())),
    },
    |_: &_| String::new()
);
kind!(
    Hash<HashKind>: |text| {
        let found = HashKind::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, kind)| kind).ok_or_else(|| "write murmur3, xxh3 or hardened".to_owned())
    },
    |hash: &HashKind| HashKind::ALL.iter().find(|(_, kind)| kind == hash).map_or("", |(name, _)| *name).to_owned()
);

/// A number.
struct Count;
/// A number of 1 or more.
struct Positive;
/// A size of 1 byte or more.
struct Size;

fn number(value: &impl Display) -> u64 {
    value.to_string().parse().unwrap_or(u64::MAX)
}

impl Count {
    fn read<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
        parse_count(text)
    }

    fn show(value: &impl Display) -> String {
        show_count(number(value))
    }
}

impl Positive {
    fn read<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
        parse_count::<NonZeroU64>(text)?;
        parse_count(text)
    }

    fn show(value: &impl Display) -> String {
        show_count(number(value))
    }
}

impl Size {
    fn read<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
        parse_size::<NonZeroU64>(text)?;
        parse_size(text)
    }

    fn show(value: &impl Display) -> String {
        show_size(number(value))
    }
}
