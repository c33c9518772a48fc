//! The options for sitemaps, equivalent URLs, retries and crawler traps.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use crawler::CrawlOptions;
use crawler::page::sitemap::{DEFAULT_MAX_SITEMAP_BYTES, DEFAULT_MAX_SITEMAP_URLS};
use frontier::canonical::Rules;
use frontier::{Canonicalizer, RetryPolicy, config, scope};

use super::values::{parse_count, parse_duration, parse_percent, parse_size, show_count, show_duration, show_size};

#[derive(Debug, Args)]
pub(crate) struct Budgets {
    /// Maximum Crawl-delay of a robots.txt to obey.
    ///
    /// A longer one is cut to this duration. With 0, only --delay counts.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(config::DEFAULT_MAX_CRAWL_DELAY),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Politeness"
    )]
    max_crawl_delay: Duration,

    /// Maximum sitemaps to read in total.
    ///
    /// Further sitemaps are refused, and counted in the summary.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_SITEMAPS),
        value_parser = parse_count::<usize>,
        help_heading = "Sitemaps"
    )]
    max_sitemaps: usize,
    /// Maximum sitemap indexes in a row above a sitemap.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(scope::DEFAULT_MAX_SITEMAP_NESTING),
        value_parser = parse_count::<u32>,
        help_heading = "Sitemaps"
    )]
    max_sitemap_nesting: u32,
    /// Maximum size of a sitemap, after decompression.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = show_size(DEFAULT_MAX_SITEMAP_BYTES),
        value_parser = parse_size::<NonZeroU64>,
        help_heading = "Sitemaps"
    )]
    max_sitemap_bytes: NonZeroU64,
    /// Maximum URLs to take from one sitemap.
    ///
    /// The summary counts further URLs.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(DEFAULT_MAX_SITEMAP_URLS),
        value_parser = parse_count::<usize>,
        help_heading = "Sitemaps"
    )]
    max_sitemap_urls: usize,

    /// Treat as the same URL, ignoring this query parameter; repeatable.
    ///
    /// With sid, /a?sid=1 and /a?sid=2 are the same. A name that ends in *, such as utm_*, stands for all names that start
    /// like it.
    #[arg(long, value_name = "NAME", help_heading = "Same URLs")]
    drop_query_param: Vec<String>,
    /// Treat as the same URL, ignoring the order of query parameters.
    #[arg(long, help_heading = "Same URLs")]
    sort_query: bool,
    /// Treat /a? and /a as the same URL.
    #[arg(long, help_heading = "Same URLs")]
    drop_empty_query: bool,
    /// Treat /a/ and /a as the same URL.
    #[arg(long, help_heading = "Same URLs")]
    drop_trailing_slash: bool,
    /// Treat http and https as the same URL.
    #[arg(long, help_heading = "Same URLs")]
    ignore_scheme: bool,
    /// Treat www.example.com and example.com as the same host.
    #[arg(long, help_heading = "Same URLs")]
    ignore_www: bool,
    /// Treat /Index.html and /index.html as the same URL.
    #[arg(long, help_heading = "Same URLs")]
    lower_case_path: bool,

    /// Maximum requests for one URL that fails.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(RetryPolicy::default().max_attempts.get()),
        value_parser = parse_count::<NonZeroU32>,
        help_heading = "Retries"
    )]
    max_attempts: NonZeroU32,
    /// Wait before the second request for a URL.
    ///
    /// The wait doubles with each further request. A Retry-After header of the server is used instead.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(RetryPolicy::default().first_wait),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Retries"
    )]
    retry_wait: Duration,
    /// Maximum wait before a retry, even if the server asks for more.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(RetryPolicy::default().longest_wait),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Retries"
    )]
    max_retry_wait: Duration,
    /// Random addition to each wait before a retry, up to this percentage.
    ///
    /// It spreads the retries of requests that failed together.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = show_count(RetryPolicy::default().jitter_percent),
        value_parser = parse_percent,
        help_heading = "Retries"
    )]
    retry_jitter: u8,
    /// How long to retry an origin that stopped responding.
    ///
    /// After this time the crawler drops all queued URLs of the origin. An origin is a scheme, a host and a port.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(RetryPolicy::default().max_host_downtime),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Retries"
    )]
    max_host_downtime: Duration,
    /// How long to retry an origin that has never responded.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(RetryPolicy::default().max_first_downtime),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Retries"
    )]
    max_first_downtime: Duration,
    /// Wait after a host answers 429 without Retry-After.
    ///
    /// The wait doubles each time the host answers 429 again.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(RetryPolicy::default().first_throttle),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Retries"
    )]
    throttle_wait: Duration,
    /// Maximum throttling answers of an origin in a row.
    ///
    /// These answers are 429, and 503 with Retry-After. After them the crawler drops all queued URLs of the origin. The limit
    /// also applies to one URL in total. These answers do not count for --max-attempts.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(RetryPolicy::default().max_throttles.get()),
        value_parser = parse_count::<NonZeroU32>,
        help_heading = "Retries"
    )]
    max_throttles: NonZeroU32,

    /// Near-duplicates after which a path prefix or a site goes last; 0: no limit.
    ///
    /// URLs under such a prefix or on such a site wait until all other URLs are fetched. All numbers in a path count as the
    /// same prefix, such as the months of a calendar. All queries of a path do, too.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_NEAR_DUPLICATES),
        value_parser = parse_count::<u32>,
        help_heading = "Traps"
    )]
    max_near_duplicates: u32,
    /// Near-duplicates after which a path prefix or a site is closed; 0: no limit.
    ///
    /// Further URLs under such a prefix or on such a site are refused, and counted in the summary.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_NEAR_DUPLICATES_IN_ALL),
        value_parser = parse_count::<u32>,
        help_heading = "Traps"
    )]
    max_near_duplicates_in_all: u32,
    /// Number of recent pages to compare each page with.
    ///
    /// Each takes about 200 bytes of memory, and its URL.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_FINGERPRINTS),
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Traps"
    )]
    max_fingerprints: NonZeroUsize,
    /// Maximum different queries of one path to follow; 0: no limit.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_QUERIES_PER_PATH),
        value_parser = parse_count::<u32>,
        help_heading = "Traps"
    )]
    max_queries_per_path: u32,
    /// Maximum hosts of one registrable domain to follow; 0: no limit.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_HOSTS_PER_SITE),
        value_parser = parse_count::<u32>,
        help_heading = "Traps"
    )]
    max_hosts_per_site: u32,
    /// Maximum hosts to remember.
    ///
    /// URLs of further hosts are refused, and counted in the summary. With `--state`, hosts are remembered on disk, but for their names.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(config::DEFAULT_MAX_HOSTS),
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Traps"
    )]
    max_hosts: NonZeroUsize,
    /// Maximum repetitions of one path segment in a URL, as in /a/b/a/b/a/b.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(scope::DEFAULT_MAX_SEGMENT_REPEATS),
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Traps"
    )]
    max_path_repeats: NonZeroUsize,
    /// Maximum length of a URL.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = show_size(scope::DEFAULT_MAX_URL_BYTES),
        value_parser = parse_size::<NonZeroUsize>,
        help_heading = "Traps"
    )]
    max_url_bytes: NonZeroUsize,
    /// Maximum redirects in a row to follow.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(scope::DEFAULT_MAX_HOPS),
        value_parser = parse_count::<u8>,
        help_heading = "Traps"
    )]
    max_redirects: u8,
}

