//! What a repair found, kept and dropped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::super::PageRecord;
use crate::entry::Entry;
use crate::report::RepairLosses;
use crate::store::{FoundRows, Space};

/// How a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairOutcome {
    /// Nothing was wrong in what can be read, and nothing was changed.
    Whole,
    /// The directory can be opened again.
    Repaired,
    /// Too much is lost to continue. The directory is as it was. What is intact was handed to the caller.
    NotContinued,
}

/// One table of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairedTable {
    /// Its name.
    pub name: &'static str,
    /// Rows that are intact.
    pub found: u64,
    /// Rows that were written; `None` if that cannot be read.
    pub written: Option<u64>,
}

/// What a repair found and dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// How it ended.
    pub outcome: RepairOutcome,
    /// What was wrong first; empty if nothing was.
    pub damage: String,
    /// The tables. `segment` has parts of long queues, `journal` the calls since the checkpoint, `record` what became of pages.
    pub tables: Vec<RepairedTable>,
    /// The last row of the journal that the state contains.
    pub last_row: u64,
    /// Later rows of the journal, which are missing, or follow one that is.
    pub journal_rows_dropped: u64,
    /// Later commits in the log of a database that is whole without them, because bytes before them are wrong: at least so many. A power cut
    /// may leave some, within the interval between two syncs. What they did and the database does not have is done again.
    pub log_commits_unread: u64,
    /// Rows of records that are lost. Each has the records of one [`persist`](crate::Frontier::persist).
    pub record_rows_lost: u64,
    /// Waiting pages that are lost with segments of their queues, by host. Their URLs are marked as seen, so the crawl does not find them
    /// again.
    pub urls_lost: BTreeMap<String, u64>,
    /// Whether hosts of the checkpoint are lost, with their queues and their state.
    pub is_without_hosts: bool,
    /// Waiting pages that are lost with these hosts. Their URLs are marked as seen, too.
    pub urls_lost_with_hosts: u64,
    /// Whether the seen-set was made anew, of records and queues. It lacks no key, but the crawl continues from the checkpoint.
    pub has_new_seen_set: bool,
    /// Records that were handed to the caller.
    pub records_put_out: u64,
    /// URLs that were handed to the caller.
    pub urls_put_out: u64,
    /// The file in which the damaged database is kept.
    pub kept: Option<PathBuf>,
    /// Whether a repair was finished that had been interrupted.
    pub was_finished: bool,
}

/// Something intact that does not belong to the state that can be continued.
#[derive(Debug)]
#[non_exhaustive]
pub enum Salvaged<'a> {
    /// What became of a page.
    Record(PageRecord<'a>),
    /// A URL that waits, was in flight, or was offered.
    Waiting(Entry),
}

impl RepairReport {
    pub(in super::super) fn whole(was_finished: bool) -> Self {
        Self {
            outcome: RepairOutcome::Whole,
            was_finished,
            ..Self::new(String::new(), &[])
        }
    }

    pub(in super::super) fn new(damage: String, found: &[FoundRows]) -> Self {
        let tables = Space::ALL.iter().zip(found).map(|(space, table)| RepairedTable {
            name: space.name(),
            found: table.found,
            written: table.written,
        });
        Self {
            outcome: RepairOutcome::NotContinued,
            damage,
            tables: tables.collect(),
            last_row: 0,
            journal_rows_dropped: 0,
            log_commits_unread: 0,
            record_rows_lost: 0,
            urls_lost: BTreeMap::new(),
            is_without_hosts: false,
            urls_lost_with_hosts: 0,
            has_new_seen_set: false,
            records_put_out: 0,
            urls_put_out: 0,
            kept: None,
            was_finished: false,
        }
    }

    fn table(&self, space: Space) -> Option<&RepairedTable> {
        self.tables.get(space as usize)
    }

    /// Returns how many rows of a table are missing, if that is known.
    pub(super) fn missing_rows(&self, space: Space) -> u64 {
        let missing = |table: &RepairedTable| Some(table.written?.saturating_sub(table.found));
        self.table(space).and_then(missing).unwrap_or_default()
    }

    /// Returns whether all rows of records are there.
    pub(super) fn has_all_records(&self) -> bool {
        self.table(Space::Record)
            .is_some_and(|table| table.written == Some(table.found))
    }

    pub(super) fn note_missing_records(&mut self) {
        self.record_rows_lost = self.missing_rows(Space::Record);
    }

    /// Returns what the frontier has to remember of the losses.
    pub(super) fn losses(&self) -> RepairLosses {
        RepairLosses {
            pages: self
                .urls_lost
                .values()
                .fold(self.urls_lost_with_hosts, |sum, pages| sum.saturating_add(*pages)),
            record_rows: self.record_rows_lost,
        }
    }

    /// Returns whether it is unknown how many rows the journal or the records had: some may be lost at the end.
    pub fn may_lack_rows(&self) -> bool {
        let is_unknown = |space| self.table(space).is_some_and(|table| table.written.is_none());
        is_unknown(Space::Journal) || is_unknown(Space::Record)
    }

    /// Returns whether anything was lost, or may be.
    pub fn has_losses(&self) -> bool {
        self.outcome == RepairOutcome::NotContinued
            || self.journal_rows_dropped > 0
            || self.log_commits_unread > 0
            || self.record_rows_lost > 0
            || !self.urls_lost.is_empty()
            || self.is_without_hosts
            || self.may_lack_rows()
    }
}
