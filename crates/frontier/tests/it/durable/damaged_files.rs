//! The files of a directory, cut off anywhere or with a wrong bit anywhere: it opens as it was at one of the persists, or it is refused.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use frontier::{Directory, Frontier, Leasing, OpenError, Outcome, StoreError, StoredPage, Time};

use super::TemporaryDir;
use crate::common::{START, config, pages, settle};
use crate::shared::pair::{Place as _, picture};

pub(super) const FILE: &str = "frontier.sqlite";

/// A small crawl, and what a frontier said of itself after each persist, by the attachment.
pub(super) struct Crawl {
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
    pub(super) pictures: HashMap<Vec<u8>, String>,
    pub(super) records: HashMap<Vec<u8>, Vec<String>>,
}

impl Crawl {
    pub(super) fn new() -> Self {
        let dir = TemporaryDir::new();
        let mut crawl = Self {
            files: Vec::new(),
            pictures: HashMap::new(),
            records: HashMap::new(),
        };
        let mut frontier = dir.open(config(), START).frontier;
        let reader = rusqlite::Connection::open(dir.0.join(FILE)).unwrap();
        // The database has the first checkpoint: a store whose log was never written is another case.
        let is_moved = || {
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            let moved = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let (is_busy, in_log, moved): (bool, i64, i64) = reader.query_row(sql, [], moved).unwrap();
            !is_busy && in_log == moved
        };
        while !is_moved() {
            std::thread::yield_now();
        }
        // While it reads, nothing later is moved from the log to the database.
        reader.execute_batch("BEGIN; SELECT count(*) FROM spaces").unwrap();
        crawl.note(&dir.0, b"", &frontier);
        for number in 0_u64..6 {
            let now = Time::from_millis(START.as_millis() + number * 1000);
            frontier
                .offer(&pages(&format!("http://host{number}.example/page-"), 4), now)
                .unwrap();
            if let Leasing::Ready(leases) = frontier.lease(now, 3).unwrap() {
                for lease in leases {
                    settle(&mut frontier, &lease, Outcome::Done, now);
                }
            }
            let attachment = format!("persist {number}");
            frontier.persist(attachment.as_bytes(), now).unwrap();
            if number == 2 {
                frontier.checkpoint(attachment.as_bytes(), now).unwrap();
            }
            crawl.note(&dir.0, attachment.as_bytes(), &frontier);
        }
        // As a kill leaves them: the log has what is not in the database yet.
        for file in [FILE, "frontier.sqlite-wal"] {
            crawl.files.push((file, fs::read(dir.0.join(file)).unwrap()));
        }
        drop((reader, frontier));
        crawl
    }

    fn note(&mut self, dir: &Path, attachment: &[u8], frontier: &Frontier) {
        self.pictures.insert(attachment.to_owned(), picture(frontier));
        self.records.insert(attachment.to_owned(), records(dir).unwrap());
    }

    /// The files as one that was closed.
    pub(super) fn closed(&self) -> Vec<(&'static str, Vec<u8>)> {
        let dir = TemporaryDir::new();
        write(&dir.0, &self.files);
        let mut opened = dir.open(config(), START);
        // Only what was synced is moved into the database: the first commit of a run is.
        opened
            .frontier
            .persist(&opened.attachment.unwrap_or_default(), opened.now)
            .unwrap();
        drop(opened.frontier);
        vec![(FILE, fs::read(dir.0.join(FILE)).unwrap())]
    }

    /// Reads the directory. Returns whether it could be read; what was read was there once.
    fn check(&self, dir: &TemporaryDir, what: &str) -> bool {
        let read = dir.read();
        let its_records = records(&dir.0);
        match read {
            Ok(read) => {
                let attachment = read.attachment.unwrap_or_default();
                let expected = self.pictures.get(&attachment);
                assert_eq!(
                    Some(&picture(&read.frontier)),
                    expected,
                    "{what}: a state that never was"
                );
                // The records may be damaged alone.
                match its_records {
                    Ok(found) => assert_eq!(found, self.records[&attachment], "{what}"),
                    Err(error) => is_typed(&error, what),
                }
                true
            }
            Err(error) => {
                is_typed(&error, what);
                false
            }
        }
    }
}

pub(super) fn is_typed(error: &OpenError, what: &str) {
    let typed = matches!(
        error,
        OpenError::Damaged(_)
            | OpenError::Store(
                StoreError::Damaged { .. }
                    | StoreError::NotAStore { .. }
                    | StoreError::Version { .. }
                    | StoreError::Io { .. }
            )
    );
    assert!(typed, "{what}: {error}");
}

pub(super) fn records(dir: &Path) -> Result<Vec<String>, OpenError> {
    let mut found = Vec::new();
    let mut visit = |page: StoredPage| found.push(format!("{page:?}"));
    Directory::new(dir).visit_pages(false, &mut visit)?;
    Ok(found)
}

pub(super) fn write(dir: &Path, files: &[(&'static str, Vec<u8>)]) {
    fs::create_dir_all(dir).unwrap();
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// Cuts a file off and flips a bit of it, at each of the places. Returns how many directories could be read, and how many not.
fn damage(
    crawl: &Crawl,
    files: &[(&'static str, Vec<u8>)],
    which: usize,
    places: impl Iterator<Item = usize>,
) -> (usize, usize) {
    let dir = TemporaryDir::new();
    write(&dir.0, files);
    let (name, bytes) = &files[which];
    let (mut read, mut refused) = (0, 0);
    let mut flipped = bytes.clone();
    for at in places.take_while(|at| *at < bytes.len()) {
        let bit = 1 << ((at / 5) % 8);
        flipped[at] ^= bit;
        for (damaged, what) in [(&flipped[..], "a wrong bit in"), (&bytes[..at], "cut off at")] {
            let _ = fs::remove_file(dir.0.join("frontier.sqlite-shm"));
            fs::write(dir.0.join(name), damaged).unwrap();
            if crawl.check(&dir, &format!("{name}, {what} byte {at}")) {
                read += 1;
            } else {
                refused += 1;
            }
        }
        flipped[at] ^= bit;
    }
    (read, refused)
}

/// Each of the first bytes, then one of each stride.
pub(super) fn places(each: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..each).chain((each..).step_by(step))
}

#[test]
fn a_damaged_log_opens_at_an_earlier_persist_or_is_refused() {
    let crawl = Crawl::new();
    // The head of the log and of its first frame; then each 293rd byte: about every frame has several.
    let (read, _) = damage(&crawl, &crawl.files, 1, places(56, 293));
    assert!(read > 100, "{read}");
}

#[test]
fn a_damaged_database_opens_as_it_was_or_is_refused() {
    let crawl = Crawl::new();
    let closed = crawl.closed();
    let (read, refused) = damage(&crawl, &closed, 0, places(100, 211));
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

#[test]
#[ignore = "takes minutes; the tests above take every n-th byte of the same files"]
fn every_byte_of_the_files_may_be_wrong_or_the_end() {
    let crawl = Crawl::new();
    println!("log: {:?} read, refused", damage(&crawl, &crawl.files, 1, places(0, 1)));
    println!(
        "database: {:?} read, refused",
        damage(&crawl, &crawl.closed(), 0, places(0, 1))
    );
}
