//! One commit: a transaction, its sync, and the room that is given back.

use std::io;
use std::ops::RangeInclusive;

use rusqlite::{OptionalExtension, Result};

use super::backfill::{Backfill, move_log};
use super::errors::store_error;
use super::summary::Summary;
use super::{SqliteStore, bounds, log_bytes, move_log_at_close, pages, sealed, signed};
use crate::store::{Batch, Change, Space, StoreError};

/// Free pages that a commit gives back to the disk at most.
const SLICE: i64 = 256;
/// Free pages that are kept for what is written next: these, or an eighth of all if that is more.
const SLACK: i64 = 1024;

impl SqliteStore {
    /// Writes a batch.
    pub(super) fn write(&mut self, batch: &Batch, sync: bool) -> std::result::Result<(), StoreError> {
        self.backfill()?.check()?;
        let summaries = self.transact(batch, sync);
        self.summaries = summaries.map_err(|error| store_error(&self.path, error))?;
        self.backfill()?.note_commit();
        let moved = self
            .move_long_log()
            .and_then(|()| move_log_at_close(&self.connection, true));
        moved.map_err(|error| store_error(&self.path, error))
    }

    fn backfill(&self) -> std::result::Result<&Backfill, StoreError> {
        self.backfill.as_ref().ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, "it was opened for reading only");
            StoreError::io(&self.path, source)
        })
    }

    /// Ends all writing: what is on the disk is for the next opening to find out. The log stays as it is.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.backfill = None;
        // Either may fail where the disk did; there is nothing left to do then.
        let _ = self.connection.execute_batch("ROLLBACK");
        let _ = move_log_at_close(&self.connection, false);
    }

    fn transact(&mut self, batch: &Batch, sync: bool) -> Result<[Summary; Space::ALL.len()]> {
        // Takes effect outside of a transaction only.
        if sync != self.syncs {
            let level = if sync { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.syncs = sync;
        }
        let mut summaries = self.summaries;
        self.run("BEGIN IMMEDIATE")?;
        for change in &batch.changes {
            match change {
                Change::Put(space, key, value) => {
                    self.put(*space, *key, value, &mut summaries[*space as usize])?;
                }
                Change::Delete(space, keys) => self.delete(*space, keys, &mut summaries[*space as usize])?,
            }
        }
        let commit = 1 + self.last_commit();
        if summaries == self.summaries {
            // A transaction that changes no page is not synced.
            summaries[Space::Meta as usize].commit = commit;
        }
        for space in Space::ALL {
            let summary = &mut summaries[space as usize];
            if *summary != self.summaries[space as usize] {
                summary.commit = commit;
                summary.store(&self.connection, space)?;
            }
        }
        if self.may_shrink {
            self.may_shrink = self.shrink()?;
        }
        self.run("COMMIT")?;
        Ok(summaries)
    }

    fn put(&mut self, space: Space, key: u64, value: &[u8], summary: &mut Summary) -> Result<()> {
        let seal = match space {
            Space::Page => sealed::checksum(space, key, value),
            _ => sealed::seal(space, key, value, &mut self.sealed),
        };
        let (key, seal) = (signed(key), seal.cast_signed());
        // Most keys are greater than all before.
        if summary.last.is_some_and(|last| key <= last) {
            let sql = format!("SELECT seal FROM {} WHERE key = ?1", space.name());
            let mut statement = self.connection.prepare_cached(&sql)?;
            if let Some(old) = statement.query_row([key], |row| row.get(0)).optional()? {
                summary.remove(old);
            }
        }
        if space == Space::Page {
            pages::insert(&self.connection, key, seal, value)?;
        } else {
            let sql = format!(
                "INSERT OR REPLACE INTO {}(key, seal, value) VALUES (?1, ?2, ?3)",
                space.name()
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.execute((key, seal, &self.sealed))?;
        }
        summary.add(key, seal);
        Ok(())
    }

    fn delete(&mut self, space: Space, keys: &RangeInclusive<u64>, summary: &mut Summary) -> Result<()> {
        let Some((first, last)) = bounds(keys) else {
            return Ok(());
        };
        let sql = format!("SELECT seal FROM {} WHERE key BETWEEN ?1 AND ?2", space.name());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut seals = statement.query([first, last])?;
        let before = summary.rows;
        while let Some(row) = seals.next()? {
            summary.remove(row.get(0)?);
        }
        if summary.rows == before {
            return Ok(());
        }
        let sql = format!("DELETE FROM {} WHERE key BETWEEN ?1 AND ?2", space.name());
        self.connection.prepare_cached(&sql)?.execute([first, last])?;
        *summary = summary.bounded(&self.connection, space)?;
        self.may_shrink = true;
        Ok(())
    }

    /// Gives some free pages back. Returns whether there are more.
    fn shrink(&self) -> Result<bool> {
        let number = |sql| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row([], |row| row.get::<_, i64>(0))
        };
        let free = number("PRAGMA freelist_count")? - SLACK.max(number("PRAGMA page_count")? / 8);
        if free <= 0 {
            return Ok(false);
        }
        // Each row is a page that was given back.
        let sql = format!("PRAGMA incremental_vacuum({SLICE})");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut pages = statement.query([])?;
        while pages.next()?.is_some() {}
        Ok(free > SLICE)
    }

    /// Moves all of a long log into the database, so that the next commit writes at its start again: commits that follow each other would
    /// always leave something to move for the thread. The first commit of a log that begins anew cuts the file off.
    fn move_long_log(&mut self) -> Result<()> {
        let bytes = log_bytes(&self.path);
        if bytes <= self.log_limit {
            self.long_log = self.log_limit;
        } else if bytes > self.long_log
            && let Some(is_all) = move_log(&self.connection)?
        {
            if !is_all {
                self.warn_of_reader(bytes);
            }
            // What a reader holds is tried again when the log has grown by as much once more.
            self.long_log = if is_all { bytes } else { bytes + self.log_limit };
        }
        Ok(())
    }

    /// Warns of a log that a reader makes long: the first time, and whenever it has doubled.
    fn warn_of_reader(&self, bytes: u64) {
        let at_last_try = self.long_log - self.log_limit;
        if bytes > 4 * self.log_limit && bytes.checked_ilog2() > at_last_try.checked_ilog2() {
            log::warn!(
                target: "frontier::store",
                log_bytes = bytes;
                "a program that reads {} holds its log, which has {} MiB: it grows until that program ends", self.path.display(), bytes >> 20
            );
        }
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Limits the number of pages of the database.
    #[cfg(test)]
    pub(in crate::sqlite) fn limit_pages(&self, pages: i64) {
        let limited = self
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        limited.unwrap();
    }
}
