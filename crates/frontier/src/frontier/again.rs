//! Fetching pages again that have ended: past the seen-set, as retries go.

use serde::{Deserialize, Serialize};

use super::{Frontier, FrontierError};
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::link::{Link, PreviousFetch};
use crate::settlement::Verdict;
use crate::time::Time;

/// How the last fetch of a page has ended that is queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LastEnd {
    /// It has an answer, which counts until the next one.
    Answered,
    /// It failed in all attempts. The next fetch counts in its place.
    GaveUp,
    /// It left the queue without a request, for this reason. The next fetch counts in its place.
    NotFetched(NotFetched),
}

/// A place in the records: the next record to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) row: u64,
    /// How many records of that row were read.
    pub(super) records: u64,
}

impl Place {
    pub(super) fn after_row(row: u64) -> Self {
        Self {
            row: row.saturating_add(1),
            records: 0,
        }
    }
}

/// How far the records have been read for pages to queue again: by age, and for want of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RecordsRead {
    /// All pages before it were queued that were old enough.
    pub(super) by_age: Place,
    /// All pages before it were queued that had no answer.
    pub(super) unanswered: Place,
    /// The row before which the last retry ends.
    pub(super) retry_end: u64,
}

/// What happens to the origin of a page that is queued again, if it was given up or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ShutOrigin {
    /// It is asked again.
    Reopen,
    /// It stays as it is, and one that was given up refuses the page.
    Keep,
}

impl Frontier {
    /// Queues pages again that were fetched in this crawl, each with its validators in [`Link::previous`], for conditional requests. It
    /// goes past the seen-set. Returns [`Queued`](Verdict::Queued) or why a page is refused: out of the scope, or the queue is full. The
    /// page budgets do not count it again, and it is not compared with other pages.
    ///
    /// If their origin was given up, or its robots.txt could not be fetched, it is asked again as one that was never away.
    ///
    /// A page that waits or is in flight must not be among them: it would be fetched twice. `Frontier::refresh` and
    /// `Frontier::retry_unanswered` know by themselves which pages are due.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn queue_again(&mut self, pages: &[Link], now: Time) -> Result<Vec<Verdict>, FrontierError> {
        let pages: Vec<_> = pages.iter().map(as_fetched).collect();
        let ends = vec![LastEnd::Answered; pages.len()];
        self.queue_again_until(&pages, &ends, ShutOrigin::Reopen, self.records_read, now)
    }

    /// Queues pages again, each with the end of its last fetch, and notes how far the records have been read for it. A page that was
    /// fetched before has a previous fetch of this crawl; any other counts as never fetched.
    pub(super) fn queue_again_until(
        &mut self,
        pages: &[Link],
        ends: &[LastEnd],
        shut: ShutOrigin,
        read: RecordsRead,
        now: Time,
    ) -> Result<Vec<Verdict>, FrontierError> {
        self.commit(|frontier| {
            let pairs = pages.iter().zip(ends);
            let verdicts: Vec<_> = pairs
                .map(|(page, end)| frontier.queue_one_again(page, *end, shut, now))
                .collect();
            frontier.records_read = read;
            frontier.record_queue_again(pages, ends, shut, &verdicts, now)?;
            Ok(verdicts)
        })
    }

    fn queue_one_again(&mut self, page: &Link, end: LastEnd, shut: ShutOrigin, now: Time) -> Verdict {
        let admitted = self.scope.judge(page);
        let is_kept = shut == ShutOrigin::Keep;
        if let Err(refusal) = admitted.and_then(|()| self.sieve.queue().admit_again(page, is_kept)) {
            return Verdict::Refused(refusal);
        }
        let entry = Entry::of(page);
        match end {
            LastEnd::Answered => {}
            LastEnd::GaveUp => {
                self.pages.gave_up = self.pages.gave_up.saturating_sub(1);
                if entry.is_refresh() {
                    self.pages.gave_up_again = self.pages.gave_up_again.saturating_sub(1);
                } else {
                    self.hosts().uncount_page(&entry.queue, now);
                }
            }
            LastEnd::NotFetched(NotFetched::HostDown) => {
                self.pages.lost_with_host = self.pages.lost_with_host.saturating_sub(1);
            }
            LastEnd::NotFetched(why) => {
                if let Some(pages) = self.not_fetched.get_mut(&why) {
                    *pages = pages.saturating_sub(1);
                }
                self.not_fetched.retain(|_, pages| *pages > 0);
            }
        }
        if shut == ShutOrigin::Reopen {
            self.hosts().reopen(&entry.queue, &entry.url, now);
        }
        if !entry.is_refresh() && self.sieve.queue().has_spent_budget(&entry.queue) {
            self.hosts().drop_entry(entry, NotFetched::HostBudget, None);
        } else {
            self.hosts().enqueue(entry, now);
        }
        Verdict::Queued
    }
}

/// Returns the link to a page that was fetched in this crawl.
fn as_fetched(page: &Link) -> Link {
    let previous = page.previous.as_deref().cloned().unwrap_or_default();
    Link {
        previous: Some(
            PreviousFetch {
                is_of_this_crawl: true,
                ..previous
            }
            .into(),
        ),
        ..page.clone()
    }
}
