//! Pages that are due again: they are read from records, and queued past the seen-set.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use super::super::again::{LastEnd, RecordsRead};
use super::super::{Frontier, FrontierError};
use super::record::{PageEnd, PageRecord};
use crate::failure::FailureKind;
use crate::lease::NotFetched;
use crate::link::Link;
use crate::settlement::Verdict;
use crate::store::{Space, Store, StoreError};
use crate::time::Time;

/// Pages that were queued again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Requeued {
    /// Pages that were queued again.
    pub queued: u64,
    /// Pages that were not: they are out of the scope now.
    pub refused: u64,
    /// Those of the queued ones that had failed in all attempts and were never fetched, by the last failure. They do not count as failed
    /// any longer.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Those that were fetched before, and had failed when they were fetched again.
    pub failed_refreshes: BTreeMap<FailureKind, u64>,
    /// Those that were dropped because their origin was given up, by the failure of the origin.
    pub dropped: BTreeMap<FailureKind, u64>,
}

/// The failure of the last fetch.
#[derive(Debug)]
enum LastFailure {
    /// Of a page that was never fetched.
    Page(FailureKind),
    Refresh(FailureKind),
    Origin(FailureKind),
}

/// Pages of some records, each with the end of its last fetch.
#[derive(Debug, Default)]
pub(super) struct DuePages {
    pages: Vec<Link>,
    ends: Vec<LastEnd>,
    failures: Vec<Option<LastFailure>>,
}

impl DuePages {
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn add(&mut self, record: &PageRecord<'_>) {
        let Some((page, end)) = record.again() else { return };
        self.pages.push(page);
        self.ends.push(end);
        self.failures.push(match record.end {
            PageEnd::GaveUp(kind) if record.is_refresh => Some(LastFailure::Refresh(kind)),
            PageEnd::GaveUp(kind) => Some(LastFailure::Page(kind)),
            PageEnd::NotFetched(NotFetched::HostDown) => {
                Some(LastFailure::Origin(record.cause.unwrap_or(FailureKind::HostDown)))
            }
            _ => None,
        });
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.pages.append(&mut other.pages);
        self.ends.append(&mut other.ends);
        self.failures.append(&mut other.failures);
    }
}

impl Frontier {
    /// Queues pages again, and notes how far the records have been read for it.
    pub(super) fn queue_due(
        &mut self,
        due: &DuePages,
        read: RecordsRead,
        now: Time,
    ) -> Result<Requeued, FrontierError> {
        let verdicts = self.queue_again_until(&due.pages, &due.ends, read, now)?;
        let mut requeued = Requeued::default();
        for (verdict, failure) in verdicts.into_iter().zip(&due.failures) {
            if verdict != Verdict::Queued {
                requeued.refused += 1;
                continue;
            }
            requeued.queued += 1;
            let count = match failure {
                None => continue,
                Some(LastFailure::Page(kind)) => requeued.failed.entry(*kind),
                Some(LastFailure::Refresh(kind)) => requeued.failed_refreshes.entry(*kind),
                Some(LastFailure::Origin(kind)) => requeued.dropped.entry(*kind),
            };
            *count.or_default() += 1;
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
