//! What is found in damaged files: every row that is intact, and nothing that never was.

#![cfg(test)]

use std::fs;

use rusqlite::Connection;

use super::damage::{Image, images};
use super::*;
use crate::store::sqlite::salvage::salvage_sized;
use crate::store::{FoundRows, Replacement};

const PAGE: usize = 512;

/// Salvages files.
fn salvaged(folder: &Folder, database: &[u8], log: &[u8]) -> (Contents, [FoundRows; Space::ALL.len()]) {
    let _ = fs::remove_file(folder.join("frontier.sqlite-shm"));
    fs::write(folder.join("frontier.sqlite"), database).unwrap();
    fs::write(folder.join("frontier.sqlite-wal"), log).unwrap();
    let mut store = MemoryStore::default();
    let found = salvage_sized(folder, &mut store, PAGE).unwrap();
    let contents = contents(&store);
    let rows: u64 = found.iter().map(|table| table.found).sum();
    assert_eq!(contents.len() as u64, rows);
    (contents, found)
}

fn is_in_any(states: &[Contents], found: &Contents, what: &str) {
    for (key, value) in found {
        let was_there = states.iter().any(|state| state.get(key) == Some(value));
        assert!(was_there, "{what}: {key:?} never was");
    }
}

#[test]
fn all_rows_of_whole_files_are_found_and_no_others() {
    let (states, images) = images();
    let folder = Folder::new();
    for Image { database, log } in &images {
        let (found, tables) = salvaged(&folder, database, log);
        assert_eq!(Some(&found), states.last());
        assert!(
            tables.iter().all(|table| table.written == Some(table.found)),
            "{tables:?}"
        );
    }
}

#[test]
fn a_page_that_is_gone_costs_no_row_of_another_page() {
    let (states, [_, _, image]) = images();
    let folder = Folder::new();
    let (all, _) = salvaged(&folder, &image.database, b"");
    let (mut costs, mut without) = (0, Vec::new());
    for page in 0..image.database.len() / PAGE {
        let mut damaged = image.database.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        let (found, _) = salvaged(&folder, &damaged, b"");
        is_in_any(&states, &found, &format!("page {page}"));
        costs += all.keys().filter(|key| !found.contains_key(key)).count();
        without.push(found);
    }
    // A row is lost with each page that it lies in: one, or three for the longest.
    assert!(costs >= all.len() && costs < all.len() + 4, "{costs} of {}", all.len());
    // A wrong bit costs no more than its page.
    for at in (0..image.database.len()).step_by(7) {
        let mut damaged = image.database.clone();
        damaged[at] ^= 1 << (at % 8);
        let (found, _) = salvaged(&folder, &damaged, b"");
        is_in_any(&states, &found, &format!("byte {at}"));
        let kept = &without[at / PAGE];
        // A wrong entry of the list of free pages hides a page, or shows one.
        let missing = kept.keys().find(|key| !found.contains_key(key));
        assert_eq!(missing, None, "byte {at}");
    }
}

#[test]
fn files_that_were_cut_off_lose_only_what_was_behind() {
    let (states, images) = images();
    let folder = Folder::new();
    for Image { database, log } in &images {
        let mut before = 0;
        for length in (0..database.len()).step_by(PAGE) {
            let (found, _) = salvaged(&folder, &database[..length], b"");
            is_in_any(&states, &found, "database");
            before = before.max(found.len());
        }
        assert!(before > 30, "{before}");
        for length in (0..log.len()).step_by(173) {
            let (found, _) = salvaged(&folder, database, &log[..length]);
            is_in_any(&states, &found, "log");
            assert!(found.len() > 30);
        }
    }
}

#[test]
fn a_log_that_was_cut_off_hides_no_later_row_of_the_database() {
    let (states, [_, _, image]) = images();
    let folder = Folder::new();
    let last = states.last().unwrap();
    let frame = 24 + PAGE;
    let mut unknown = 0;
    for length in (32..=image.log.len()).step_by(frame) {
        let (found, tables) = salvaged(&folder, &image.database, &image.log[..length]);
        is_in_any(&states, &found, &format!("{length} bytes"));
        for (key, value) in last {
            assert_eq!(found.get(key), Some(value), "{length} bytes: {key:?}");
        }
        let is_cut_off = length > 32 && length < image.log.len();
        let is_known = tables.iter().all(|table| table.written == Some(table.found));
        unknown += usize::from(tables.iter().all(|table| table.written.is_none()));
        assert!(is_known || is_cut_off, "{length} bytes: {tables:?}");
    }
    assert!(unknown > 4, "{unknown}");
}

#[test]
fn an_empty_database_costs_no_row_of_the_log_and_the_log_stays() {
    let (states, [image, _, _]) = images();
    let folder = Folder::new();
    let (found, tables) = salvaged(&folder, b"", &image.log);
    is_in_any(&states, &found, "the log");
    assert!(!found.is_empty() && tables.iter().all(|table| table.written.is_none()));
    assert_eq!(fs::read(folder.join("frontier.sqlite-wal")).unwrap(), image.log);
}

