//! The command line: names, units, defaults.

mod budgets;
mod choices;
mod outputs;
mod requests;
mod values;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use crawler::CrawlOptions;
use frontier::{FrontierConfig, Reach, ScopeConfig};

use self::budgets::Budgets;
pub(crate) use self::choices::LogFormat;
use self::choices::{HashArg, OnSaturationArg, ReachArg};
use self::values::{parse_rate, parse_seconds, parse_seconds_above_zero};
pub(crate) use outputs::{Outputs, is_stdout};
pub(crate) use requests::Requests;

/// Crawl sites politely, to the end, and say what was not fetched and why.
///
/// Data goes to standard output or the file of --output, logs go to standard error. Exit code: 0 done, 1 the crawl could not
/// start or go on or fetched nothing, 2 bad arguments.
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
    /// Serve a small web site on loopback, crawl it, and compare what was found with what it has.
    Demo(Options),
}

#[derive(Debug, Args)]
pub(crate) struct Site {
    /// Where to start; a bare host such as example.com gets a scheme.
    #[arg(value_name = "SEED_URL", required_unless_present = "seeds")]
    seed_urls: Vec<String>,
    /// Read more seeds from a file, one per line; - is standard input. Blank lines and lines that start with # are skipped.
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// Ask again for the pages of an earlier crawl, the file of its --output: whole only if they have changed since, by their
    /// ETag or Last-Modified header. Their scope is that of the seeds.
    #[arg(long, value_name = "FILE")]
    pub(crate) recrawl: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Read options from a TOML file, by the names that they have here: max-pages = 100, sitemaps = true, exclude = ["a", "b"],
    /// seed-urls = ["example.com"]. The command line wins; lists add up.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Distinct URLs the seen-set is meant for; it warns above that [URLs].
    #[arg(long, value_name = "N", default_value_t = frontier::config::DEFAULT_CAPACITY, help_heading = "Seen-set")]
    capacity: u64,
    /// Share of new URLs that are wrongly taken for seen at capacity [fraction above 0, below 1].
    #[arg(
        long,
        value_name = "P",
        default_value_t = sieve::DEFAULT_FALSE_POSITIVE_RATE,
        value_parser = parse_rate,
        allow_negative_numbers = true,
        help_heading = "Seen-set"
    )]
    false_positive_rate: f64,
    /// What happens once more distinct URLs were offered than the capacity.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = OnSaturationArg::Warn, help_heading = "Seen-set")]
    on_saturation: OnSaturationArg,
    /// The hash of the seen-set.
    #[arg(long, value_name = "HASH", value_enum, default_value_t = HashArg::Murmur3, help_heading = "Seen-set")]
    hash: HashArg,
    /// Seed or key of that hash, to repeat a crawl exactly; random, and known to nobody, unless given. A site that knows it can
    /// hide pages from the crawl.
    #[arg(long, value_name = "N", help_heading = "Seen-set")]
    hash_seed: Option<u64>,

    /// Pages to fetch in all; no limit unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    max_pages: Option<u64>,
    /// Pages to take from one host; no limit unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    max_pages_per_host: Option<u64>,
    /// Links to follow from a seed: the length of the first path found; no limit unless given.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_depth: Option<u32>,
    /// Start no request after this time [seconds]; no limit unless given.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true, help_heading = "Limits")]
    max_time: Option<Duration>,
    /// URLs that may wait in memory; further ones are refused, and counted.
    #[arg(long, value_name = "N", default_value_t = frontier::config::DEFAULT_MAX_QUEUED, help_heading = "Limits")]
    max_queued: u64,
    /// Give up on a request after this time [seconds].
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "30",
        value_parser = parse_seconds_above_zero,
        allow_negative_numbers = true,
        help_heading = "Limits"
    )]
    timeout: Duration,
    /// Read at most so much of a body, after decompression [bytes].
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = crawler::config::DEFAULT_MAX_BODY_BYTES,
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Limits"
    )]
    max_body: u64,
    /// Follow at most so many links of one page; further ones are counted.
    #[arg(
        long,
        value_name = "N",
        default_value_t = crawler::config::DEFAULT_MAX_LINKS_PER_PAGE,
        help_heading = "Limits"
    )]
    max_links_per_page: usize,

    /// Requests that may be out at a time in all.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(crawler::config::DEFAULT_CONCURRENCY - 1),
        help_heading = "Politeness"
    )]
    concurrency: NonZeroUsize,
    /// Requests that may be out to one host at a time.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, help_heading = "Politeness")]
    per_host: NonZeroU32,
    /// Count requests by IP address as well: hosts of one address together keep to --per-host and --delay. The address of
    /// each host is looked up first.
    #[arg(long, help_heading = "Politeness")]
    per_address: bool,
    /// Time between the end of one request to a host and the start of the next [seconds, 0 allowed]; a longer Crawl-delay of
    /// its robots.txt counts instead. 1 unless given; 0 in the demo.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true, help_heading = "Politeness")]
    delay: Option<Duration>,
    /// What the crawler calls itself; its leading letters are what robots.txt is matched with.
    #[arg(
        long,
        value_name = "S",
        default_value = crawler::config::DEFAULT_USER_AGENT,
        help_heading = "Politeness"
    )]
    user_agent: String,
    /// Do not ask for robots.txt and fetch what it forbids. Only for sites that are your own.
    #[arg(long, help_heading = "Politeness")]
    ignore_robots: bool,

    /// What may be reached from the seeds: the same host, the same registrable domain, the same host below the seed's
    /// directory, or anything. The demo has several hosts and uses site unless told otherwise.
    #[arg(long, value_name = "REACH", help_heading = "Scope")]
    scope: Option<ReachArg>,
    /// Follow only URLs that match one of these regular expressions; may be given more than once.
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    include: Vec<String>,
    /// Do not follow URLs that match one of these regular expressions; may be given more than once.
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    exclude: Vec<String>,
    /// Fetch also what pages are made of: images, media, scripts, style sheets and what these name. Scope and limits hold for
    /// it as for pages, but steps that load something do not count for --max-depth; five in a row are the most.
    #[arg(long, help_heading = "Scope")]
    assets: bool,
    /// Dial private, loopback and link-local addresses too. A seed always opens its own origin.
    #[arg(long, help_heading = "Scope")]
    allow_private_addresses: bool,

    #[command(flatten)]
    pub(crate) requests: Requests,

    /// Read the sitemaps that robots.txt names; where it names none, look for /sitemap.xml and /sitemap_index.xml.
    #[arg(long, help_heading = "Sitemaps")]
    sitemaps: bool,
    /// Sitemaps to read in all; further ones are refused, and counted.
    #[arg(long, value_name = "N", default_value_t = frontier::config::DEFAULT_MAX_SITEMAPS, help_heading = "Sitemaps")]
    max_sitemaps: usize,
    /// Sitemap indexes that may lead to a sitemap, one to the next.
    #[arg(
        long,
        value_name = "N",
        default_value_t = frontier::scope::DEFAULT_MAX_SITEMAP_NESTING,
        help_heading = "Sitemaps"
    )]
    max_sitemap_nesting: u32,
    /// Read at most so much of a sitemap, after unpacking [bytes].
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = crawler::page::sitemap::DEFAULT_MAX_SITEMAP_BYTES,
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Sitemaps"
    )]
    max_sitemap_bytes: u64,
    /// Take at most so many URLs from one sitemap; further ones are counted.
    #[arg(
        long,
        value_name = "N",
        default_value_t = crawler::page::sitemap::DEFAULT_MAX_SITEMAP_URLS,
        help_heading = "Sitemaps"
    )]
    max_sitemap_urls: usize,

    /// End with exit code 3 if the crawl is incomplete: the summary says what is missing.
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_incomplete: bool,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// How log lines look.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text, help_heading = "Output")]
    pub(crate) log_format: LogFormat,
    /// Log more; twice for everything.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "quiet", help_heading = "Output")]
    pub(crate) verbose: u8,
    /// Log warnings only; twice for errors only.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: u8,

    #[command(flatten)]
    budgets: Budgets,
}

