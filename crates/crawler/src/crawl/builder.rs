//! The parts of a crawl, put together: options, fetcher, and a frontier in memory or in a state directory.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frontier::{Directory, Frontier, FrontierConfig, OpenError, Opened, Time};

use super::Crawl;
use crate::config::CrawlConfig;
#[cfg(doc)]
use crate::config::CrawlOptions;
use crate::engine::{Clock, Commits, Run, go_back_if_logic_is_other, go_back_if_outputs_are_lost};
use crate::error::StartError;
use crate::fetch::{Fetcher, HttpFetcher, HttpOptions};
use crate::saved_rules::{SavedRules, check_database, parse_robots};
use crate::state::{Commit, StateError};
use crate::summary::AnswerTimes;

/// Builds a [`Crawl`]. Without further calls it crawls over HTTP, and keeps its frontier in memory.
///
/// ```no_run
/// use crawler::{Crawl, CrawlOptions, HttpOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let http = HttpOptions { headers: vec!["Accept-Language: de".into()], ..HttpOptions::default() };
/// let crawl = Crawl::builder(options)?.http(http).state_dir("example").build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct CrawlBuilder {
    config: CrawlConfig,
    http: HttpOptions,
    state: Option<PathBuf>,
    accepts_loss: bool,
}

impl CrawlBuilder {
    pub(super) fn new(config: CrawlConfig) -> Self {
        Self {
            config,
            http: HttpOptions::default(),
            state: None,
            accepts_loss: false,
        }
    }

    /// Sets the options of the HTTP fetcher.
    pub fn http(self, http: HttpOptions) -> Self {
        Self { http, ..self }
    }

    /// Keeps the state of the crawl in a directory, which is made if it does not exist, and continues the crawl that is in it.
    ///
    /// The process may be killed at any moment. Then the same calls continue the crawl: no page is lost, and at most as many requests as the
    /// [concurrency](CrawlOptions::concurrency) are sent again. Attach outputs that [continue](crate::output::OutputFile::reopen) the files
    /// of the run before, with what [`saved_output`](Crawl::saved_output) returns, so that each line is there once.
    ///
    /// The options may differ from those of the first run where the state does not depend on them. Seeds that are new are added.
    pub fn state_dir(self, state: impl Into<PathBuf>) -> Self {
        Self {
            state: Some(state.into()),
            ..self
        }
    }

    /// Sets whether a crawl that is shared goes on from a state that the other processes may know as an old one.
    pub fn accept_loss(self, accepts_loss: bool) -> Self {
        Self { accepts_loss, ..self }
    }

    /// Returns the checked options, which [`HttpFetcher::new`] takes, for a fetcher that wraps it.
    pub fn config(&self) -> &CrawlConfig {
        &self.config
    }

    /// Returns a hash of the rules of which URLs are the same, and of when the crawl ends. All processes of a shared crawl need the same.
    pub fn hash_of_rules(&self) -> u64 {
        let keeps_fresh = self.config.options().frontier.freshness.keeps_fresh;
        SavedRules::of(&self.config).hash_of_urls() ^ u64::from(keeps_fresh)
    }

    /// Returns a hash of the seeds and links. All processes of a shared crawl need the same, in the same order.
    pub fn hash_of_seeds(&self) -> u64 {
        self.config.hash_of_seeds()
    }

    /// Builds a crawl over HTTP.
    ///
    /// # Errors
    ///
    /// Fails if an HTTP option cannot be used, the HTTP client cannot be set up, or as [`build_with`](Self::build_with).
    pub fn build(self) -> Result<Crawl, StartError> {
        let fetcher = HttpFetcher::new(&self.config, &self.http)?;
        self.build_with(fetcher)
    }

    /// Builds a crawl with a fetcher of your own.
    ///
    /// # Errors
    ///
    /// Fails if the frontier cannot be set up. With a state directory, if that cannot be opened, is in use, has the state of another program,
    /// or was begun with another canonicalizer. Without one, if [`max_memory`](CrawlOptions::max_memory) is set.
    pub fn build_with<S: Fetcher>(self, fetcher: S) -> Result<Crawl<S>, StartError> {
        let run = match self.state {
            Some(state) => open(self.config, fetcher, &state, self.accepts_loss)?,
            None if self.config.options().max_memory.is_some() => return Err(StartError::MemoryWithoutState),
            None => {
                let frontier = Frontier::in_memory(frontier_options(&self.config))?;
                Run::new(self.config, fetcher, frontier)
            }
        };
        Ok(Crawl { run })
    }
}

