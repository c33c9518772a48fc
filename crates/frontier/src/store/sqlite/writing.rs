//! One commit: a transaction, its sync, and the room that is given back.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use rusqlite::{OptionalExtension, Result};

use super::checkpointer::Checkpointer;
use super::errors::{is_busy, store_error};
use super::summary::Summary;
use super::{PAGE_BYTES, PATIENCE, SqliteStore, bounds, empty_log_at_end, log_bytes, signed};
use crate::store::{Batch, Change, Space, StoreError, sealed};

/// Free pages that a commit gives back to the disk at most.
const SLICE: i64 = 256;
/// Free pages that are kept for what is written next: these, or an eighth of all if that is more.
const SLACK: i64 = 1024;
/// How often the length of the log is looked at while it grows to its limit. That is a call of the system.
const MEASURES: u64 = 64;
/// Bytes that a commit, and each of its changes, makes the log longer by, beside those of the values: about four pages.
const BYTES_BESIDE_VALUE: u64 = 4 * PAGE_BYTES as u64;
/// Bytes that giving back a slice of pages makes the log longer by, at most: the pages, and as many of those that point to them.
const BYTES_OF_SLICE: u64 = 2 * SLICE.cast_unsigned() * PAGE_BYTES as u64;

impl SqliteStore {
    /// Writes a batch.
    pub(super) fn write(&mut self, batch: &Batch, sync: bool) -> std::result::Result<(), StoreError> {
        let measures_log = self.unmeasured >= self.log_limit / MEASURES;
        if sync || measures_log {
            // It syncs the name of a new database, and it reads.
            self.checkpointer()?.has_begun()?;
        }
        if measures_log {
            self.bound_log()?;
            self.unmeasured = 0;
        }
        let turn = self.checkpointer()?.begin_commit()?;
        let summaries = self.transact(batch, sync);
        drop(turn);
        self.summaries = summaries.map_err(|error| store_error(&self.path, error))?;
        self.checkpointer()?.wake();
        Ok(())
    }

    fn checkpointer(&self) -> std::result::Result<&Checkpointer, StoreError> {
        self.checkpointer.as_ref().ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, "it was opened for reading only");
            StoreError::io(&self.path, source)
        })
    }

    /// Ends all writing: what is on the disk is for the next opening to find out. The log stays as it is.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.checkpointer = None;
        // Either may fail where the disk did; there is nothing left to do then.
        let _ = self.connection.execute_batch("ROLLBACK");
        let _ = empty_log_at_end(&self.connection, false);
    }

    fn transact(&mut self, batch: &Batch, sync: bool) -> Result<[Summary; Space::ALL.len()]> {
        // Takes effect outside of a transaction only. NORMAL leaves the log unsynced; FULL syncs it at the commit, and with it all
        // that was written to it before.
        if sync != self.syncs_commits {
            let level = if sync { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.syncs_commits = sync;
        }
        let mut summaries = self.summaries;
        self.run("BEGIN IMMEDIATE")?;
        for change in &batch.changes {
            self.unmeasured += BYTES_BESIDE_VALUE;
            match change {
                Change::Put(space, key, value) => {
                    let row = signed(*key);
                    let seal = sealed::seal(*space, *key, value, &mut self.sealed).cast_signed();
                    self.unmeasured += self.sealed.len() as u64;
                    self.put(*space, row, seal, &mut summaries[*space as usize])?;
                }
                Change::Delete(space, keys) => self.delete(*space, keys, &mut summaries[*space as usize])?,
            }
        }
        let commit = 1 + self.summaries.iter().map(|summary| summary.commit).max().unwrap_or(0);
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
        self.set_status(batch)?;
        self.unmeasured += BYTES_BESIDE_VALUE;
        if self.may_shrink {
            self.unmeasured += BYTES_OF_SLICE;
            self.may_shrink = self.shrink()?;
        }
        self.run("COMMIT")?;
        Ok(summaries)
    }

    /// Writes the sealed bytes.
    fn put(&self, space: Space, key: i64, seal: i64, summary: &mut Summary) -> Result<()> {
        // Most keys are greater than all before.
        if summary.last.is_some_and(|last| key <= last) {
            let sql = format!("SELECT seal FROM {} WHERE key = ?1", space.name());
            let mut statement = self.connection.prepare_cached(&sql)?;
            if let Some(old) = statement.query_row([key], |row| row.get(0)).optional()? {
                summary.remove(old);
            }
        }
        let sql = format!(
            "INSERT OR REPLACE INTO {}(key, seal, value) VALUES (?1, ?2, ?3)",
            space.name()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.execute((key, seal, &self.sealed))?;
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
        summary.bound(&self.connection, space)?;
        self.may_shrink = true;
        Ok(())
    }

    fn set_status(&self, batch: &Batch) -> Result<()> {
        if batch.status.is_empty() {
            return Ok(());
        }
        let sql = "INSERT OR REPLACE INTO status(name, value) VALUES (?1, ?2)";
        let mut statement = self.connection.prepare_cached(sql)?;
        for (name, value) in &batch.status {
            statement.execute((name, value))?;
        }
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

    /// Empties a log that is too long: the thread did not come to it, or a reader held it.
    fn bound_log(&mut self) -> std::result::Result<(), StoreError> {
        let bytes = log_bytes(&self.path);
        if bytes <= self.log_limit {
            self.longest_log = self.log_limit;
        }
        if bytes <= self.longest_log {
            return Ok(());
        }
        let turn = self.checkpointer()?.hold()?;
        let emptied = self.empty_log();
        drop(turn);
        // A reader holds the log: this is tried again when it has grown by a quarter of the limit.
        self.longest_log = if emptied.map_err(|error| store_error(&self.path, error))? {
            self.log_limit
        } else {
            bytes + self.log_limit / 4
        };
        Ok(())
    }

    /// Returns whether it could, which it cannot while a reader holds the log. Waits for none.
    fn empty_log(&self) -> Result<bool> {
        self.connection.busy_timeout(Duration::ZERO)?;
        let emptied = self.connection.prepare_cached("PRAGMA wal_checkpoint(TRUNCATE)");
        let is_held = emptied.and_then(|mut statement| statement.query_row([], |row| row.get::<_, bool>(0)));
        self.connection.busy_timeout(PATIENCE)?;
        match is_held {
            Ok(is_held) => Ok(!is_held),
            Err(error) if is_busy(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Limits the number of pages of the database.
    #[cfg(test)]
    pub(in crate::store) fn limit_pages(&self, pages: i64) {
        let limited = self
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        limited.unwrap();
    }
}
