//! Files that were cut off, or have a wrong bit: the store answers with whole commits from the first on, or with an error.

#![cfg(test)]

use std::fs;

use rusqlite::Connection;

use super::super::Repair;
use super::*;

/// What a crash leaves: the database and its log.
pub(super) struct Image {
    pub(super) database: Vec<u8>,
    pub(super) log: Vec<u8>,
}

/// The states after each commit, and three images: none of the later commits is in the database; some are; all are.
pub(super) fn images() -> (Vec<Contents>, [Image; 3]) {
    let folder = Folder::new();
    let sizes = Sizes {
        page_bytes: 512,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let mut states = vec![Contents::new()];
    let mut commit = |store: &mut SqliteStore, batch: Batch| {
        store.commit(&batch, false).unwrap();
        states.push(contents(store));
    };
    // Enough rows for inner pages, values with pages of their own, free pages.
    let rows = (0..60).map(|key| Change::Put(Space::Journal, key * 3, noise(20, key)));
    commit(&mut store, batch(rows));
    commit(&mut store, put(Space::Segment, 7, &noise(1500, 7)));
    let pages = (1..30).map(|key| Change::Put(Space::Page, key, page(&noise(90, key))));
    commit(&mut store, batch(pages));
    commit(&mut store, put(Space::Undo, 1, &noise(3000, 8)));
    commit(
        &mut store,
        batch([
            Change::Delete(Space::Undo, 1..=1),
            Change::Put(Space::Meta, 0, b"meta".repeat(30)),
        ]),
    );
    // The end moves only what was synced.
    store.commit(&Batch::default(), true).unwrap();
    drop(store);

    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let early = SqliteStore::open_read_only(&folder).unwrap();
    let image = || Image {
        database: fs::read(folder.join("frontier.sqlite")).unwrap(),
        log: fs::read(folder.join("frontier.sqlite-wal")).unwrap_or_default(),
    };
    commit(&mut store, put(Space::Meta, 0, b"other"));
    commit(
        &mut store,
        batch([
            Change::Delete(Space::Journal, 0..=20),
            Change::Put(Space::Journal, 500, noise(40, 1)),
        ]),
    );
    let pages = (10..30)
        .step_by(3)
        .chain(30..40)
        .map(|key| Change::Put(Space::Page, key, page(&noise(120, key + 1))));
    let pages = pages.chain([Change::Delete(Space::Page, 36..=u64::MAX)]);
    commit(&mut store, batch(pages));
    commit(&mut store, put(Space::Segment, 7, &noise(600, 9)));
    let middle = SqliteStore::open_read_only(&folder).unwrap();
    commit(
        &mut store,
        batch([
            Change::Put(Space::Meta, 0, b"third".to_vec()),
            Change::Delete(Space::Segment, 0..=9),
        ]),
    );
    commit(&mut store, put(Space::Journal, 90, &noise(20, 2)));
    let none = image();
    drop(early);
    let checkpoints = Connection::open(folder.join("frontier.sqlite")).unwrap();
    let moved = || {
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        std::iter::repeat_with(|| checkpoints.query_row(sql, [], row).unwrap())
            .find(|moved| moved.0 == 0)
            .unwrap()
    };
    let (_, frames, some_frames) = moved();
    assert!(some_frames > 0 && some_frames < frames, "{some_frames} of {frames}");
    let some = image();
    drop(middle);
    moved();
    let all = image();
    assert!(none.database != some.database && some.database != all.database && none.log.len() > 4000);
    (states, [none, some, all])
}

struct Checker<'s> {
    folder: Folder,
    states: &'s [Contents],
    opened: usize,
    refused: usize,
}

impl Checker<'_> {
    fn new(states: &[Contents]) -> Checker<'_> {
        Checker {
            folder: Folder::new(),
            states,
            opened: 0,
            refused: 0,
        }
    }

    fn write(&self, end: &str, bytes: &[u8]) {
        fs::write(self.folder.join(format!("frontier.sqlite{end}")), bytes).unwrap();
    }

    /// Reads the image that lies in the folder.
    fn check(&mut self, what: &str, each_key: bool) {
        let _ = fs::remove_file(self.folder.join("frontier.sqlite-shm"));
        let store = SqliteStore::open_read_only(&self.folder);
        self.judge(store, what, each_key);
    }

    fn judge(
        &mut self,
        store: Result<SqliteStore, StoreError>,
        what: &str,
        each_key: bool,
    ) -> Option<(SqliteStore, Contents)> {
        let mut found = Contents::new();
        let read = store.and_then(|store| {
            read(&store, &mut found)?;
            for ((space, key), value) in found.iter().filter(|_| each_key) {
                let space = Space::ALL[usize::from(*space)];
                assert_eq!(
                    store.last(space, *key)?.as_ref(),
                    Some(&(*key, value.clone())),
                    "{what}"
                );
                let mut alone = Vec::new();
                store.range(space, *key..=*key, &mut |key, _| {
                    alone.push(key);
                    Ok(())
                })?;
                assert_eq!(alone, [*key], "{what}");
            }
            Ok(store)
        });
        match read {
            Ok(store) => {
                self.opened += 1;
                assert!(self.states.contains(&found), "{what}: a state that never was");
                Some((store, found))
            }
            Err(error) => {
                self.refused += 1;
                let typed = matches!(
                    error,
                    StoreError::Damaged { .. }
                        | StoreError::NotAStore { .. }
                        | StoreError::Version { .. }
                        | StoreError::Io { .. }
                );
                assert!(typed, "{what}: {error}");
                // Pages are counted by who has read all of them. Until then, some may be of another commit.
                found.retain(|(space, _), _| *space != Space::Page as u8);
                let part_of = |state: &Contents| found.iter().all(|(key, value)| state.get(key) == Some(value));
                assert!(
                    self.states.iter().any(part_of),
                    "{what}: values that never were together"
                );
                None
            }
        }
    }

    /// Writes to the image, and reads it again.
    fn resume(&mut self, what: &str) {
        let _ = fs::remove_file(self.folder.join("frontier.sqlite-shm"));
        let opened = SqliteStore::open(&self.folder);
        let Some((mut store, mut state)) = self.judge(opened, what, true) else {
            return;
        };
        let committed = store.commit(&put(Space::Checkpoint, 5, b"later"), true);
        drop(store);
        let Ok(store) = SqliteStore::open_read_only(&self.folder) else {
            return;
        };
        let mut found = Contents::new();
        if read(&store, &mut found).is_ok() {
            if committed.is_ok() {
                state.insert((Space::Checkpoint as u8, 5), b"later".to_vec());
            }
            assert_eq!(found, state, "{what}, after a further commit");
        }
    }
}

