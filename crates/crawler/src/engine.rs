//! The one loop. It owns the frontier, and what is in flight.

pub(crate) mod clock;
mod conclusions;
mod failure_policy;
mod fetch_task;
mod ledger;
mod reports;
mod seeding;
mod spawn;
mod stop;

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Frontier, Leasing, Outcome};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::config::CrawlConfig;
use crate::engine::clock::Clock;
use crate::engine::conclusions::Conclusion;
use crate::engine::ledger::Ledger;
use crate::engine::stop::Stop;
pub use crate::engine::stop::StopHandle;
use crate::error::{CrawlError, StartError};
use crate::event::{Event, Observer, Progress};
use crate::fetch::{Fetcher, HttpFetcher};
use crate::page::links::SeenLinkCache;
use crate::recrawl::PreviousCrawl;
use crate::summary::{Counts, Ending, Summary};
use seeding::{Again, Which};

/// How often observers are told how far the crawl is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// One crawl: [`run`](Self::run) takes it to its end.
pub struct Crawl<S = HttpFetcher> {
    config: Arc<CrawlConfig>,
    fetcher: Arc<S>,
    frontier: Frontier,
    known: Arc<SeenLinkCache>,
    ledger: Ledger,
    /// What is asked for again.
    again: Option<Again>,
    observers: Vec<Box<dyn Observer>>,
    counts: Counts,
    clock: Clock,
    stop: watch::Sender<Stop>,
    ending: Option<Ending>,
    broken: Option<io::Error>,
}

impl<S> std::fmt::Debug for Crawl<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Crawl {
    /// Prepares a crawl over HTTP, with a frontier as the options describe it.
    ///
    /// # Errors
    ///
    /// A frontier or an HTTP client that cannot be set up.
    pub fn new(config: CrawlConfig) -> Result<Self, StartError> {
        let mut options = config.options().frontier.clone();
        if config.options().fingerprints {
            options.compare_one_of = NonZeroU32::MIN;
        }
        let frontier = Frontier::in_memory(options)?;
        let fetcher = HttpFetcher::new(&config)?;
        Ok(Self::with(config, frontier, fetcher))
    }
}

/// What the loop does next.
enum Next {
    Wait(Option<Instant>),
    /// Entries were dropped, and there may be more: a stop or a task must not wait until a long queue of forbidden pages is gone
    /// through.
    Again,
    End(Ending),
}

impl<S: Fetcher> Crawl<S> {
    /// Prepares a crawl with a frontier and a fetcher of your own.
    pub fn with(config: CrawlConfig, frontier: Frontier, fetcher: S) -> Self {
        Self {
            config: Arc::new(config),
            fetcher: Arc::new(fetcher),
            frontier,
            known: Arc::default(),
            ledger: Ledger::default(),
            again: None,
            observers: Vec::new(),
            counts: Counts::default(),
            clock: Clock::start(),
            stop: watch::Sender::new(Stop::No),
            ending: None,
            broken: None,
        }
    }

    /// Adds a listener.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Asks for all pages of an earlier crawl again, besides what the seeds lead to: whole only if they have changed since.
    ///
    /// Those that the scope leaves out, or the budgets have no room for, are refused like links to them.
    #[must_use]
    pub fn recrawl(mut self, earlier: PreviousCrawl) -> Self {
        self.again = Some(Again::new(earlier));
        self
    }

    /// Returns what it was started from.
    pub fn config(&self) -> &CrawlConfig {
        &self.config
    }

