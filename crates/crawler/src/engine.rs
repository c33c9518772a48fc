//! The crawl loop: one task that owns the frontier and the requests in flight.

mod clock;
mod commits;
mod conclusions;
mod fetch_task;
mod last_checkpoint;
mod last_sync;
mod ledger;
mod observers;
mod plan;
mod refreshing;
mod reports;
mod seeding;
mod sharing;
mod spawn;
mod stop;

use std::sync::Arc;
use std::time::Duration;

use frontier::{Entry, Frontier, Link, Outcome, Time};
use page::links::SeenLinkCache;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use self::conclusions::Conclusion;
use self::ledger::Ledger;
use self::observers::Observers;
use self::plan::Next;
use self::refreshing::NextLook;
use self::stop::{Requested, Stop};
use crate::config::CrawlConfig;
use crate::error::CrawlError;
use crate::event::{Event, Phase};
use crate::fetch::Fetcher;
use crate::orders::{self, Given, Obeyed, Order, OrderError, Orders};
use crate::summary::{AnswerTimes, Ending, HostTable, Summary, peak_memory_bytes};

pub(crate) use self::clock::{Clock, Start, time_of_day};
pub(crate) use self::commits::Commits;
pub(crate) use self::last_checkpoint::go_back_if_logic_is_other;
pub(crate) use self::last_sync::go_back_if_outputs_are_lost;
pub(crate) use self::sharing::Sharing;
pub use self::stop::StopHandle;

/// How often observers get a progress event.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The most hosts that are looked at in each second.
const HOSTS_EACH_SECOND: u64 = 10_000;

/// The state of the loop.
pub(crate) struct Run<S> {
    pub(crate) config: Arc<CrawlConfig>,
    fetcher: Arc<S>,
    pub(crate) frontier: Frontier,
    pub(crate) observers: Observers,
    pub(crate) requested: watch::Sender<Requested>,
    pub(crate) orders: Orders,
    given: mpsc::Receiver<Given>,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) commits: Commits,
    next_look: NextLook,
    /// The other processes, if several share the crawl.
    pub(crate) sharing: Option<Sharing>,
    /// The [links](crate::CrawlOptions::links) that were not offered yet.
    held_links: Vec<Link>,
    /// How many redirected seeds have extended the reach so far.
    reach_extensions: u64,
    seen_links: Arc<SeenLinkCache>,
    ledger: Ledger,
    pub(crate) answer_times: AnswerTimes,
    /// The last one.
    host_table: Arc<HostTable>,
    /// The seconds of this run.
    ticks: u64,
    /// When the last of them ended.
    last_tick: Time,
    clock: Clock,
    ending: Option<Ending>,
}

impl<S: Fetcher> Run<S> {
    pub(crate) fn new(mut config: CrawlConfig, fetcher: S, frontier: Frontier) -> Self {
        let (orders, given) = Orders::new();
        Self {
            held_links: config.take_links(),
            reach_extensions: 0,
            config: Arc::new(config),
            fetcher: Arc::new(fetcher),
            frontier,
            observers: Observers::default(),
            requested: watch::Sender::default(),
            orders,
            given,
            phase: watch::Sender::default(),
            commits: Commits::default(),
            next_look: NextLook::default(),
            sharing: None,
            seen_links: Arc::default(),
            ledger: Ledger::default(),
            answer_times: AnswerTimes::default(),
            host_table: Arc::default(),
            ticks: 0,
            last_tick: Time::EPOCH,
            clock: Clock::start(Time::EPOCH, Duration::ZERO),
            ending: None,
        }
    }

    /// Runs the loop until the crawl ends.
    pub(crate) async fn finish(mut self) -> Result<Summary, CrawlError> {
        self.clock = Clock::start(self.commits.opened.max(self.clock.now()), self.commits.saved.elapsed);
        // So whatever the outputs get comes after a commit that knows them.
        self.checkpoint_new_outputs()?;
        self.begin()?;
        if self.mark_paused(false) {
            log::warn!(target: "crawler::state", "the last run ended in a pause, which does not outlive it: the crawl continues");
        }
        self.save()?;
        let mut requests = self.requested.subscribe();
        let woken = self.sharing.as_ref().map(|sharing| sharing.peers.woken());
        let mut answered = Stop::No;
        let mut ticks = interval(PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.clock.catch_up();
            // An observer may have requested a stop, too.
            let requested = *requests.borrow_and_update();
            if requested.stop != answered {
                answered = requested.stop;
                self.answer_stop(answered)?;
            }
            self.set_paused(requested.pause && self.ending().is_none())?;
            let more = self.exchange()?;
            let wake = match self.next()? {
                Next::Continue(wake) => wake.min(more),
                Next::Break(ending) => return self.end(ending),
            };
            self.tell_phase();
            tokio::select! {
                biased;
                _ = requests.changed() => {}
                Some((orders, answer)) = self.given.recv() => {
                    let obeyed = self.obey(orders)?;
                    _ = answer.send(obeyed);
                }
                _ = ticks.tick() => self.tick()?,
                conclusions = self.ledger.next_ended(&self.config), if !self.ledger.is_empty() => self.settle(conclusions)?,
                () = sharing::woken(woken.as_deref()) => {}
                () = wake.reached() => {}
            }
        }
    }

    /// `None` if it continues.
    fn ending(&self) -> Option<Ending> {
        self.observers.has_failed().then_some(Ending::Error).or(self.ending)
    }

