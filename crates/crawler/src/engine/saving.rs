//! Commits of a crawl with a state directory: the outputs first, then frontier, counts and outputs' states in one step.

mod offered;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frontier::{Frontier, FrontierConfig, OpenError, Time};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Crawl;
use crate::config::CrawlConfig;
#[cfg(doc)]
use crate::config::CrawlOptions;
use crate::engine::clock::Clock;
use crate::engine::last_sync::go_back_if_outputs_are_lost;
use crate::error::{CrawlError, StartError};
use crate::fetch::{Fetcher, HttpFetcher, HttpOptions};
use crate::output::replace_file;
use crate::recrawl::PreviousFile;
use crate::saved_output::{SavedFile, SavedOutput};
use crate::saved_rules::{SavedRules, check_database, parse_robots};
use crate::state::{CrawlState, CrawlStateRef, StateError, hash_of_seeds};
use crate::summary::Ending;

/// The file in the state directory with what the fetcher keeps, such as cookies.
const KEPT: &str = crate::state::FETCHER_FILE;

/// For how long finished requests are collected into one commit at most. A commit costs about as much as fetching a small page from a
/// server nearby.
const COLLECTED_FOR: Duration = Duration::from_millis(2);

/// What a crawl with a state directory keeps from one commit to the next.
#[derive(Debug, Default)]
pub(super) struct Saving {
    /// What the last commit has of the outputs.
    outputs: Vec<SavedOutput>,
    /// Their files at the last sync of them, by this run or before it.
    synced: Vec<SavedFile>,
    /// Whether the last commit is of an earlier run, or this run has gone on from it.
    is_continued: bool,
    /// The hash of the seeds, and of those that were offered; `None` if no seeds were all offered yet.
    seeds: u64,
    offered_seeds: Option<u64>,
    /// The hash of the rules of which URLs are the same.
    rules: u64,
    /// The file of the crawl that earlier runs repeat; `None` if they repeat none.
    previous: Option<PreviousFile>,
    /// The duration of earlier runs, and the time of the last commit.
    earlier: Duration,
    last_time: Time,
    /// Options that have changed for new links only.
    for_new_links: Vec<&'static str>,
    /// The file with what the fetcher keeps.
    fetcher: PathBuf,
    /// Whether commits were made since the last sync.
    has_unsynced: bool,
    /// The interval between two syncs, until the first commit of the run, which is synced.
    sync_interval: Option<Duration>,
    /// When pages of age are looked for next.
    pub(super) next_refresh: Time,
    /// When more pages are looked for that got no answer in an earlier run; `None` if there are no more.
    pub(super) next_retry: Option<Time>,
    /// When the first change since the last commit was seen.
    changed: Option<Instant>,
    buffer: Vec<u8>,
}

impl Saving {
    /// The next commit is synced, and the outputs are before it.
    fn note_synced(&mut self) {
        self.synced = self.outputs.iter().map(|output| output.file.clone()).collect();
    }
}