/// What differs between crawling a site and crawling the demo's, where the user does not say.
pub(crate) struct Defaults {
    pub(crate) delay: Duration,
    pub(crate) reach: Reach,
}

impl Defaults {
    pub(crate) const SITE: Self = Self {
        delay: frontier::config::DEFAULT_DELAY,
        reach: Reach::Host,
    };
    pub(crate) const DEMO: Self = Self {
        delay: Duration::ZERO,
        reach: Reach::Site,
    };
}

/// Reads the arguments, of which the later win. Ends the process when they make no sense, or ask for help.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    let mut command = Cli::command().args_override_self(true);
    let matches = command.clone().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if cli.command.is_none() && cli.site.seed_urls.iter().any(|seed| seed == "demo") {
        let why = "the demo goes before its options, as in `crawler demo -q`; a host of that name is http://demo/";
        command.error(ErrorKind::ArgumentConflict, why).exit();
    }
    cli
}

impl Options {
    /// Turns the arguments into what the library takes; the seeds are still to come.
    ///
    /// `secret` is what the hash starts from unless the arguments say.
    pub(crate) fn to_crawl(&self, defaults: &Defaults, secret: u128) -> CrawlOptions {
        let scope = ScopeConfig {
            reach: self.scope.map_or(defaults.reach, Reach::from),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            max_depth: self.max_depth,
            max_sitemap_nesting: self.max_sitemap_nesting,
            ..ScopeConfig::default()
        };
        let frontier = FrontierConfig {
            capacity: self.capacity,
            false_positive_rate: self.false_positive_rate,
            hashing: self.hash.with(self.hash_seed.map_or(secret, u128::from)),
            on_saturation: self.on_saturation.into(),
            scope,
            per_host: self.per_host,
            per_address: self.per_address,
            delay: self.delay.unwrap_or(defaults.delay),
            max_queued: self.max_queued,
            max_pages: self.max_pages,
            max_pages_per_host: self.max_pages_per_host,
            ask_robots: !self.ignore_robots,
            max_sitemaps: self.max_sitemaps,
            ..FrontierConfig::default()
        };
        let mut crawl = CrawlOptions {
            frontier,
            concurrency: self.concurrency,
            user_agent: self.user_agent.clone(),
            timeout: self.timeout,
            max_body_bytes: self.max_body,
            max_links_per_page: self.max_links_per_page,
            assets: self.assets,
            max_time: self.max_time,
            allow_private_addresses: self.allow_private_addresses,
            sitemaps: self.sitemaps,
            max_sitemap_bytes: self.max_sitemap_bytes,
            max_sitemap_urls: self.max_sitemap_urls,
            ..CrawlOptions::default()
        };
        self.requests.ask(&mut crawl);
        self.outputs.ask(&mut crawl);
        self.budgets.write_to(&mut crawl);
        crawl
    }

