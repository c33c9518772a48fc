//! Refreshing: pages whose record is old become due again, in the order of their records.
//!
//! Records lie in the order of time, and each fetch of a page adds one. So one place in them is enough to know which pages were queued
//! again: what lies before it was, and what lies behind it will be when it is old enough. The place belongs to the state of the frontier,
//! and moves in the same call that queues the pages. Pages that a [retry](Frontier::retry_unanswered) has queued have a place of their own.

use std::ops::ControlFlow;
use std::time::Duration;

use super::super::again::{Place, ShutOrigin};
use super::super::{Frontier, FrontierError};
use super::due::{DuePages, Requeued, read_rows};
use super::record;
use crate::store::MAX_KEY;
use crate::time::Time;

/// What a call of [`Frontier::refresh`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Refreshed {
    /// The pages.
    pub pages: Requeued,
    /// When the next page comes of age, or the present time if there are more pages that have; `None` if no page is left that will.
    pub next: Option<Time>,
}

/// The next row of records.
enum Next {
    /// It is old, and these of its pages are fetched again, up to a place.
    Old(Place, DuePages),
    /// It is of this time.
    Young(Time),
    End,
}

impl Frontier {
    /// Queues pages again whose last fetch is older than an age, the oldest first, until there are `up_to`. It goes past the
    /// seen-set, as a retry does. The entries have the [version](crate::Settlement::with_version) of that fetch, for conditional requests.
    ///
    /// Pages that were fetched, redirected, rejected or failed are queued, and those that were dropped because their origin was given up or
    /// its robots.txt could not be fetched: it is asked again. Others that left the queue without a request are not. A page that was
    /// fetched before spends no budget of pages, and is not compared with others; a page that has only failed counts as if it were new.
    ///
    /// It looks only at fetches that are [persisted](Self::persist), and at each once, whatever happens between two calls. While the
    /// queue is [full](crate::FrontierConfig::max_queued), it does nothing. In memory, it does nothing either. Cost: it reads the records
    /// that have come of age since the last call.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if records cannot be read. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn refresh(&mut self, age: Duration, up_to: usize, now: Time) -> Result<Refreshed, FrontierError> {
        let age_millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let until = Time::from_millis(now.as_millis().saturating_sub(age_millis));
        let room = self.sieve.queue().room();
        let up_to = up_to.min(usize::try_from(room).unwrap_or(usize::MAX));
        let (mut due, mut read) = (DuePages::default(), self.records_read);
        let next = loop {
            if due.len() >= up_to {
                break Some(now);
            }
            match self.next_records(read.by_age, up_to - due.len(), until)? {
                Next::Old(at, old) => {
                    read.by_age = at;
                    due.append(old);
                }
                Next::Young(time) => break Some(time + age),
                Next::End => break None,
            }
        };
        let mut refreshed = Refreshed {
            next,
            ..Refreshed::default()
        };
        if read != self.records_read {
            refreshed.pages = self.queue_due(&due, ShutOrigin::Reopen, read, now)?;
        }
        Ok(refreshed)
    }

    /// Reads the row of records at a place, or the next one, for so many pages.
    fn next_records(&self, from: Place, up_to: usize, until: Time) -> Result<Next, FrontierError> {
        let Some(durable) = &self.durable else {
            return Ok(Next::End);
        };
        let retried = self.records_read.unanswered;
        let mut next = Next::End;
        read_rows(&**durable.store.lock(), from.row..=MAX_KEY, &mut |row, records| {
            let (mut due, mut latest) = (DuePages::default(), Time::EPOCH);
            let (mut place, mut stopped_at) = (Place { row, records: 0 }, None);
            record::visit_row(records, &mut |record| {
                latest = latest.max(record.time);
                let is_retried = place < retried && record.end.is_unanswered();
                if place >= from && !is_retried && stopped_at.is_none() {
                    match due.len() < up_to {
                        true => due.add(record),
                        false => stopped_at = Some(place),
                    }
                }
                place.records += 1;
            })?;
            let read_to = stopped_at.unwrap_or_else(|| Place::after_row(row));
            next = match latest <= until {
                true => Next::Old(read_to, due),
                false => Next::Young(latest),
            };
            Ok(ControlFlow::Break(()))
        })?;
        Ok(next)
    }
}