impl Crawl {
    /// Starts or continues a crawl over HTTP whose state is in a directory, which is made if it does not exist.
    ///
    /// The process may be killed at any moment. Then the same call continues the crawl: no page is lost, and at most as many requests as the
    /// [concurrency](CrawlOptions::concurrency) are sent again. Attach outputs that [continue](crate::output::OutputFile::reopen) the files
    /// of the run before, with what [`saved_output`](Self::saved_output) returns, so that each line is there once.
    ///
    /// `config` may differ from that of the first run where the state does not depend on it. Seeds that are new are added.
    ///
    /// # Errors
    ///
    /// Fails as [`with_http`](Self::with_http), or if the directory cannot be opened, is in use, has the state of another program, or was begun with another canonicalizer.
    pub fn open(config: CrawlConfig, http: &HttpOptions, state: &Path) -> Result<Self, StartError> {
        let fetcher = HttpFetcher::new(&config, http)?;
        Self::open_with_fetcher(config, fetcher, state)
    }
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

impl<S: Fetcher> Crawl<S> {
    /// Starts or continues a crawl as [`open`](Crawl::open) does, with a fetcher of your own.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, is in use, has the state of another program, or was begun with another canonicalizer.
    pub fn open_with_fetcher(config: CrawlConfig, fetcher: S, state: &Path) -> Result<Self, StartError> {
        check_memory(&config)?;
        let rules = SavedRules::of(&config);
        let clock = Clock::start();
        let open = |robots_name: &str| {
            let options = FrontierConfig {
                robots_name: robots_name.to_owned(),
                ..Self::frontier_options(&config)
            };
            Frontier::open(state, options, clock.next_millisecond(), parse_robots(robots_name))
        };
        check_database(state)?;
        let last_rules = SavedRules::read(state)?;
        if last_rules.as_ref().is_some_and(|last| *last != rules) {
            return Err(StateError::OtherRules.into());
        }
        go_back_if_outputs_are_lost(state)?;
        let mut for_new_links = Vec::new();
        let last_name = Frontier::stored_config(state)?.map(|config| config.robots_name);
        if let Some(last_name) = last_name.filter(|last| last != config.product_token()) {
            // The calls of the journal can be made again by the name of the last run only. A checkpoint ends the journal.
            let mut opened = open(&last_name)?;
            for_new_links = opened.for_new_links;
            let attachment = opened.attachment.unwrap_or_default();
            let ended = opened.frontier.checkpoint(&attachment, clock.next_millisecond());
            ended.map_err(OpenError::from)?;
        }
        let opened = open(config.product_token())?;
        for_new_links.extend(opened.for_new_links);
        // An empty one is from a run that ended before its first commit.
        let attachment = opened.attachment.filter(|attachment| !attachment.is_empty());
        let saved = attachment.map(|attachment| CrawlState::read(&attachment)).transpose()?;
        let hash_of_rules = rules.hash_of_urls();
        if saved.as_ref().is_some_and(|saved| saved.rules != hash_of_rules) {
            // The file with the last rules is lost, or has been changed.
            return Err(StateError::OtherRules.into());
        }
        if last_rules.as_ref() != Some(&rules) {
            rules.write(state)?;
        }
        let sync_interval = config.options().sync_interval;
        let mut crawl = Self::with_parts(config, opened.frontier, fetcher);
        // So the last sync knows all outputs and the start of the system, and has what an earlier run has left.
        crawl.frontier.set_sync_interval(Duration::ZERO);
        let kept = state.join(KEPT);
        crawl.restore_fetcher(&kept)?;
        let mut saving = Saving {
            fetcher: kept,
            seeds: hash_of_seeds(crawl.config.seeds()),
            rules: hash_of_rules,
            for_new_links,
            has_unsynced: true,
            sync_interval: Some(sync_interval),
            ..Saving::default()
        };
        if let Some(state) = saved {
            crawl.counts = state.counts;
            saving.outputs = state.outputs;
            // The last run has synced them, or `go_back_if_outputs_are_lost` has.
            saving.note_synced();
            saving.is_continued = true;
            saving.offered_seeds = state.seeds;
            saving.previous = state.previous;
            saving.earlier = state.elapsed;
            saving.last_time = state.time.max(opened.now);
        }
        crawl.saving = Some(saving);
        Ok(crawl)
    }

    /// Returns whether the crawl continues one that an earlier run began.
    pub fn is_continued(&self) -> bool {
        self.saving.as_ref().is_some_and(|saving| saving.is_continued)
    }

    /// Returns the options that differ from those of the last run and hold for links that are found from now on, by the names of their
    /// fields: pages that are queued are not checked again, and links that were refused are not offered again.
    pub fn options_for_new_links(&self) -> &[&'static str] {
        self.saving.as_ref().map_or(&[], |saving| &saving.for_new_links)
    }

    /// Returns whether pages got no answer in earlier runs, or no whole one. They are tried again if [nothing is left](Self::is_drained).
    pub fn has_unanswered(&self) -> bool {
        let counts = self.counts.clone();
        counts
            .into_summary(Ending::Drained, self.frontier.report())
            .has_unanswered()
    }

    /// Returns whether nothing is left to fetch. A crawl that is continued after its end has nothing left, unless seeds were added.
    pub fn is_drained(&self) -> bool {
        self.frontier.is_drained()
    }

    /// Returns the outputs that the earlier runs have saved.
    pub fn saved_outputs(&self) -> &[SavedOutput] {
        self.saving.as_ref().map_or(&[], |saving| &saving.outputs)
    }

    /// Returns what an earlier run has saved of the output with this name.
    pub fn saved_output(&self, name: &str) -> Option<&SavedOutput> {
        self.saved_outputs().iter().find(|output| output.name == name)
    }

    /// Checks that the crawl saves its frontier, if that has a directory.
    pub(super) fn check_parts(&self) -> Result<(), CrawlError> {
        match self.saving.is_none() && self.frontier.is_durable() {
            true => Err(CrawlError::NotOpened),
            false => Ok(()),
        }
    }

    /// Returns a time that is not before the last run, and the duration of all earlier runs.
    pub(super) fn end_of_last_run(&self) -> (Time, Duration) {
        let saved = self.saving.as_ref().map(|saving| (saving.last_time, saving.earlier));
        let (time, earlier) = saved.unwrap_or_default();
        (time.max(self.clock.now()), earlier)
    }

    /// Returns until when the next commit can wait for more changes; `None` if it cannot wait.
    ///
    /// It waits for some time, so that a commit has the results of several requests. But if other requests wait for the commit, and of all
    /// requests that are in flight, held or have ended since the last one at most a quarter, or one, is in flight, it cannot wait: servers
    /// must have enough to do.
    pub(super) fn commit_due(&mut self) -> Option<Instant> {
        let not_in_flight = self.held_leases.len() + self.uncommitted;
        let do_requests_wait = !self.held_leases.is_empty() || self.uncommitted > 0 && self.free_requests() == 0;
        let are_few_in_flight = self.ledger.len() <= (not_in_flight / 3).max(1);
        let saving = self.saving.as_mut()?;
        if self.ending.is_some() || !self.frontier.has_unsaved() || do_requests_wait && are_few_in_flight {
            return None;
        }
        let now = Instant::now();
        let due = *saving.changed.get_or_insert(now) + COLLECTED_FOR;
        (now < due).then_some(due)
    }

