//! The options against endless sites, and when to try again.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use crawler::CrawlOptions;
use frontier::canonical::Rules;
use frontier::{Canonicalizer, RetryPolicy, config, scope};

use super::values::{parse_seconds, parse_seconds_above_zero};

#[derive(Debug, Args)]
pub(crate) struct Budgets {
    /// Near-duplicates of one page under one path prefix, or on one site, beyond which what is there waits behind everything else;
    /// 0 for no limit. Numbers in a path stand for one another, so that all months of a calendar are under one prefix; so are
    /// all queries of a path.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_NEAR_DUPLICATES, help_heading = "Traps")]
    max_near_duplicates: u32,
    /// Near-duplicates of one page that are fetched under one path prefix, or on one site, in all; 0 for no limit. Then the prefix is
    /// closed.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_NEAR_DUPLICATES_IN_ALL, help_heading = "Traps")]
    max_near_duplicates_in_all: u32,
    /// The latest pages that a page is compared with [some 200 bytes each, and the URL].
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(config::DEFAULT_MAX_FINGERPRINTS - 1),
        help_heading = "Traps"
    )]
    max_fingerprints: NonZeroUsize,
    /// Different queries of one path that are followed; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_QUERIES_PER_PATH, help_heading = "Traps")]
    max_queries_per_path: u32,
    /// Hosts of one registrable domain that are followed; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = config::DEFAULT_MAX_HOSTS_PER_SITE, help_heading = "Traps")]
    max_hosts_per_site: u32,
    /// Hosts that are remembered at a time; URLs of further ones are refused.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(config::DEFAULT_MAX_HOSTS - 1),
        help_heading = "Traps"
    )]
    max_hosts: NonZeroUsize,
    /// How often one segment may occur in the path of a URL, as in /a/b/a/b/a/b.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(scope::DEFAULT_MAX_SEGMENT_REPEATS - 1),
        help_heading = "Traps"
    )]
    max_path_repeats: NonZeroUsize,
    /// The longest URL that is followed [bytes].
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = NonZeroUsize::MIN.saturating_add(scope::DEFAULT_MAX_URL_BYTES - 1),
        help_heading = "Traps"
    )]
    max_url_bytes: NonZeroUsize,
    /// Redirects in a row that are followed.
    #[arg(long, value_name = "N", default_value_t = scope::DEFAULT_MAX_HOPS, help_heading = "Traps")]
    max_redirects: u8,

    /// How often one URL is asked for in all, if it fails.
    #[arg(long, value_name = "N", default_value_t = RetryPolicy::default().max_attempts, help_heading = "Retries")]
    max_attempts: NonZeroU32,
    /// The wait before the second attempt, if the server does not say; it doubles with each further one [seconds].
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds, help_heading = "Retries")]
    retry_wait: Duration,
    /// The longest wait between two attempts, also if a server asks for more [seconds].
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds, help_heading = "Retries")]
    max_retry_wait: Duration,
    /// Wait so long for a host that has answered before and is away, then give it up with all that waits for it [seconds].
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds, help_heading = "Retries")]
    max_host_downtime: Duration,
    /// The same for a host that has never answered [seconds].
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds, help_heading = "Retries")]
    max_first_downtime: Duration,
    /// How long a host rests that answers 429 and does not say how long; it doubles with each further time in a row
    /// [seconds].
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = parse_seconds, help_heading = "Retries")]
    throttle_wait: Duration,
    /// Give a host up after so many answers in a row that ask for less traffic (429, or 503 with Retry-After); a page too,
    /// after so many in all. They are not counted as attempts.
    #[arg(long, value_name = "N", default_value_t = RetryPolicy::default().max_throttles, help_heading = "Retries")]
    max_throttles: NonZeroU32,
    /// Add up to so much to the waits of retries, another share for each URL and attempt, so that what failed together is
    /// not asked for together again [percent].
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = RetryPolicy::default().jitter_percent,
        value_parser = clap::value_parser!(u8).range(0..=100),
        help_heading = "Retries"
    )]
    retry_jitter: u8,
    /// The longest Crawl-delay of a robots.txt that is obeyed; a longer one is cut to it [seconds].
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        value_parser = parse_seconds_above_zero,
        help_heading = "Politeness"
    )]
    max_crawl_delay: Duration,

    /// Take URLs for the same that differ only in this query parameter, such as sid; utm_* stands for all that begin
    /// with utm_. May be given more than once.
    #[arg(long, value_name = "NAME", help_heading = "Same URLs")]
    drop_query_param: Vec<String>,
    /// Take URLs for the same that differ only in the order of their query parameters.
    #[arg(long, help_heading = "Same URLs")]
    sort_query: bool,
    /// Take /a? and /a for the same.
    #[arg(long, help_heading = "Same URLs")]
    drop_empty_query: bool,
    /// Take /a/ and /a for the same.
    #[arg(long, help_heading = "Same URLs")]
    drop_trailing_slash: bool,
    /// Take http and https for the same.
    #[arg(long, help_heading = "Same URLs")]
    ignore_scheme: bool,
    /// Take www.example.com and example.com for the same.
    #[arg(long, help_heading = "Same URLs")]
    ignore_www: bool,
    /// Take /Index.html and /index.html for the same.
    #[arg(long, help_heading = "Same URLs")]
    lower_case_path: bool,
}

impl Budgets {
    /// Writes the options into what the library takes.
    pub(crate) fn write_to(&self, crawl: &mut CrawlOptions) {
        let frontier = &mut crawl.frontier;
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
