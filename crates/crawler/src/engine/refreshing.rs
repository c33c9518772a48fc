//! Pages that were fetched long ago, or whose next visit is due, are fetched again, and at the begin of a run those that got no answer in the one before.

use std::time::Duration;

use frontier::{QueuedAgain, Refetch, Time};

use super::Run;
use super::plan::Wake;
use super::stop::Stop;
use crate::error::CrawlError;
use crate::fetch::Fetcher;
use crate::summary::duration;

/// The pages that are queued again at once.
const PAGES_AT_ONCE: usize = 1024;
/// The pause between two looks for pages of age, if there is none that will be.
const PAUSE: Duration = Duration::from_secs(1);

/// When pages are looked for next that are queued again.
#[derive(Debug, Default)]
pub(super) struct NextLook {
    /// Those that have come of age.
    refresh: Time,
    /// Those that got no answer in an earlier run; `None` if there are no more.
    retry: Option<Time>,
}

impl NextLook {
    /// Looks for what is due at once, as it may have been planned anew.
    pub(super) fn is_due(&mut self) {
        self.refresh = Time::EPOCH;
    }
}

impl<S: Fetcher> Run<S> {
    /// Asks origins again that gave no answer in an earlier run, if the crawl had ended. Their pages are queued by [`queue_retried`](Self::queue_retried).
    pub(super) fn begin_retry(&mut self) -> Result<(), CrawlError> {
        if !self.is_durable() {
            return Ok(());
        }
        let ahead = self.clock.ahead();
        if self.config.options().refresh.is_some_and(|age| ahead > age) {
            log::warn!(target: "crawler::state", "the clock of the crawl is {} ahead of the time of day, as that of the system once was: until this has caught up, pages grow old only while the crawl runs", duration(ahead));
        }
        let has_ended = self.frontier.report().is_drained();
        let begun = self.frontier.queue_again(Refetch::Unanswered, 0, self.clock.now())?;
        self.next_look.retry = begun.next.map(|_| Time::EPOCH);
        // Else what failed first is why nothing is left.
        if has_ended && begun.next.is_some() {
            self.observers.counts.forget_failures_of_origins();
        }
        Ok(())
    }

    /// Queues pages again that got no answer in an earlier run. If they are many, the others follow later.
    pub(super) fn queue_retried(&mut self) -> Result<(), CrawlError> {
        let mut queued = 0;
        while self.requested.borrow().stop == Stop::No {
            let pages = self.retry()?;
            if !pages.has_moved() {
                break;
            }
            queued += pages.pages.len();
            self.save()?;
        }
        if queued > 0 {
            log::info!(
                target: "crawler::state",
                retried = queued;
                "pages that got no answer in an earlier run: {queued} are queued again"
            );
        }
        Ok(())
    }

    /// Queues more pages again that got no answer in an earlier run, and returns which.
    fn retry(&mut self) -> Result<QueuedAgain, CrawlError> {
        if self.next_look.retry.is_none() {
            return Ok(QueuedAgain::default());
        }
        let retried = self.queue_all_again(Refetch::Unanswered)?;
        // If nothing has moved, the queue has no room.
        let pause = if retried.has_moved() { Duration::ZERO } else { PAUSE };
        self.next_look.retry = retried.next.map(|next| next + pause);
        Ok(retried)
    }

    fn queue_all_again(&mut self, which: Refetch) -> Result<QueuedAgain, CrawlError> {
        let queued = self.frontier.queue_again(which, PAGES_AT_ONCE, self.clock.now())?;
        for page in &queued.pages {
            self.observers.counts.will_be_fetched(page);
        }
        Ok(queued)
    }

    /// Queues pages again that have come of age, or got no answer in an earlier run, if it is time to look for them. Returns whether there
    /// are more.
    pub(super) fn queue_again_when_due(&mut self) -> Result<Wake, CrawlError> {
        if self.ending().is_some() {
            return Ok(Wake::Never);
        }
        if self.next_look.retry.is_some_and(|time| time <= self.clock.now()) {
            self.retry()?;
        }
        if self.is_refresh_due() {
            self.refresh()?;
        }
        Ok(if self.is_refresh_due() { Wake::Now } else { Wake::Never })
    }

    /// Queues pages again because nothing else is left. Returns whether any were read.
    pub(super) fn queue_again(&mut self) -> Result<bool, CrawlError> {
        if self.retry()?.has_moved() {
            return Ok(true);
        }
        self.refresh()
    }

    /// Which pages are fetched again as time passes.
    fn refetched(&self) -> Option<Refetch> {
        let options = self.config.options();
        let of_age = options.refresh.map(Refetch::OlderThan);
        let due = options.frontier.freshness.keeps_fresh.then_some(Refetch::Due);
        of_age.or(due).filter(|_| self.is_durable())
    }

    /// Whether the crawl goes on when nothing is left.
    pub(super) fn keeps_fresh(&self) -> bool {
        self.refetched() == Some(Refetch::Due)
    }

    fn is_refresh_due(&self) -> bool {
        // A retry may find the same pages.
        self.next_look.retry.is_none() && self.next_look.refresh <= self.clock.now()
    }

    /// Queues pages again that have come of age. Returns whether any were read.
    fn refresh(&mut self) -> Result<bool, CrawlError> {
        let Some(which) = self.refetched() else {
            self.next_look.refresh = Time::from_millis(u64::MAX);
            return Ok(false);
        };
        let now = self.clock.now();
        let refreshed = self.queue_all_again(which)?;
        self.next_look.refresh = match refreshed.next {
            Some(time) if time > now || refreshed.has_moved() => time,
            _ => now + PAUSE,
        };
        Ok(refreshed.has_moved())
    }
}
