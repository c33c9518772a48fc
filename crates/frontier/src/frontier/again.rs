//! Pages are fetched again: because they are old, due, had no answer, or by order.

use super::Frontier;
use crate::durable::{FreshnessReport, OwnPlan, QueuedAgain, Refetch};
use crate::error::FrontierError;
use crate::time::Time;
use crate::url::CanonicalUrl;

impl Frontier {
    /// Queues pages again that have ended, past the seen-set: up to `up_to`, those first that ended first, or are due first. The entries have the
    /// [version](crate::Settlement::with_version) of their last fetch, for conditional requests. A page that was fetched before spends no
    /// budget of pages, and is not compared with others; a page that has only failed counts as if it were new.
    ///
    /// It looks only at fetches that are [persisted](Self::persist), and at each once, whatever happens between two calls. While the queue
    /// is [full](crate::LimitConfig::max_queued), it does nothing. In memory, it does nothing either. Cost: it reads the pages behind
    /// those of the last call.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if pages cannot be read. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn queue_again(&mut self, which: Refetch, up_to: usize, now: Time) -> Result<QueuedAgain, FrontierError> {
        self.with_durable(
            |state, durable| durable.queue_again(state, which, up_to, now),
            QueuedAgain::default,
        )
    }

    /// Plans when a page that has ended is visited again, in place of the policy, if pages are [kept fresh](crate::FreshnessConfig::keeps_fresh): at a time, or
    /// [every](OwnPlan::Every) hour. The plan is saved by the next [`persist`](Self::persist). Returns false if it has not ended, no other fetch would end otherwise, or no
    /// visits are planned. Cost: a look at each entry that waits.
    ///
    /// # Errors
    ///
    /// Those of [`queue_again`](Self::queue_again).
    pub fn schedule(&mut self, url: &CanonicalUrl, plan: OwnPlan, now: Time) -> Result<bool, FrontierError> {
        self.with_durable(|state, durable| durable.plan(state, url, plan, now), || false)
    }

    /// Says how fresh the pages are, if they are [kept fresh](crate::FreshnessConfig::keeps_fresh). In memory, and of a directory that is only read, it returns `None`. Cost: a look at up to 65 536 pages
    /// of a sample; after a directory was opened, calls of [`queue_again`](Self::queue_again) read it.
    pub fn freshness(&self, now: Time) -> Option<FreshnessReport> {
        self.durable.as_ref()?.freshness(now)
    }

    /// Queues pages again, past the seen-set: those that were dropped [by order](crate::NotFetched::ByOrder) and that are meant, unless one still holds.
    /// Returns how many were queued, and how many a limit refused. In memory it does nothing. Cost: a look at each page that failed, and at each entry that waits.
    ///
    /// # Errors
    ///
    /// Those of [`queue_again`](Self::queue_again).
    pub fn queue_dropped(
        &mut self,
        is_meant: impl Fn(&CanonicalUrl) -> bool,
        now: Time,
    ) -> Result<(u64, u64), FrontierError> {
        self.with_durable(
            |state, durable| durable.queue_dropped(state, &is_meant, now),
            <(u64, u64)>::default,
        )
    }

    /// Queues pages again that have ended, past the seen-set, and tells which: not those that wait, are in flight, or were never met. In
    /// memory it queues none. Cost: a look at each entry that waits, and two bytes of each page.
    ///
    /// # Errors
    ///
    /// Those of [`queue_again`](Self::queue_again).
    pub fn queue_ended(&mut self, urls: &[CanonicalUrl], now: Time) -> Result<Vec<bool>, FrontierError> {
        self.with_durable(
            |state, durable| durable.queue_ended(state, urls, now),
            || vec![false; urls.len()],
        )
    }
}
