//! The options about how much is fetched, how fast, from where, and of the seen-set.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use crawler::config::default_concurrency;
use crawler::{CrawlOptions, HttpOptions};
use frontier::canonical::Rules;
use frontier::{FrontierConfig, Reach, RetryPolicy};
use sieve::OnSaturation;

use super::choices;
use super::values::{parse_count, parse_duration, parse_duration_above_zero, parse_rate, parse_size};
use super::values::{show_count, show_duration, show_size};

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Limits {
    /// Maximum pages to fetch in total; each final answer counts, also 404.
    ///
    /// A page that failed counts, a redirect does not. The row `pages` of the summary has answers with a status 2xx only. By default
    /// there is no limit.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>)]
    max_pages: Option<NonZeroU64>,
    /// Maximum pages to fetch from one host.
    ///
    /// By default there is no limit.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>)]
    max_pages_per_host: Option<NonZeroU64>,
    /// Maximum links from a seed to a page.
    ///
    /// If there are several paths to a page, the first one found counts. With 0, only the seeds are fetched. By
    /// default there is no limit.
    #[arg(short = 'd', long, visible_alias = "depth", value_name = "N", value_parser = parse_count::<u32>)]
    max_depth: Option<u32>,
    /// Start no request after this time.
    ///
    /// By default there is no limit.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_time: Option<Duration>,
    /// Maximum time for one request.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_above_zero,
        default_value = show_duration(crawler::fetch::DEFAULT_TIMEOUT))]
    timeout: Duration,
    /// Maximum size of a body, after decompression.
    ///
    /// The rest of a longer body is not read. Its record says so.
    #[arg(long, value_name = "SIZE", value_parser = parse_size::<NonZeroU64>,
        default_value = show_size(crawler::fetch::DEFAULT_MAX_BODY_BYTES))]
    max_body: NonZeroU64,
    /// Maximum requests for one URL that fails.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU32>,
        default_value = show_count(RetryPolicy::default().max_attempts.get()))]
    max_attempts: NonZeroU32,
}

impl Limits {
    pub(super) fn write_to(&self, crawl: &mut CrawlOptions, http: &mut HttpOptions) {
        let frontier = &mut crawl.frontier;
        frontier.limits.max_pages = self.max_pages.map(NonZeroU64::get);
        frontier.limits.max_pages_per_host = self.max_pages_per_host.map(NonZeroU64::get);
        frontier.scope.max_depth = self.max_depth;
        frontier.retries.max_attempts = self.max_attempts;
        crawl.max_time = self.max_time;
        http.timeout = self.timeout;
        http.max_body_bytes = self.max_body.get();
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Politeness")]
pub(super) struct Politeness {
    /// Wait between two requests to one host.
    ///
    /// The time counts from the end of a request to the start of the next. A longer Crawl-delay in the robots.txt of the
    /// host is used instead. With 0 there is no wait.
    #[arg(long, visible_alias = "wait", value_name = "DURATION", value_parser = parse_duration,
        default_value = show_duration(frontier::config::DEFAULT_DELAY))]
    delay: Duration,
    /// Maximum requests in flight in total; 16 by default.
    ///
    /// By default four times as many as to one host, but at least 16 and at most 64; with a bound of the memory, 16. With a state
    /// directory, requests that have ended count until they are committed: after a crash, at most this number is sent again.
    #[arg(short = 'j', long, visible_aliases = ["threads", "workers"], value_name = "N",
        value_parser = parse_count::<NonZeroUsize>)]
    pub(super) concurrency: Option<NonZeroUsize>,
    /// Maximum requests in flight to one host.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU32>, default_value = "1")]
    per_host: NonZeroU32,
    /// Apply --per-host and --delay to each IP address, too.
    ///
    /// Several hosts at one address then share one limit. The address of each host is looked up before its first request.
    #[arg(long)]
    per_address: bool,
    /// User-Agent; the name of the crawler in it selects the robots.txt group.
    ///
    /// It is what the text starts with, or what follows "compatible;" in "Mozilla/5.0 (compatible; mybot/1.0; +https://example.com)".
    /// --set robots-name=NAME names another one.
    #[arg(short = 'U', long, visible_alias = "agent", value_name = "TEXT",
        default_value = crawler::config::DEFAULT_USER_AGENT)]
    user_agent: String,
    /// Fetch what robots.txt forbids; for your own sites only.
    ///
    /// The crawler does not request robots.txt, so that Crawl-delay has no effect either.
    #[arg(long)]
    pub(super) ignore_robots: bool,
}

