//! The command: it reads the arguments and the configuration, runs the crawl, and returns the exit code.

#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
mod allocator;
mod clustering;
mod config_file;
mod failure;
mod flag;
mod log_records;
mod logging;
mod open_files;
mod options;
mod orders;
mod outputs;
mod proc_self;
mod progress;
mod signals;
mod state;
mod watching;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cluster::Joining;
use crawler::summary::remedy;
use crawler::{Crawl, CrawlError, CrawlOptions, Ending, HttpOptions, Summary};
use crawler_cli::demo::{self, DemoServer};
use crawler_watch::Server;
use frontier::canonical::Rules;
use frontier::{Directory, FrontierConfig, LockHolder, Reach, ScopeConfig};
use indicatif::ProgressBar;
use sieve::OnSaturation;
use tokio::sync::Mutex;
use tokio::task::JoinError;

use crate::failure::Failure;
use crate::options::{Command, LogFormat, Options};
use crate::progress::Reporter;
use crate::state::resume;
use crate::watching::Watching;

fn main() -> ExitCode {
    if let Err(error) = signals::let_long_writes_fail() {
        let _ = writeln!(
            io::stderr(),
            "crawler: a file at its size limit will end the process: {error}"
        );
    }
    let cli = match resume::parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = writeln!(io::stderr(), "crawler: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    if let Some(Command::Order(order)) = cli.command {
        return orders::run(order);
    }
    let options: &Options = match &cli.command {
        Some(Command::Completions { shell }) => return print(Ok(options::completions(*shell))),
        Some(Command::State(command)) => return state::run(command),
        Some(Command::Cluster(command)) => return clustering::run(command),
        Some(Command::Man) => return print(options::manual_page()),
        Some(Command::Demo { options, .. }) => options,
        // A crawl that is resumed has the arguments of its last run.
        Some(Command::Resume { .. } | Command::Order(_)) | None => &cli.site.options,
    };
    // The progress view would break JSON lines, so with JSON logs the progress is logged.
    let is_hidden = options.quiet > 0 || options.log_format == LogFormat::Json || outputs::data_goes_to_pipe(options);
    let bar = progress::bar(is_hidden);
    logging::start(options, &bar);
    let result = start_runtime().and_then(|runtime| {
        let result = runtime.block_on(async {
            match &cli.command {
                Some(Command::Demo { serve: Some(port), .. }) => serve_demo(*port).await,
                Some(Command::Demo { options, .. }) => run_demo(options, &bar).await,
                _ => run_site(&cli.site, &bar).await,
            }
        });
        // Do not wait for name look-ups that are still running.
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

/// Writes a text to standard output. It is not an error if the reader closes the pipe early, as `head` does.
fn print(text: io::Result<Vec<u8>>) -> ExitCode {
    match text.and_then(|text| io::stdout().write_all(&text)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "crawler: standard output cannot be written: {error}");
            ExitCode::from(1)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Starts the runtime, after it is known that there are file handles for it.
fn start_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    open_files::raise_limit()?;
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn run_site(site: &options::Site, bar: &ProgressBar) -> Result<(), Failure> {
    let (crawl, http) = site.to_library(random_secret()?)?;
    let summary = run(crawl, http, &site.options, Some(site), bar).await?;
    // A partition may have no site.
    if !summary.has_pages() && site.cluster.is_none() {
        let why = why_nothing_was_fetched(&summary);
        return Err(match site.state {
            Some(_) if is_final(&summary) => Failure::NothingLeft(why),
            _ => Failure::NothingFetched(why),
        });
    }
    if summary.has_lost_links || site.options.fail_on_incomplete && !summary.missing().is_empty() {
        return Err(Failure::Incomplete(missing_line(&summary)));
    }
    Ok(())
}

fn is_final(summary: &Summary) -> bool {
    match summary.ending {
        Ending::Drained => !summary.has_unanswered(),
        Ending::BudgetSpent => true,
        _ => false,
    }
}

/// Explains a crawl without a page, and what to do.
fn why_nothing_was_fetched(summary: &Summary) -> String {
    let statuses: Vec<_> = summary.by_status.keys().map(ToString::to_string).collect();
    match (&summary.failures.first_failure, summary.ending) {
        _ if !statuses.is_empty() => match summary.by_status.values().sum() {
            1_u64 => format!("the seed answered {}", statuses.concat()),
            _ => format!("all answers have a status of {}", statuses.join(" or ")),
        },
        (Some(why), _) => {
            let remedies = summary
                .failures
                .given_up_causes
                .iter()
                .map(|cause| remedy(*cause, flag::of));
            // Some messages have a remedy of their own.
            let remedies = remedies.filter(|_| !why.contains("; try "));
            std::iter::once(flag::in_text(why))
                .chain(remedies)
                .collect::<Vec<_>>()
                .join("; ")
        }
        (None, Ending::TimeUp) => "the time limit was reached before the first answer: raise --max-time".to_owned(),
        (None, Ending::Stopped) => "the crawl was stopped before the first answer".to_owned(),
        (None, _) => "no seed answered".to_owned(),
    }
}

async fn run_demo(options: &Options, bar: &ProgressBar) -> Result<(), Failure> {
    let server: DemoServer = demo::serve().await?;
    let (mut crawl, mut http) = options.to_library(random_secret()?, None);
    crawl.seeds = vec![server.site().seed().to_string()];
    // All hosts of the demo are on loopback, and only the first is a seed.
    http.allow_private_addresses = true;
    let reachable = server.site().reachable(crawl.frontier.scope.max_path_repeats).len();
    let is_whole = is_unlimited(&crawl);
    let seed = server.site().seed();
    log::info!(
        target: "crawler::demo",
        seed:%, reachable;
        "the demo site is at {seed}, with {reachable} reachable pages"
    );
    let summary = run(crawl, http, options, None, bar).await?;
    let pages = summary.pages;
    if !is_whole || summary.ending != Ending::Drained {
        log::warn!(
            target: "crawler::demo",
            seed:%, reachable, pages;
            "not checked, because the options or a stop limit the crawl: it fetched {pages} of {reachable} reachable pages"
        );
        return Ok(());
    }
    if pages != reachable as u64 {
        return Err(Failure::DemoIncomplete { reachable, pages });
    }
    log::info!(
        target: "crawler::demo",
        seed:%, reachable, pages;
        "the crawl found all {reachable} reachable pages of the demo site"
    );
    Ok(())
}

/// Serves the site of the demo until Ctrl-C.
async fn serve_demo(port: u16) -> Result<(), Failure> {
    let server = demo::serve_four_sites(port).await?;
    let site = server.site();
    let seeds = site.front_pages().map(|seed| format!("{seed}\n"));
    io::stdout().write_all(seeds.concat().as_bytes())?;
    let (seed, reachable) = (
        site.seed(),
        site.reachable(ScopeConfig::default().max_path_repeats).len(),
    );
    log::info!(
        target: "crawler::demo",
        seed:%, reachable;
        "the demo site is at {seed} and three other hosts, with {reachable} reachable pages, until Ctrl-C"
    );
    Ok(tokio::signal::ctrl_c().await?)
}

fn is_unlimited(crawl: &CrawlOptions) -> bool {
    let given = &crawl.frontier;
    let mut unlimited = FrontierConfig {
        retries: given.retries,
        seen_set: given.seen_set.clone(),
        politeness: given.politeness.clone(),
        ..FrontierConfig::default()
    };
    unlimited.scope.reach = Reach::Site;
    unlimited.politeness.ask_robots = true;
    *given == unlimited
        && (given.seen_set.capacity >= FrontierConfig::default().seen_set.capacity
            || given.seen_set.on_saturation == OnSaturation::Grow)
        && crawl.max_time.is_none()
        && *crawl.canonicalizer.rules() == Rules::default()
}

async fn run(
    mut crawl: CrawlOptions,
    mut http: HttpOptions,
    options: &Options,
    site: Option<&options::Site>,
    bar: &ProgressBar,
) -> Result<Summary, Failure> {
    let state = site.and_then(|site| site.state.as_deref());
    let new_state = state.filter(|state| Directory::new(state).is_missing() && !resume::is_kept(state));
    let inputs = [
        ("seeds", site.and_then(|site| site.seeds.as_deref())),
        ("config", options.config.as_deref()),
        ("cookie-file", options.cookie_file.as_deref()),
    ];
    outputs::check(options, &inputs, new_state)?;
    http.cookie_file = options.cookies_of_file()?;
    log_records::risks(&crawl, &http);
    let watching = options.watch.map_or(0, |_| Server::MOST_CONNECTIONS);
    open_files::fit_into_limit(&mut http, &mut crawl.concurrency, watching);
    let mut builder = Crawl::builder(crawl)?.http(http);
    let joining = clustering::joining(&builder, site, new_state.is_some()).await?;
    if let Some(state) = state {
        let accepts_loss = site.is_some_and(|site| site.accept_loss);
        builder = builder.state_dir(state).accept_loss(accepts_loss);
    }
    let mut made = MadeDirectory(new_state.map_or_else(Vec::new, missing_folders));
    let crawl = builder.build().map_err(|error| Failure::at_start(error, state))?;
    log_records::robots_name(&crawl);
    if let Some(state) = state.filter(|_| crawl.is_continued()) {
        log_records::continued(&crawl, state);
    }
    let (stop, sigusr1) = (crawl.stop_handle(), Arc::default());
    let reporter = Reporter::new(
        bar.clone(),
        crawl.config().options(),
        Arc::clone(&sigusr1),
        stop.clone(),
    );
    let obeying = orders::Obeying::of(&crawl);
    let (crawl, watching) = attach(crawl.observe(reporter), options, site, joining, bar).await?;
    made.0.clear();
    #[cfg(unix)]
    let _socket = state.and_then(|state| orders::Socket::open(state, obeying));
    let watching = Arc::new(Mutex::new(watching));
    let writing = signals::handle(stop, sigusr1, Arc::clone(&watching)).unwrap_or_else(|error| {
        log::warn!(target: "crawler::signals", "signals are not handled: {error}");
        Arc::default()
    });
    // It blocks while the disk syncs, and while nobody reads a pipe. A thread of the pool that blocks may be the one that waits for signals and orders.
    let runtime = tokio::runtime::Handle::current();
    let ended = tokio::task::spawn_blocking(move || runtime.block_on(crawl.run())).await;
    // The crawl may end, and the process with it, before the line of a signal is written.
    drop(writing.lock().await);
    let (written, server) = std::mem::take(&mut *watching.lock().await).finish();
    let concluded = conclude(ended, options, state, bar);
    if let Some(server) = server {
        server.finish().await;
    }
    let summary = concluded?;
    written?;
    Ok(summary)
}

/// Attaches what watches the crawl, the other processes and the outputs. Then it is sure that the crawl accepts the command, which is kept.
async fn attach(
    crawl: Crawl,
    options: &Options,
    site: Option<&options::Site>,
    joining: Option<Joining>,
    bar: &ProgressBar,
) -> Result<(Crawl, Watching), Failure> {
    let state = site.and_then(|site| site.state.as_deref());
    let (crawl, watching) = watching::attach(crawl, options, state)?;
    let crawl = clustering::join(crawl, joining).await?;
    // Last: an output may be replaced only if nothing else stands in the way.
    let accepts_loss = site.is_some_and(|site| site.accept_loss);
    let crawl = outputs::attach(crawl, options, state, accepts_loss, bar)?;
    if let (Some(site), Some(state)) = (site, state) {
        resume::keep(site, state).map_err(Failure::CommandNotKept)?;
    }
    watching.write_metrics();
    Ok((crawl, watching))
}

fn missing_folders(dir: &Path) -> Vec<&Path> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    dir.ancestors().take_while(is_missing).collect()
}

/// The state directory that this start has made, and those above it. They are removed if the start is refused.
struct MadeDirectory<'s>(Vec<&'s Path>);

impl Drop for MadeDirectory<'_> {
    fn drop(&mut self) {
        let is_free = |dir: &&&Path| matches!(Directory::new(dir).lock_holder(), Ok(LockHolder::Nobody));
        if let Some(dir) = self.0.first().filter(is_free) {
            // What stays is a crawl that has not begun.
            let _ = std::fs::remove_dir_all(dir);
            let _ = self.0[1..].iter().try_for_each(std::fs::remove_dir);
        }
    }
}

/// Prints what came of a crawl.
fn conclude(
    ended: Result<Result<Summary, CrawlError>, JoinError>,
    options: &Options,
    state: Option<&Path>,
    bar: &ProgressBar,
) -> Result<Summary, Failure> {
    let summary = match ended {
        Ok(result) => result.map_err(|error| Failure::of_crawl(error, state))?,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => return Err(Failure::Cancelled(error.to_string())),
        },
    };
    if let Some(state) = state {
        log_records::can_continue(&summary, state);
    }
    outputs::print_summary(&summary, options, bar)?;
    Ok(summary)
}

/// Lists what is missing, in one line.
fn missing_line(summary: &Summary) -> String {
    let missing = summary.missing();
    let missing = missing.iter().map(|one| one.with_names(flag::of).to_string());
    missing.collect::<Vec<_>>().join("; ")
}

/// A random seed for the hash of the seen-set, so that no site can predict collisions.
fn random_secret() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Failure::Random)?;
    Ok(u128::from_le_bytes(bytes))
}
