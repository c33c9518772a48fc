//! A database of the URLs: SQLite with a table in a file, which is not synced. Its bits are those of the file; the time is that of the
//! processor, as of all others, so what a disk adds is not in it.

use std::path::PathBuf;

use rusqlite::{Connection, Result};

use super::Contender;
use super::queued::{Seen, queued};

struct Database {
    connection: Connection,
    path: PathBuf,
}

pub(super) fn build(_capacity: u64) -> Box<dyn Contender> {
    let path = std::env::temp_dir().join(format!("rivals-{}.sqlite", std::process::id()));
    match open(&path) {
        Ok(connection) => queued(Database { connection, path }),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// One transaction for all, and a cache of 256 MiB: what SQLite can do at best.
fn open(path: &std::path::Path) -> Result<Connection> {
    // Of a run that was killed.
    let _ = std::fs::remove_file(path);
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "cache_size", -256 * 1024)?;
    connection.execute_batch("CREATE TABLE seen(url TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN")?;
    Ok(connection)
}

impl Database {
    /// An error ends the bench: its figures would be wrong.
    fn run<R>(&self, sql: &str, run: impl FnOnce(&mut rusqlite::CachedStatement<'_>) -> Result<R>) -> R {
        let result = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| run(&mut statement));
        result.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

impl Seen for Database {
    fn insert(&mut self, url: &str) -> bool {
        self.run("INSERT OR IGNORE INTO seen VALUES (?1)", |statement| {
            statement.execute([url])
        }) == 1
    }

    fn contains(&self, url: &str) -> bool {
        self.run("SELECT 1 FROM seen WHERE url = ?1", |statement| statement.exists([url]))
    }

    fn bits(&self) -> u64 {
        let number = |sql| self.run(sql, |statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        (number("PRAGMA page_count") * number("PRAGMA page_size")).unsigned_abs() * 8
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
