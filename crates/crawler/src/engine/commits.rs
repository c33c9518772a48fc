//! Commits of a crawl with a state directory: the outputs first, then frontier, counts and outputs' states in one step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use frontier::{Directory, Lease, Time};
use tokio::time::Instant;

use super::Run;
use super::clock::time_of_day;
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::output::replace_file;
use crate::saved_output::SavedOutput;
use crate::state::{Commit, FETCHER_FILE, PAUSED_FILE, StateError};

/// For how long finished requests are collected into one commit at most. A commit costs about as much as fetching a small page from a
/// server nearby.
const COLLECTED_FOR: Duration = Duration::from_millis(2);

/// What a crawl keeps from one commit to the next. Without a state directory it makes none.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// What the last commit has; while one is made, what that will have.
    pub(crate) saved: Commit,
    /// The time of the frontier when it was opened: no earlier run has made a call later.
    pub(crate) opened: Time,
    /// Whether the last commit is of an earlier run, or this run has gone on from it.
    pub(crate) is_continued: bool,
    /// Options that have changed for new links only.
    pub(crate) for_new_links: Vec<&'static str>,
    /// The hash of the seeds of this run.
    pub(crate) seeds: u64,
    /// The directory.
    pub(crate) state: Option<PathBuf>,
    /// Leases whose requests wait for the next commit.
    pub(crate) held_leases: Vec<Lease>,
    /// The number of requests that have ended since the last commit. After a crash they are sent again.
    pub(crate) uncommitted: usize,
    /// When the first change since the last commit was seen.
    pub(crate) changed: Option<Instant>,
}

impl Commits {
    /// Continues from the last commit of an earlier run.
    pub(crate) fn continue_after(&mut self, last: Commit) {
        self.is_continued = true;
        self.saved = Commit { ending: None, ..last };
    }

    /// Returns until when the next commit can wait for more changes; `None` if it cannot wait. `commit_when_due` in `plan.rs` asks. `are_all_taken`
    /// says whether all places of the concurrency are taken, by requests in flight, held or ended since.
    ///
    /// It waits for some time, so that a commit has the results of several requests. But if other requests wait for the commit, and of all
    /// requests that are in flight, held or have ended since the last one at most a quarter, or one, is in flight, it cannot wait: servers
    /// must have enough to do.
    pub(super) fn can_wait_until(&mut self, in_flight: usize, are_all_taken: bool) -> Option<Instant> {
        let not_in_flight = self.held_leases.len() + self.uncommitted;
        let do_requests_wait = !self.held_leases.is_empty() || self.uncommitted > 0 && are_all_taken;
        let are_few_in_flight = in_flight <= (not_in_flight / 3).max(1);
        if do_requests_wait && are_few_in_flight {
            return None;
        }
        let now = Instant::now();
        let due = *self.changed.get_or_insert(now) + COLLECTED_FOR;
        (now < due).then_some(due)
    }
}

impl<S: Fetcher> Run<S> {
    pub(super) fn is_durable(&self) -> bool {
        self.commits.state.is_some()
    }

    pub(crate) fn restore_fetcher(&self) -> Result<(), StateError> {
        let Some(state) = &self.commits.state else {
            return Ok(());
        };
        let file = state.join(FETCHER_FILE);
        let damaged = |why: &dyn std::fmt::Display| StateError::Damaged(format!("{}: {why}", file.display()));
        match std::fs::read(&file) {
            Ok(saved) => self.fetcher.restore(&saved).map_err(|why| damaged(&why))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(damaged(&error)),
        }
        Ok(())
    }

    /// Returns when what was committed has to be synced; `None` if all is. A crawl that waits for a host must not leave that to the next page.
    pub(super) fn sync_due(&self) -> Option<Instant> {
        let due = self.frontier.save_status()?.next_sync?;
        Some(self.clock.instant_of(due))
    }

    /// Starts the requests of new leases, or lets them wait for the next commit. After a crash, the host of a request that went out before
    /// the commit of its lease could be asked again too early, unless it has no delay.
    pub(super) fn spawn_or_hold(&mut self, leases: Vec<Lease>) {
        for lease in leases {
            match self.is_durable() && !lease.delay.is_zero() {
                true => self.commits.held_leases.push(lease),
                false => self.spawn(lease),
            }
        }
    }

    /// Starts the requests that have waited for a commit, unless the crawl ends.
    pub(super) fn spawn_held(&mut self) {
        if !self.is_ending() {
            let held = std::mem::take(&mut self.commits.held_leases);
            held.into_iter().for_each(|lease| self.spawn(lease));
        }
    }

