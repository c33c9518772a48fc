//! What each table holds, in one line of the table `spaces`: so a store knows when rows are missing, left over or of another time.
//!
//! The line is written in the transaction that changes the table. Its `seals` is the sum of the seals of all rows, modulo 2^64, and
//! each seal covers a space, a key and a value: two states of a table with the same sum are the same state, but for one chance in 2^64.

use rusqlite::{Connection, OptionalExtension, Result};

use crate::store::Space;

/// What a table holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) rows: i64,
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) seals: i64,
    /// The number of the commit that changed it last.
    pub(super) commit: i64,
}

impl Summary {
    pub(super) fn add(&mut self, key: i64, seal: i64) {
        self.rows += 1;
        self.seals = self.seals.wrapping_add(seal);
        self.first = Some(self.first.map_or(key, |first| first.min(key)));
        self.last = Some(self.last.map_or(key, |last| last.max(key)));
    }

    /// A row is removed; its key may remain the first or last until [`bounded`](Self::bounded).
    pub(super) fn remove(&mut self, seal: i64) {
        self.rows -= 1;
        self.seals = self.seals.wrapping_sub(seal);
    }

    /// Finds the first and the last key again. O(log rows).
    pub(super) fn bounded(mut self, connection: &Connection, space: Space) -> Result<Self> {
        let sql = format!(
            "SELECT (SELECT min(key) FROM {0}), (SELECT max(key) FROM {0})",
            space.name()
        );
        let mut statement = connection.prepare_cached(&sql)?;
        (self.first, self.last) = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(self)
    }

    /// Reads the line of a space.
    pub(super) fn stored(connection: &Connection, space: Space) -> Result<Option<Self>> {
        let sql = "SELECT rows, first, last, seals, \"commit\" FROM spaces WHERE space = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let line = statement.query_row([space.name()], |row| {
            Ok(Self {
                rows: row.get(0)?,
                first: row.get(1)?,
                last: row.get(2)?,
                seals: row.get(3)?,
                commit: row.get(4)?,
            })
        });
        line.optional()
    }

    /// `None` if any line cannot be read.
    pub(super) fn last_commit(connection: &Connection) -> Option<i64> {
        let line = |space| Self::stored(connection, space).ok()?;
        let lines: Option<Vec<Self>> = Space::ALL.into_iter().map(line).collect();
        lines?.iter().map(|line| line.commit).max()
    }

    /// Writes the line of a space.
    pub(super) fn store(&self, connection: &Connection, space: Space) -> Result<()> {
        let sql = "UPDATE spaces SET rows = ?2, first = ?3, last = ?4, seals = ?5, \"commit\" = ?6 WHERE space = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        statement.execute((space.name(), self.rows, self.first, self.last, self.seals, self.commit))?;
        Ok(())
    }

    /// Counts the rows, and looks each up by its key, so that a wrong inner page of the tree is found, too. O(rows); values that have
    /// pages of their own are not read.
    pub(super) fn counted(connection: &Connection, space: Space) -> Result<Self> {
        // Downward: a look-up of the next greater key would be a step, which reads no inner page.
        let sql = format!(
            "SELECT key, (SELECT seal FROM {0} AS found WHERE found.key = every.key) FROM {0} AS every ORDER BY key DESC",
            space.name()
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut counted = Self::default();
        while let Some(row) = rows.next()? {
            counted.add(row.get(0)?, row.get(1)?);
        }
        Ok(counted)
    }
}
