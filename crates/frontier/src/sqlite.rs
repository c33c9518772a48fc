//! A store in a SQLite database. This folder alone names rusqlite.
//!
//! One table per space, and a table `spaces` of what each holds. The log (WAL) takes the commits;
//! a thread moves them into the database. Memory: 8 MiB of pages, one commit's pages, and what is read.

use std::fs;
use std::io;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use url::Url;

use self::backfill::Backfill;
use self::errors::store_error;
use self::summary::Summary;
use crate::store::lock::DirectoryLock;
use crate::store::{Batch, LockHolder, MAX_KEY, PageOrder, Space, Store, StoreError, Visit, VisitUntil};

mod backfill;
mod errors;
mod format;
mod pages;
mod repair;
mod sealed;
mod summary;
mod tests;
mod writing;

#[cfg(test)]
pub(crate) use format::VERSION as FORMAT;
pub(crate) use repair::{Readable, Repair, has_none};

const KIB: i64 = 1024;
/// Pages of the database in memory.
const CACHE_KIB: i64 = 8 * KIB;
/// When the log has more bytes, the commit after the next one writes at its start again.
const LOG_BYTES: u64 = 16 * 1024 * 1024;
/// How long a commit waits for another program that writes: nobody should.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than all statements that are ever prepared.
const STATEMENTS: usize = 64;

/// `None` if there is none.
pub(crate) fn bytes_in(dir: &Path) -> Option<u64> {
    let bytes = |name: &str| fs::metadata(dir.join(name)).map(|file| file.len()).ok();
    Some(bytes(format::FILE)? + bytes(&format!("{}-wal", format::FILE)).unwrap_or_default())
}

/// What tests make smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) page_bytes: u32,
    pub(super) log_bytes: u64,
}

/// Pages of 2 KiB would make the log of short commits shorter, but a segment of a queue would take half as much room again.
const PAGE_BYTES: u32 = 4096;

pub(super) const SIZES: Sizes = Sizes {
    page_bytes: PAGE_BYTES,
    log_bytes: LOG_BYTES,
};

/// A store in a directory, open for writing or for reading.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    path: PathBuf,
    // Dropped in this order: the last connection to close empties the log, still under the lock.
    backfill: Option<Backfill>,
    connection: Connection,
    lock: Option<DirectoryLock>,
    /// The database file as it was opened for reading without its log: nobody was writing.
    unlogged: Option<fs::Metadata>,
    summaries: [Summary; Space::ALL.len()],
    failed: bool,
    /// Whether SQLite syncs each commit.
    syncs: bool,
    log_limit: u64,
    /// A log with more bytes is moved by the commit that makes it so long.
    long_log: u64,
    may_shrink: bool,
    sealed: Vec<u8>,
}

