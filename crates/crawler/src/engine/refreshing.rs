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
        if self.is_refresh_due() && self.ending.is_none() {
            self.refresh()?;
        }
        Ok(self.is_refresh_due())
    }

    fn is_refresh_due(&self) -> bool {
        let saving = self.saving.as_ref();
        saving.is_some_and(|saving| saving.next_refresh <= self.clock.now())
    }

    /// Queues pages again that have come of age. Returns whether there were any.
    pub(super) fn refresh(&mut self) -> Result<bool, CrawlError> {
        let Some(saving) = &mut self.saving else {
            return Ok(false);
        };
        let Some(age) = self.config.options().refresh else {
            saving.next_refresh = Time::from_millis(u64::MAX);
            return Ok(false);
        };
        let now = self.clock.now();
        let refreshed = self.frontier.refresh(age, PAGES_AT_ONCE, now)?;
        let is_full = refreshed.queued + refreshed.refused == 0;
        saving.next_refresh = match refreshed.next {
            Some(time) if time > now || !is_full => time,
            _ => now + PAUSE,
        };
        Ok(refreshed.queued > 0)
    }
}
