//! What the loop waits for, besides tasks that end, stops and ticks.

use std::future::pending;
use std::ops::ControlFlow;
use std::time::Duration;

use frontier::Leasing;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::Run;
use crate::error::CrawlError;
use crate::fetch::Fetcher;
use crate::summary::Ending;

/// When the loop has more to do, whatever happens until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wake {
    /// At once, but stops and finished tasks come first: so a long queue of forbidden pages does not delay them.
    Now,
    At(Instant),
    Never,
}

impl Wake {
    pub(super) fn at(time: Option<Instant>) -> Self {
        time.map_or(Self::Never, Self::At)
    }

    /// Waits until then.
    pub(super) async fn reached(self) {
        match self {
            Self::Now => yield_now().await,
            Self::At(time) => sleep_until(time).await,
            Self::Never => pending().await,
        }
    }
}

/// What the loop does next: it waits, or ends.
pub(super) type Next = ControlFlow<Ending, Wake>;

impl<S: Fetcher> Run<S> {
    /// Starts and commits what can be now, and returns what to wait for: the earliest of the time limit, pages that come of age, the next host
    /// and the next commit.
    pub(super) fn next(&mut self) -> Result<Next, CrawlError> {
        let time_left = self.time_left();
        if time_left == Some(Duration::ZERO) {
            self.ending = Some(Ending::TimeUp);
        }
        let more_again = self.queue_again_when_due()?;
        let host = match self.lease()? {
            Next::Continue(wake) => wake,
            end @ Next::Break(_) => return Ok(end),
        };
        let commit = self.commit_when_due()?;
        self.tell_others(false);
        // A time that overflows `Instant` is no limit.
        let deadline = Wake::at(time_left.and_then(|time| Instant::now().checked_add(time)));
        Ok(Next::Continue(deadline.min(more_again).min(host).min(commit)))
    }

    /// `None` if there is none, or it does not pass now.
    fn time_left(&self) -> Option<Duration> {
        let passes = self.ending().is_none() && !self.clock.is_paused();
        let max_time = self.config.options().max_time.filter(|_| passes)?;
        Some(max_time.saturating_sub(self.clock.elapsed_in_run()))
    }

    /// Leases the requests that can start now, and returns when there may be more.
    fn lease(&mut self) -> Result<Next, CrawlError> {
        loop {
            if let Some(ending) = self.ending() {
                return self.wind_up(ending);
            }
            if self.is_ending() {
                // The loop answers the stop first.
                return Ok(Next::Continue(Wake::Now));
            }
            let free = self.free_requests();
            if free == 0 || self.clock.is_paused() {
                return Ok(Next::Continue(Wake::Never));
            }
            if let Some(ending) = self.ended_before() {
                return Ok(self.end_with_others(ending));
            }
            match self.frontier.lease(self.clock.now(), free)? {
                Leasing::Ready(ready) => {
                    if let Some(sharing) = &mut self.sharing {
                        sharing.nothing_left = None;
                    }
                    self.spawn_or_hold(ready);
                }
                Leasing::Dropped(dropped) => {
                    self.report_dropped(dropped);
                    return Ok(Next::Continue(Wake::Now));
                }
                Leasing::NotUntil(time) => return Ok(Next::Continue(Wake::At(self.clock.instant_of(time)))),
                // With others, the outboxes may be full.
                Leasing::AllLeased if self.requests_in_flight() == 0 && self.sharing.is_none() => {
                    return Err(CrawlError::Stalled);
                }
                Leasing::AllLeased => return Ok(Next::Continue(Wake::Never)),
                Leasing::BudgetSpent if !self.keeps_fresh() => return Ok(self.end_with_others(Ending::BudgetSpent)),
                // With others, the reach may grow until the end.
                Leasing::Drained if !self.held_links.is_empty() && self.sharing.is_none() => {
                    self.offer_held_links(true)?;
                }
                Leasing::Drained | Leasing::BudgetSpent if self.queue_again()? => {}
                // The next second looks again.
                Leasing::Drained | Leasing::BudgetSpent if self.keeps_fresh() => {
                    return Ok(Next::Continue(Wake::Never));
                }
                Leasing::Drained | Leasing::BudgetSpent => return Ok(self.end_with_others(Ending::Drained)),
            }
        }
    }

    /// Waits for the requests in flight. Then reports the entries that the frontier has dropped so far. No request starts any more.
    fn wind_up(&mut self, ending: Ending) -> Result<Next, CrawlError> {
        self.give_back_held()?;
        if !self.ledger.is_empty() {
            return Ok(Next::Continue(Wake::Never));
        }
        match self.frontier.lease(self.clock.now(), 0)? {
            Leasing::Dropped(dropped) => {
                self.report_dropped(dropped);
                Ok(Next::Continue(Wake::Now))
            }
            _ => Ok(Next::Break(ending)),
        }
    }

    /// Returns how many more requests may start: requests in flight and those that have ended since the last commit are together at most as
    /// many as the concurrency, so that no more are sent again after a crash.
    fn free_requests(&self) -> usize {
        let taken = self.requests_in_flight() + self.commits.uncommitted;
        self.config.options().concurrency.get().saturating_sub(taken)
    }

    fn requests_in_flight(&self) -> usize {
        self.ledger.len() + self.commits.held_leases.len()
    }

    /// Commits, and starts the requests that have waited for it, if it is time to. Returns when the next commit or sync is due.
    fn commit_when_due(&mut self) -> Result<Wake, CrawlError> {
        let are_all_taken = self.free_requests() == 0;
        let can_wait = self.ending().is_none() && self.has_unsaved();
        let in_flight = self.ledger.len();
        if can_wait && let Some(due) = self.commits.can_wait_until(in_flight, are_all_taken) {
            return Ok(Wake::At(due));
        }
        self.save()?;
        self.spawn_held();
        if are_all_taken && self.free_requests() > 0 {
            return Ok(Wake::Now);
        }
        Ok(Wake::at(self.sync_due()))
    }
}
