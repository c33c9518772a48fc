//! The seeds of the command line and of files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use cluster::Address;
use crawler::config::split_data;
use crawler::{CrawlOptions, HttpOptions};
use frontier::{Canonicalizer, FrontierConfig, Link, Partition};
use url::Url;

use super::Options;
use super::seed_lines::{SeedLines, SeedsError};
use super::values::{parse_duration, parse_duration_above_zero, parse_size, show_duration};

#[derive(Debug, Args)]
pub(crate) struct Site {
    /// Pages to start from, such as example.com or https://example.com/docs/.
    ///
    /// A host without a scheme gets https://. IP addresses and localhost get http://.
    #[arg(value_name = "SEED_URL", required_unless_present = "seeds")]
    pub(super) seed_urls: Vec<String>,
    /// Read more seeds from a file, one per line, or the pages of an earlier crawl.
    ///
    /// The name - is standard input. Empty lines and comments after # at the start or after a space are skipped.
    /// What follows a tab is data of your own, at most 1 KiB, which the lines of the outputs have as "data": see --inherit-data. In data, a #
    /// starts a comment only at their start.
    ///
    /// A line that starts with { is a page of an earlier crawl, as --output and repair write it. It is no seed but a link: it needs a seed
    /// that sets the scope, opens no private address and gets no credentials. The crawler sends the ETag or Last-Modified header of the page, so a
    /// server sends it only if it changed. Pages that the crawl of --state has met are not fetched again: use --refresh for that.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) seeds: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Keep the crawl in this directory, so that the same command continues it.
    ///
    /// The crawl may be stopped or killed at any moment. No page is lost, at most --concurrency pages are fetched again, and each line of
    /// the outputs is there once. The same outputs must be given, as files; page lines on standard output may be repeated. Other options may
    /// change, except those on which the state depends, such as --capacity. The maximum of pages is for all runs, that of the time
    /// for one. Only the user of the crawl may read the directory's files: cookies and the secret of the hash are in them.
    #[arg(long, value_name = "DIR", help_heading = "Durability")]
    pub(crate) state: Option<PathBuf>,
    /// Sync --state and the outputs to the disk this often, if they changed.
    ///
    /// A power cut costs what was fetched since: it is fetched again. 0 syncs after every few pages. A kill costs none of it, however long this is.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(FrontierConfig::default().sync_interval),
        value_parser = parse_duration,
        requires = "state",
        help_heading = "Durability"
    )]
    pub(crate) sync_interval: Duration,
    /// Fetch the pages of --state again whose last fetch is older than this.
    ///
    /// The crawler sends the ETag or Last-Modified header of each page. A server then sends only the pages that changed. Each fetch gets a line of --output. The crawl ends when no
    /// page is older and nothing is queued; a page that comes of age meanwhile is fetched again, too. The limits on pages do not count these
    /// fetches; but once --max-pages is spent, the crawl ends without them.
    #[arg(
        long,
        value_name = "AGE",
        value_parser = parse_duration_above_zero,
        requires = "state",
        help_heading = "Input"
    )]
    pub(crate) refresh: Option<Duration>,
    /// Keep the pages of --state fresh: visit each again when that is worth most.
    ///
    /// The crawl does not end when nothing is left. How often a page changes is learned at each visit; pages of a better class are worth more. Hosts and budget bound the visits: --set revisit-share,
    /// revisits-per-second, min-age and max-age. Once --max-pages is spent, it goes on with revisits alone. It ends by --max-time, a signal or an order.
    #[arg(long, requires = "state", conflicts_with = "refresh", help_heading = "Input")]
    pub(crate) keep_fresh: bool,
    /// Share out this much memory among the seen-set, the hosts, caches and requests.
    ///
    /// Needs --state.
    /// Hosts that were not used for long lie in the state directory. The seen-set may take a quarter: beyond that it wrongly drops more
    /// and more new pages, and warns. The size has room for pages in flight of usual length; --max-body bounds the others. Without it the
    /// seen-set and the names of hosts grow, and hosts in memory take 160 MiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size::<NonZeroU64>, requires = "state", help_heading = "Limits")]
    pub(crate) memory: Option<NonZeroU64>,
    /// Share the crawl with other processes through Redis, at redis://HOST/NAME.
    ///
    /// All processes get the same seeds and options, each its own --partition, --state and outputs. NAME is the name of the crawl. A password is
    /// written as in redis://user:password@host:6379/NAME; a configuration file, or the environment variable REDISCLI_AUTH, hides it from other users of this
    /// machine. rediss:// encrypts. See docs/many-machines.md.
    #[arg(long, value_name = "URL", requires_all = ["state", "partition"], conflicts_with = "refresh", help_heading = "Cluster")]
    pub(crate) cluster: Option<Address>,
    /// The share of this process: 0/4, 1/4, 2/4 or 3/4 of four.
    ///
    /// The hash of a site (the registrable domain) says to which partition it belongs. The number of partitions is fixed when the crawl begins.
    /// --max-pages and --max-hosts are for all partitions together; each takes its share.
    #[arg(long, value_name = "I/N", requires = "cluster", help_heading = "Cluster")]
    pub(crate) partition: Option<Partition>,
    /// Continue without what an output or the directory of a partition has lost.
    ///
    /// Without it, a start is refused if an output has changed or is not given, or if a partition has an old or a new directory. A file that has
    /// changed stays as it is: the output continues in a new one beside it. What was lost is counted, and the crawl is incomplete; it ends with code
    /// 3 if links between partitions were lost.
    #[arg(long, requires = "state", help_heading = "Durability")]
    pub(crate) accept_loss: bool,
    /// The arguments as they were given, without those of a configuration file.
    #[arg(skip)]
    pub(crate) given: Vec<OsString>,
}

