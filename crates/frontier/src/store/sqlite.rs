//! A store in a SQLite database. This folder alone names rusqlite.
//!
//! One table per space, a table `spaces` of what each holds, and a table `status` for ordinary tools. The log (WAL) takes the commits;
//! a thread moves them into the database. Memory: 8 MiB of pages, one commit's pages, and what is read.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use url::Url;

use self::checkpointer::Checkpointer;
use self::end_of_log::empty_log_at_end;
use self::errors::store_error;
use self::summary::Summary;
use self::synced::SyncedView;
use self::writing::Syncing;
use super::lock::DirectoryLock;
use super::sealed;
use super::{Batch, MAX_KEY, Space, Store, StoreError};

mod checkpointer;
mod end_of_log;
mod errors;
mod format;
mod log;
mod replacing;
pub(in crate::store) mod salvage;
mod status;
mod summary;
pub(in crate::store) mod synced;
mod turns;
mod writing;

pub(crate) use replacing::{Replacement, has_none};
pub(crate) use salvage::{FoundRows, salvage};

const KIB: i64 = 1024;
/// Pages of the database in memory.
const CACHE_KIB: i64 = 8 * KIB;
/// When commits may have made the log longer by this many bytes, and the thread has not counted its pages meanwhile, it is taken for long. A log that begins
/// anew is cut off there.
const LOG_BYTES: u64 = 64 * 1024 * 1024;
/// When the log has this many bytes, it is long: the commit after the next synced one writes at its start again.
const LONG_LOG_BYTES: u64 = 16 * 1024 * 1024;
/// How long a commit waits for another program that writes: nobody should.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than all statements that are ever prepared.
const STATEMENTS: usize = 64;

/// What tests make smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) page_bytes: u32,
    pub(super) log_bytes: u64,
    pub(super) long_log_bytes: u64,
}

/// Pages of 2 KiB would make the log of short commits shorter, but a segment of a queue would take half as much room again.
const PAGE_BYTES: u32 = 4096;

pub(super) const SIZES: Sizes = Sizes {
    page_bytes: PAGE_BYTES,
    log_bytes: LOG_BYTES,
    long_log_bytes: LONG_LOG_BYTES,
};

/// A store in a directory, open for writing or for reading.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    path: PathBuf,
    // Dropped in this order: the last connection to close empties the log, still under the lock.
    checkpointer: Option<Checkpointer>,
    synced: Option<SyncedView>,
    connection: Connection,
    _lock: Option<DirectoryLock>,
    unread_commits: u64,
    summaries: [Summary; Space::ALL.len()],
    failed: bool,
    syncing: Syncing,
    /// Whether the next commit is the first one of a new database, with a new log.
    is_first: bool,
    /// Whether the last commit was synced, and whether nothing in the log is left for a repair.
    is_synced: bool,
    is_accepted: bool,
    wants_sync: bool,
    log_limit: u64,
    long_log_pages: u64,
    /// The pages of the log when they were counted last, and those that it had when a reader held it.
    log_pages: u64,
    held_pages: u64,
    /// About how many bytes commits have made the log longer by since.
    uncounted: u64,
    may_shrink: bool,
    sealed: Vec<u8>,
}

