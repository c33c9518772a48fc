//! What becomes of the log when it is taken over from an earlier run, and at the end.

use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{PATIENCE, SqliteStore};
use crate::store::{Batch, StoreError};

impl SqliteStore {
    /// Takes what was found in the log for the state to continue, if something in it was left for a repair.
    pub(super) fn accept_log(&mut self) -> Result<(), StoreError> {
        if self.is_accepted {
            return Ok(());
        }
        // All that is emptied out of the log is synced.
        self.write(&Batch::default(), true)?;
        // The thread reads when it begins, and when it moves what was synced.
        self.begin_with_thread()?;
        let held = self.checkpointer()?.hold()?;
        let emptied = self.renew_view(empty_log_if_unused);
        drop(held);
        self.is_accepted = true;
        emptied
            .and_then(|()| self.set_end_of_log())
            .map_err(|error| self.error(error))
    }

    /// The end of the store empties the log if nothing in it is left for a repair, or may have to be discarded.
    pub(super) fn set_end_of_log(&self) -> rusqlite::Result<()> {
        empty_log_at_end(&self.connection, self.is_accepted && self.is_synced)
    }
}

pub(super) fn empty_log_at_end(connection: &Connection, does: bool) -> rusqlite::Result<()> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !does);
    set.map(drop)
}

/// Moves what the log has into the database, and empties it, so that nobody meets again what follows wrong bytes. If another program reads,
/// the log stays as it is.
fn empty_log_if_unused(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.busy_timeout(PATIENCE)
}
