//! The options of the command: names, units, defaults, help.

mod closest;
mod command_line;
mod generated;
pub(crate) mod given;
mod kinds;
mod orders;
mod outputs;
mod seed_lines;
mod seeds;
mod settings;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use cluster::Address;
use crawler::config::default_concurrency;
use crawler::fetch::{CookieFile, CookieFileError};
use crawler::{CrawlOptions, HttpOptions};
use frontier::Canonicalizer;
use sieve::Hashing;

pub(crate) use self::closest::closest;
pub(crate) use self::command_line::{command, names_a_file, parse, parse_some};
pub(crate) use self::generated::{completions, manual_page};
use self::given::{Assignment, Given};
pub(crate) use self::orders::{OrderCommand, show_policy};
#[cfg(unix)]
pub(crate) use self::outputs::metadata_of_stdout;
pub(crate) use self::outputs::{FORMATS, Outputs, is_same, is_stdout};
pub(crate) use self::seed_lines::{NotASeed, SeedsError, check as check_seed};
pub(crate) use self::seeds::Site;
use self::settings::Settings;
pub(crate) use self::state::{DirArgs, StateCommand, Which};
use self::values::parse_address;

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
    /// The demo needs no network. Its reachable pages are those that answer 200 and that a polite crawler finds. It takes the options of a crawl, except those about seeds, earlier crawls, state directories and other processes.
    Demo {
        /// Only serve the site at a port of 127.0.0.1, until Ctrl-C, and print its seeds.
        ///
        /// The system chooses a port for 0. The hosts are sites of their own, so that processes with --cluster can share them. Not every system resolves their names, which end in .localhost: the crawler, curl and
        /// browsers do it themselves.
        #[arg(long, value_name = "PORT", exclusive = true, help_heading = "Input")]
        serve: Option<u16>,
        #[command(flatten)]
        options: Box<Options>,
    },
    #[command(flatten)]
    State(StateCommand),
    #[command(flatten)]
    Order(OrderCommand),
    /// Look at the processes that share a crawl, pause or stop them.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Continue the crawl in a state directory with the options of its last run.
    ///
    /// Options and seeds after DIR are added to those of the last run. They override them, or are refused with the reason if the state depends on
    /// them, and they are kept for the next time. To leave out an option, repeat the whole command. Relative paths are those of the folder in which the crawl was
    /// started. A command with headers, logins or the password of Redis is not kept in the directory: repeat it in full.
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
pub(crate) struct ClusterArgs {
    /// The address of --cluster.
    #[arg(value_name = "URL")]
    pub(crate) address: Address,
}

/// A command about the processes that share a crawl.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show each partition, the totals, and first what is wrong.
    Status {
        /// The address of --cluster.
        #[arg(value_name = "URL")]
        address: Address,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Stop all processes, as by Ctrl-C. The same commands continue the crawl.
    Stop(ClusterArgs),
    /// Pause all processes, once requests in flight have ended.
    Pause(ClusterArgs),
    /// Let all processes go on after a pause.
    Unpause(ClusterArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per record
    Text,
    /// One JSON object per record, with its fields
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Read options from a TOML file, which the command line overrides.
    ///
    /// The names are those of the options, without the dashes, and of settings: max-pages = 100, delay = "500ms", sitemaps = true,
    /// exclude = ["a", "b"], seed-urls = ["example.com"], max-hosts = 5000. Tables with the names of
    /// the headings of this help, such as [politeness], may group them. Options that can be repeated add up.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) config: Option<PathBuf>,
    /// Change a setting, such as max-hosts=100k; repeatable.
    ///
    /// Settings are limits, waits and rules that few crawls need. crawler man and docs/options.md list them.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Input")]
    set: Vec<Assignment>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Exit with code 3 if the crawl is incomplete.
    ///
    /// The summary lists what is missing.
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_incomplete: bool,

    #[command(flatten)]
    given: Given,
    /// Start with the cookies of this file, and keep cookies.
    ///
    /// The file has the Netscape format, as curl and browser extensions write it. Each cookie goes to its host only. A bad line is an
    /// error. The crawler does not write the file.
    ///
    /// With the cookies of a login, links that log out are followed as all others: leave them out, such as by --exclude "log-?out".
    ///
    /// With --state, cookies of earlier runs are kept. If the file has other cookies for a host than before, as after a new login, those of
    /// the file win. If it has the same ones, what the site has set since wins.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub(crate) cookie_file: Option<PathBuf>,

    /// Log more; -vv logs everything.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "quiet", help_heading = "Logs")]
    pub(crate) verbose: u8,
    /// Print no page lines, and log only warnings and errors; -qq only errors.
    ///
    /// The summary is printed in any case.
    #[arg(short, long, action = ArgAction::Count, overrides_with = "verbose", help_heading = "Logs")]
    pub(crate) quiet: u8,
    /// Format of the log.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        help_heading = "Logs"
    )]
    pub(crate) log_format: LogFormat,

    /// Serve a page to watch the crawl at a port or ADDRESS:PORT.
    ///
    /// A port alone is opened on 127.0.0.1; the system chooses one for 0. The first log lines have the address of the page, with a token that
    /// lets it pause and stop the crawl. /metrics is for Prometheus; /status.json and /series.json have the numbers; /events has the status
    /// each second. POST /pause, /resume, /stop and /order need the header "Authorization: Bearer TOKEN".
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, help_heading = "Logs")]
    pub(crate) watch: Option<SocketAddr>,
}

impl Options {
    /// Converts the options to those of the library, without the seeds.
    ///
    /// `secret` is the seed or key of the hash function unless a setting is. Each request takes a share of the memory, if that has a bound.
    pub(crate) fn to_library(&self, secret: u128, memory: Option<NonZeroU64>) -> (CrawlOptions, HttpOptions) {
        let settings = self.settings();
        let (mut crawl, mut http) = (settings.crawl, settings.http);
        let per_host = match memory {
            Some(_) => NonZeroU32::MIN,
            None => crawl.frontier.politeness.per_host,
        };
        crawl.concurrency = settings.concurrency.unwrap_or_else(|| default_concurrency(per_host));
        crawl.max_memory = memory.map(NonZeroU64::get);
        let secret = settings.hash_seed.map_or(secret, u128::from);
        match &mut crawl.frontier.seen_set.hash {
            Hashing::Hardened { key } => *key = secret.to_le_bytes(),
            Hashing::Murmur3 { seed } | Hashing::Xxh3 { seed } => *seed = secret as u64,
            _ => {}
        }
        crawl.canonicalizer = Canonicalizer::new(settings.rules);
        self.outputs.write_to(&mut crawl, &mut http);
        (crawl, http)
    }

    pub(crate) fn settings(&self) -> Settings {
        self.given.apply(&self.set)
    }

    /// Reads the cookie file, if the option is set.
    pub(crate) fn cookies_of_file(&self) -> Result<Option<CookieFile>, CookieFileError> {
        self.cookie_file.as_deref().map(CookieFile::open).transpose()
    }
}