impl Site {
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let has_login = |text: &str| {
            Url::parse(split_data(text).0).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
        };
        let seeds = self
            .seed_urls
            .iter()
            .map(String::as_str)
            .filter(move |seed| has_login(seed));
        // A proxy may have a login.
        let options = [
            ("header", "--header"),
            ("basic-auth", "--basic-auth"),
            ("proxy", "--proxy"),
        ];
        let given = &self.options.given;
        let texts = options
            .into_iter()
            .flat_map(move |(name, option)| given.values(name).map(move |text| (text, option)));
        seeds.map(|seed| (seed, "a seed with a login")).chain(texts)
    }

    /// Converts the options to those of the library. `secret` is the seed or key of the hash function unless a setting is.
    ///
    /// # Errors
    ///
    /// When the file of seeds cannot be read, a line of it is neither a seed nor a link, or there are links only.
    pub(crate) fn to_library(&self, secret: u128) -> Result<(CrawlOptions, HttpOptions), SeedsError> {
        let (mut crawl, http) = self.options.to_library(secret, self.memory);
        (crawl.seeds, crawl.links) = self.seeds_and_links(&crawl.canonicalizer)?;
        crawl.refresh = self.refresh;
        crawl.frontier.freshness.keeps_fresh = self.keep_fresh;
        crawl.frontier.sync_interval = self.sync_interval;
        crawl.frontier.partition = self.partition;
        Ok((crawl, http))
    }

    fn seeds_and_links(&self, canonicalizer: &Canonicalizer) -> Result<(Vec<String>, Vec<Link>), SeedsError> {
        let seeds = self.seed_urls.clone();
        match &self.seeds {
            Some(path) => read_seeds(path, seeds, canonicalizer),
            None => Ok((seeds, Vec::new())),
        }
    }
}

/// Reads a file of seeds and links, which come behind others.
pub(super) fn read_seeds(
    path: &Path,
    seeds: Vec<String>,
    canonicalizer: &Canonicalizer,
) -> Result<(Vec<String>, Vec<Link>), SeedsError> {
    let (shown, file): (_, Box<dyn BufRead>) = if path.as_os_str() == "-" {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else {
        let shown = path.display().to_string();
        let file = File::open(path).map_err(|source| SeedsError::Unreadable {
            path: shown.clone(),
            source,
        })?;
        (shown, Box::new(BufReader::new(file)))
    };
    let mut lines = SeedLines::new(&shown, seeds, canonicalizer);
    lines.read(file)?;
    lines.finish()
}
