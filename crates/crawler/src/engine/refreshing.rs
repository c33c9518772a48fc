//! Pages that were fetched long ago are fetched again.

use std::time::Duration;

use frontier::Time;

use super::Crawl;
use crate::error::CrawlError;
use crate::fetch::Fetcher;

/// The pages that are queued again at once.
const PAGES_AT_ONCE: usize = 1024;
/// The pause between two looks for pages of age, if there is none that will be.
const PAUSE: Duration = Duration::from_secs(1);

impl<S: Fetcher> Crawl<S> {
    /// Queues pages again that have come of age, if it is time to look for them. Returns whether there are more.
    pub(super) fn refresh_when_due(&mut self) -> Result<bool, CrawlError> {
        let is_due = self.clock.now() >= self.next_refresh;
        if is_due && self.ending.is_none() {
            self.refresh()?;
        }
        Ok(self.next_refresh <= self.clock.now())
    }

    /// Queues pages again that have come of age. Returns whether there were any.
    pub(super) fn refresh(&mut self) -> Result<bool, CrawlError> {
        let Some(age) = self.config.options().refresh.filter(|_| self.saving.is_some()) else {
            self.next_refresh = Time::from_millis(u64::MAX);
            return Ok(false);
        };
        let now = self.clock.now();
        let refreshed = self.frontier.refresh(age, PAGES_AT_ONCE, now)?;
        let is_full = refreshed.queued + refreshed.refused == 0;
        self.next_refresh = match refreshed.next {
            Some(time) if time > now || !is_full => time,
            _ => now + PAUSE,
        };
        Ok(refreshed.queued > 0)
    }
}
