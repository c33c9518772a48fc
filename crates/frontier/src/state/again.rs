//! Fetching pages again that have ended: past the seen-set, as retries go.

use serde::{Deserialize, Serialize};

use super::State;
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::link::Link;
use crate::settlement::Verdict;
use crate::stored_page::PageEnd;
use crate::time::Time;

/// A place in the order in which pages were saved: the row of the journal that a last end was saved with, and the next page of it to read.
pub(crate) type Place = (u64, u64);

/// How far pages have been read to queue them again: by age, for want of an answer, and by the times of their next visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PagesRead {
    /// All pages before it were queued that were old enough.
    pub(crate) by_age: Place,
    /// All pages before it were queued that had no answer.
    pub(crate) unanswered: Place,
    /// The row before which the last retry ends.
    pub(crate) retry_end: u64,
    /// All pages before it, in the order of their next visits, were queued.
    pub(crate) due: Place,
    /// Pages before this row were not planned as they ended. Those of them are that lie before `by_age`.
    pub(crate) planned_from: u64,
}

/// Why pages are queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Again {
    /// They are of age, or ordered.
    Wanted,
    /// A retry, which has opened the origins that were given up.
    Retry,
    /// A visit is due.
    Revisit,
}

impl PagesRead {
    pub(crate) fn is_retrying(self) -> bool {
        self.unanswered.0 < self.retry_end
    }
}

impl State {
    /// Whether pages have failed, or were dropped because their origin was given up or closed.
    pub(crate) fn has_failed_pages(&self) -> bool {
        let pages = &self.tables.pages;
        let is_closed = self.tables.not_fetched.contains_key(&NotFetched::RobotsUnreachable);
        pages.gave_up > 0 || pages.lost_with_host > 0 || is_closed
    }

    /// Queues a page again, whose last fetch ended so: a failure counts no longer. A page that was fetched before has a previous fetch of this
    /// crawl; any other counts as never fetched. An origin that was given up or closed is asked again, but in a retry, which has done so as it began.
    pub(super) fn queue_one_again(&mut self, link: &Link, again: (u64, PageEnd), why: Again, now: Time) -> Verdict {
        let admitted = self.scope.judge(link);
        if let Err(refusal) = admitted.and_then(|()| self.sieve.queue().admit_again(link, why == Again::Retry)) {
            return Verdict::Refused(refusal);
        }
        let (page, end) = again;
        let entry = self.sieve.queue().entry_of(link);
        let mut entry = Entry { page, ..entry };
        match end {
            PageEnd::Done | PageEnd::Redirected | PageEnd::Rejected => {}
            PageEnd::GaveUp(_) => {
                self.tables.pages.gave_up = self.tables.pages.gave_up.saturating_sub(1);
                if entry.is_refresh() {
                    self.tables.pages.gave_up_again = self.tables.pages.gave_up_again.saturating_sub(1);
                } else {
                    self.hosts().uncount_page(&entry.queue, now);
                }
            }
            PageEnd::NotFetched(NotFetched::HostDown) => {
                self.tables.pages.lost_with_host = self.tables.pages.lost_with_host.saturating_sub(1);
            }
            PageEnd::NotFetched(why) => {
                if let Some(pages) = self.tables.not_fetched.get_mut(&why) {
                    *pages = pages.saturating_sub(1);
                }
                self.tables.not_fetched.retain(|_, pages| *pages > 0);
            }
        }
        if why != Again::Retry {
            self.hosts().reopen(&entry.queue, &entry.url, now);
        }
        if why == Again::Revisit {
            entry.due = self.hosts().book_revisit(&entry.queue, now);
        } else if self.freshness.keeps_fresh {
            // So it is not held with new pages.
            entry.due = now.max(Time::from_millis(1));
        }
        if !entry.is_refresh() && self.sieve.queue().has_spent_budget(&entry.queue) {
            self.hosts().drop_entry(entry, NotFetched::HostBudget, None);
        } else {
            self.hosts().enqueue(entry, now);
        }
        Verdict::Queued
    }
}
