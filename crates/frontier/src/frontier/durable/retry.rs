//! Retrying: pages that got no answer in an earlier run are queued again, once nothing else is left.
//!
//! A page may have several records, and the last one decides. While nothing waits and nothing is in flight, a page whose last record is no
//! answer is neither queued nor fetched, so it can be queued. To know which record is the last one, all later ones are read, for many pages
//! at once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::super::again::{Place, RecordsRead, ShutOrigin};
use super::super::{Frontier, FrontierError};
use super::due::{DuePages, Requeued, read_rows};
use super::record::{self, PageRecord};
use crate::lease::NotFetched;
use crate::store::Space;
use crate::time::Time;

/// What a call of [`Frontier::retry_unanswered`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Retried {
    /// The pages.
    pub pages: Requeued,
    /// Whether there are more: call again, when there is room in the queue.
    pub has_more: bool,
}

/// What is known of the last records, while a retry is not at its end.
#[derive(Debug, Default)]
pub(super) struct LastRecords {
    /// The row before which they are known.
    end: u64,
    /// The last record of each page that has no answer, by the hash of its key.
    places: HashMap<u64, Place>,
}

impl Frontier {
    /// Begins to queue pages again that got no answer: those that failed in all attempts without one, or that were dropped because their
    /// origin was given up or its robots.txt could not be fetched. These origins are asked again as ones that were never away, with the
    /// limits of the present run. Pages that a limit or a rule refused are not among them. Returns whether there may be any: then
    /// [`retry_unanswered`](Self::retry_unanswered) queues them.
    ///
    /// A retry begins when the frontier is [drained](Self::is_drained) and all is [persisted](Self::persist), as at the begin of a run over a
    /// directory whose crawl has ended. One that an earlier run has begun goes on. Otherwise, and in memory, the call does nothing. Cost: a
    /// look at all hosts.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn begin_retry(&mut self, now: Time) -> Result<bool, FrontierError> {
        if let Some(end) = self.retry_end() {
            self.begin_retry_until(end, now)?;
        }
        Ok(self.is_retrying())
    }

    pub(super) fn begin_retry_until(&mut self, end: u64, now: Time) -> Result<(), FrontierError> {
        self.commit(|frontier| {
            frontier.records_read.retry_end = end;
            if let Some(durable) = &mut frontier.durable {
                durable.last_records = LastRecords::default();
            }
            frontier.hosts().reopen_all(now);
            frontier.record_retry(end, now)
        })
    }

    /// Queues pages of a retry that has [begun](Self::begin_retry): `up_to` of them, and fewer if half of the
    /// [queue](crate::FrontierConfig::max_queued) is taken. Further calls continue it, also while pages are fetched, and in a later run. Each
    /// page is queued once in a retry. Pages of an origin that is given up once more are left for the next retry.
    ///
    /// Do not call [`refresh`](Self::refresh) before [`has_more`](Retried::has_more) is false: it may find the same pages. Cost: all
    /// records behind the first of such a page are read, once for each 262 144 such pages.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if records cannot be read. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn retry_unanswered(&mut self, up_to: usize, now: Time) -> Result<Retried, FrontierError> {
        let mut retried = Retried::default();
        if !self.is_retrying() {
            return Ok(retried);
        }
        let room = usize::try_from(self.sieve.queue().room_for_retries()).unwrap_or(usize::MAX);
        let up_to = up_to.min(room);
        let (mut due, mut read) = (DuePages::default(), self.records_read);
        let mut last = self.durable.as_mut().map_or_else(LastRecords::default, |durable| {
            std::mem::take(&mut durable.last_records)
        });
        while due.len() < up_to && read.unanswered.row < read.retry_end {
            if read.unanswered.row >= last.end {
                self.look_ahead(&mut last, read)?;
            }
            read.unanswered = self.read_unanswered(&last, &mut due, read.unanswered, up_to)?;
        }
        if read != self.records_read {
            retried.pages = self.queue_due(&due, ShutOrigin::Keep, read, now)?;
        }
        retried.has_more = self.is_retrying();
        if let (true, Some(durable)) = (retried.has_more, &mut self.durable) {
            durable.last_records = last;
        }
        Ok(retried)
    }

    fn is_retrying(&self) -> bool {
        self.records_read.unanswered.row < self.records_read.retry_end
    }

    /// Returns the row before which a new retry ends; `None` if there is nothing to retry, or something else is left.
    fn retry_end(&self) -> Option<u64> {
        let durable = self.durable.as_ref().filter(|durable| durable.records.is_empty())?;
        if !self.is_drained() {
            return None;
        }
        let (read_to, last) = (
            self.records_read.unanswered.row,
            durable.store.lock().last_key(Space::Record),
        );
        let end = last.map_or(read_to, |last| read_to.max(last.saturating_add(1)));
        let has_pages = end > read_to && self.has_failed_pages();
        // An origin may be given up without a page: for a sitemap, or a robots.txt.
        (has_pages || self.sieve.queue().given_up() > 0).then_some(end)
    }

    /// Returns whether pages have failed, or were dropped because their origin was given up or closed.
    fn has_failed_pages(&self) -> bool {
        let is_closed = self.not_fetched.contains_key(&NotFetched::RobotsUnreachable);
        self.pages.gave_up > 0 || self.pages.lost_with_host > 0 || is_closed
    }

    /// Learns the last records of the next pages without an answer.
    fn look_ahead(&self, last: &mut LastRecords, read: RecordsRead) -> Result<(), FrontierError> {
        let Some(durable) = &self.durable else { return Ok(()) };
        let most = durable.checkpointer.sizes().retried_at_once;
        last.places.clear();
        last.end = read.retry_end;
        let LastRecords { end, places } = last;
        // Pages that this retry has queued may have records behind its end. Theirs before it are not read any more.
        let rows = read.unanswered.row..=read.retry_end.saturating_sub(1);
        read_rows(&**durable.store.lock(), rows, &mut |row, records| {
            let mut place = Place { row, records: 0 };
            record::visit_row(records, &mut |record| {
                let key = self.hash.of(record.key());
                if row < *end && is_meant(&record) {
                    places.insert(key, place);
                } else {
                    places.remove(&key);
                }
                place.records += 1;
            })?;
            if places.len() >= most {
                *end = (*end).min(row.saturating_add(1));
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Reads pages without an answer from a place on, as far as their last records are known, until there are enough. Returns the place
    /// behind them.
    fn read_unanswered(
        &self,
        last: &LastRecords,
        due: &mut DuePages,
        from: Place,
        up_to: usize,
    ) -> Result<Place, FrontierError> {
        let mut read_to = Place {
            row: last.end,
            records: 0,
        };
        let Some(durable) = &self.durable else {
            return Ok(read_to);
        };
        let rows = from.row..=last.end.saturating_sub(1);
        read_rows(&**durable.store.lock(), rows, &mut |row, records| {
            let (mut place, mut stopped_at) = (Place { row, records: 0 }, None);
            record::visit_row(records, &mut |record| {
                let is_last = |record: &PageRecord<'_>| last.places.get(&self.hash.of(record.key())) == Some(&place);
                if place >= from && stopped_at.is_none() && is_meant(&record) && is_last(&record) {
                    match due.len() < up_to {
                        true => due.add(record),
                        false => stopped_at = Some(place),
                    }
                }
                place.records += 1;
            })?;
            let Some(place) = stopped_at else {
                return Ok(ControlFlow::Continue(()));
            };
            read_to = place;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(read_to)
    }
}

/// Returns whether a page is retried if this is its last record.
fn is_meant(record: &PageRecord<'_>) -> bool {
    record.end.is_unanswered() && !record.is_superseded
}
