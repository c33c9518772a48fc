//! The files of a store: how large they become, and what is left of them at the end.

#![cfg(test)]

use std::cell::RefCell;

use super::super::bytes_in;
use super::*;
use crate::store::MAX_KEY;

#[test]
fn room_of_deleted_values_is_given_back() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    for key in 0..64 {
        let values = (0..16).map(|i| Change::Put(Space::Segment, key * 16 + i, noise(20_000, key * 16 + i)));
        store.commit(&batch(values), key == 63).unwrap();
    }
    drop(store);
    let mut store = SqliteStore::open(&folder).unwrap();
    let full = bytes_in(&folder).unwrap();
    assert!(full > 20_000_000, "{full}");
    store
        .commit(&batch([Change::Delete(Space::Segment, 0..=1000)]), true)
        .unwrap();
    for key in 0..40 {
        store.commit(&put(Space::Journal, key, b"small"), key == 39).unwrap();
    }
    drop(store);
    let store = SqliteStore::open(&folder).unwrap();
    let left = bytes_in(&folder).unwrap();
    assert!(left < 6_000_000, "{left} of {full}");
    assert_eq!(contents(&store).len(), 23 + 40);
}

thread_local! {
    /// The lengths of which this thread was warned.
    static WARNINGS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let bytes = record.key_values().get("log_bytes".into());
        WARNINGS.with_borrow_mut(|warnings| warnings.extend(bytes.and_then(|bytes| bytes.to_u64())));
    }

    fn flush(&self) {}
}

#[test]
fn the_log_has_a_bound_unless_a_reader_holds_it_of_which_it_warns() {
    let folder = Folder::new();
    let sizes = Sizes {
        log_bytes: 1 << 20,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let log = folder.join("frontier.sqlite-wal");
    let longest = |store: &mut SqliteStore, keys: std::ops::Range<u64>| {
        let commit = |key: u64| {
            let sync = key.is_multiple_of(4);
            store
                .commit(&put(Space::Segment, key, &noise(50_000, key)), sync)
                .unwrap();
            fs::metadata(&log).unwrap().len()
        };
        keys.map(commit).max().unwrap()
    };
    let _ = log::set_logger(&Warnings);
    log::set_max_level(log::LevelFilter::Warn);
    let alone = longest(&mut store, 0..400);
    assert!(alone < 8_000_000, "{alone}");
    assert_eq!(WARNINGS.take(), Vec::<u64>::new());
    let reader = SqliteStore::open_read_only(&folder).unwrap();
    let held = longest(&mut store, 400..600);
    assert!(held > 9_000_000, "{held}");
    // Of four times the bound, and when it has doubled.
    let warnings = WARNINGS.take();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0] > 4 << 20 && warnings[1] > 8 << 20, "{warnings:?}");
    drop(reader);
    longest(&mut store, 600..660);
    let after = longest(&mut store, 660..800);
    assert!(after < 8_000_000, "{after}");
    // A crash leaves the old end of the log behind the new one.
    let copy = Folder::new();
    for file in ["frontier.sqlite", "frontier.sqlite-wal"] {
        fs::copy(folder.join(file), copy.join(file)).unwrap();
    }
    assert!(contents(&SqliteStore::open(&copy).unwrap()) == contents(&store));
}

#[test]
fn a_closed_store_is_one_file_and_readable_by_ordinary_tools() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Meta, 3, b"value"), true).unwrap();
    drop(store);
    let mut files: Vec<_> = fs::read_dir(&*folder)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["frontier.sqlite", "lock"]);
    let tool = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    let rows: i64 = tool
        .query_row("SELECT rows FROM spaces WHERE space = 'meta'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_reader_where_nobody_writes_changes_no_file_and_says_when_a_crawl_begins() {
    type Open = fn(&Path) -> Result<SqliteStore, StoreError>;
    let readers: [(&str, Open); 2] = [
        ("checked", SqliteStore::open_read_only),
        ("unchecked", SqliteStore::open_unchecked),
    ];
    for (what, open) in readers {
        for folder_name in ["state", "st a%te?", "stäte#1"] {
            let folder = Folder::new();
            let dir = folder.join(folder_name);
            let commit = |key| {
                let mut store = SqliteStore::open(&dir).unwrap();
                store.commit(&put(Space::Journal, key, b"row"), true).unwrap();
                store
            };
            drop(commit(1));
            let files = || -> BTreeMap<_, _> {
                let files = fs::read_dir(&dir).unwrap().map(Result::unwrap);
                files
                    .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
                    .collect()
            };
            let before = files();
            let reader = open(&dir).unwrap();
            assert_eq!(contents(&reader).len(), 1);
            assert!(files() == before, "{what} {folder_name}: beside {:?}", files().keys());
            let writer = commit(2);
            let error = reader.last(Space::Journal, MAX_KEY).unwrap_err().to_string();
            assert!(error.contains("a crawl has begun"), "{error}");
            assert_eq!(contents(&open(&dir).unwrap()).len(), 2, "beside the crawl");
            drop((reader, writer));
            let before = files();
            assert_eq!(contents(&open(&dir).unwrap()).len(), 2, "after it");
            assert!(files() == before);
        }
    }
}
