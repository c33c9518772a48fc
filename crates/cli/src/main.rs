//! The command: arguments → configuration → run → exit code.

#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
mod allocator;
mod config_file;
mod log_records;
mod logging;
mod open_files;
mod options;
mod outputs;
mod proc_self;
mod progress;
mod signals;
mod status;

use std::io::{self, Write};
use std::process::ExitCode;

use crawler::fetch::{ClientError, CookieFileError};
use crawler::recrawl::{PreviousCrawl, RecrawlError};
use crawler::{Crawl, CrawlConfig, CrawlError, CrawlOptions, Ending, HttpOptions, StartError, Summary};
use crawler_cli::demo::{self, DemoServer};
use frontier::Reach;
use indicatif::ProgressBar;
use sieve::OnSaturation;

use crate::options::{Command, LogFormat, Options, SeedsError};
use crate::outputs::OutputError;
use crate::progress::Reporter;
use crate::status::{StatusReporter, StatusRequest};

fn main() -> ExitCode {
    let cli = match config_file::arguments(std::env::args_os().collect()) {
        Ok(arguments) => options::parse(arguments),
        Err(error) => {
            let _ = writeln!(io::stderr(), "crawler: {error}");
            return ExitCode::from(2);
        }
    };
    let options = match &cli.command {
        Some(Command::Completions { shell }) => return print(Ok(options::completions(*shell))),
        Some(Command::Man) => return print(options::manual_page()),
        Some(Command::Demo(options)) => options.as_ref(),
        None => &cli.site.options,
    };
    // A moving line would tear JSON lines apart: how far the crawl is comes as records then.
    let is_hidden = options.quiet > 0 || options.log_format == LogFormat::Json || outputs::go_into_a_pipe(options);
    let bar = progress::bar(is_hidden);
    logging::start(options, &bar);
    let result = start_runtime().and_then(|runtime| {
        let result = runtime.block_on(async {
            match &cli.command {
                Some(Command::Demo(options)) => run_demo(options, &bar).await,
                _ => run_site(&cli.site, &bar).await,
            }
        });
        // A name that is still being looked up is nothing to wait for.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            bar.finish_and_clear();
            let exit_code = failure.exit_code();
            if !failure.is_closed_pipe() {
                logging::fatal(options.log_format, &failure, exit_code);
            }
            ExitCode::from(exit_code)
        }
    }
}

