//! The one loop. It owns the frontier; tokio tasks and timers are here only.

mod beginning;
mod starting;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use frontier::{Clusters, Frontier, FrontierError, Lease, Leasing, NotFetched, Origin, Outcome, Settlement, Time};
use sieve::{Filter, SeenSet};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::clock::Clock;
use crate::comparing::Draw;
use crate::config::{CrawlConfig, CrawlOptions};
use crate::earlier::EarlierCrawl;
use crate::error::{CrawlError, StartError};
use crate::event::{Event, Observer, Progress};
use crate::fetch::{Fetcher, HttpFetcher};
use crate::links::{KnownLinks, Uncrawlable, Wording};
use crate::robots::{Policies, Policy};
use crate::settling::{Aftermath, Attempts, Conclusion, Redirects, Returned, conclude};
use crate::stop::{Stop, StopHandle};
use crate::summary::{Counts, Ending, Summary};
use beginning::{Again, Which};

/// How often observers are told how far the crawl is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// One crawl: [`run`](Self::run) takes it to its end.
pub struct Crawl<S = HttpFetcher, F = SeenSet> {
    config: Arc<CrawlConfig>,
    fetcher: Arc<S>,
    frontier: Frontier<F>,
    policies: Policies,
    known: Arc<KnownLinks>,
    pub(crate) duplicates: Clusters,
    pub(crate) draw: Draw,
    pub(crate) attempts: Attempts,
    pub(crate) redirects: Redirects,
    /// What is asked for again.
    again: Option<Again>,
    observers: Vec<Box<dyn Observer>>,
    counts: Counts,
    clock: Clock,
    tasks: JoinSet<Conclusion>,
    /// What is out, and since when.
    leases: HashMap<Id, (Lease, Time)>,
    stop: watch::Sender<Stop>,
    ending: Option<Ending>,
    broken: Option<io::Error>,
}

impl<S, F> std::fmt::Debug for Crawl<S, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Crawl {
    /// Prepares a crawl over HTTP with a Bloom filter as its seen-set.
    ///
    /// # Errors
    ///
    /// A frontier or an HTTP client that cannot be set up.
    pub fn new(config: CrawlConfig) -> Result<Self, StartError> {
        let frontier = Frontier::in_memory(config.options().frontier.clone())?;
        let fetcher = HttpFetcher::new(&config)?;
        Ok(Self::with(config, frontier, fetcher))
    }
}

/// What the loop does next.
enum Next {
    Wait(Option<Instant>),
    /// There is more to hand out, but nothing came of the last round: a stop or a task must not wait until a long queue of
    /// forbidden pages is gone through.
    Again,
    End(Ending),
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Prepares a crawl with a frontier and a fetcher of your own.
    pub fn with(config: CrawlConfig, frontier: Frontier<F>, fetcher: S) -> Self {
        Self {
            duplicates: Clusters::new(config.options().max_fingerprints),
            draw: Draw::default(),
            attempts: Attempts::default(),
            redirects: Redirects::default(),
            config: Arc::new(config),
            fetcher: Arc::new(fetcher),
            frontier,
            policies: Policies::default(),
            known: Arc::default(),
            again: None,
            observers: Vec::new(),
            counts: Counts::default(),
            clock: Clock::start(),
            tasks: JoinSet::new(),
            leases: HashMap::new(),
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
    pub fn recrawl(mut self, earlier: EarlierCrawl) -> Self {
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
    /// An observer that failed, after what was out has come back; an earlier crawl that can no longer be read.
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
                Some(back) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => self.take_back(back)?,
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
                return Ok(if self.tasks.is_empty() {
                    Next::End(ending)
                } else {
                    Next::Wait(None)
                });
            }
            let free = self.config.options().concurrency.get().saturating_sub(self.tasks.len());
            if free == 0 {
                return Ok(Next::Wait(None));
            }
            match self.frontier.lease(self.clock.now(), free)? {
                Leasing::Ready(leases) => {
                    self.start(leases)?;
                    if self.config.options().concurrency.get().saturating_sub(self.tasks.len()) == free {
                        return Ok(Next::Again);
                    }
                }
                Leasing::NotUntil(time) => return Ok(Next::Wait(Some(self.clock.instant_of(time)))),
                Leasing::AllLeased if self.tasks.is_empty() => return Err(CrawlError::Stalled),
                Leasing::AllLeased => return Ok(Next::Wait(None)),
                Leasing::BudgetSpent => return Ok(Next::End(Ending::BudgetSpent)),
                Leasing::Drained if self.again.is_some() => self.offer_earlier(Which::All)?,
                Leasing::Drained => return Ok(Next::End(Ending::Drained)),
            }
        }
    }

