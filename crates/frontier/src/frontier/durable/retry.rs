//! Retrying: pages that got no answer in an earlier run are queued again, once nothing else is left.
//!
//! A page may have several records, and the last one decides. While nothing waits and nothing is in flight, a page whose last record is no
//! answer is neither queued nor fetched, so it can be queued. To know which record is the last one, all later ones are read, for many pages
//! at once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::super::again::RecordsRead;
use super::super::{Frontier, FrontierError};
use super::due::{DuePages, Requeued, read_rows};
use super::record::{self, PageRecord};
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
    /// The row up to which they are known.
    until: u64,
    /// The row with the last record of a page that has no answer, by the hash of its key.
    rows: HashMap<u64, u64>,
}

impl Frontier {
    /// Queues pages again that got no answer: those that failed in all attempts without one, or that were dropped because their origin was
    /// given up or its robots.txt could not be fetched. Their origins are asked again as ones that were never away. Pages that a limit or
    /// a rule refused are not among them.
    ///
    /// A retry begins when the frontier is [drained](Self::is_drained), as at the begin of a run over a directory whose crawl has ended.
    /// A call queues `up_to` pages or a few more, and fewer while the queue is [full](crate::FrontierConfig::max_queued). Further calls
    /// continue it, also while pages are fetched, and in a later run. If none has begun and none can begin, a call does nothing. Each page
    /// is queued once in a retry. Do not call [`refresh`](Self::refresh) before [`has_more`](Retried::has_more) is false: it may find the
    /// same pages.
    ///
    /// It looks at pages that are [persisted](Self::persist). In memory, it does nothing. Cost: if there is such a page, it reads all
    /// records, once for each 262 144 such pages.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if records cannot be read. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn retry_unanswered(&mut self, up_to: usize, now: Time) -> Result<Retried, FrontierError> {
        let mut retried = Retried::default();
        let mut read = self.records_read;
        if read.unanswered >= read.retry_until {
            let Some(until) = self.retry_until() else {
                return Ok(retried);
            };
            read.retry_until = until;
        }
        let room = usize::try_from(self.sieve.queue().room()).unwrap_or(usize::MAX);
        let up_to = up_to.min(room);
        let mut due = DuePages::default();
        let mut last = self.durable.as_mut().map_or_else(LastRecords::default, |durable| {
            std::mem::take(&mut durable.last_records)
        });
        while due.len() < up_to && read.unanswered < read.retry_until {
            if read.unanswered >= last.until {
                self.look_ahead(&mut last, read)?;
            }
            read.unanswered = self.read_unanswered(&mut last, &mut due, read, up_to)?;
        }
        retried.has_more = read.unanswered < read.retry_until;
        if read != self.records_read {
            retried.pages = self.queue_due(&due, read, now)?;
        }
        if let (true, Some(durable)) = (retried.has_more, &mut self.durable) {
            durable.last_records = last;
        }
        Ok(retried)
    }

    /// Returns the last row of records that a new retry reads; `None` if there is nothing to retry, or something else is left.
    fn retry_until(&self) -> Option<u64> {
        if !self.is_drained() || !self.report().has_failed_pages() {
            return None;
        }
        let until = self.durable.as_ref()?.store.lock().last_key(Space::Record)?;
        (until > self.records_read.unanswered).then_some(until)
    }

    /// Learns the last records of the next pages without an answer.
    fn look_ahead(&self, last: &mut LastRecords, read: RecordsRead) -> Result<(), FrontierError> {
        let Some(durable) = &self.durable else { return Ok(()) };
        let most = durable.checkpointer.sizes().retried_at_once;
        last.rows.clear();
        last.until = read.retry_until;
        let LastRecords { until, rows: last } = last;
        // Pages that this retry has queued may have records behind its end. Theirs before it are not read any more.
        let rows = read.unanswered.saturating_add(1)..=read.retry_until;
        read_rows(&**durable.store.lock(), rows, &mut |row, records| {
            record::visit_row(records, &mut |record| {
                let key = self.hash.of(record.key());
                if row <= *until && is_meant(&record) {
                    last.insert(key, row);
                } else {
                    last.remove(&key);
                }
            })?;
            if last.len() >= most {
                *until = row.min(*until);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Reads pages without an answer from the rows whose last records are known, until there are enough. Returns the last row that was
    /// read.
    fn read_unanswered(
        &self,
        last: &mut LastRecords,
        due: &mut DuePages,
        read: RecordsRead,
        up_to: usize,
    ) -> Result<u64, FrontierError> {
        let Some(durable) = &self.durable else {
            return Ok(read.retry_until);
        };
        let LastRecords { until, rows: last } = last;
        let rows = read.unanswered.saturating_add(1)..=*until;
        let mut read_until = *until;
        read_rows(&**durable.store.lock(), rows, &mut |row, records| {
            record::visit_row(records, &mut |record| {
                let key = self.hash.of(record.key());
                if is_meant(&record) && last.get(&key) == Some(&row) {
                    // A row may have two records of a page.
                    last.remove(&key);
                    due.add(&record);
                }
            })?;
            if due.len() < up_to {
                return Ok(ControlFlow::Continue(()));
            }
            read_until = row;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(read_until)
    }
}

/// Returns whether a page is retried if this is its last record.
fn is_meant(record: &PageRecord<'_>) -> bool {
    record.end.is_unanswered() && !record.is_superseded
}
