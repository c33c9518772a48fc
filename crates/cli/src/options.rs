//! The options of the command: names, units, defaults, help.

mod budgets;
mod choices;
mod command_line;
mod generated;
mod outputs;
#[cfg(test)]
mod reference;
mod requests;
mod seeds;
mod state;
mod values;

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};
use crawler::config::default_concurrency;
use crawler::{CrawlOptions, HttpOptions};
use frontier::{FrontierConfig, ScopeConfig};

use self::budgets::Budgets;
pub(crate) use self::choices::LogFormat;
use self::choices::{HashArg, OnSaturationArg, ReachArg};
pub(crate) use self::command_line::{closest, command, names_a_file, parse};
pub(crate) use self::generated::{completions, manual_page};
pub(crate) use self::outputs::{Format, Outputs, is_stdout};
pub(crate) use self::requests::Requests;
pub(crate) use self::seeds::{NotASeed, SeedsError, Site, check as check_seed};
pub(crate) use self::state::{ListArgs, RepairArgs, StateCommand, StatusArgs, Which, WhyArgs};
use self::values::{
    parse_count, parse_duration, parse_duration_above_zero, parse_rate, parse_size, show_count, show_duration,
    show_size,
};

/// Crawl web sites politely and completely, and report what was not fetched.
///
/// Without --output, standard output has a line per page: its status and URL. Logs go to standard error. The summary goes to
/// standard output, or to standard error if results are there.
#[derive(Debug, Parser)]
#[command(
    name = "crawler",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) site: Site,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a small web site on this machine, crawl it, and check the result.
    ///
    /// The demo needs no network. It takes the options of a crawl, except those about seeds, earlier crawls and state directories.
    Demo(Box<Options>),
    #[command(flatten)]
    State(StateCommand),
    /// Continue the crawl in a state directory with the options of its last run.
    ///
    /// Options and seeds after DIR are added to those of the last run. They override them, or are refused with the reason if the state depends on
    /// them, and they are kept for the next time. To leave out an option, repeat the whole command. Relative paths are those of the folder in which the crawl was
    /// started. A command with headers or logins is not kept in the directory: repeat it in full.
    Resume {
        /// The directory of --state.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Options of a crawl that change, such as --max-pages 5000, and more seeds.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        changed: Vec<OsString>,
    },
    /// Print a completion script for a shell.
    ///
    /// For bash: crawler completions bash > ~/.local/share/bash-completion/completions/crawler
    Completions {
        /// The shell that reads the script.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    ///
    /// To read it: crawler man > crawler.1 && man ./crawler.1
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Read options from a TOML file, which the command line overrides.
    ///
    /// The names are those of the options, without the dashes: max-pages = 100, delay = "500ms", sitemaps = true,
    /// exclude = ["a", "b"], seed-urls = ["example.com"]. Options that can be repeated add up.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Exit with code 3 if the crawl is incomplete.
    ///
    /// The summary lists what is missing.
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_incomplete: bool,

    /// Maximum pages to fetch in total; each final answer counts, also 404.
    ///
    /// A page that failed counts, a redirect does not. The row `pages` of the summary has answers with a status 2xx only. By default
    /// there is no limit.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>, help_heading = "Limits")]
    max_pages: Option<NonZeroU64>,
    /// Maximum pages to fetch from one host.
    ///
    /// By default there is no limit.
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>, help_heading = "Limits")]
    max_pages_per_host: Option<NonZeroU64>,
    /// Maximum links from a seed to a page.
    ///
    /// If there are several paths to a page, the first one found counts. With 0, only the seeds are fetched. By
    /// default there is no limit.
    #[arg(
        short = 'd',
        long,
        visible_alias = "depth",
        value_name = "N",
        value_parser = parse_count::<u32>,
        help_heading = "Limits"
    )]
    max_depth: Option<u32>,
    /// Start no request after this time.
    ///
    /// By default there is no limit.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Limits"
    )]
    max_time: Option<Duration>,
    /// Maximum time for one request.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(crawler::fetch::DEFAULT_TIMEOUT),
        value_parser = parse_duration_above_zero,
        allow_negative_numbers = true,
        help_heading = "Limits"
    )]
    timeout: Duration,
    /// Maximum size of a body, after decompression.
    ///
    /// The rest of a longer body is not read. Its record says so.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = show_size(crawler::fetch::DEFAULT_MAX_BODY_BYTES),
        value_parser = parse_size::<NonZeroU64>,
        help_heading = "Limits"
    )]
    max_body: NonZeroU64,
    /// Maximum links to follow from one page.
    ///
    /// The summary counts further links.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(crawler::config::DEFAULT_MAX_LINKS_PER_PAGE),
        value_parser = parse_count::<usize>,
        help_heading = "Limits"
    )]
    max_links_per_page: usize,
    /// Maximum URLs that wait.
    ///
    /// Further URLs are refused, and counted in the summary. Without `--state` they wait in memory.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(frontier::config::DEFAULT_MAX_QUEUED),
        value_parser = parse_count::<u64>,
        help_heading = "Limits"
    )]
    max_queued: u64,

    /// Wait between two requests to one host.
    ///
    /// The time counts from the end of a request to the start of the next. A longer Crawl-delay in the robots.txt of the
    /// host is used instead. With 0 there is no wait.
    #[arg(
        long,
        visible_alias = "wait",
        value_name = "DURATION",
        default_value = show_duration(frontier::config::DEFAULT_DELAY),
        value_parser = parse_duration,
        allow_negative_numbers = true,
        help_heading = "Politeness"
    )]
    delay: Duration,
    /// Maximum requests in flight in total; default: 16, or 4 times --per-host.
    ///
    /// The default is four times --per-host, but at least 16 and at most 64; with --memory it is 16. Requests to one host are also limited by
    /// --per-host and --delay. With --state, requests that have ended count until they are committed: after a crash, at most this number is
    /// sent again.
    #[arg(
        short = 'j',
        long,
        visible_aliases = ["threads", "workers"],
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Politeness"
    )]
    concurrency: Option<NonZeroUsize>,
    /// Maximum requests in flight to one host.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = parse_count::<NonZeroU32>,
        help_heading = "Politeness"
    )]
    per_host: NonZeroU32,
    /// Apply --per-host and --delay to each IP address, too.
    ///
    /// Several hosts at one address then share one limit. The address of each host is looked up before its first request.
    #[arg(long, help_heading = "Politeness")]
    per_address: bool,
    /// User-Agent; its leading letters select the robots.txt group.
    #[arg(
        short = 'U',
        long,
        visible_alias = "agent",
        value_name = "TEXT",
        default_value = crawler::config::DEFAULT_USER_AGENT,
        help_heading = "Politeness"
    )]
    user_agent: String,
    /// Fetch what robots.txt forbids; for your own sites only.
    ///
    /// The crawler does not request robots.txt, so that Crawl-delay has no effect either.
    #[arg(long, help_heading = "Politeness")]
    ignore_robots: bool,

    /// Which links to follow.
    #[arg(long, value_name = "REACH", value_enum, default_value_t = ReachArg::Host, help_heading = "Scope")]
    scope: ReachArg,
    /// Follow only URLs that match this regular expression; repeatable.
    ///
    /// If the option is repeated, a URL has to match one of the expressions.
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    include: Vec<String>,
    /// Do not follow URLs that match this regular expression; repeatable.
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    exclude: Vec<String>,
    /// Find pages through sitemaps, too.
    ///
    /// The crawler reads the sitemaps that robots.txt names. Where it names none, the crawler tries /sitemap.xml and
    /// /sitemap_index.xml.
    #[arg(long, help_heading = "Scope")]
    sitemaps: bool,
    /// Fetch images, media, scripts and style sheets, too.
    ///
    /// The scope and the limits apply to them as to pages, except that they do not count for --max-depth. At most five in a row
    /// are followed, such as style sheets that load style sheets.
    #[arg(long, help_heading = "Scope")]
    assets: bool,
    /// Connect to private, loopback and link-local addresses, too.
    ///
    /// Without this option, only a seed can point to such an address, and only its own origin is fetched.
    #[arg(long, help_heading = "Scope")]
    allow_private_addresses: bool,
    /// Do not trust the seeds: their addresses must be public, too.
    ///
    /// For seeds that somebody else has chosen, such as links that an earlier crawl has found. Headers and logins would be sent to them, so they cannot be given.
    #[arg(long, conflicts_with_all = ["allow_private_addresses", "header", "basic_auth"], help_heading = "Scope")]
    untrusted_seeds: bool,

    #[command(flatten)]
    pub(crate) requests: Requests,

    /// Log more; -vv logs everything.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "quiet", help_heading = "Logs")]
    pub(crate) verbose: u8,
    /// Print no page lines, and log only warnings and errors; -qq only errors.
    ///
    /// The summary is printed in any case.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "verbose", help_heading = "Logs")]
    pub(crate) quiet: u8,
    /// Format of the log.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text, help_heading = "Logs")]
    pub(crate) log_format: LogFormat,

    #[command(flatten)]
    budgets: Budgets,

    /// Number of distinct URLs that the seen-set is sized for.
    ///
    /// The seen-set is a Bloom filter. Beyond this number it warns, and --on-saturation says what happens.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(frontier::config::DEFAULT_CAPACITY),
        value_parser = parse_count::<u64>,
        help_heading = "Seen-set"
    )]
    capacity: u64,
    /// Share of new URLs that the seen-set wrongly takes as seen, at its capacity.
    ///
    /// Write a fraction such as 0.01, or a percentage such as 1%. The crawl misses these URLs.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = sieve::DEFAULT_FALSE_POSITIVE_RATE,
        value_parser = parse_rate,
        allow_negative_numbers = true,
        help_heading = "Seen-set"
    )]
    false_positive_rate: f64,
    /// What happens beyond the capacity of the seen-set.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = OnSaturationArg::Grow, help_heading = "Seen-set")]
    on_saturation: OnSaturationArg,
    /// Never take a new URL for one that was seen.
    ///
    /// Without --state it keeps all URLs in memory, each with about 32 bytes more. With --state it looks up on disk what the Bloom
    /// filter takes for seen; --capacity, --false-positive-rate and --on-saturation say how often that is for nothing.
    #[arg(long, help_heading = "Seen-set")]
    exact: bool,
    /// Hash function of the seen-set.
    #[arg(long, value_name = "HASH", value_enum, default_value_t = HashArg::Murmur3, help_heading = "Seen-set")]
    hash: HashArg,
    /// Seed or key of the hash function.
    ///
    /// The same number repeats a crawl exactly. A site that knows the number can hide pages from the crawl. By default the
    /// number is random and secret.
    #[arg(long, value_name = "NUMBER", value_parser = parse_count::<u64>, help_heading = "Seen-set")]
    hash_seed: Option<u64>,
}