    pub(crate) fn ignores_robots(&self) -> bool {
        self.ignore_robots
    }
}

impl Site {
    /// Returns the seeds of the command line and of the file.
    pub(crate) fn all_seeds(&self) -> io::Result<Vec<String>> {
        let mut seeds = self.seed_urls.clone();
        if let Some(path) = &self.seeds {
            let text = if path.as_os_str() == "-" {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text)?;
                text
            } else {
                fs::read_to_string(path)?
            };
            let lines = text
                .trim_start_matches('\u{feff}')
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            seeds.extend(lines.map(str::to_owned));
        }
        Ok(seeds)
    }

    pub(crate) fn seeds_file(&self) -> Option<&PathBuf> {
        self.seeds.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_tells_the_defaults_of_the_library() {
        let defaults = CrawlOptions::default();
        let cli = Cli::parse_from(["crawler", "example.com"]);
        let options = cli.site.options.to_crawl(&Defaults::SITE, 0);
        assert_eq!(options.timeout, defaults.timeout);
        assert_eq!(options.connect_timeout, defaults.connect_timeout);
        assert_eq!(options.max_headers, defaults.max_headers);
        assert_eq!(options.max_header_bytes, defaults.max_header_bytes);
        assert_eq!(options.max_idle_connections, defaults.max_idle_connections);
        assert_eq!(options.frontier.delay, defaults.frontier.delay);
        assert_eq!(options.frontier.scope.reach, defaults.frontier.scope.reach);
        assert_eq!(options.max_body_bytes, defaults.max_body_bytes);
        assert_eq!(options.user_agent, defaults.user_agent);
        assert_eq!(options.concurrency, defaults.concurrency);
        assert_eq!(options.select_limits, defaults.select_limits);
        assert_eq!(options.canonicalizer.rules(), defaults.canonicalizer.rules());
        assert_eq!(options.frontier.scope, defaults.frontier.scope);
        // The secret of the hash is not shown.
        assert_eq!(format!("{:?}", options.frontier), format!("{:?}", defaults.frontier));
    }

    #[test]
    fn bad_numbers_are_refused() {
        for arguments in [
            ["--false-positive-rate", "0"],
            ["--false-positive-rate", "1"],
            ["--false-positive-rate", "NaN"],
            ["--delay", "-1"],
            ["--delay", "inf"],
            ["--timeout", "0"],
            ["--concurrency", "0"],
            ["--per-host", "0"],
            ["--max-body", "0"],
            ["--max-pages", "0"],
            ["--max-pages-per-host", "0"],
            ["--scope", "planet"],
            ["--max-url-bytes", "0"],
            ["--max-path-repeats", "0"],
            ["--max-attempts", "0"],
            ["--max-fingerprints", "0"],
            ["--max-redirects", "256"],
            ["--retry-wait", "-1"],
        ] {
            let command = ["crawler", "example.com"].into_iter().chain(arguments);
            assert!(Cli::try_parse_from(command).is_err(), "{arguments:?}");
        }
        assert!(Cli::try_parse_from(["crawler"]).is_err());
    }
}
