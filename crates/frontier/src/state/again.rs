//! Fetching pages again that have ended: past the seen-set, as retries go.

use serde::{Deserialize, Serialize};

use super::State;
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::link::Link;
use crate::settlement::Verdict;
use crate::time::Time;

/// How the last fetch of a page has ended that is queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LastEnd {
    /// It has an answer, which counts until the next one.
    Answered,
    /// It failed in all attempts. The next fetch counts in its place.
    GaveUp,
    /// It left the queue without a request, for this reason. The next fetch counts in its place.
    NotFetched(NotFetched),
}

/// A place in the records: the next record to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) row: u64,
    /// How many records of that row were read.
    pub(crate) records: u64,
}

impl Place {
    pub(crate) fn after_row(row: u64) -> Self {
        Self {
            row: row.saturating_add(1),
            records: 0,
        }
    }
}

/// How far the records have been read for pages to queue again: by age, and for want of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct RecordsRead {
    /// All pages before it were queued that were old enough.
    pub(crate) by_age: Place,
    /// All pages before it were queued that had no answer.
    pub(crate) unanswered: Place,
    /// The row before which the last retry ends.
    pub(crate) retry_end: u64,
}

impl RecordsRead {
    pub(crate) fn is_retrying(self) -> bool {
        self.unanswered.row < self.retry_end
    }
}

/// What happens to the origin of a page that is queued again, if it was given up or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ShutOrigin {
    /// It is asked again.
    Reopen,
    /// It stays as it is, and one that was given up refuses the page.
    Keep,
}

impl State {
    /// Whether pages have failed, or were dropped because their origin was given up or closed.
    pub(crate) fn has_failed_pages(&self) -> bool {
        let pages = &self.tables.pages;
        let is_closed = self.tables.not_fetched.contains_key(&NotFetched::RobotsUnreachable);
        pages.gave_up > 0 || pages.lost_with_host > 0 || is_closed
    }

    /// Queues a page again, with the end of its last fetch. A page that was fetched before has a previous fetch of this crawl; any other
    /// counts as never fetched.
    pub(super) fn queue_one_again(&mut self, page: &Link, end: LastEnd, shut: ShutOrigin, now: Time) -> Verdict {
        let admitted = self.scope.judge(page);
        let is_kept = shut == ShutOrigin::Keep;
        if let Err(refusal) = admitted.and_then(|()| self.sieve.queue().admit_again(page, is_kept)) {
            return Verdict::Refused(refusal);
        }
        let entry = Entry::of(page);
        match end {
            LastEnd::Answered => {}
            LastEnd::GaveUp => {
                self.tables.pages.gave_up = self.tables.pages.gave_up.saturating_sub(1);
                if entry.is_refresh() {
                    self.tables.pages.gave_up_again = self.tables.pages.gave_up_again.saturating_sub(1);
                } else {
                    self.hosts().uncount_page(&entry.queue, now);
                }
            }
            LastEnd::NotFetched(NotFetched::HostDown) => {
                self.tables.pages.lost_with_host = self.tables.pages.lost_with_host.saturating_sub(1);
            }
            LastEnd::NotFetched(why) => {
                if let Some(pages) = self.tables.not_fetched.get_mut(&why) {
                    *pages = pages.saturating_sub(1);
                }
                self.tables.not_fetched.retain(|_, pages| *pages > 0);
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
