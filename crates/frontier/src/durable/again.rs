//! Pages that are fetched again: they are read from their records, and queued past the seen-set.
//!
//! Records lie in the order of time, and each fetch of a page adds one, its last. So one [`Place`] in them is enough to know which pages were
//! queued again: what lies before it was, and what lies behind it will be. There are two: one for the pages that come of age, and one for
//! those without an answer. What lies before one of them is left out by the other. Both belong to the state, and move in the same call
//! that queues the pages.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Durable;
use super::record::{self, PageEnd, StoredPage};
use super::restore::ROWS_AT_ONCE;
use crate::error::FrontierError;
use crate::failure::FailureKind;
use crate::lease::NotFetched;
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::state::{Call, Links, Place, RecordsRead, ShutOrigin, State};
use crate::store::{MAX_KEY, Space};
use crate::time::Time;

/// Which pages are fetched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refetch {
    /// Those whose last fetch is older than this age: they were fetched, redirected, rejected or failed, or dropped because their origin
    /// was given up or its robots.txt could not be fetched. It is asked again.
    OlderThan(Duration),
    /// Those that got no answer: they failed in all attempts without one, or were dropped because their origin was given up or its
    /// robots.txt could not be fetched. Pages that a limit or a rule refused are not among them.
    ///
    /// Such a retry begins when the frontier is [drained](crate::Report::is_drained) and all is [persisted](crate::Frontier::persist),
    /// as at the begin of a run over a directory whose crawl has ended: all origins that were given up are asked again as ones that were
    /// never away. Otherwise the call continues the retry that has begun, if any, also of an earlier run. Each page is queued once in a
    /// retry, and fewer than `up_to` at once if half of the [queue](crate::LimitConfig::max_queued) is taken.
    Unanswered,
}

/// What a call of [`Frontier::queue_again`](crate::Frontier::queue_again) did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueuedAgain {
    /// When the next page comes of age, or the present time if there are more pages; `None` if no page is left that will.
    pub next: Option<Time>,
    /// Pages that were queued again.
    pub queued: u64,
    /// Pages that were not: they are out of the scope now, or their host has no room, or their origin was given up once more.
    pub refused: u64,
    /// Those of the queued ones that had failed in all attempts and were never fetched, by the last failure. They do not count as failed
    /// any longer.
    pub failed: BTreeMap<FailureKind, u64>,
    /// The HTTP statuses of those among them that had an answer, such as a part of a body.
    pub answers: BTreeMap<u16, u64>,
    /// Those that were fetched before, and had failed when they were fetched again.
    pub failed_refreshes: BTreeMap<FailureKind, u64>,
    /// Those that were dropped because their origin was given up, by the failure of the origin.
    pub dropped: BTreeMap<FailureKind, u64>,
}

impl QueuedAgain {
    /// Returns whether pages were read at all: queued, or refused.
    pub fn has_moved(&self) -> bool {
        self.queued + self.refused > 0
    }

    fn count(&mut self, record: &StoredPage) {
        self.queued += 1;
        let failures = match record.end {
            PageEnd::GaveUp(kind) if record.is_refresh => self.failed_refreshes.entry(kind),
            PageEnd::GaveUp(kind) => {
                if let Some(status) = record.status {
                    *self.answers.entry(status).or_default() += 1;
                }
                self.failed.entry(kind)
            }
            PageEnd::NotFetched(NotFetched::HostDown) => {
                self.dropped.entry(record.cause.unwrap_or(FailureKind::HostDown))
            }
            _ => return,
        };
        *failures.or_default() += 1;
    }
}

/// What was read of the records.
struct Due {
    pages: Vec<StoredPage>,
    read_to: Place,
    /// The time of the next record that was not read, if it is too young; the time of the call if there are more pages.
    next: Option<Time>,
}

