//! Fetching pages again that have ended: past the seen-set, as retries go.

use super::{Frontier, FrontierError};
use crate::entry::Entry;
use crate::link::{Link, PreviousFetch};
use crate::settlement::Verdict;
use crate::time::Time;

impl Frontier {
    /// Queues pages again that were fetched in this crawl, each with its validators in [`Link::previous`], for conditional requests. It
    /// goes past the seen-set. Returns [`Queued`](Verdict::Queued) or why a page is refused: out of the scope, the queue is full, or its
    /// origin was given up. The page budgets do not count it again, and it is not compared with other pages.
    ///
    /// A page that waits or is in flight must not be among them: it would be fetched twice. `Frontier::refresh` knows by itself which
    /// pages are due.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn queue_again(&mut self, pages: &[Link], now: Time) -> Result<Vec<Verdict>, FrontierError> {
        #[cfg(feature = "durable")]
        let row = self.refreshed_row;
        #[cfg(not(feature = "durable"))]
        let row = 0;
        self.queue_again_until(pages, row, now)
    }

    /// Queues pages again, and notes that those with a record up to this row were.
    pub(super) fn queue_again_until(
        &mut self,
        pages: &[Link],
        row: u64,
        now: Time,
    ) -> Result<Vec<Verdict>, FrontierError> {
        self.commit(|frontier| {
            let verdicts: Vec<_> = pages.iter().map(|page| frontier.queue_one_again(page, now)).collect();
            #[cfg(feature = "durable")]
            {
                frontier.refreshed_row = row;
                frontier.record_queue_again(pages, &verdicts, now)?;
            }
            #[cfg(not(feature = "durable"))]
            let _ = row;
            Ok(verdicts)
        })
    }

    fn queue_one_again(&mut self, page: &Link, now: Time) -> Verdict {
        let admitted = self.scope.judge(page);
        if let Err(refusal) = admitted.and_then(|()| self.sieve.queue().admit_again(page)) {
            return Verdict::Refused(refusal);
        }
        let mut entry = Entry::of(page);
        let previous = entry.metadata.previous.as_deref().cloned().unwrap_or_default();
        let previous = PreviousFetch {
            is_of_this_crawl: true,
            ..previous
        };
        entry.metadata.previous = Some(previous.into());
        self.hosts().enqueue(entry, now);
        Verdict::Queued
    }
}
