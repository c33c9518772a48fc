//! A request that failed, and how long its entry or its host waits for that.

use std::sync::Arc;
use std::time::Duration;

use super::jitter::{jitter_thousandths, with_jitter};
use super::{LeasedEntry, is_page};
use crate::config::RetryPolicy;
use crate::failure::Failure;
use crate::time::Time;

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Failed<'a> {
    pub(crate) leased: &'a LeasedEntry,
    pub(crate) cause: Arc<Failure>,
    /// What the answer asked for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) retries: RetryPolicy,
    pub(crate) now: Time,
}

impl<'a> Failed<'a> {
    pub(crate) fn new(
        leased: &'a LeasedEntry,
        cause: &Failure,
        retry_after: Option<Duration>,
        retries: RetryPolicy,
        now: Time,
    ) -> Self {
        Self {
            leased,
            cause: Arc::new(cause.clone()),
            retry_after,
            retries,
            now,
        }
    }

    /// When the entry is asked for again, if the failure counts against it.
    pub(crate) fn next_attempt(&self) -> Time {
        let wait = || self.with_jitter(self.retries.wait_after(self.leased.entry.attempts));
        let asked_for = self.retry_after.map(|after| after.min(self.retries.max_retry_wait));
        self.now + asked_for.unwrap_or_else(wait)
    }

    /// How long the host rests after so many throttling answers in a row.
    pub(crate) fn rest(&self, throttles: u32) -> Duration {
        let rest = self.retries.rest_after(throttles, self.retry_after);
        self.retry_after.map_or_else(|| self.with_jitter(rest), |_| rest)
    }

    pub(crate) fn with_jitter(&self, wait: Duration) -> Duration {
        let entry = &self.leased.entry;
        let times = entry.attempts.wrapping_add(entry.deferrals);
        with_jitter(wait, self.retries.retry_jitter, jitter_thousandths(&entry.url, times))
    }

    /// Those of a robots.txt are counted apart.
    pub(crate) fn is_last_attempt(&self) -> bool {
        let entry = &self.leased.entry;
        is_page(entry) && entry.attempts >= self.retries.max_attempts.get()
    }
}