impl Durable {
    /// Queues pages again. Cost: it reads the records behind those of the last call.
    pub(crate) fn queue_again(
        &mut self,
        state: &mut State,
        which: Refetch,
        up_to: usize,
        now: Time,
    ) -> Result<QueuedAgain, FrontierError> {
        if which == Refetch::Unanswered {
            self.begin_retry(state, now)?;
        }
        let before = state.records_read();
        let mut read = before;
        let room = |room| up_to.min(usize::try_from(room).unwrap_or(usize::MAX));
        let (due, shut) = match which {
            Refetch::OlderThan(age) => {
                let age_millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                let until = Time::from_millis(now.as_millis().saturating_sub(age_millis));
                let is_due = |at: Place, record: &StoredPage| at >= before.unanswered || !record.end.is_unanswered();
                let room = room(state.queues().room());
                let mut due = self.read_due(read.by_age, MAX_KEY, until, room, &is_due)?;
                due.next = due.next.map(|time| if time > until { time + age } else { now });
                read.by_age = due.read_to;
                (due, ShutOrigin::Reopen)
            }
            Refetch::Unanswered if !before.is_retrying() => return Ok(QueuedAgain::default()),
            Refetch::Unanswered => {
                let is_due = |at: Place, record: &StoredPage| at >= before.by_age && record.end.is_unanswered();
                let room = room(state.queues().room_for_retries());
                let last = before.retry_end - 1;
                let mut due = self.read_due(read.unanswered, last, Time::from_millis(u64::MAX), room, &is_due)?;
                if due.next.is_none() {
                    due.read_to = Place::after_row(last);
                }
                due.next = due.next.map(|_| now);
                read.unanswered = due.read_to;
                (due, ShutOrigin::Keep)
            }
        };
        let queued = match read == before {
            true => QueuedAgain::default(),
            false => self.queue_due(state, &due.pages, shut, read, now)?,
        };
        Ok(QueuedAgain {
            next: due.next,
            ..queued
        })
    }

    /// Begins a retry if there is none, nothing else is left, and something may be retried.
    fn begin_retry(&mut self, state: &mut State, now: Time) -> Result<(), FrontierError> {
        let read = state.records_read();
        if read.is_retrying() || !state.is_drained() || !self.records.is_empty() {
            return Ok(());
        }
        let last = self.store.lock().last_key(Space::Record);
        let end = last.map_or(0, |last| last.saturating_add(1)).max(read.unanswered.row);
        // An origin may be given up without a page: for a sitemap, or a robots.txt.
        let has_pages = end > read.unanswered.row && state.has_failed_pages();
        if has_pages || state.queues().given_up > 0 {
            self.apply(state, Call::BeginRetry { end }, now)?;
        }
        Ok(())
    }

    /// Reads records from a place on, up to the row `last`. It ends earlier when `up_to` pages are due, or at a row that is younger than `until`.
    fn read_due(
        &self,
        from: Place,
        last: u64,
        until: Time,
        up_to: usize,
        is_due: &dyn Fn(Place, &StoredPage) -> bool,
    ) -> Result<Due, FrontierError> {
        let mut due = Due {
            pages: Vec::new(),
            read_to: from,
            next: None,
        };
        let store = self.store.lock();
        let last = store.last_key(Space::Record).map_or(0, |stored| stored.min(last));
        for first in (from.row..=last).step_by(ROWS_AT_ONCE as usize) {
            for (row, records) in store.values(Space::Record, first..=last.min(first + ROWS_AT_ONCE - 1))? {
                let (mut at, mut latest, mut stopped_at) = (Place { row, records: 0 }, Time::EPOCH, None);
                let before = due.pages.len();
                let visited = record::visit_row(&records, &mut |record| {
                    latest = latest.max(record.time);
                    if at >= from && stopped_at.is_none() && is_due(at, &record) && record.again().is_some() {
                        match due.pages.len() < up_to {
                            true => due.pages.push(record),
                            false => stopped_at = Some(at),
                        }
                    }
                    at.records += 1;
                });
                let damaged = |error| FrontierError::not_saved(format!("record row {row} cannot be read: {error}"));
                visited.map_err(damaged)?;
                if latest > until {
                    due.pages.truncate(before);
                    due.next = Some(latest);
                    return Ok(due);
                }
                due.read_to = stopped_at.unwrap_or_else(|| Place::after_row(row));
                due.next = stopped_at.map(|_| until);
                if stopped_at.is_some() {
                    return Ok(due);
                }
            }
        }
        Ok(due)
    }

    /// Queues pages again, and notes how far the records have been read for it. A page that cannot be queued now, but may be later, has
    /// another record then.
    fn queue_due(
        &mut self,
        state: &mut State,
        due: &[StoredPage],
        shut: ShutOrigin,
        read: RecordsRead,
        now: Time,
    ) -> Result<QueuedAgain, FrontierError> {
        let (pages, ends): (Vec<_>, Vec<_>) = due.iter().filter_map(StoredPage::again).unzip();
        let call = Call::QueueAgain {
            pages: Links::from(&*pages),
            ends: ends.into(),
            shut,
            read,
        };
        let verdicts = self.apply(state, call, now)?.verdicts;
        let mut queued = QueuedAgain::default();
        for (verdict, record) in verdicts.into_iter().zip(due) {
            let Verdict::Refused(why) = verdict else {
                queued.count(record);
                continue;
            };
            queued.refused += 1;
            if matches!(why, Refusal::QueueFull | Refusal::TooManyHosts | Refusal::HostDown) {
                let again = StoredPage {
                    time: now,
                    ..record.clone()
                };
                record::add(&mut self.records, &again)?;
            }
        }
        Ok(queued)
    }
}