/// Writes a text to standard output. A reader that closes it early, as `head` does, has what it wanted.
fn print(text: io::Result<Vec<u8>>) -> ExitCode {
    match text.and_then(|text| io::stdout().write_all(&text)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "crawler: the text cannot be written: {error}");
            ExitCode::from(1)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Everything that makes the command fail.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Arguments(#[from] crawler::ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    #[error(transparent)]
    Cookies(#[from] CookieFileError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Earlier(#[from] RecrawlError),
    #[error("nothing was fetched: {0}")]
    NothingFetched(String),
    #[error("the crawl is incomplete: {0}")]
    Incomplete(String),
    #[error("the runtime or the demo's server cannot be started: {0}")]
    System(#[from] io::Error),
    #[error("no random seed for the seen-set can be had from the system: {0}")]
    Random(getrandom::Error),
    #[error("the crawl was cut short: {0}")]
    Cancelled(String),
    #[error("the demo's site has {reachable} reachable pages, but {pages} were found")]
    DemoIncomplete { reachable: usize, pages: u64 },
}

impl Failure {
    /// Whoever closes the pipe that they read from, as `head` does, has what they wanted and needs no message.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Crawl(CrawlError::Observer(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Arguments(_)
            | Self::Seeds(_)
            | Self::Earlier(_)
            | Self::Cookies(_)
            | Self::Start(StartError::Frontier(_) | StartError::Client(ClientError::Options(_))) => 2,
            Self::Output(error) if error.is_usage() => 2,
            Self::Incomplete(_) => 3,
            _ => 1,
        }
    }
}

fn start_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn run_site(site: &options::Site, bar: &ProgressBar) -> Result<(), Failure> {
    let mut crawl = site.options.to_crawl(random_secret()?);
    crawl.seeds = site.all_seeds()?;
    let http = site.options.to_http();
    let summary = run(crawl, http, &site.options, Some(site), bar).await?;
    if summary.is_empty() {
        let why = summary.first_failure.unwrap_or_else(|| match summary.ending {
            Ending::TimeUp => "no answer came before the time was up".to_owned(),
            Ending::Stopped => "it was stopped before any answer came".to_owned(),
            _ => "no seed gave an answer".to_owned(),
        });
        return Err(Failure::NothingFetched(why));
    }
    if site.options.fail_on_incomplete && !summary.missing().is_empty() {
        return Err(Failure::Incomplete(listed(&summary)));
    }
    Ok(())
}

async fn run_demo(options: &Options, bar: &ProgressBar) -> Result<(), Failure> {
    let server: DemoServer = demo::serve().await?;
    let mut crawl = options.to_crawl(random_secret()?);
    crawl.seeds = vec![server.site().seed().to_string()];
    // All hosts of the demo are on loopback, and only the first is a seed.
    let http = HttpOptions {
        allow_private_addresses: true,
        ..options.to_http()
    };
    let reachable = server.site().reachable(crawl.frontier.scope.max_segment_repeats).len();
    let is_whole = is_unlimited(&crawl);
    let seed = server.site().seed();
    log::info!(
        target: "crawler::demo",
        seed:%, reachable;
        "the demo's site is at {seed}, with {reachable} reachable pages"
    );
    let summary = run(crawl, http, options, None, bar).await?;
    if is_whole && summary.pages != reachable as u64 {
        return Err(Failure::DemoIncomplete {
            reachable,
            pages: summary.pages,
        });
    }
    if is_whole {
        log::info!(
            target: "crawler::demo",
            seed:%, reachable;
            "all {reachable} reachable pages of the demo's site were found"
        );
    }
    Ok(())
}

/// Says whether every page of the demo can be found under these options.
fn is_unlimited(crawl: &CrawlOptions) -> bool {
    let frontier = &crawl.frontier;
    let scope = &frontier.scope;
    crawl.max_time.is_none()
        && frontier.max_pages.is_none()
        && frontier.max_pages_per_host.is_none()
        && scope.max_depth.is_none()
        && scope.include.is_empty()
        && scope.exclude.is_empty()
        && frontier.ask_robots
        && scope.reach == Reach::Site
        && has_default_budgets(crawl)
        && (frontier.capacity >= frontier::config::DEFAULT_CAPACITY || frontier.on_saturation == OnSaturation::Grow)
}

/// Says whether the demo's traps are met with the budgets that its pages are known to fit into.
fn has_default_budgets(crawl: &CrawlOptions) -> bool {
    let budgets = |options: &CrawlOptions| {
        let frontier = &options.frontier;
        let scope = &frontier.scope;
        (
            (frontier.max_near_duplicates, frontier.max_near_duplicates_in_all),
            frontier.max_queries_per_path,
            frontier.max_hosts_per_site,
            frontier.max_hosts,
            (scope.max_url_bytes, scope.max_hops),
            options.canonicalizer.rules().clone(),
        )
    };
    budgets(crawl) == budgets(&CrawlOptions::default())
}

async fn run(
    crawl: CrawlOptions,
    mut http: HttpOptions,
    options: &Options,
    site: Option<&options::Site>,
    bar: &ProgressBar,
) -> Result<Summary, Failure> {
    if options.ignores_robots() {
        log::warn!(
            target: "crawler",
            "robots.txt is NOT fetched: pages that sites forbid are fetched, and their Crawl-delay is unknown"
        );
    }
    let recrawl = site.and_then(|site| site.recrawl.as_deref());
    let inputs = [
        ("recrawl", recrawl),
        ("seeds", site.and_then(|site| site.seeds.as_deref())),
        ("config", options.config.as_deref()),
        ("cookie-file", options.requests.cookie_file.as_deref()),
    ];
    outputs::check(&options.outputs, &inputs)?;
    http.cookie_file = options.requests.cookies_of_file()?;
    if options.requests.is_insecure() {
        log::warn!(
            target: "crawler",
            "certificates are NOT checked (--insecure): whoever is on the way can read and change everything, logins and cookies included"
        );
    }
    if options.requests.has_proxy() {
        log::warn!(
            target: "crawler",
            "all requests go through a proxy: whether it dials private addresses is unknown here"
        );
    }
    open_files::fit(&mut http, crawl.concurrency);
    let reporter = Reporter::new(bar.clone(), &crawl);
    let crawl = Crawl::with_http(CrawlConfig::new(crawl)?, &http)?.observe(reporter);
    let crawl = match recrawl {
        Some(path) => crawl.recrawl(PreviousCrawl::open(path)?),
        None => crawl,
    };
    let crawl = outputs::attach(crawl, options, bar)?;
    let status = StatusRequest::default();
    let crawl = crawl.observe(StatusReporter::new(status.clone()));
    if let Err(error) = signals::handle(crawl.stop_handle(), status) {
        log::warn!(target: "crawler::signals", "signals are not handled: {error}");
    }
    // On a thread of the pool, whose other tasks it wakes and is woken by, it waits for no other thread.
    let summary = match tokio::spawn(crawl.run()).await {
        Ok(result) => result?,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => return Err(Failure::Cancelled(error.to_string())),
        },
    };
    log_records::loss(&summary);
    outputs::print_summary(&summary, options, bar)?;
    Ok(summary)
}

/// What is missing, in one line.
fn listed(summary: &Summary) -> String {
    let missing = summary.missing();
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The seen-set's hash starts from a number that no site can know.
fn random_secret() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Failure::Random)?;
    Ok(u128::from_le_bytes(bytes))
}