impl Options {
    /// Converts the options to those of the library, without the seeds.
    ///
    /// `secret` is the seed or key of the hash function unless the options set it.
    pub(crate) fn to_crawl(&self, secret: u128) -> CrawlOptions {
        let scope = ScopeConfig {
            reach: self.scope.into(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            max_depth: self.max_depth,
            ..ScopeConfig::default()
        };
        let frontier = FrontierConfig {
            capacity: self.capacity,
            false_positive_rate: self.false_positive_rate,
            hashing: self.hash.with(self.hash_seed.map_or(secret, u128::from)),
            on_saturation: self.on_saturation.into(),
            exact: self.exact,
            scope,
            per_host: self.per_host,
            per_address: self.per_address,
            delay: self.delay,
            max_queued: self.max_queued,
            max_pages: self.max_pages.map(NonZeroU64::get),
            max_pages_per_host: self.max_pages_per_host.map(NonZeroU64::get),
            ask_robots: !self.ignore_robots,
            ..FrontierConfig::default()
        };
        let mut crawl = CrawlOptions {
            frontier,
            concurrency: self.concurrency.unwrap_or_else(|| default_concurrency(self.per_host)),
            user_agent: self.user_agent.clone(),
            max_links_per_page: self.max_links_per_page,
            assets: self.assets,
            max_time: self.max_time,
            sitemaps: self.sitemaps,
            ..CrawlOptions::default()
        };
        self.outputs.apply_to(&mut crawl);
        self.budgets.write_to(&mut crawl);
        crawl
    }

    /// Chooses the default of --concurrency for a crawl with a bound of memory, of which each request takes a share.
    pub(crate) fn limit_default_concurrency(&self, crawl: &mut CrawlOptions) {
        if self.concurrency.is_none() {
            crawl.concurrency = default_concurrency(NonZeroU32::MIN);
        }
    }

    /// Converts the options to those of the HTTP fetcher.
    pub(crate) fn to_http(&self) -> HttpOptions {
        let mut http = HttpOptions {
            timeout: self.timeout,
            max_body_bytes: self.max_body.get(),
            allow_private_addresses: self.allow_private_addresses,
            untrusted_seeds: self.untrusted_seeds,
            keep_exchanges: self.outputs.warc.is_some(),
            ..HttpOptions::default()
        };
        self.requests.write_to(&mut http);
        http
    }

    pub(crate) fn ignores_robots(&self) -> bool {
        self.ignore_robots
    }
}