#[test]
fn pages_behind_the_end_of_the_last_commit_are_of_no_use() {
    let folder = Folder::new();
    let sizes = Sizes {
        page_bytes: PAGE as u32,
        ..SIZES
    };
    let put = |space, keys: std::ops::Range<u64>| batch(keys.map(move |key| Change::Put(space, key, noise(300, key))));
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    store.commit(&put(Space::Record, 0..20), false).unwrap();
    store.commit(&put(Space::Checkpoint, 0..3_000), true).unwrap();
    drop(store);
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    // It keeps all that follows in the log.
    let reader = SqliteStore::open_read_only(&folder).unwrap();
    store
        .commit(&batch([Change::Delete(Space::Checkpoint, 0..=3_000)]), false)
        .unwrap();
    for key in 20..40 {
        store.commit(&put(Space::Record, key..key + 1), false).unwrap();
    }
    let expected = contents(&store);
    let read = |end: &str| fs::read(folder.join(format!("frontier.sqlite{end}"))).unwrap();
    let (database, log) = (read(""), read("-wal"));
    drop((reader, store));
    let (found, tables) = salvaged(&folder, &database, &log);
    assert!(found == expected, "{} rows instead of {}", found.len(), expected.len());
    assert!(
        tables.iter().all(|table| table.written == Some(table.found)),
        "{tables:?}"
    );
}

#[test]
fn a_number_of_rows_that_cannot_be_is_unknown() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Record, 1, b"a record"), false).unwrap();
    drop(store);
    let connection = Connection::open(folder.join("frontier.sqlite")).unwrap();
    let changed = connection.execute("UPDATE spaces SET rows = -28 WHERE space = 'record'", []);
    assert_eq!(changed.unwrap(), 1);
    drop(connection);
    let tables = salvage_sized(&folder, &mut MemoryStore::default(), PAGE).unwrap();
    let record = tables[Space::Record as usize];
    assert_eq!((record.found, record.written), (1, None));
}

#[test]
fn a_damaged_log_costs_no_row_that_lies_in_another_frame() {
    let (states, [image, _, _]) = images();
    let folder = Folder::new();
    let last = states.last().unwrap();
    for at in (0..image.log.len()).step_by(31) {
        let mut damaged = image.log.clone();
        damaged[at] ^= 1 << (at % 8);
        let (found, _) = salvaged(&folder, &image.database, &damaged);
        is_in_any(&states, &found, &format!("byte {at}"));
        let missing = last.keys().filter(|key| !found.contains_key(key)).count();
        assert!(missing <= 15, "byte {at}: {missing} rows");
    }
}

#[test]
fn values_that_were_replaced_are_found_as_they_are_now_in_a_damaged_log() {
    let folder = Folder::new();
    let sizes = Sizes {
        page_bytes: PAGE as u32,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    for value in [&b"first"[..], b"second", b"third"] {
        store.commit(&put(Space::Meta, 1, value), false).unwrap();
    }
    let expected = contents(&store);
    // The log still has all versions, and does not say which of its pages are current.
    let mut log = fs::read(folder.join("frontier.sqlite-wal")).unwrap();
    log[24] ^= 1;
    let database = fs::read(folder.join("frontier.sqlite")).unwrap();
    drop(store);
    let (found, _) = salvaged(&folder, &database, &log);
    assert_eq!(found, expected);
}

#[test]
fn an_exchange_that_is_interrupted_is_finished_and_until_then_nothing_is_opened() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Meta, 0, b"old"), true).unwrap();
    drop(store);
    fs::write(folder.join("frontier.sqlite-wal"), b"a log").unwrap();
    let replacement = Replacement::begin(&folder).unwrap();
    let mut new = replacement.new_store().unwrap();
    new.commit(&put(Space::Meta, 0, b"new"), true).unwrap();
    drop((new, replacement));
    // As a crash leaves it after the first of three moves, and after the second.
    fs::rename(
        folder.join("repair/frontier.sqlite"),
        folder.join("frontier.sqlite.repaired"),
    )
    .unwrap();
    for moved in ["frontier.sqlite-wal", "frontier.sqlite"] {
        for opened in [SqliteStore::open(&folder), SqliteStore::open_read_only(&folder)] {
            let error = opened.unwrap_err();
            assert!(error.to_string().contains("repair it again"), "{error}");
        }
        let to = moved.replace("frontier.sqlite", "frontier.sqlite.damaged-1");
        fs::rename(folder.join(moved), folder.join(to)).unwrap();
    }
    let finished = Replacement::begin(&folder).unwrap();
    assert!(finished.was_finished);
    drop(finished);
    let store = SqliteStore::open(&folder).unwrap();
    assert_eq!(store.last(Space::Meta, 0).unwrap(), Some((0, b"new".to_vec())));
    assert!(folder.join("frontier.sqlite.damaged-1").exists());
    assert!(!folder.join("repair").exists());
}