impl SqliteStore {
    /// Opens the store of a directory; makes both if they are not there. O(rows).
    ///
    /// # Errors
    /// [`StoreError::Locked`] if it is open already, in this process or another. The errors of damage leave all files as they are. If a second
    /// connection cannot be opened, or the name of a new database cannot be synced, a commit says so: the first synced one at the latest.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_sized(dir, SIZES)
    }

    pub(super) fn open_sized(dir: &Path, sizes: Sizes) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(|error| StoreError::io(dir, error))?;
        let lock = DirectoryLock::take(dir)?;
        replacing::is_complete(dir)?;
        let path = dir.join(format::FILE);
        if !is_there(&path)? {
            check_no_log(&path)?;
            format::create(dir, sizes.page_bytes)?;
        }
        let unread_commits = log::unread_commits(&path, sizes.page_bytes)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&path, flags)?;
        let summaries = format::check(&connection, &path)?;
        // SQLite reads a file of an unknown version, and fails with the first commit.
        let is_readonly = connection.is_readonly("main");
        if is_readonly.map_err(|error| store_error(&path, error))? {
            return Err(StoreError::damaged(&path, format::NOT_WRITABLE));
        }
        // Until the first commit, an earlier run may have ended before it has synced the names. The thread may begin when the program
        // has changed its folder.
        let is_new = summaries.iter().all(|summary| summary.commit == 0);
        let absolute = std::path::absolute(dir).map_err(|error| StoreError::io(dir, error))?;
        let checkpointer = Checkpointer::start(&absolute.join(format::FILE), move |database| {
            if is_new {
                format::sync_new_names(&absolute)?;
            }
            Ok((connect(database, flags)?, SyncedView::connect(database)?))
        })?;
        let uncounted = log_bytes(&path);
        let mut store = Self {
            checkpointer: Some(checkpointer),
            _lock: Some(lock),
            unread_commits,
            is_accepted: unread_commits == 0,
            log_limit: sizes.log_bytes,
            long_log_pages: sizes.long_log_bytes / u64::from(sizes.page_bytes),
            may_shrink: true,
            is_first: is_new && uncounted == 0,
            uncounted,
            ..Self::of(path, connection, summaries)
        };
        store.is_synced = store.unsynced_commits()?.count == 0;
        store.set_end_of_log().map_err(|error| store.error(error))?;
        Ok(store)
    }

    /// Opens the store of a directory for reading, also beside a running crawl: it shows the state at this moment, for as long as it is
    /// open. Meanwhile the log of that crawl grows, so be short. O(rows).
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store. A commit answers [`StoreError::Io`].
    pub(crate) fn open_read_only(dir: &Path) -> Result<Self, StoreError> {
        Self::open_reader(dir, format::check)
    }

    /// Opens a store for reading without looking at its rows. What its tables hold is only what their lines say.
    fn open_unchecked(dir: &Path) -> Result<Self, StoreError> {
        Self::open_reader(dir, format::check_head)
    }

    fn open_reader(
        dir: &Path,
        check: impl FnOnce(&Connection, &Path) -> Result<[Summary; Space::ALL.len()], StoreError>,
    ) -> Result<Self, StoreError> {
        replacing::is_complete(dir)?;
        let path = dir.join(format::FILE);
        if !is_there(&path)? {
            check_no_log(&path)?;
            return Err(StoreError::Missing { dir: dir.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&path, flags)?;
        let begun = connection.execute_batch("BEGIN");
        begun.map_err(|error| store_error(&path, error))?;
        let summaries = check(&connection, &path)?;
        Ok(Self::of(path, connection, summaries))
    }

    fn of(path: PathBuf, connection: Connection, summaries: [Summary; Space::ALL.len()]) -> Self {
        Self {
            path,
            checkpointer: None,
            synced: None,
            connection,
            _lock: None,
            unread_commits: 0,
            summaries,
            failed: false,
            syncing: Syncing::Normal,
            is_first: false,
            is_synced: false,
            is_accepted: false,
            wants_sync: false,
            log_limit: LOG_BYTES,
            long_log_pages: LONG_LOG_BYTES / u64::from(PAGE_BYTES),
            log_pages: 0,
            held_pages: 0,
            uncounted: 0,
            may_shrink: false,
            sealed: Vec::new(),
        }
    }

    /// Counts the commits in the log of a directory that are intact, but follow wrong bytes, so that nobody reads them.
    pub(crate) fn unread_commits_in(dir: &Path) -> Result<u64, StoreError> {
        log::unread_commits(&dir.join(format::FILE), SIZES.page_bytes)
    }

    /// Returns how many commits were found behind wrong bytes of the log when it was opened for writing.
    pub(crate) fn unread_commits(&self) -> u64 {
        self.unread_commits
    }

    /// The number of the last commit.
    fn last_commit(&self) -> i64 {
        self.summaries.iter().map(|summary| summary.commit).max().unwrap_or(0)
    }

    fn value(&self, space: Space, row: &rusqlite::Row<'_>) -> Result<(u64, Vec<u8>), StoreError> {
        let key: i64 = row.get(0).map_err(|error| self.error(error))?;
        let damaged = |what: &str| {
            let place = format!("{what} in the table {}, key {key}", space.name());
            StoreError::damaged(&self.path, place)
        };
        let seal: i64 = row.get(1).map_err(|_| damaged("no seal"))?;
        let value = row.get_ref(2).map_err(|error| self.error(error))?;
        let sealed = value.as_blob().map_err(|_| damaged("no value"))?;
        let unsigned = key.cast_unsigned();
        let value = sealed::unseal(space, unsigned, sealed, seal.cast_unsigned()).map_err(damaged)?;
        Ok((unsigned, value))
    }

    fn error(&self, error: rusqlite::Error) -> StoreError {
        store_error(&self.path, error)
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
        let written = self.write(batch, sync);
        if written.is_err() {
            self.fail();
        }
        written
    }

    fn range(
        &self,
        space: Space,
        keys: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.usable()?;
        let Some((first, last)) = bounds(&keys) else {
            return Ok(());
        };
        let sql = format!(
            "SELECT key, seal, value FROM {} WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
            space.name()
        );
        let mut statement = self
            .connection
            .prepare_cached(&sql)
            .map_err(|error| self.error(error))?;
        let mut rows = statement.query([first, last]).map_err(|error| self.error(error))?;
        while let Some(row) = rows.next().map_err(|error| self.error(error))? {
            let (key, value) = self.value(space, row)?;
            visit(key, value)?;
        }
        Ok(())
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.usable()?;
        let sql = format!(
            "SELECT key, seal, value FROM {} WHERE key <= ?1 ORDER BY key DESC LIMIT 1",
            space.name()
        );
        let mut statement = self
            .connection
            .prepare_cached(&sql)
            .map_err(|error| self.error(error))?;
        let mut rows = statement
            .query([signed(at_or_below)])
            .map_err(|error| self.error(error))?;
        let row = rows.next().map_err(|error| self.error(error))?;
        row.map(|row| self.value(space, row)).transpose()
    }

    fn accept(&mut self) -> Result<(), StoreError> {
        self.accept_log()
    }

    fn wants_sync(&self) -> bool {
        self.wants_sync
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.summaries[space as usize].last.map(i64::cast_unsigned)
    }

    fn bytes(&self) -> u64 {
        let beside = format::BESIDE.map(|end| format::beside(&self.path, end));
        let files = beside.iter().chain([&self.path]);
        files
            .filter_map(|file| fs::metadata(file).ok())
            .map(|file| file.len())
            .sum()
    }
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

/// Opens the database for reading, as it is without its log; `None` if that is not possible.
fn connect_without_log(path: &Path) -> Option<Connection> {
    // What nobody changes has no log: <https://sqlite.org/uri.html>.
    let url = Url::from_file_path(std::path::absolute(path).ok()?).ok()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&format!("{url}?immutable=1")), flags).ok()
}

/// Returns whether the database has pages of a later commit than its log, which has lost its end then. Nobody may move later pages meanwhile:
/// a read has begun on the connection, or the directory is locked.
fn is_log_cut_off(connection: &Connection, path: &Path) -> bool {
    let moved = || Summary::last_commit(&connect_without_log(path)?);
    Summary::last_commit(connection).is_some_and(|last| moved().is_some_and(|moved| moved > last))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connect = || {
        let connection = Connection::open_with_flags(path, flags)?;
        // Until all was found to be whole, its end changes nothing.
        empty_log_at_end(&connection, false)?;
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
