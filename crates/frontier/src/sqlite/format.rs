//! The database file: how it is made, and how it is known again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error, OpenFlags, Result, ffi};

use super::errors::store_error;
use super::pages::SCHEMA;
use super::summary::Summary;
use super::{is_log_cut_off, log_bytes};
use crate::store::{Space, StoreError};

/// The database in the directory of a store.
pub(super) const FILE: &str = "frontier.sqlite";
/// The database until it is complete.
const UNFINISHED: &str = "frontier.sqlite.new";
/// "FRTR", the mark of our files, where the tool `file` finds it.
const APPLICATION_ID: i32 = 0x4652_5452;
pub(crate) const VERSION: u32 = 29;
/// The number of SQLite's own modes: pages move to the front of the file when asked to.
const INCREMENTAL: i32 = 2;

/// The files beside a database, by what their names end with.
pub(super) const BESIDE: [&str; 2] = ["-wal", "-shm"];

pub(super) fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The statements that make the tables, as SQLite keeps them.
fn tables() -> BTreeSet<String> {
    let spaces = Space::ALL.into_iter().filter(|space| *space != Space::Page);
    let spaces = spaces.map(|space| {
        let name = space.name();
        // The seal stands before the value: it is read without the pages of a long value.
        format!("CREATE TABLE {name}(key INTEGER PRIMARY KEY, seal INTEGER NOT NULL, value BLOB NOT NULL)")
    });
    let own = [
        "CREATE TABLE spaces(space TEXT PRIMARY KEY, rows INTEGER NOT NULL, first INTEGER, last INTEGER, \
         seals INTEGER NOT NULL, \"commit\" INTEGER NOT NULL) WITHOUT ROWID",
    ];
    let pages = SCHEMA.split_terminator(";\n").chain(own);
    spaces.chain(pages.map(str::to_owned)).collect()
}

/// A database that is there is complete.
pub(super) fn create(dir: &Path, page_bytes: u32) -> std::result::Result<(), StoreError> {
    let path = dir.join(UNFINISHED);
    let io = |error| StoreError::io(&path, error);
    for end in ["", "-wal", "-shm", "-journal"] {
        unless_missing(&path, fs::remove_file(beside(&path, end)))?;
    }
    // Open while all is written: an error that the system meets before the sync is reported to this handle.
    let file = create_for_owner(&path).map_err(io)?;
    fill(&path, page_bytes).map_err(|error| store_error(&path, error))?;
    if !is_writable(&path)? {
        return Err(io(std::io::Error::other("the journal mode was not written")));
    }
    file.sync_all().map_err(io)?;
    let database = dir.join(FILE);
    fs::rename(&path, &database).map_err(|error| StoreError::io(&database, error))?;
    sync_names(dir)?;
    // The directory may be new, too.
    std::path::absolute(dir)
        .map_err(|error| StoreError::io(dir, error))?
        .parent()
        .map_or(Ok(()), sync_names)
}

/// Takes it as done where there was nothing to do it to.
pub(super) fn unless_missing(path: &Path, done: std::io::Result<()>) -> std::result::Result<(), StoreError> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}

/// Creates a file that only its owner may read: the secret of the hash is in it. SQLite gives its log the same mode.
fn create_for_owner(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Syncs the names in a directory. Windows has no such call, and needs none.
pub(super) fn sync_names(dir: &Path) -> std::result::Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    if cfg!(unix) {
        let synced = File::open(dir).and_then(|file| file.sync_all());
        synced.map_err(|error| StoreError::io(dir, error))?;
    }
    Ok(())
}

fn fill(path: &Path, page_bytes: u32) -> Result<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Until it has its name, nobody needs what is written, nor what was before. Then it is synced as a whole.
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    // Both can be chosen only before the first page is written.
    connection.pragma_update(None, "page_size", page_bytes)?;
    connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    let transaction = connection.transaction()?;
    // Tables before their indexes and views.
    for sql in tables().into_iter().rev() {
        transaction.execute(&sql, [])?;
    }
    for space in Space::ALL {
        let sql = "INSERT INTO spaces(space, rows, seals, \"commit\") VALUES (?1, 0, 0, 0)";
        transaction.execute(sql, [space.name()])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    if change_to_wal(&connection)? != "wal" {
        // After an error of the disk, SQLite only answers with the mode that is left.
        let why = "the journal mode cannot be changed".to_owned();
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), Some(why)));
    }
    connection.close().map_err(|(_, error)| error)
}