    /// Takes back all tasks that have ended, and settles them in one commit.
    fn take_back(&mut self, first: Result<(Id, Conclusion), JoinError>) -> Result<(), CrawlError> {
        let mut conclusions = Vec::new();
        let mut next = Some(first);
        while let Some(back) = next {
            let id = back.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            if let Some((lease, started)) = self.leases.remove(&id) {
                conclusions.push(back.map_or_else(
                    |error| {
                        let result = Err(error.to_string());
                        conclude(Returned { lease, started, result }, &self.config)
                    },
                    |(_, conclusion)| conclusion,
                ));
            }
            next = self.tasks.try_join_next_with_id();
        }
        self.settle(conclusions)
    }

    fn settle(&mut self, conclusions: Vec<Conclusion>) -> Result<(), CrawlError> {
        let now = self.clock.just_after();
        let (settlements, mut aftermaths): (Vec<_>, Vec<_>) = conclusions.into_iter().unzip();
        for (settlement, aftermath) in settlements.iter().zip(&mut aftermaths) {
            self.compare(settlement, aftermath)?;
        }
        let settled = self.frontier.settle(&settlements, now)?;
        let is_seed_moved = |(settlement, aftermath): (&Settlement, &Aftermath)| {
            settlement.outcome == Outcome::Moved && aftermath.entry().metadata.seed
        };
        if self.again.is_some() && settlements.iter().zip(&aftermaths).any(is_seed_moved) {
            self.territory_has_grown()?;
        }
        for ((settlement, aftermath), settled) in settlements.iter().zip(aftermaths).zip(settled) {
            self.tell(&Event::Offered {
                links: &settlement.links,
                verdicts: &settled.verdicts,
            });
            for entry in settled.given_up {
                self.give_up(&entry, now)?;
            }
            for entry in settled.over_budget {
                self.tell_not_fetched(&entry, Outcome::NotFetched(NotFetched::HostBudget));
            }
            self.follow_up(aftermath, settled.fate, &settled.verdicts, now)?;
        }
        Ok(())
    }

    /// What is known of an origin's robots.txt now lets its pages be handed out.
    pub(crate) fn know(
        &mut self,
        origin: Origin,
        policy: Policy,
        lifetime: Duration,
        now: Time,
    ) -> Result<(), FrontierError> {
        let until = now + lifetime;
        self.frontier.robots_known(&origin, until, now)?;
        let host = origin.host().clone();
        for evicted in self.policies.insert(origin, policy, until, now) {
            // Its pages wait until it was asked for again.
            self.frontier.robots_known(&evicted, Time::EPOCH, now)?;
        }
        let delay = self.policies.crawl_delay(&host).unwrap_or_default();
        let delay = delay.min(self.config.options().max_crawl_delay);
        self.frontier.set_delay(&host, delay, now)
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(crate) fn options(&self) -> &CrawlOptions {
        self.config.options()
    }

    /// Remembers links that the frontier has seen, in these words.
    pub(crate) fn remember_links(&mut self, links: impl Iterator<Item = Wording>) {
        links.for_each(|link| self.known.remember(link));
        if let Some(grown) = self.known.grown() {
            self.known = Arc::new(grown);
        }
    }

    pub(crate) fn frontier(&self) -> &Frontier<F> {
        &self.frontier
    }

    pub(crate) fn frontier_mut(&mut self) -> &mut Frontier<F> {
        &mut self.frontier
    }

    pub(crate) fn count_links(&mut self, dropped: u64, nofollow: u64) {
        self.counts.links_dropped += dropped;
        self.counts.links_nofollow += nofollow;
    }

    pub(crate) fn count_cookies(&mut self, dropped: usize) {
        self.counts.cookies_dropped += dropped as u64;
    }

    pub(crate) fn count_uncrawlable(&mut self, links: Uncrawlable) {
        self.counts.links_other_scheme += links.other_scheme as u64;
        self.counts.links_unresolvable += links.unresolvable as u64;
    }

    fn stop_as_asked(&mut self, asked: Stop) {
        if asked == Stop::No {
            return;
        }
        self.ending = Some(Ending::Stopped);
        if asked == Stop::Now {
            self.counts.cut_short += self.tasks.len() as u64;
            self.tasks = JoinSet::new();
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
        let mut hosts: Vec<_> = self.frontier.receipts().collect();
        hosts.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.host.cmp(&b.host)));
        let summary = Summary {
            elapsed: self.clock.elapsed(),
            duplicates: self.duplicates.counts(),
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
