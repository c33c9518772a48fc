//! One commit: a transaction, its sync, and the room that is given back.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result};

use super::checkpointer::Checkpointer;
use super::end_of_log::empty_log_at_end;
use super::errors::{is_busy, store_error};
use super::status::{set_status, synced_lines};
use super::summary::Summary;
use super::{PAGE_BYTES, PATIENCE, SqliteStore, bounds, signed};
use crate::store::{Batch, Change, Space, StoreError, sealed};

/// Free pages that a commit gives back to the disk at most.
const SLICE: i64 = 256;
/// Free pages that are kept for what is written next: these, or an eighth of all if that is more.
const SLACK: i64 = 1024;
/// Bytes that a commit, and each of its changes, makes the log longer by, beside those of the values: about four pages.
const BYTES_BESIDE_VALUE: u64 = 4 * PAGE_BYTES as u64;
/// Bytes that giving back a slice of pages makes the log longer by, at most: the pages, and as many of those that point to them.
const BYTES_OF_SLICE: u64 = 2 * SLICE.cast_unsigned() * PAGE_BYTES as u64;

/// What SQLite syncs of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncing {
    /// Nothing: for the first commit of a new database. Its log is new, too, so nothing has to be told apart from what was in it before.
    Off,
    /// The head of the log, if the log begins anew.
    Normal,
    /// The log, with all that was written to it before.
    Full,
}

impl Syncing {
    fn of_commit(sync: bool, is_first: bool) -> Self {
        match sync {
            true => Self::Full,
            false if is_first => Self::Off,
            false => Self::Normal,
        }
    }

    /// The level of SQLite's `synchronous`.
    fn level(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Normal => "normal",
            Self::Full => "full",
        }
    }
}

impl SqliteStore {
    /// Writes a batch.
    pub(super) fn write(&mut self, batch: &Batch, sync: bool) -> std::result::Result<(), StoreError> {
        if sync {
            // It syncs the name of a new database.
            self.begin_with_thread()?;
        }
        if let Some(pages) = self.checkpointer()?.log_pages()? {
            (self.log_pages, self.uncounted) = (pages, 0);
        }
        let summaries = self.transact(batch, sync);
        self.summaries = summaries.map_err(|error| store_error(&self.path, error))?;
        if sync {
            self.hold_what_follows()?;
        }
        self.checkpointer()?.wake(sync);
        if sync != self.is_synced {
            self.is_synced = sync;
            self.set_end_of_log().map_err(|error| store_error(&self.path, error))?;
        }
        self.wants_sync = self.is_log_long();
        Ok(())
    }

    /// Waits until the thread has begun. Then the view is there.
    pub(super) fn begin_with_thread(&mut self) -> std::result::Result<(), StoreError> {
        if let Some(view) = self.checkpointer()?.has_begun()? {
            self.synced = Some(view);
        }
        Ok(())
    }

    pub(super) fn checkpointer(&self) -> std::result::Result<&Checkpointer, StoreError> {
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
        // Takes effect outside of a transaction only.
        let syncing = Syncing::of_commit(sync, self.is_first);
        if syncing != self.syncing {
            self.connection.pragma_update(None, "synchronous", syncing.level())?;
            self.syncing = syncing;
        }
        self.is_first = false;
        let mut summaries = self.summaries;
        self.run("BEGIN IMMEDIATE")?;
        for change in &batch.changes {
            self.uncounted += BYTES_BESIDE_VALUE;
            match change {
                Change::Put(space, key, value) => {
                    let row = signed(*key);
                    let seal = sealed::seal(*space, *key, value, &mut self.sealed).cast_signed();
                    self.uncounted += self.sealed.len() as u64;
                    self.put(*space, row, seal, &mut summaries[*space as usize])?;
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
        set_status(&self.connection, &batch.status)?;
        if sync {
            set_status(&self.connection, &synced_lines(commit))?;
        }
        self.uncounted += BYTES_BESIDE_VALUE;
        if self.may_shrink {
            self.uncounted += BYTES_OF_SLICE;
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

    /// After a synced commit: it may be moved into the database, and what follows may not. If the log is long, all of it is moved now, so
    /// that the next commit writes at its start: the memory of the system has these pages already.
    fn hold_what_follows(&mut self) -> std::result::Result<(), StoreError> {
        let is_long = self.is_log_long();
        let turn = is_long.then(|| self.checkpointer()?.hold()).transpose()?;
        let restarted = self.renew_view(|connection| is_long.then(|| restart_log(connection)).transpose());
        drop(turn);
        if let Some((is_held, pages)) = restarted.map_err(|error| store_error(&self.path, error))? {
            // What a reader holds is tried again when it has grown by as much once more.
            (self.held_pages, self.log_pages) = if is_held { (pages, pages) } else { (0, 0) };
            self.uncounted = 0;
        }
        Ok(())
    }

    /// Does something while the view holds nothing. Then it reads the present state.
    pub(super) fn renew_view<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let Some(view) = &self.synced else {
            return act(&self.connection);
        };
        view.end()?;
        let done = act(&self.connection)?;
        view.begin()?;
        Ok(done)
    }

    /// A long log begins anew after the next synced commit, so one is wanted soon.
    fn is_log_long(&self) -> bool {
        let added = self.log_pages.saturating_sub(self.held_pages);
        added >= self.long_log_pages || added * u64::from(PAGE_BYTES) + self.uncounted >= self.log_limit
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

/// Returns whether a reader was in the way, and how many pages the log has. Waits for no reader.
fn restart_log(connection: &Connection) -> Result<(bool, u64)> {
    connection.busy_timeout(Duration::ZERO)?;
    let restarted = connection.prepare_cached("PRAGMA wal_checkpoint(RESTART)");
    let restarted = restarted.and_then(|mut statement| {
        statement.query_row([], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.max(0).cast_unsigned()))
        })
    });
    connection.busy_timeout(PATIENCE)?;
    match restarted {
        // Another program is in the way. How long the log is, the thread counts again.
        Err(error) if is_busy(&error) => Ok((true, 0)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store as _;

    #[test]
    fn only_the_first_commit_of_a_new_database_does_not_sync_the_head_of_a_log_that_begins_anew() {
        let dir = std::env::temp_dir().join(format!("frontier-first-commit-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let batch = |key| {
            let mut batch = Batch::default();
            batch.put(Space::Journal, key, b"value".to_vec());
            batch
        };
        let level = |store: &SqliteStore| -> i32 {
            let level = store
                .connection
                .pragma_query_value(None, "synchronous", |row| row.get(0));
            level.unwrap()
        };
        let mut store = SqliteStore::open(&dir).unwrap();
        let mut levels = Vec::new();
        for (key, sync) in [(1, false), (2, false), (3, true), (4, false)] {
            store.commit(&batch(key), sync).unwrap();
            levels.push(level(&store));
        }
        drop(store);
        let mut store = SqliteStore::open(&dir).unwrap();
        store.commit(&batch(5), false).unwrap();
        levels.push(level(&store));
        drop(store);
        std::fs::remove_dir_all(&dir).unwrap();
        // https://sqlite.org/pragma.html#pragma_synchronous: 0 is OFF, 1 NORMAL and 2 FULL.
        assert_eq!(levels, [0, 1, 2, 1, 1]);
    }
}