    /// Queues the entries again whose requests have waited for a commit.
    pub(super) fn give_back_held(&mut self) -> Result<(), CrawlError> {
        let ids: Vec<_> = self.commits.held_leases.drain(..).map(|lease| lease.id).collect();
        if !ids.is_empty() {
            self.frontier.give_back(&ids, self.clock.now())?;
        }
        Ok(())
    }

    pub(super) fn has_unsaved(&self) -> bool {
        self.frontier.save_status().is_some_and(|status| status.has_unsaved)
    }

    /// Commits all changes since the last call. Requests of held leases may start after it only.
    pub(super) fn save(&mut self) -> Result<(), CrawlError> {
        let Some(status) = self.frontier.save_status() else {
            return Ok(());
        };
        let now = self.clock.now();
        let sync = status.is_sync_due(now);
        let has_kept = self.keep_of_peers();
        (self.commits.changed, self.commits.uncommitted) = (None, 0);
        if status.has_unsaved || has_kept || sync && status.next_sync.is_some() {
            let started = Instant::now();
            if sync {
                self.frontier.check_place()?;
            }
            let saved = self.save_beside(sync)?;
            self.frontier.persist(&saved, now)?;
            let took = started.elapsed();
            let state = self.commits.state.as_ref().filter(|_| sync);
            let database_bytes = state.and_then(|state| Directory::new(state).database_bytes());
            self.observers.notify(&Event::Committed { took, database_bytes });
            if sync {
                self.tell_others(true);
            }
        }
        Ok(())
    }

    /// Notes in the state directory, for `SavedCrawl`, whether the crawl is paused. Returns whether that has changed.
    pub(super) fn mark_paused(&self, is_paused: bool) -> bool {
        let Some(state) = &self.commits.state else { return false };
        let file = state.join(PAUSED_FILE);
        match is_paused {
            true => std::fs::write(file, "").is_ok(),
            false => std::fs::remove_file(file).is_ok(),
        }
    }

    /// Writes how the hosts answer, for `SavedCrawl`.
    pub(super) fn save_answer_times(&self) {
        if let Some(state) = &self.commits.state
            && let Err(error) = self.answer_times.write(state)
        {
            log::debug!(target: "crawler::state", "how the hosts answer cannot be written: {error}");
        }
    }

    /// Makes a checkpoint if an output has begun since the last one, or has begun anew: where a later version cannot read the journal, it goes back to
    /// the checkpoint, and cuts the outputs back to their lengths there.
    pub(super) fn checkpoint_new_outputs(&mut self) -> Result<(), CrawlError> {
        if !self.is_durable() {
            return Ok(());
        }
        let earlier = self.commits.saved.outputs.clone();
        self.observers.save(false, &mut self.commits.saved.outputs)?;
        let is_continued = |output: &SavedOutput| {
            let earlier = earlier.iter().find(|earlier| earlier.name == output.name);
            earlier.is_some_and(|earlier| earlier.file.length <= output.file.length)
        };
        match self.commits.saved.outputs.iter().all(is_continued) {
            true => Ok(()),
            false => self.checkpoint(),
        }
    }

    /// Syncs the outputs, and makes the last commit of a run.
    pub(super) fn save_last(&mut self) -> Result<(), CrawlError> {
        self.frontier.check_place()?;
        self.save_answer_times();
        match self.is_durable() {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Syncs the outputs, and makes a checkpoint. The next [`save`](Self::save) goes on as if it had not been made.
    fn checkpoint(&mut self) -> Result<(), CrawlError> {
        let now = self.clock.now();
        self.keep_of_peers();
        let saved = self.save_beside(true)?;
        Ok(self.frontier.checkpoint(&saved, now)?)
    }

    /// Puts what is kept of other processes into the next commit, if it has changed. Returns whether it has.
    fn keep_of_peers(&mut self) -> bool {
        let kept = self.sharing.as_mut().and_then(|sharing| sharing.peers.unsaved());
        kept.map(|kept| self.commits.saved.peers = kept).is_some()
    }

    /// Saves the outputs, with `sync` also what the fetcher keeps, and encodes what is stored beside the frontier.
    fn save_beside(&mut self, sync: bool) -> Result<Vec<u8>, CrawlError> {
        let saved = &mut self.commits.saved;
        self.observers.save(sync, &mut saved.outputs)?;
        if sync {
            saved.synced = saved.outputs.iter().map(|output| output.file.clone()).collect();
            if let (Some(state), Some(kept)) = (&self.commits.state, self.fetcher.save()) {
                let written = replace_file(&state.join(FETCHER_FILE), &kept);
                written.map_err(|error| StateError::NotWritten(error.to_string()))?;
            }
        }
        saved.time = time_of_day();
        saved.elapsed = self.clock.elapsed();
        Ok(saved.write(&self.observers.counts)?)
    }
}