/// Flips a bit in bytes of a file, and cuts the file off there: in each byte below `each`, then in each `step`-th.
fn damage(checker: &mut Checker<'_>, image: &Image, of_log: bool, each: usize, step: usize) {
    let (end, other, bytes, of_other) = if of_log {
        ("-wal", "", &image.log, &image.database)
    } else {
        ("", "-wal", &image.database, &image.log)
    };
    checker.write(other, of_other);
    let mut damaged = bytes.clone();
    let each = each.min(bytes.len());
    for (nth, at) in (0..each).chain((each..bytes.len()).step_by(step)).enumerate() {
        let bit = 1 << ((at / 7) % 8);
        damaged[at] ^= bit;
        for (bytes, what) in [(&damaged[..], "with a wrong bit in"), (&bytes[..at], "cut off at")] {
            let what = format!("{end:?} {what} byte {at}");
            checker.write(end, bytes);
            checker.check(&what, nth % 5 == 0);
            if nth % 97 == 0 {
                checker.resume(&what);
                checker.write(other, of_other);
            }
        }
        damaged[at] ^= bit;
    }
}

/// The primes differ, so that over all images most bytes have their turn.
const STEPS: [usize; 3] = [23, 11, 19];

#[test]
fn whole_images_have_the_last_commit() {
    let (states, images) = images();
    for image in &images {
        let mut checker = Checker::new(&states);
        checker.write("", &image.database);
        checker.write("-wal", &image.log);
        let store = SqliteStore::open_read_only(&checker.folder);
        let (_, found) = checker.judge(store, "whole", true).unwrap();
        assert_eq!(Some(&found), states.last());
        checker.resume("whole");
    }
}

#[test]
fn a_damaged_log_ends_the_store_earlier_or_is_refused() {
    let (states, images) = images();
    for (image, step) in images.iter().zip(STEPS) {
        let mut checker = Checker::new(&states);
        // The head of the log and of its first page.
        damage(&mut checker, image, true, 32 + 24, step);
        assert!(checker.opened > 0);
    }
}

#[test]
fn a_damaged_database_is_as_it_was_or_is_refused() {
    let (states, images) = images();
    for (image, step) in images.iter().zip(STEPS) {
        let mut checker = Checker::new(&states);
        // The head of the database.
        damage(&mut checker, image, false, 100, step);
        assert!(checker.opened > 0 && checker.refused > 0);
    }
}

/// SQLite does not notice a wrong key there: it looks for some rows in the wrong leaf, but meets them all on its way through the leaves.
#[test]
fn a_wrong_key_in_an_inner_page_is_found() {
    let (states, [_, _, image]) = images();
    let mut checker = Checker::new(&states);
    checker.write("-wal", b"");
    let inner = image.database.chunks(512).position(|page| page[0] == 5).unwrap();
    let mut damaged = image.database.clone();
    let unused = |at: &usize| image.database[*at] == 0;
    for at in (inner * 512..(inner + 1) * 512).filter(|at| !unused(at)) {
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            checker.write("", &damaged);
            checker.check(&format!("bit {bit} of byte {at}"), true);
            damaged[at] ^= 1 << bit;
        }
    }
    assert!(checker.refused > 100, "{}", checker.refused);
}

/// 135 000 images.
#[test]
#[ignore = "takes a minute or two; the tests above take every n-th byte of the same files"]
fn every_byte_may_be_wrong_or_the_end() {
    let (states, images) = images();
    for image in &images {
        for of_log in [true, false] {
            let mut checker = Checker::new(&states);
            damage(&mut checker, image, of_log, usize::MAX, 1);
            println!("log {of_log}: {} opened, {} refused", checker.opened, checker.refused);
        }
    }
}

#[test]
fn a_wrong_mark_of_a_page_is_damage_that_a_repair_mends() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    let pages = (1..9).map(|key| Change::Put(Space::Page, key, page(&noise(200, key))));
    store.commit(&batch(pages), true).unwrap();
    let whole = contents(&store);
    drop(store);
    for mark in ["CASE WHEN unanswered IS NULL THEN 1 END", "7"] {
        let connection = Connection::open(folder.join("frontier.sqlite")).unwrap();
        let sql = format!("UPDATE page SET unanswered = {mark} WHERE key = 5");
        assert_eq!(connection.execute(&sql, []).unwrap(), 1);
        drop(connection);
        let error = read(&SqliteStore::open_read_only(&folder).unwrap(), &mut Contents::new());
        assert!(matches!(error, Err(StoreError::Damaged { .. })), "{mark}: {error:?}");
        let repair = Repair::begin(&folder).unwrap();
        let mut mended = repair.new_store().unwrap();
        assert_eq!(repair.readable()[0].copy_to(&mut mended).unwrap(), Some(0));
        assert!(contents(&mended) == whole);
    }
}
