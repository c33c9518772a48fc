//! What is left of a damaged store: every row whose seal is right, wherever it lies.
//!
//! SQLite reaches a row through a tree of pages, so one wrong page hides many rows. This reads each page by itself. The seal of a row is
//! over its table, its key and its value, so a row with a right seal is one that was written, and says of which table it is.

mod cells;
mod pages;

use std::collections::HashMap;
use std::path::Path;

use rusqlite::OpenFlags;

use super::summary::Summary;
use super::{SIZES, connect, format, is_log_cut_off, is_there};
use crate::store::{Batch, Change, MAX_KEY, Space, Store, StoreError, sealed};
use cells::visit_rows;
use pages::{Log, Pages};

/// The bytes that are written in one commit.
const BYTES_AT_ONCE: usize = 8 << 20;

/// The rows of one table that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FoundRows {
    pub(crate) found: u64,
    /// How many there were; `None` if the line that says so is damaged, or may be of an earlier commit than the rows.
    pub(crate) written: Option<u64>,
}

/// Writes every intact row of the store in a directory to another store. It changes nothing in the directory.
///
/// Memory: some 50 bytes for each row. Cost: it reads each page once, and once more where a value has several.
///
/// # Errors
/// Files that cannot be opened; errors of the other store.
pub(crate) fn salvage(dir: &Path, to: &mut dyn Store) -> Result<[FoundRows; Space::ALL.len()], StoreError> {
    salvage_sized(dir, to, SIZES.page_bytes as usize)
}

/// Does the same with a store whose pages have this size if no head says which.
pub(in crate::store) fn salvage_sized(
    dir: &Path,
    to: &mut dyn Store,
    page_bytes: usize,
) -> Result<[FoundRows; Space::ALL.len()], StoreError> {
    let database = dir.join(format::FILE);
    let mut salvage = Salvage::default();
    let mut pages = Pages::open(&database, page_bytes)?;
    let lines = lines(&mut pages, &database);
    for source in pages.sources() {
        visit_rows(&mut pages, source, &mut |row| salvage.add(&row, to))?;
    }
    salvage.finish(to)?;
    let found = salvage.summaries();
    Ok(Space::ALL.map(|space| {
        let (found, line) = (found[space as usize], lines[space as usize]);
        // Of a log that is not whole nobody knows the end.
        let line = line.filter(|line| pages.log == Log::Whole && !line.is_contradicted_by(&found));
        FoundRows {
            found: found.rows.cast_unsigned(),
            written: line.and_then(|line| u64::try_from(line.rows).ok()),
        }
    }))
}

#[derive(Default)]
struct Salvage {
    /// The rows so far.
    seals: HashMap<(Space, u64), u64>,
    /// Those of which there are two, neither newer than the other for sure.
    doubtful: Vec<(Space, u64)>,
    batch: Batch,
    bytes: usize,
}

impl Salvage {
    fn add(&mut self, row: &cells::Row, to: &mut dyn Store) -> Result<(), StoreError> {
        if row.key > MAX_KEY {
            return Ok(());
        }
        for space in Space::ALL {
            let Ok(value) = sealed::unseal(space, row.key, &row.sealed, row.seal) else {
                continue;
            };
            match self.seals.insert((space, row.key), row.seal) {
                Some(seal) if seal == row.seal => return Ok(()),
                // The later one is the newer one, if any is. Of this table alone rows are replaced as a rule.
                Some(_) if space != Space::Meta => self.doubtful.push((space, row.key)),
                _ => {}
            }
            self.bytes += value.len();
            self.batch.put(space, row.key, value);
            if self.bytes >= BYTES_AT_ONCE {
                self.write(to)?;
            }
            return Ok(());
        }
        Ok(())
    }

    fn summaries(&self) -> [Summary; Space::ALL.len()] {
        let mut found = [Summary::default(); Space::ALL.len()];
        for ((space, key), seal) in &self.seals {
            found[*space as usize].add(key.cast_signed(), seal.cast_signed());
        }
        found
    }

    fn write(&mut self, to: &mut dyn Store) -> Result<(), StoreError> {
        self.bytes = 0;
        let sync = to.wants_sync();
        to.commit(&std::mem::take(&mut self.batch), sync)
    }

    fn finish(&mut self, to: &mut dyn Store) -> Result<(), StoreError> {
        for row in std::mem::take(&mut self.doubtful) {
            self.seals.remove(&row);
            self.batch.changes.push(Change::Delete(row.0, row.1..=row.1));
        }
        self.write(to)
    }
}

/// Returns what the tables are said to hold, as far as that can be read, and finds out whether the log was cut off.
fn lines(pages: &mut Pages, database: &Path) -> [Option<Summary>; Space::ALL.len()] {
    // SQLite takes an empty file for a new database, and deletes the log.
    if !is_there(database).unwrap_or(false) {
        return [None; Space::ALL.len()];
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = connect(database, flags) else {
        return [None; Space::ALL.len()];
    };
    if pages.log == Log::Whole && is_log_cut_off(&connection, database) {
        pages.log = Log::CutOff;
    }
    Space::ALL.map(|space| Summary::stored(&connection, space).ok()?)
}