/// Changes the journal mode, and returns the one that is set. The change is committed behind the row with the answer, so errors of its
/// writes come only to who reads on.
fn change_to_wal(connection: &Connection) -> Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = wal")?;
    let modes = statement.query_map([], |row| row.get(0))?;
    modes.last().unwrap_or_else(|| Ok(String::new()))
}

/// Checks that the file is ours and whole, but for its values and pages. Returns what its tables hold. O(rows).
pub(super) fn check(
    connection: &Connection,
    path: &Path,
    reads_log: bool,
) -> std::result::Result<[Summary; Space::ALL.len()], StoreError> {
    let summaries = check_head(connection, path, reads_log)?;
    for (space, stored) in Space::ALL.into_iter().zip(summaries) {
        let name = space.name();
        let counted = match space {
            // There are many. Who reads all of them counts them.
            Space::Page => stored.bounded(connection, space),
            _ => Summary::counted(connection, space),
        };
        let counted = counted.map_err(|error| store_error(path, error))?;
        if (Summary {
            commit: stored.commit,
            ..counted
        }) != stored
        {
            let what = format!(
                "the table {name} has {} rows that are not the {} that were written",
                counted.rows, stored.rows
            );
            return Err(StoreError::damaged(path, what));
        }
    }
    Ok(summaries)
}

/// Checks that the file is ours, but for its rows. Returns what its tables hold, as their lines say.
pub(super) fn check_head(
    connection: &Connection,
    path: &Path,
    reads_log: bool,
) -> std::result::Result<[Summary; Space::ALL.len()], StoreError> {
    let sqlite = |error| store_error(path, error);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id").map_err(sqlite)? != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    let found = number("user_version").map_err(sqlite)?.cast_unsigned();
    if found != VERSION {
        return Err(StoreError::Version {
            path: path.to_owned(),
            found,
            supported: VERSION,
        });
    }
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(sqlite)?;
    if (mode == "wal") != reads_log || number("auto_vacuum").map_err(sqlite)? != INCREMENTAL {
        return Err(StoreError::damaged(path, "wrong modes in the head"));
    }
    if !has_our_tables(connection).map_err(sqlite)? {
        return Err(StoreError::damaged(path, "the tables are not those of a store"));
    }
    if log_bytes(path) > 0 && is_log_cut_off(connection, path) {
        return Err(StoreError::damaged(
            path,
            "its log has lost its end: the database has later commits",
        ));
    }
    let mut summaries = [Summary::default(); Space::ALL.len()];
    for space in Space::ALL {
        let missing = || StoreError::damaged(path, format!("no line of {} in the table spaces", space.name()));
        let stored = Summary::stored(connection, space).map_err(sqlite)?;
        summaries[space as usize] = stored.ok_or_else(missing)?;
    }
    Ok(summaries)
}

/// Whether the head names the version of the file that SQLite writes. It reads others, too, and fails with the first commit.
///
/// No connection of this process to the file may be open: when a process closes a file, the system releases all its locks on it, also those of
/// other handles (POSIX, fcntl). Then another program would take itself for the last one, and delete the log.
fn is_writable(path: &Path) -> std::result::Result<bool, StoreError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut head));
    read.map_err(|error| StoreError::io(path, error))?;
    Ok(head.get(18..20) == Some(&[2, 2]))
}

/// Fails if the file is not [writable](is_writable). No connection to it may be open, either.
pub(super) fn check_writable(path: &Path) -> std::result::Result<(), StoreError> {
    if is_writable(path)? {
        return Ok(());
    }
    Err(StoreError::damaged(path, "its head is damaged"))
}

/// Whether the tables are the ones that were made, each with a tree of its own. SQLite compares the names with the statements.
fn has_our_tables(connection: &Connection) -> Result<bool> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema")?;
    let found: BTreeSet<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_>>()?;
    let sql = "SELECT count(*), count(DISTINCT rootpage) FROM sqlite_schema";
    let counts: (i64, i64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let expected = tables();
    let all = expected.len() as i64;
    // The view has the number 0.
    Ok(counts == (all, all) && found == expected)
}