impl SqliteStore {
    /// Opens the store of a directory; makes both if they are not there. O(rows).
    ///
    /// # Errors
    /// [`StoreError::Locked`] if it is open already, in this process or another. The errors of damage leave all files as they are.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_sized(dir, SIZES)
    }

    pub(super) fn open_sized(dir: &Path, sizes: Sizes) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(|error| StoreError::io(dir, error))?;
        let mut lock = DirectoryLock::take(dir)?;
        let path = dir.join(format::FILE);
        if !is_there(&path)? {
            check_no_log(&path)?;
            format::create(dir, sizes.page_bytes)?;
        }
        lock.add(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&path, flags)?;
        let summaries = format::check(&connection, &path, true)?;
        let sqlite = |error| store_error(&path, error);
        // SQLite reads a file of an unknown version, or one that it cannot open to write, and fails with the first commit.
        if connection.is_readonly(rusqlite::MAIN_DB).map_err(sqlite)? {
            drop(connection);
            format::check_writable(&path)?;
            let error = fs::File::options().write(true).open(&path).err();
            let error = error.unwrap_or_else(|| io::Error::other("it was opened for reading only"));
            return Err(StoreError::io(&path, error));
        }
        let limit = connection.pragma_update(None, "journal_size_limit", sizes.log_bytes.cast_signed());
        limit.map_err(sqlite)?;
        // What an earlier run has left in the log stays there until a commit of this one.
        move_log_at_close(&connection, log_bytes(&path) == 0).map_err(sqlite)?;
        Ok(Self {
            backfill: Some(Backfill::start(connect(&path, flags)?, &path)?),
            lock: Some(lock),
            log_limit: sizes.log_bytes,
            long_log: sizes.log_bytes,
            may_shrink: true,
            ..Self::of(path, connection, summaries)
        })
    }

    /// Opens the store of a directory for reading, also beside a running crawl: it shows the state at this moment, for as long as it is
    /// open. Meanwhile the log of that crawl grows, so be short. Where no crawl runs, it writes no file, and must not be able to. O(rows).
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store. A commit answers [`StoreError::Io`].
    pub(crate) fn open_read_only(dir: &Path) -> Result<Self, StoreError> {
        Self::open_reader(dir, format::check)
    }

    /// Opens a store for reading without looking at its rows. What its tables hold is only what their lines say.
    pub(crate) fn open_unchecked(dir: &Path) -> Result<Self, StoreError> {
        Self::open_reader(dir, format::check_head)
    }

    fn open_reader(
        dir: &Path,
        check: impl FnOnce(&Connection, &Path, bool) -> Result<[Summary; Space::ALL.len()], StoreError>,
    ) -> Result<Self, StoreError> {
        let path = dir.join(format::FILE);
        if !is_there(&path)? {
            check_no_log(&path)?;
            return Err(StoreError::Missing { dir: dir.to_owned() });
        }
        let nobody_writes = || matches!(LockHolder::of(dir), Ok(LockHolder::Nobody));
        let unlogged = fs::metadata(&path)
            .ok()
            .filter(|_| log_bytes(&path) == 0 && nobody_writes());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match unlogged {
            Some(_) => format::check_writable(&path).and_then(|()| connect_without_log(&path))?,
            None => connect(&path, flags)?,
        };
        let begun = connection.execute_batch("BEGIN");
        begun.map_err(|error| store_error(&path, error))?;
        let summaries = check(&connection, &path, unlogged.is_none())?;
        let store = Self {
            unlogged,
            ..Self::of(path, connection, summaries)
        };
        store.check_unlogged().map(|()| store)
    }

    /// Fails if a crawl has written since the database was opened without its log: what was read may be of several commits.
    fn check_unlogged(&self) -> Result<(), StoreError> {
        let is_as_before = |then: &fs::Metadata| {
            let now = fs::metadata(&self.path);
            now.is_ok_and(|now| (now.len(), now.modified().ok()) == (then.len(), then.modified().ok()))
                && log_bytes(&self.path) == 0
        };
        if self.unlogged.as_ref().is_none_or(is_as_before) {
            return Ok(());
        }
        let begun = std::io::Error::other("a crawl has begun to write it meanwhile");
        Err(StoreError::io(&self.path, begun))
    }

    fn of(path: PathBuf, connection: Connection, summaries: [Summary; Space::ALL.len()]) -> Self {
        Self {
            path,
            backfill: None,
            connection,
            lock: None,
            unlogged: None,
            summaries,
            failed: false,
            syncs: false,
            log_limit: LOG_BYTES,
            long_log: LOG_BYTES,
            may_shrink: false,
            sealed: Vec::new(),
        }
    }

    /// The number of the last commit.
    fn last_commit(&self) -> i64 {
        self.summaries.iter().map(|summary| summary.commit).max().unwrap_or(0)
    }

    /// Visits the rows of a space that a condition with keys names. Returns what it met.
    fn visit(
        &self,
        space: Space,
        which: &str,
        keys: &[i64],
        visit: &mut VisitUntil<'_>,
    ) -> Result<Summary, StoreError> {
        self.usable()?;
        let sql = format!("SELECT * FROM {} WHERE {which}", space.name());
        let sqlite = |error| self.error(error);
        let mut statement = self.connection.prepare_cached(&sql).map_err(sqlite)?;
        let mut rows = statement.query(params_from_iter(keys)).map_err(sqlite)?;
        let (mut visited, mut met) = (Ok(ControlFlow::Continue(())), Summary::default());
        while matches!(visited, Ok(ControlFlow::Continue(())))
            && let Some(row) = rows.next().map_err(sqlite)?
        {
            visited = self.value(space, row).and_then(|(key, value)| visit(key, value));
            met.add(row.get(0).map_err(sqlite)?, row.get(1).map_err(sqlite)?);
        }
        self.check_unlogged()?;
        visited.map(|_| met)
    }

    /// Fails if pages are missing among those that were met with these numbers. There are no gaps, unless a repair has left some.
    fn check_pages(&self, wanted: RangeInclusive<i64>, met: Summary) -> Result<(), StoreError> {
        let all = self.summaries[Space::Page as usize];
        let (Some(first), Some(last)) = (all.first, all.last) else {
            return Ok(());
        };
        let (from, to) = (first.max(*wanted.start()), last.min(*wanted.end()));
        let is_whole = if (from, to) == (first, last) {
            let commit = all.commit;
            Summary { commit, ..met } == all
        } else {
            let has_gaps = all.rows - 1 < last - first;
            has_gaps || from > to || (met.rows, met.last) == (to - from + 1, Some(to))
        };
        let damaged = || StoreError::damaged(&self.path, "the pages are not those that were written");
        if is_whole { Ok(()) } else { Err(damaged()) }
    }

    fn value(&self, space: Space, row: &rusqlite::Row<'_>) -> Result<(u64, Vec<u8>), StoreError> {
        let key: i64 = row.get(0).map_err(|error| self.error(error))?;
        let damaged = |what: &str| {
            let place = format!("{what} in the table {}, key {key}", space.name());
            StoreError::damaged(&self.path, place)
        };
        let value = value_of(space, key.cast_unsigned(), row, true).map_err(damaged)?;
        Ok((key.cast_unsigned(), value))
    }

    fn error(&self, error: rusqlite::Error) -> StoreError {
        store_error(&self.path, error)
    }

    /// Compares the indexes of pages with the pages. O(pages).
    pub(crate) fn check_indexes(&self) -> Result<(), StoreError> {
        let checked = self
            .connection
            .query_row("PRAGMA integrity_check(page)", [], |row| row.get::<_, String>(0));
        match checked.map_err(|error| self.error(error))? {
            whole if whole == "ok" => Ok(()),
            what => Err(StoreError::damaged(&self.path, what)),
        }
    }

    fn usable(&self) -> Result<(), StoreError> {
        if self.failed { Err(StoreError::Failed) } else { Ok(()) }
    }
}

