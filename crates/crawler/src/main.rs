//! The command: arguments → configuration → run → exit code.

mod cli;
mod logging;
mod progress;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use crawler::demo::{self, DemoServer};
use crawler::output::jsonl::JsonLines;
use crawler::{Crawl, CrawlConfig, CrawlError, CrawlOptions, StartError, StopHandle, Summary};
use indicatif::ProgressBar;
use sieve::OnSaturation;

use crate::cli::{Cli, Command, Defaults, Options};
use crate::progress::Reporter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let options = match &cli.command {
        Some(Command::Demo(options)) => options,
        None => &cli.site.options,
    };
    let bar = progress::bar(options.quiet > 0);
    logging::start(options, &bar);
    let result = start_runtime().and_then(|runtime| {
        let result = runtime.block_on(async {
            match &cli.command {
                Some(Command::Demo(options)) => run_demo(options, &bar).await,
                None => run_site(&cli.site, &bar).await,
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
            // Standard error may be gone; there is nobody left to tell.
            let _ = writeln!(io::stderr(), "crawler: {failure}");
            failure.exit_code()
        }
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
    #[error("the seeds of {path} cannot be read: {source}")]
    Seeds { path: String, source: io::Error },
    #[error("{path} cannot be written: {source}")]
    Output { path: String, source: io::Error },
    #[error("nothing was fetched: {0}")]
    NothingFetched(String),
    #[error("the runtime or the demo's server cannot be started: {0}")]
    System(#[from] io::Error),
    #[error("no random seed for the seen-set can be had from the system: {0}")]
    Random(getrandom::Error),
    #[error("the demo's site has {reachable} reachable pages, but {pages} were found")]
    DemoIncomplete { reachable: usize, pages: u64 },
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Arguments(_) | Self::Start(StartError::Frontier(_)) => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }
}

fn start_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn run_site(site: &cli::Site, bar: &ProgressBar) -> Result<(), Failure> {
    let mut crawl = site.options.to_crawl(&Defaults::SITE, random_secret()?);
    crawl.seeds = site.all_seeds().map_err(|source| {
        let path = site
            .seeds_file()
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        Failure::Seeds { path, source }
    })?;
    let summary = run(crawl, &site.options, bar).await?;
    if summary.is_empty() {
        let why = summary
            .first_failure
            .unwrap_or_else(|| "every seed was refused".to_owned());
        return Err(Failure::NothingFetched(why));
    }
    Ok(())
}

async fn run_demo(options: &Options, bar: &ProgressBar) -> Result<(), Failure> {
    let server: DemoServer = demo::serve().await?;
    let mut crawl = options.to_crawl(&Defaults::DEMO, random_secret()?);
    crawl.seeds = vec![server.site().seed().to_string()];
    // All hosts of the demo are on loopback, and only the first is a seed.
    crawl.allow_private_addresses = true;
    let reachable = server.site().reachable(crawl.frontier.scope.max_segment_repeats).len();
    let is_whole = is_unlimited(&crawl);
    log::info!(
        "the demo's site is at {}, with {reachable} reachable pages",
        server.site().seed()
    );
    let summary = run(crawl, options, bar).await?;
    if is_whole && summary.pages != reachable as u64 {
        return Err(Failure::DemoIncomplete {
            reachable,
            pages: summary.pages,
        });
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
        && scope.reach == Defaults::DEMO.reach
        && (frontier.capacity >= frontier::config::DEFAULT_CAPACITY || frontier.on_saturation == OnSaturation::Grow)
}

async fn run(crawl: CrawlOptions, options: &Options, bar: &ProgressBar) -> Result<Summary, Failure> {
    if options.ignores_robots() {
        log::warn!("robots.txt is NOT asked for: what sites forbid is fetched, and their Crawl-delay is not known");
    }
    let mut crawl = Crawl::new(CrawlConfig::new(crawl)?)?.observe(Reporter::new(bar.clone()));
    let mut summary_to_stderr = false;
    if let Some(path) = &options.output {
        summary_to_stderr = is_stdout(path);
        crawl = crawl.observe(JsonLines::new(open(path)?));
    }
    tokio::spawn(stop_on_ctrl_c(crawl.stop_handle()));
    let summary = crawl.run().await?;
    if summary_to_stderr {
        // As with the logs: if nobody reads it, the crawl was done all the same.
        let _ = write!(io::stderr(), "{summary}");
    } else {
        let _ = write!(io::stdout(), "{summary}");
    }
    Ok(summary)
}

/// The seen-set's hash starts from a number that no site can know.
fn random_secret() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Failure::Random)?;
    Ok(u128::from_le_bytes(bytes))
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    if is_stdout(path) {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(path).map_err(|source| Failure::Output {
        path: path.display().to_string(),
        source,
    })?;
    Ok(Box::new(file))
}

async fn stop_on_ctrl_c(stop: StopHandle) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    log::warn!("stopping: finishing what is out; press Ctrl-C again to stop now");
    stop.finish();
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.now();
    }
}
