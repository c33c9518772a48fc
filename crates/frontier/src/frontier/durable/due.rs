//! Pages that are due again: they are read from records, and queued past the seen-set.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use super::super::again::{RecordsRead, ShutOrigin};
use super::super::{Frontier, FrontierError};
use super::record::{self, PageEnd, PageRecord};
use crate::failure::FailureKind;
use crate::lease::NotFetched;
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::store::{Space, Store, StoreError};
use crate::time::Time;

/// Pages that were queued again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Requeued {
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

/// The last records of pages that are due.
#[derive(Debug, Default)]
pub(super) struct DuePages(Vec<PageRecord<'static>>);

impl DuePages {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a page, unless no other fetch would end otherwise.
    pub(super) fn add(&mut self, record: PageRecord<'_>) {
        if record.again().is_some() {
            self.0.push(record.into_owned());
        }
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

impl Requeued {
    fn count(&mut self, record: &PageRecord<'_>) {
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

impl Frontier {
    /// Queues pages again, and notes how far the records have been read for it. A page that cannot be queued now, but may be later, has
    /// another record then.
    pub(super) fn queue_due(
        &mut self,
        due: &DuePages,
        shut: ShutOrigin,
        read: RecordsRead,
        now: Time,
    ) -> Result<Requeued, FrontierError> {
        let (pages, ends): (Vec<_>, Vec<_>) = due.0.iter().filter_map(PageRecord::again).unzip();
        let verdicts = self.queue_again_until(&pages, &ends, shut, read, now)?;
        let mut requeued = Requeued::default();
        for (verdict, record) in verdicts.into_iter().zip(&due.0) {
            let Verdict::Refused(why) = verdict else {
                requeued.count(record);
                continue;
            };
            requeued.refused += 1;
            let may_be_queued_later = matches!(why, Refusal::QueueFull | Refusal::TooManyHosts | Refusal::HostDown);
            if let (true, Some(durable)) = (may_be_queued_later, &mut self.durable) {
                let again = PageRecord {
                    time: now,
                    ..record.clone()
                };
                record::add(&mut durable.records, &again)?;
            }
        }
        Ok(requeued)
    }
}

/// Whether more rows are to be read, unless a record is damaged.
pub(super) type RowVisited = Result<ControlFlow<()>, postcard::Error>;

/// Visits rows of records, in order, until `visit` breaks.
pub(super) fn read_rows(
    store: &dyn Store,
    rows: RangeInclusive<u64>,
    visit: &mut dyn FnMut(u64, &[u8]) -> RowVisited,
) -> Result<(), FrontierError> {
    let (mut has_ended, mut damaged) = (false, None);
    let read = store.range(Space::Record, rows, &mut |row, bytes| {
        match visit(row, &bytes) {
            Ok(ControlFlow::Continue(())) => return Ok(()),
            Ok(ControlFlow::Break(())) => has_ended = true,
            Err(error) => damaged = Some(format!("record row {row} cannot be read: {error}")),
        }
        // No more rows.
        Err(StoreError::Failed)
    });
    match (damaged, read) {
        (Some(what), _) => Err(FrontierError::not_saved(&what)),
        (None, Err(_)) if has_ended => Ok(()),
        (None, read) => Ok(read?),
    }
}