    /// Returns a handle that stops the crawl while it runs.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::new(self.stop.clone())
    }

    /// Crawls to the end: until nothing is left, a budget is spent, or a stop is asked for.
    ///
    /// # Errors
    ///
    /// An observer that failed, after what was in flight has come back; an earlier crawl that can no longer be read.
    pub async fn run(mut self) -> Result<Summary, CrawlError> {
        self.clock = Clock::start();
        self.begin()?;
        let mut stop = self.stop.subscribe();
        stop.mark_changed();
        let mut ticks = interval(PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A time too long to be written down is none.
        let max_time = self.config.options().max_time;
        let deadline = max_time.and_then(|time| Instant::now().checked_add(time));
        let ending = loop {
            let (wake, again) = match self.hand_out()? {
                Next::Wait(wake) => (wake, false),
                Next::Again => (None, true),
                Next::End(ending) => break ending,
            };
            tokio::select! {
                biased;
                Ok(()) = stop.changed() => {
                    let asked = *stop.borrow_and_update();
                    self.stop_as_asked(asked);
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && self.ending.is_none() => {
                    self.ending = Some(Ending::TimeUp);
                }
                _ = ticks.tick() => self.tick(),
                back = self.ledger.next(), if !self.ledger.is_empty() => {
                    let conclusions = self.ledger.take_back(back, &self.config);
                    self.settle(conclusions)?;
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = yield_now(), if again => {}
            }
        };
        self.end(ending)
    }

    /// Starts what can be started now, and says what to wait for.
    fn hand_out(&mut self) -> Result<Next, CrawlError> {
        loop {
            if let Some(ending) = self.ending {
                if !self.ledger.is_empty() {
                    return Ok(Next::Wait(None));
                }
                // What was dropped by then is reported; nothing more is started.
                let Leasing::Dropped(dropped) = self.frontier.lease(self.clock.now(), 0)? else {
                    return Ok(Next::End(ending));
                };
                self.report_dropped(dropped);
                return Ok(Next::Again);
            }
            let free = self
                .config
                .options()
                .concurrency
                .get()
                .saturating_sub(self.ledger.len());
            if free == 0 {
                return Ok(Next::Wait(None));
            }
            match self.frontier.lease(self.clock.now(), free)? {
                Leasing::Ready(leases) => leases.into_iter().for_each(|lease| self.spawn(lease)),
                Leasing::Dropped(dropped) => {
                    self.report_dropped(dropped);
                    return Ok(Next::Again);
                }
                Leasing::NotUntil(time) => return Ok(Next::Wait(Some(self.clock.instant_of(time)))),
                Leasing::AllLeased if self.ledger.is_empty() => return Err(CrawlError::Stalled),
                Leasing::AllLeased => return Ok(Next::Wait(None)),
                Leasing::BudgetSpent => return Ok(Next::End(Ending::BudgetSpent)),
                Leasing::Drained if self.again.is_some() => self.offer_earlier(Which::All)?,
                Leasing::Drained => return Ok(Next::End(Ending::Drained)),
            }
        }
    }

    /// Settles what has come back in one commit, and reports it.
    fn settle(&mut self, conclusions: Vec<Conclusion>) -> Result<(), CrawlError> {
        let now = self.clock.just_after();
        let concluded = conclusions.into_iter().map(|one| (one.settlement, one.report));
        let (settlements, reports): (Vec<_>, Vec<_>) = concluded.unzip();
        let settled = self.frontier.settle(&settlements, now)?;
        let is_seed_redirected =
            |entry: &Entry, outcome: Option<&Outcome>| entry.metadata.seed && outcome == Some(&Outcome::Redirected);
        let mut ended = settlements.iter().zip(&reports);
        if self.again.is_some() && ended.any(|(one, report)| is_seed_redirected(&report.entry, one.outcome())) {
            self.reach_has_grown()?;
        }
        for ((settlement, report), settled) in settlements.iter().zip(reports).zip(settled) {
            self.tell(&Event::Offered {
                links: settlement.links(),
                verdicts: &settled.verdicts,
            });
            self.report(report, &settled);
        }
        Ok(())
    }

    fn stop_as_asked(&mut self, asked: Stop) {
        if asked == Stop::No {
            return;
        }
        self.ending = Some(Ending::Stopped);
        if asked == Stop::Now {
            self.counts.cut_short += self.ledger.abort_all() as u64;
        }
    }

    fn tick(&mut self) {
        let progress = Progress {
            elapsed: self.clock.elapsed(),
            pages: self.counts.pages,
            bytes: self.counts.bytes,
            report: self.frontier.report(),
        };
        self.tell(&Event::Tick(&progress));
    }

    /// Tells all observers; the first error ends the crawl, and whoever gave it is told no more.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        self.counts.count(event);
        self.observers.retain_mut(|observer| match observer.on(event) {
            Ok(()) => true,
            Err(error) => {
                self.broken.get_or_insert(error);
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
            ..std::mem::take(&mut self.counts).into_summary(ending, self.frontier.report())
        };
        self.tell(&Event::Finished(&summary));
        match self.broken {
            Some(error) => Err(CrawlError::Observer(error)),
            None => Ok(summary),
        }
    }
}
