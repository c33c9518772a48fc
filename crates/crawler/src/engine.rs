//! The crawl loop: one task that owns the frontier and the requests in flight.

pub(crate) mod clock;
mod conclusions;
mod failure_policy;
mod fetch_task;
mod last_sync;
mod ledger;
mod open_seeds;
mod preparing;
mod refreshing;
mod reports;
mod saving;
mod seeding;
mod spawn;
mod stop;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Frontier, Lease, Leasing, Outcome};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::config::CrawlConfig;
use crate::engine::clock::Clock;
use crate::engine::conclusions::Conclusion;
use crate::engine::ledger::Ledger;
use crate::engine::open_seeds::OpenSeeds;
use crate::engine::stop::Stop;
pub use crate::engine::stop::StopHandle;
use crate::error::CrawlError;
use crate::event::{Event, Observer, Progress};
use crate::fetch::{Fetcher, HttpFetcher};
use crate::page::links::SeenLinkCache;
use crate::recrawl::{Children, PreviousFile};
use crate::summary::{Counts, Ending, Summary};
use saving::Saving;
use seeding::{PreviousPages, Recrawl};

/// How often observers get a progress event.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// One crawl. [`run`](Self::run) runs it until it ends; [`on_event`](Self::on_event) shows what happens, and a
/// [`StopHandle`] ends it earlier.
pub struct Crawl<S = HttpFetcher> {
    config: Arc<CrawlConfig>,
    fetcher: Arc<S>,
    frontier: Frontier,
    seen_links: Arc<SeenLinkCache>,
    open_seeds: OpenSeeds,
    /// The URLs per referrer of the previous crawl.
    previous_children: Children,
    ledger: Ledger,
    /// The previous crawl, while some of its pages are not offered yet.
    recrawl: Option<Recrawl>,
    /// The file of the crawl that this one repeats.
    previous_file: Option<PreviousFile>,
    observers: Vec<Box<dyn Observer>>,
    counts: Counts,
    clock: Clock,
    stop: watch::Sender<Stop>,
    ending: Option<Ending>,
    observer_error: Option<io::Error>,
    /// Leases whose requests wait for the next commit.
    held_leases: Vec<Lease>,
    /// The number of requests that have ended since the last commit. After a crash they are sent again.
    uncommitted: usize,
    /// What goes from one commit to the next, if the crawl has a state directory.
    saving: Option<Saving>,
}

impl<S> std::fmt::Debug for Crawl<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// What the loop does next.
enum Next {
    Wait(Option<Instant>),
    /// The frontier dropped entries, and more may follow. The loop looks at stops and finished tasks first, so that a
    /// long queue of forbidden pages does not delay them.
    LeaseMore,
    End(Ending),
}

impl Next {
    /// Waits until `due` at most.
    fn before(self, due: Option<Instant>) -> Self {
        match self {
            Self::Wait(wake) => Self::Wait(wake.into_iter().chain(due).min()),
            other => other,
        }
    }
}