impl Politeness {
    pub(super) fn write_to(&self, crawl: &mut CrawlOptions) {
        crawl.frontier.politeness.delay = self.delay;
        crawl.concurrency = self.concurrency.unwrap_or_else(|| default_concurrency(self.per_host));
        crawl.frontier.politeness.per_host = self.per_host;
        crawl.frontier.politeness.per_address = self.per_address;
        crawl.user_agent.clone_from(&self.user_agent);
        crawl.frontier.politeness.ask_robots = !self.ignore_robots;
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Scope")]
pub(super) struct Scope {
    /// Which links to follow.
    #[arg(long = "scope", value_name = "REACH", value_parser = choices::reach(), default_value = "host")]
    scope: Reach,
    /// Follow only URLs that match this regular expression; repeatable.
    ///
    /// If the option is repeated, a URL has to match one of the expressions. Seeds are fetched anyway, but no other page that does not match,
    /// so nothing is found behind those: to follow all and get only what matches, give --output-include instead.
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,
    /// Do not follow URLs that match this regular expression; repeatable.
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,
    /// Find pages through sitemaps, too.
    ///
    /// The crawler reads the sitemaps that robots.txt names. Where it names none, the crawler tries /sitemap.xml and
    /// /sitemap_index.xml. A seed that is a sitemap or a feed is read as one without this option, too.
    #[arg(long)]
    sitemaps: bool,
    /// Fetch images, media, scripts and style sheets, too.
    ///
    /// The scope and the limits apply to them as to pages, but no maximum depth. At most five in a row are followed, such as style
    /// sheets that load style sheets.
    #[arg(long)]
    assets: bool,
    /// Follow links that say nofollow, too.
    ///
    /// Also those of pages whose robots meta element or X-Robots-Tag says it. To check links, follow them: what is broken is broken for
    /// readers, too.
    #[arg(long)]
    follow_nofollow: bool,
    /// Connect to private, loopback and link-local addresses, too.
    ///
    /// Without this option, only a seed can point to such an address, and only its own origin is fetched.
    #[arg(long)]
    allow_private_addresses: bool,
    /// Do not trust the seeds: their addresses must be public, too.
    ///
    /// For seeds that somebody else has chosen, such as links that an earlier crawl has found. Headers and logins would be sent to them, so
    /// they cannot be given.
    #[arg(long, conflicts_with_all = ["allow_private_addresses", "header", "basic_auth"])]
    untrusted_seeds: bool,
    /// Treat as the same URL, ignoring this query parameter; repeatable.
    ///
    /// With sid, /a?sid=1 and /a?sid=2 are the same. A name that ends in *, such as utm_*, stands for all names that start
    /// like it.
    #[arg(long, value_name = "NAME")]
    drop_query_param: Vec<String>,
}

impl Scope {
    pub(super) fn write_to(&self, crawl: &mut CrawlOptions, http: &mut HttpOptions, rules: &mut Rules) {
        let scope = &mut crawl.frontier.scope;
        scope.reach = self.scope;
        scope.include.clone_from(&self.include);
        scope.exclude.clone_from(&self.exclude);
        crawl.sitemaps = self.sitemaps;
        crawl.assets = self.assets;
        crawl.follow_nofollow = self.follow_nofollow;
        http.allow_private_addresses = self.allow_private_addresses;
        http.untrusted_seeds = self.untrusted_seeds;
        rules.drop_query_params.clone_from(&self.drop_query_param);
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Seen-set")]
pub(super) struct SeenSet {
    /// Number of distinct URLs that the seen-set is sized for.
    ///
    /// The seen-set is a Bloom filter. What happens beyond this number is another option.
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>,
        default_value = show_count(frontier::config::DEFAULT_CAPACITY))]
    capacity: u64,
    /// Share of new URLs that the seen-set wrongly takes as seen, at its capacity.
    ///
    /// Write a fraction such as 0.01, or a percentage such as 1%. The crawl misses these URLs.
    #[arg(long, value_name = "SHARE", value_parser = parse_rate, default_value_t = sieve::DEFAULT_FALSE_POSITIVE_RATE)]
    false_positive_rate: f64,
    /// What happens beyond the capacity of the seen-set.
    #[arg(long, value_name = "POLICY", value_parser = choices::on_saturation(), default_value = "grow")]
    on_saturation: OnSaturation,
    /// Never take a new URL for one that was seen.
    ///
    /// Without a state directory it keeps all URLs in memory, each with about 32 bytes more. With one it looks up on disk what the Bloom
    /// filter takes for seen; the other options of the seen-set say how often that is for nothing.
    #[arg(long)]
    exact: bool,
}

impl SeenSet {
    pub(super) fn write_to(&self, frontier: &mut FrontierConfig) {
        frontier.seen_set.capacity = self.capacity;
        frontier.seen_set.false_positive_rate = self.false_positive_rate;
        frontier.seen_set.on_saturation = self.on_saturation;
        frontier.seen_set.exact = self.exact;
    }
}