impl Store for SqliteStore {
    fn commit(&mut self, batch: &Batch, sync: bool) -> Result<(), StoreError> {
        self.usable()?;
        if batch.is_empty() && !sync {
            return Ok(());
        }
        let is_in_place = if sync { self.check_place() } else { Ok(()) };
        let written = is_in_place.and_then(|()| self.write(batch, sync));
        if written.is_err() {
            self.fail();
        }
        written
    }

    fn check_place(&self) -> Result<(), StoreError> {
        self.lock.as_ref().map_or(Ok(()), DirectoryLock::check_place)
    }

    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let Some((first, last)) = bounds(&keys) else {
            return self.usable();
        };
        let which = "key BETWEEN ?1 AND ?2 ORDER BY key";
        let mut visit = |key, value| visit(key, value).map(ControlFlow::Continue);
        let met = self.visit(space, which, &[first, last], &mut visit)?;
        match space {
            Space::Page => self.check_pages(first..=last, met),
            _ => Ok(()),
        }
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let (key, mut found) = (signed(at_or_below), None);
        let which = "key <= ?1 ORDER BY key DESC LIMIT 1";
        let met = self.visit(space, which, &[key], &mut |key, value| {
            found = Some((key, value));
            Ok(ControlFlow::Continue(()))
        })?;
        if space == Space::Page {
            let last = self.summaries[space as usize].last.unwrap_or(key);
            self.check_pages(key.min(last)..=key, met)?;
        }
        Ok(found)
    }

    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError> {
        let (failed, first, by) = match order {
            PageOrder::Saved => ("", "", "saved_in"),
            PageOrder::Failed => ("unanswered IS NOT NULL AND ", "unanswered, ", "saved_in"),
            PageOrder::Unanswered => ("unanswered = 1 AND ", "", "saved_in"),
            PageOrder::Due => ("", "", "next_visit"),
        };
        let which = format!("{failed}{by} >= ?1 AND ({by} > ?1 OR key >= ?2) ORDER BY {first}{by}, key");
        self.visit(Space::Page, &which, &[signed(from.0), signed(from.1)], visit)
            .map(drop)
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.summaries[space as usize].last.map(i64::cast_unsigned)
    }
}

