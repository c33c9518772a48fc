//! A crawl in memory, without the feature `durable`: there is nothing to commit.

use std::time::Duration;

use frontier::Time;
use tokio::time::Instant;

use super::Crawl;
use crate::error::CrawlError;
use crate::fetch::Fetcher;
use crate::recrawl::{PreviousCrawl, RecrawlError};

/// What a crawl with a state directory keeps. Without the feature there is none.
#[derive(Debug)]
pub(super) enum Saving {}

impl<S: Fetcher> Crawl<S> {
    pub(super) fn commit_due(&mut self) -> Option<Instant> {
        self.saving.as_ref().map(|never| match *never {})
    }

    pub(super) fn sync_due(&self) -> Option<Instant> {
        self.saving.as_ref().map(|never| match *never {})
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn check_parts(&self) -> Result<(), CrawlError> {
        Ok(())
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn save(&mut self) -> Result<(), CrawlError> {
        Ok(())
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn save_last(&mut self) -> Result<(), CrawlError> {
        Ok(())
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn queue_again_when_due(&mut self) -> Result<bool, CrawlError> {
        Ok(false)
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn begin_retry(&mut self) -> Result<(), CrawlError> {
        Ok(())
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn queue_retried(&mut self) -> Result<(), CrawlError> {
        Ok(())
    }

    pub(super) fn queue_again(&mut self) -> Result<bool, CrawlError> {
        self.queue_again_when_due()
    }

    pub(super) fn has_offered_some_seeds(&self) -> bool {
        self.saving.is_some()
    }

    pub(super) fn has_offered_seeds(&self) -> bool {
        self.saving.is_some()
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn note_offered_seeds(&mut self) {}

    pub(super) fn has_offered_previous(&self) -> bool {
        self.saving.is_some()
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn check_previous(&self, _: &PreviousCrawl) -> Result<(), RecrawlError> {
        Ok(())
    }

    pub(super) fn end_of_last_run(&self) -> (Time, Duration) {
        (self.clock.now(), Duration::ZERO)
    }
}