impl Budgets {
    /// Writes the options into those of the library.
    pub(crate) fn write_to(&self, crawl: &mut CrawlOptions) {
        crawl.max_sitemap_bytes = self.max_sitemap_bytes.get();
        crawl.max_sitemap_urls = self.max_sitemap_urls;
        let frontier = &mut crawl.frontier;
        frontier.max_sitemaps = self.max_sitemaps;
        frontier.scope.max_sitemap_nesting = self.max_sitemap_nesting;
        frontier.max_near_duplicates = NonZeroU32::new(self.max_near_duplicates);
        frontier.max_near_duplicates_in_all = NonZeroU32::new(self.max_near_duplicates_in_all);
        frontier.max_queries_per_path = NonZeroU32::new(self.max_queries_per_path);
        frontier.max_hosts_per_site = NonZeroU32::new(self.max_hosts_per_site);
        frontier.max_hosts = self.max_hosts.get();
        frontier.scope.max_segment_repeats = self.max_path_repeats.get();
        frontier.scope.max_url_bytes = self.max_url_bytes.get();
        frontier.scope.max_hops = self.max_redirects;
        frontier.retries = RetryPolicy {
            max_attempts: self.max_attempts,
            first_wait: self.retry_wait,
            longest_wait: self.max_retry_wait,
            max_host_downtime: self.max_host_downtime,
            max_first_downtime: self.max_first_downtime,
            first_throttle: self.throttle_wait,
            max_throttles: self.max_throttles,
            jitter_percent: self.retry_jitter,
            ..frontier.retries
        };
        frontier.max_fingerprints = self.max_fingerprints.get();
        frontier.max_crawl_delay = self.max_crawl_delay;
        crawl.canonicalizer = Canonicalizer::new(Rules {
            drop_query_params: self.drop_query_param.clone(),
            sort_query: self.sort_query,
            drop_empty_query: self.drop_empty_query,
            drop_trailing_slash: self.drop_trailing_slash,
            ignore_scheme: self.ignore_scheme,
            ignore_www: self.ignore_www,
            lower_case_path: self.lower_case_path,
            ..Rules::default()
        });
    }
}