    /// Returns when what was committed has to be synced; `None` if all is. A crawl that waits for a host must not leave that to the next page.
    pub(super) fn sync_due(&self) -> Option<Instant> {
        let has_unsynced = self.saving.as_ref().is_some_and(|saving| saving.has_unsynced);
        let due = has_unsynced.then(|| self.frontier.next_sync())??;
        Some(self.clock.instant_of(due))
    }

    /// Commits all changes since the last call. Requests of held leases may start after it only.
    pub(super) fn save(&mut self) -> Result<(), CrawlError> {
        let Some(mut saving) = self.saving.take() else {
            return Ok(());
        };
        let now = self.clock.now();
        let sync = self.frontier.is_sync_due(now);
        if self.frontier.has_unsaved() || sync && saving.has_unsynced {
            self.write_outputs(&mut saving, sync)?;
            if sync {
                self.save_fetcher(&saving)?;
            }
            let state = self.encode(&mut saving, now)?;
            self.frontier.persist(&state, now)?;
            saving.buffer = state;
            saving.has_unsynced = !sync;
            if let Some(interval) = saving.sync_interval.take() {
                self.frontier.set_sync_interval(interval);
            }
        }
        saving.changed = None;
        self.saving = Some(saving);
        Ok(())
    }

    /// Makes the last commit of a run, and syncs it. The outputs are synced meanwhile.
    pub(super) fn save_last(&mut self) -> Result<(), CrawlError> {
        let Some(mut saving) = self.saving.take() else {
            return Ok(());
        };
        let now = self.clock.now();
        self.write_outputs(&mut saving, false)?;
        self.save_fetcher(&saving)?;
        // It states the last sync before this one: a power cut may leave this commit, and not what the thread syncs.
        let state = self.encode(&mut saving, now)?;
        let (frontier, observers) = (&mut self.frontier, &mut self.observers);
        let runtime = Handle::current();
        let synced = std::thread::scope(|scope| {
            let sync = scope.spawn(|| {
                // For observers of others, which may need it.
                let _entered = runtime.enter();
                observers
                    .iter_mut()
                    .try_for_each(|observer| observer.save(true).map(drop))
            });
            let mut failed = None;
            let is_synced = || {
                let joined = sync.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                failed = joined.err();
                failed.is_none()
            };
            frontier.checkpoint_after(&state, now, is_synced)?;
            Ok(failed)
        });
        self.saving = Some(saving);
        match synced {
            Ok(None) => Ok(()),
            Ok(Some(failed)) => Err(CrawlError::Observer(failed)),
            Err(error) => Err(CrawlError::Frontier(error)),
        }
    }

    /// Gives the fetcher what it has saved in an earlier run.
    fn restore_fetcher(&self, file: &Path) -> Result<(), StateError> {
        let damaged = |why: &dyn std::fmt::Display| StateError::Damaged(format!("{}: {why}", file.display()));
        match std::fs::read(file) {
            Ok(saved) => self.fetcher.restore(&saved).map_err(|why| damaged(&why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(damaged(&error)),
        }
    }

    /// Writes what the fetcher keeps, if it has changed.
    fn save_fetcher(&self, saving: &Saving) -> Result<(), StateError> {
        let Some(text) = self.fetcher.save() else {
            return Ok(());
        };
        let written = replace_file(&saving.fetcher, &text);
        written.map_err(|error| StateError::NotWritten(error.to_string()))
    }

    /// Writes out what the outputs have buffered. What an output lacks must not be committed, so an error ends the crawl at once.
    fn write_outputs(&mut self, saving: &mut Saving, sync: bool) -> Result<(), CrawlError> {
        if let Some(error) = self.observer_error.take() {
            return Err(CrawlError::Observer(error));
        }
        for observer in &mut self.observers {
            let Some(saved) = observer.save(sync).map_err(CrawlError::Observer)? else {
                continue;
            };
            match saving.outputs.iter_mut().find(|output| output.name == saved.name) {
                Some(output) => *output = saved,
                None => saving.outputs.push(saved),
            }
        }
        if sync {
            saving.note_synced();
        }
        Ok(())
    }

    fn encode(&self, saving: &mut Saving, now: Time) -> Result<Vec<u8>, CrawlError> {
        let state = CrawlStateRef {
            counts: &self.counts,
            elapsed: self.clock.elapsed(),
            time: now,
            seeds: saving.offered_seeds,
            rules: saving.rules,
            previous: self.previous_file.or(saving.previous),
            outputs: &saving.outputs,
            synced: &saving.synced,
        };
        let mut buffer = std::mem::take(&mut saving.buffer);
        buffer.clear();
        Ok(state.write(buffer)?)
    }
}