/// The options of the frontier, as those of other parts and the other processes have them.
fn frontier_options(config: &CrawlConfig) -> FrontierConfig {
    let mut options = config.options().frontier.clone();
    // Only pages that are compared get them.
    if config.options().reports.fingerprints {
        options.traps.compare_one_of = NonZeroU32::MIN;
    }
    if let Some(partition) = options.partition {
        options.limits.max_pages = options.limits.max_pages.map(|all| partition.share_of(all));
        options.limits.max_hosts = partition.share_of(options.limits.max_hosts as u64) as usize;
    }
    if let Some(most) = config.options().max_memory {
        options.max_memory = Some(most.saturating_sub(config.memory_beside_frontier()));
    }
    options
}

/// Checks that the memory is enough for all parts.
fn check_memory(config: &CrawlConfig) -> Result<(), StartError> {
    let Some(most) = config.options().max_memory else {
        return Ok(());
    };
    let of_frontier = config.options().frontier.least_memory()?;
    let least = of_frontier.saturating_add(config.memory_beside_frontier());
    if most < least {
        return Err(StartError::TooLittleMemory { most, least });
    }
    Ok(())
}

/// Opens the state directory, and the crawl that is in it.
fn open<S: Fetcher>(config: CrawlConfig, fetcher: S, state: &Path, accepts_loss: bool) -> Result<Run<S>, StartError> {
    check_memory(&config)?;
    check_database(state)?;
    let rules = SavedRules::of(&config);
    let last_rules = SavedRules::read(state)?;
    if last_rules.as_ref().is_some_and(|last| *last != rules) {
        return Err(StateError::OtherRules.into());
    }
    go_back_if_outputs_are_lost(state)?;
    go_back_if_logic_is_other(state, &frontier_options(&config), accepts_loss)?;
    let opened = open_frontier(&config, state)?;
    let saved = Commit::read(&opened.attachment.unwrap_or_default())?;
    let hash_of_rules = rules.hash_of_urls();
    if saved.as_ref().is_some_and(|(_, commit)| commit.rules != hash_of_rules) {
        // The file with the last rules is lost, or has been changed.
        return Err(StateError::OtherRules.into());
    }
    if last_rules.as_ref() != Some(&rules) {
        rules.write(state)?;
    }
    let mut commits = Commits {
        opened: opened.now,
        for_new_links: opened.for_new_links,
        seeds: config.hash_of_seeds(),
        state: Some(state.to_owned()),
        ..Commits::default()
    };
    commits.saved.rules = hash_of_rules;
    let mut run = Run::new(config, fetcher, opened.frontier);
    run.answer_times = AnswerTimes::read(state);
    if let Some((counts, last)) = saved {
        run.observers.counts = counts;
        commits.continue_after(last);
    }
    run.commits = commits;
    run.restore_fetcher()?;
    Ok(run)
}

/// Opens the frontier of a state directory.
fn open_frontier(config: &CrawlConfig, state: &Path) -> Result<Opened, StartError> {
    let clock = Clock::start(Time::EPOCH, Duration::ZERO);
    let open = |robots_name: &str| {
        let mut options = frontier_options(config);
        options.politeness.robots_name = robots_name.to_owned();
        Frontier::open(state, options, clock.next_millisecond(), parse_robots(robots_name))
    };
    let mut for_new_links = Vec::new();
    let last_name = Directory::new(state)
        .config()?
        .map(|config| config.politeness.robots_name);
    if let Some(last_name) = last_name.filter(|last| last != config.product_token()) {
        // The calls of the journal can be made again by the name of the last run only. A checkpoint ends the journal.
        let mut opened = open(&last_name)?;
        for_new_links = opened.for_new_links;
        let attachment = opened.attachment.unwrap_or_default();
        let ended = opened.frontier.checkpoint(&attachment, clock.next_millisecond());
        ended.map_err(OpenError::from)?;
    }
    let mut opened = open(config.product_token())?;
    opened.for_new_links.extend(for_new_links);
    Ok(opened)
}