/// Reads the columns behind a key. The mark of a page is no part of its value.
fn value_of(space: Space, key: u64, row: &rusqlite::Row<'_>, with_mark: bool) -> Result<Vec<u8>, &'static str> {
    if space == Space::Page {
        return pages::value(key, row, with_mark);
    }
    let seal: i64 = row.get(1).map_err(|_| "no seal")?;
    let value = row.get_ref(2).map_err(|_| "no value")?;
    let sealed = value.as_blob().map_err(|_| "no value")?;
    sealed::unseal(space, key, sealed, seal.cast_unsigned())
}

/// The keys as SQLite has them; `None` if there are none.
fn bounds(keys: &RangeInclusive<u64>) -> Option<(i64, i64)> {
    (!keys.is_empty() && *keys.start() <= MAX_KEY).then(|| (signed(*keys.start()), signed(*keys.end())))
}

/// The key, or the greatest one.
fn signed(key: u64) -> i64 {
    i64::try_from(key).unwrap_or(i64::MAX)
}

/// Where the database is missing, a log is what is left of one.
fn check_no_log(path: &Path) -> Result<(), StoreError> {
    match log_bytes(path) {
        0 => Ok(()),
        _ => Err(StoreError::damaged(path, "the file is missing, but its log is there")),
    }
}

/// An empty file is not for SQLite: it would take it for a new database, and delete the log.
fn is_there(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(file) if file.len() == 0 => Err(StoreError::NotAStore { path: path.to_owned() }),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io(path, error)),
    }
}

fn log_bytes(path: &Path) -> u64 {
    let log = fs::metadata(format::beside(path, "-wal"));
    log.map_or(0, |file| file.len())
}

/// Opens the database for reading, as it is without its log.
fn connect_without_log(path: &Path) -> Result<Connection, StoreError> {
    // What nobody changes has no log: <https://sqlite.org/uri.html>.
    let absolute = std::path::absolute(path).map_err(|error| StoreError::io(path, error))?;
    let url = Url::from_file_path(absolute).map_err(|()| StoreError::NotAStore { path: path.to_owned() })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&format!("{url}?immutable=1")), flags)
}

/// Returns whether the database has pages of a later commit than its log, which has lost its end then. Nobody may move later pages meanwhile:
/// a read has begun on the connection, or the directory is locked.
fn is_log_cut_off(connection: &Connection, path: &Path) -> bool {
    let moved = || Summary::last_commit(&connect_without_log(path).ok()?);
    Summary::last_commit(connection).is_some_and(|last| moved().is_some_and(|moved| moved > last))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connect = || {
        let connection = Connection::open_with_flags(path, flags)?;
        // Until all was found to be whole, its end changes nothing.
        move_log_at_close(&connection, false)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES.cast_signed())?;
        connection.pragma_update(None, "synchronous", "normal")?;
        Ok(connection)
    };
    connect().map_err(|error| store_error(path, error))
}

fn move_log_at_close(connection: &Connection, does: bool) -> rusqlite::Result<()> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !does);
    set.map(drop)
}