    fn is_ending(&self) -> bool {
        self.ending().is_some() || self.requested.borrow().stop != Stop::No
    }

    /// Settles finished tasks together, and reports them.
    fn settle(&mut self, conclusions: Vec<Conclusion>) -> Result<(), CrawlError> {
        let now = self.clock.next_millisecond();
        if self.is_durable() {
            self.commits.uncommitted += conclusions.len();
        }
        let (settlements, reports): (Vec<_>, Vec<_>) = conclusions.into_iter().unzip();
        let settled = self.frontier.settle(&settlements, now)?;
        let is_seed_redirected =
            |entry: &Entry, outcome: &Outcome| entry.metadata.seed && *outcome == Outcome::Redirected;
        let mut ended = settlements.iter().zip(&reports);
        let has_new_reach = ended.any(|(one, report)| is_seed_redirected(&report.entry, one.outcome()));
        for ((settlement, report), settled) in settlements.iter().zip(reports).zip(settled) {
            self.report_settled(settlement, report, &settled);
        }
        // It commits, so what was settled must be in the outputs.
        if has_new_reach {
            self.offer_links_in_new_reach()?;
        }
        Ok(())
    }

    /// Begins to stop. Commits first what has ended.
    fn answer_stop(&mut self, requested: Stop) -> Result<(), CrawlError> {
        self.save()?;
        self.ending = Some(Ending::Stopped);
        if requested == Stop::Now {
            self.observers.counts.cut_short += self.ledger.abort_all() as u64;
        }
        Ok(())
    }

    /// Begins or ends a pause.
    fn set_paused(&mut self, is_paused: bool) -> Result<(), CrawlError> {
        if is_paused != self.clock.is_paused() {
            self.mark_paused(is_paused);
            self.tell_pause(is_paused);
        }
        if is_paused && !self.clock.is_paused() {
            self.give_back_held()?;
        }
        self.clock.set_paused(is_paused);
        self.tell_phase();
        Ok(())
    }

    /// Obeys orders, and commits them before the answer. What has ended before is committed first: it may be meant.
    fn obey(&mut self, given: Vec<Order>) -> Result<Result<Obeyed, OrderError>, CrawlError> {
        self.save()?;
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        let observers = &mut self.observers;
        let mut tell = |links: &[Link], verdicts: &[_]| observers.notify(&Event::Offered { links, verdicts });
        let urls = &config.options().canonicalizer;
        let obeyed = orders::obey(&mut self.frontier, urls, &given, now, &mut tell);
        if let Some(failure) = obeyed.as_ref().err().and_then(orders::failure) {
            return Err(failure);
        }
        self.next_look.is_due();
        self.save()?;
        Ok(obeyed)
    }

    fn tell_phase(&self) {
        let has_unsaved = self.has_unsaved();
        let phase = match (self.ending(), self.clock.is_paused()) {
            (Some(_), _) => Phase::Stopping,
            (None, false) => Phase::Running,
            (None, true) if self.ledger.is_empty() && !has_unsaved => Phase::Paused,
            (None, true) => Phase::Pausing,
        };
        self.phase
            .send_if_modified(|told| std::mem::replace(told, phase) != phase);
    }

    fn tick(&mut self) -> Result<(), CrawlError> {
        self.ticks += 1;
        self.frontier.check_place()?;
        let now = self.clock.now();
        for notice in self
            .frontier
            .began_to_hang(std::mem::replace(&mut self.last_tick, now), now)
        {
            self.observers.notify(&Event::Notice(&notice));
        }
        let is_seldom = self.ticks.is_multiple_of(60) || self.ticks.is_power_of_two();
        if is_seldom || self.frontier.report().hosts <= HOSTS_EACH_SECOND {
            self.look_at_hosts(now);
        }
        self.observers.counts.freshness = self.frontier.freshness(now);
        let summary = self.summary(Ending::Drained);
        self.observers.notify(&Event::Tick(&summary));
        if is_seldom {
            self.save_answer_times();
        }
        Ok(())
    }

    fn look_at_hosts(&mut self, now: Time) {
        let table = self.answer_times.table(&self.frontier, now, self.clock.ahead());
        self.host_table = Arc::new(table);
    }

    pub(crate) fn summary(&self, ending: Ending) -> Summary {
        Summary {
            elapsed: self.clock.elapsed(),
            elapsed_before: self.clock.earlier,
            robots_name: self.config.robots_name().map(str::to_owned),
            host_table: Arc::clone(&self.host_table),
            has_lost_links: self.sharing.as_ref().is_some_and(|sharing| sharing.peers.has_lost()),
            repeated_batches: self.sharing.as_ref().map_or(0, |sharing| sharing.peers.repeated()),
            ..Summary::new(ending, self.observers.counts.clone(), self.frontier.report())
        }
    }

    fn end(mut self, ending: Ending) -> Result<Summary, CrawlError> {
        // So that the state directory gets the duration that the summary has.
        self.clock.set_paused(true);
        let ending = self.ending().unwrap_or(ending);
        self.look_at_hosts(self.clock.now());
        let summary = Summary {
            peak_memory_bytes: peak_memory_bytes(),
            ..self.summary(ending)
        };
        self.observers.notify(&Event::Finished(&summary));
        self.commits.saved.ending = Some(ending);
        self.save_last()?;
        if let Some(sharing) = &mut self.sharing {
            sharing.peers.leave();
        }
        self.observers.check()?;
        Ok(summary)
    }
}