impl<S: Fetcher> Crawl<S> {
    /// Runs the crawl until the queue is empty, a budget is spent, or a stop is requested.
    ///
    /// # Errors
    ///
    /// Fails if an observer fails; the requests in flight finish first, unless the crawl has a state directory. Fails if the file of the
    /// previous crawl can no longer be read, or if the state directory cannot be written. Fails at once if the frontier has a directory that the
    /// crawl was not opened with ([`with_parts`](Self::with_parts)).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, and in one without timers: build it with `enable_time` or `enable_all`. The HTTP fetcher needs
    /// `enable_io`, too.
    pub async fn run(mut self) -> Result<Summary, CrawlError> {
        self.check_parts()?;
        let (earliest, earlier) = self.end_of_last_run();
        self.clock = Clock::start_run(earliest, earlier);
        self.begin()?;
        let mut stop = self.stop.subscribe();
        // A stop may have been requested before. To handle this mark is to commit: so every answer comes after a commit that knows the outputs.
        stop.mark_changed();
        let mut ticks = interval(PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A maximum time that overflows `Instant` is no limit.
        let max_time = self.config.options().max_time;
        let deadline = max_time.and_then(|time| Instant::now().checked_add(time));
        let ending = loop {
            let (wake, has_more) = match self.start_requests()? {
                Next::Wait(wake) => (wake, false),
                Next::LeaseMore => (None, true),
                Next::End(ending) => break ending,
            };
            tokio::select! {
                biased;
                Ok(()) = stop.changed() => stop.mark_changed(),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && self.ending.is_none() => {
                    self.ending = Some(Ending::TimeUp);
                }
                _ = ticks.tick() => self.tick(),
                conclusions = self.ledger.next_ended(&self.config), if !self.ledger.is_empty() => self.settle(conclusions)?,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = yield_now(), if has_more => {}
            }
            // An observer may have requested a stop in any branch.
            if stop.has_changed().unwrap_or(false) {
                self.answer_stop(&mut stop)?;
            }
        };
        self.end(ending)
    }

    /// Starts the requests that can start now, and returns what to wait for.
    fn start_requests(&mut self) -> Result<Next, CrawlError> {
        let has_more = self.queue_again_when_due()?;
        let next = match self.lease()? {
            Next::Wait(_) if has_more => Next::LeaseMore,
            next => next,
        };
        let due = self.commit_due();
        if due.is_none() {
            let were_all_taken = self.free_requests() == 0;
            self.save_and_spawn()?;
            if were_all_taken && self.free_requests() > 0 {
                return Ok(Next::LeaseMore);
            }
        }
        Ok(next.before(due.or_else(|| self.sync_due())))
    }

    /// Commits, and starts the requests that have waited for it, unless the crawl ends.
    fn save_and_spawn(&mut self) -> Result<(), CrawlError> {
        self.save()?;
        self.uncommitted = 0;
        if !self.is_ending() {
            let leases = std::mem::take(&mut self.held_leases);
            leases.into_iter().for_each(|lease| self.spawn(lease));
        }
        Ok(())
    }

    /// Queues the entries again whose requests have waited for a commit.
    fn give_back_held(&mut self) -> Result<(), CrawlError> {
        let leases = std::mem::take(&mut self.held_leases);
        let ids: Vec<_> = leases.iter().map(|lease| lease.id).collect();
        if !ids.is_empty() {
            self.frontier.give_back(&ids, self.clock.now())?;
        }
        Ok(())
    }

    /// Returns whether the crawl ends, or has to because a stop was requested: no more requests may start.
    fn is_ending(&self) -> bool {
        self.ending.is_some() || *self.stop.borrow() != Stop::No
    }

    /// Starts the requests of new leases, or lets them wait for the next commit. After a crash, the host of a request that went out before
    /// the commit of its lease could be asked again too early, unless it has no delay.
    fn spawn_or_hold(&mut self, leases: Vec<Lease>) {
        let is_saved = self.saving.is_some();
        for lease in leases {
            if is_saved && !lease.delay.is_zero() {
                self.held_leases.push(lease);
            } else {
                self.spawn(lease);
            }
        }
    }

    /// Returns how many more requests may start: requests in flight and those that have ended since the last commit are together at most as
    /// many as the concurrency, so that no more are sent again after a crash.
    fn free_requests(&self) -> usize {
        let taken = self.ledger.len() + self.held_leases.len() + self.uncommitted;
        self.config.options().concurrency.get().saturating_sub(taken)
    }

    /// Leases the requests that can start now, and returns what to wait for.
    fn lease(&mut self) -> Result<Next, CrawlError> {
        loop {
            if let Some(ending) = self.ending {
                self.give_back_held()?;
                if !self.ledger.is_empty() {
                    return Ok(Next::Wait(None));
                }
                // Reports the entries that the frontier has dropped so far. No request starts any more.
                let Leasing::Dropped(dropped) = self.frontier.lease(self.clock.now(), 0)? else {
                    return Ok(Next::End(ending));
                };
                self.report_dropped(dropped);
                return Ok(Next::LeaseMore);
            }
            if self.is_ending() {
                // The loop answers the stop first.
                return Ok(Next::LeaseMore);
            }
            let free = self.free_requests();
            if free == 0 {
                return Ok(Next::Wait(None));
            }
            match self.frontier.lease(self.clock.now(), free)? {
                Leasing::Ready(ready) => self.spawn_or_hold(ready),
                Leasing::Dropped(dropped) => {
                    self.report_dropped(dropped);
                    return Ok(Next::LeaseMore);
                }
                Leasing::NotUntil(time) => return Ok(Next::Wait(Some(self.clock.instant_of(time)))),
                Leasing::AllLeased if self.ledger.is_empty() && self.held_leases.is_empty() => {
                    return Err(CrawlError::Stalled);
                }
                Leasing::AllLeased => return Ok(Next::Wait(None)),
                Leasing::BudgetSpent => return Ok(Next::End(Ending::BudgetSpent)),
                Leasing::Drained if self.recrawl.is_some() => self.offer_previous(PreviousPages::All)?,
                Leasing::Drained if self.queue_again()? => {}
                Leasing::Drained => return Ok(Next::End(Ending::Drained)),
            }
        }
    }

    /// Settles finished tasks in one commit, and reports them.
    fn settle(&mut self, conclusions: Vec<Conclusion>) -> Result<(), CrawlError> {
        let now = self.clock.next_millisecond();
        if self.saving.is_some() {
            self.uncommitted += conclusions.len();
        }
        let concluded = conclusions.into_iter().map(|one| (one.settlement, one.report));
        let (settlements, reports): (Vec<_>, Vec<_>) = concluded.unzip();
        let settled = self.frontier.settle(&settlements, now)?;
        let is_seed_redirected =
            |entry: &Entry, outcome: Option<&Outcome>| entry.metadata.seed && outcome == Some(&Outcome::Redirected);
        let mut ended = settlements.iter().zip(&reports);
        let has_new_reach =
            self.recrawl.is_some() && ended.any(|(one, report)| is_seed_redirected(&report.entry, one.outcome()));
        for ((settlement, report), settled) in settlements.iter().zip(reports).zip(settled) {
            self.open_seeds.settled(&report.entry, settlement.links(), &settled);
            self.notify(&Event::Offered {
                links: settlement.links(),
                verdicts: &settled.verdicts,
            });
            self.report_settled(report, &settled);
        }
        // It commits, so what was settled must be in the outputs.
        if has_new_reach {
            self.offer_previous_in_new_reach()?;
        }
        Ok(())
    }

    /// Begins to stop if that was requested. Commits first, and starts the requests that have waited for it if not.
    fn answer_stop(&mut self, stop: &mut watch::Receiver<Stop>) -> Result<(), CrawlError> {
        let requested = *stop.borrow_and_update();
        self.save_and_spawn()?;
        if requested == Stop::No {
            return Ok(());
        }
        self.ending = Some(Ending::Stopped);
        if requested == Stop::Now {
            self.counts.cut_short += self.ledger.abort_all() as u64;
        }
        Ok(())
    }

    fn tick(&mut self) {
        let progress = Progress {
            elapsed: self.clock.elapsed(),
            elapsed_before: self.clock.earlier(),
            pages: self.counts.pages,
            failed: self.counts.failed_pages(),
            bytes: self.counts.bytes,
            report: self.frontier.report(),
        };
        self.notify(&Event::Tick(&progress));
    }

    /// Notifies all observers.
    ///
    /// The first error ends the crawl. An observer that failed gets no further events.
    pub(crate) fn notify(&mut self, event: &Event<'_>) {
        self.counts.count(event);
        self.observers.retain_mut(|observer| match observer.on(event) {
            Ok(()) => true,
            Err(error) => {
                self.observer_error.get_or_insert(error);
                self.ending.get_or_insert(Ending::Stopped);
                false
            }
        });
    }

    fn end(mut self, ending: Ending) -> Result<Summary, CrawlError> {
        let mut hosts: Vec<_> = self.frontier.host_reports().collect();
        hosts.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.host.cmp(&b.host)));
        let summary = Summary {
            elapsed: self.clock.elapsed(),
            hosts,
            ..self.counts.clone().into_summary(ending, self.frontier.report())
        };
        self.notify(&Event::Finished(&summary));
        self.save_last()?;
        match self.observer_error {
            Some(error) => Err(CrawlError::Observer(error)),
            None => Ok(summary),
        }
    }
}
