//! The files of a store: how large they become, and what is left of them at the end.

#![cfg(test)]

use super::*;
use crate::store::sqlite::synced::UnsyncedCommits;

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
    let full = store.bytes();
    assert!(full > 20_000_000, "{full}");
    store
        .commit(&batch([Change::Delete(Space::Segment, 0..=1000)]), true)
        .unwrap();
    for key in 0..40 {
        store.commit(&put(Space::Journal, key, b"small"), key == 39).unwrap();
    }
    drop(store);
    let store = SqliteStore::open(&folder).unwrap();
    assert!(store.bytes() < 6_000_000, "{} of {full}", store.bytes());
    assert_eq!(contents(&store).len(), 23 + 40);
}

#[test]
fn the_log_has_a_bound_unless_a_reader_holds_it() {
    let folder = Folder::new();
    let sizes = Sizes {
        log_bytes: 1 << 20,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let log = folder.join("frontier.sqlite-wal");
    let longest = |store: &mut SqliteStore, keys: std::ops::Range<u64>| {
        let commit = |key| {
            let sync = store.wants_sync();
            store
                .commit(&put(Space::Segment, key, &noise(50_000, key)), sync)
                .unwrap();
            fs::metadata(&log).unwrap().len()
        };
        keys.map(commit).max().unwrap()
    };
    let alone = longest(&mut store, 0..200);
    assert!(alone < 1_300_000, "{alone}");
    let reader = SqliteStore::open_read_only(&folder).unwrap();
    let held = longest(&mut store, 200..300);
    assert!(held > 4_000_000, "{held}");
    drop(reader);
    let free = longest(&mut store, 300..360);
    let after = longest(&mut store, 360..460);
    assert_eq!(after, free, "it is written over");
}

#[test]
fn a_long_log_is_written_over_while_commits_follow_each_other() {
    let folder = Folder::new();
    // Only the thread counts its pages before it has a gibibyte.
    let sizes = Sizes {
        log_bytes: 1 << 30,
        long_log_bytes: 1 << 20,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let log = folder.join("frontier.sqlite-wal");
    let bytes = || fs::metadata(&log).unwrap().len();
    // Each is longer than that, and replaces one before.
    let values: Vec<_> = (0..7).map(|n| noise(1_200_000, n)).collect();
    let mut commit = |n: usize| {
        let before = bytes();
        let change = put(Space::Segment, n as u64 % 4, &values[n % 7]);
        let sync = store.wants_sync() || n.is_multiple_of(4);
        store.commit(&change, sync).unwrap();
        bytes() == before
    };
    let overwritten = (1..1000).find(|&n| commit(n)).expect("the log never began anew");
    // A crash leaves the old end of the log behind the new one.
    let copy = Folder::new();
    for file in ["frontier.sqlite", "frontier.sqlite-wal"] {
        fs::copy(folder.join(file), copy.join(file)).unwrap();
    }
    let opened = SqliteStore::open(&copy).unwrap();
    assert_eq!(opened.unread_commits(), 0);
    let found = contents(&opened);
    let key = (Space::Segment as u8, overwritten as u64 % 4);
    assert!(found[&key] == values[overwritten % 7]);
    assert!(found == contents(&store));
}

#[test]
fn a_closed_store_is_one_file_and_readable_by_ordinary_tools() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    let mut batch = put(Space::Meta, 3, b"value");
    batch.set_status("waiting", 17);
    store.commit(&batch, false).unwrap();
    batch.set_status("waiting", 18);
    store.commit(&batch, true).unwrap();
    drop(store);
    let mut files: Vec<_> = fs::read_dir(&*folder)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["frontier.sqlite", "lock"]);
    let tool = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    let waiting: String = tool
        .query_row("SELECT value FROM status WHERE name = 'waiting'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(waiting, "18");
    let rows: i64 = tool
        .query_row("SELECT rows FROM spaces WHERE space = 'meta'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

/// The keys of the journal.
fn keys(store: &SqliteStore) -> Vec<u64> {
    contents(store).into_keys().map(|(_, key)| key).collect()
}

/// Copies a store that is open, as a crash of its process would leave it.
fn image_of(folder: &Folder) -> Folder {
    let copy = Folder::new();
    for file in ["frontier.sqlite", "frontier.sqlite-wal"] {
        fs::copy(folder.join(file), copy.join(file)).unwrap();
    }
    copy
}

#[test]
fn a_store_goes_back_to_the_last_synced_commit() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    let mut commit = |keys: std::ops::Range<u64>, sync| {
        for key in keys {
            let values = [
                Change::Put(Space::Journal, key, noise(3000, key)),
                Change::Delete(Space::Journal, key - 3..=key - 3),
            ];
            store.commit(&batch(values), sync).unwrap();
        }
    };
    commit(3..5, false);
    let before = image_of(&folder);
    commit(5..8, true);
    let synced = image_of(&folder);
    commit(8..20, false);
    let after = image_of(&folder);

    assert_eq!(SqliteStore::discard_unsynced(&synced).unwrap(), 0);
    assert_eq!(SqliteStore::discard_unsynced(&after).unwrap(), 12);
    assert_eq!(SqliteStore::discard_unsynced(&after).unwrap(), 0);
    let (synced, after) = (SqliteStore::open(&synced).unwrap(), SqliteStore::open(&after).unwrap());
    assert_eq!(keys(&synced), [5, 6, 7]);
    assert!(contents(&after) == contents(&synced));
    // A new store is synced before its first commit.
    assert_eq!(SqliteStore::discard_unsynced(&before).unwrap(), 2);
    assert_eq!(keys(&SqliteStore::open(&before).unwrap()), [0; 0]);
}

#[test]
fn what_was_not_synced_never_reaches_the_database_while_commits_follow_each_other() {
    let folder = Folder::new();
    let sizes = Sizes {
        long_log_bytes: 300_000,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&folder, sizes).unwrap();
    let (mut synced, mut restarts, mut length) = (0, 0, 0);
    for key in 1..=2000 {
        let sync = store.wants_sync() || key % 100 == 1;
        store
            .commit(&put(Space::Journal, key, &noise(2000, key)), sync)
            .unwrap();
        if sync {
            synced = key;
        }
        if key % 7 == 0 {
            let image = image_of(&folder);
            assert_eq!(SqliteStore::discard_unsynced(&image).unwrap(), key - synced, "{key}");
            assert_eq!(
                SqliteStore::open(&image).unwrap().last_key(Space::Journal),
                Some(synced)
            );
        }
        let now = fs::metadata(folder.join("frontier.sqlite-wal")).unwrap().len();
        restarts += u64::from(now == length);
        length = now;
    }
    assert!(restarts > 100, "the log began anew, and was written over: {restarts}");
}

#[test]
fn a_store_that_is_closed_between_two_syncs_can_still_go_back() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Journal, 1, b"synced"), true).unwrap();
    for key in 2..5 {
        store.commit(&put(Space::Journal, key, b"not synced"), false).unwrap();
    }
    drop(store);
    let store = SqliteStore::open(&folder).unwrap();
    assert_eq!(keys(&store), [1, 2, 3, 4]);
    assert_eq!(
        store.unsynced_commits().unwrap(),
        UnsyncedCommits {
            count: 3,
            is_system_restarted: false
        }
    );
    drop(store);
    assert_eq!(SqliteStore::discard_unsynced(&folder).unwrap(), 3);
    let mut store = SqliteStore::open(&folder).unwrap();
    assert_eq!(keys(&store), [1]);
    store.commit(&Batch::default(), true).unwrap();
    drop(store);
    assert!(!folder.join("frontier.sqlite-wal").exists());
}

#[test]
fn a_start_of_the_system_since_the_last_sync_is_noticed() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Journal, 1, b"synced"), true).unwrap();
    store.commit(&put(Space::Journal, 2, b"not synced"), false).unwrap();
    drop(store);
    let tool = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    let changed = tool.execute("UPDATE status SET value = 'another' WHERE name = 'system_start'", []);
    let is_known = changed.unwrap() == 1;
    assert_eq!(is_known, cfg!(target_os = "linux"));
    drop(tool);
    let unsynced = SqliteStore::open(&folder).unwrap().unsynced_commits().unwrap();
    assert_eq!(unsynced.is_system_restarted, is_known);
}

#[test]
fn what_an_earlier_run_has_not_synced_stays_in_the_log_until_this_one_syncs() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&put(Space::Journal, 0, b"synced"), true).unwrap();
    drop(store);
    // Often enough that the thread has begun before some end.
    let runs = 40;
    for run in 0..runs {
        let mut store = SqliteStore::open(&folder).unwrap();
        for key in 1..=25 {
            let change = put(Space::Journal, run * 25 + key, &noise(500, key));
            store.commit(&change, false).unwrap();
        }
    }
    let image = image_of(&folder);
    assert_eq!(SqliteStore::discard_unsynced(&image).unwrap(), runs * 25);
    assert_eq!(keys(&SqliteStore::open(&image).unwrap()), [0]);
    let mut store = SqliteStore::open(&folder).unwrap();
    store.commit(&Batch::default(), true).unwrap();
    assert_eq!(store.unsynced_commits().unwrap().count, 0);
    drop(store);
    assert_eq!(SqliteStore::discard_unsynced(&folder).unwrap(), 0);
    assert_eq!(
        SqliteStore::open(&folder).unwrap().last_key(Space::Journal),
        Some(runs * 25)
    );
}

/// One synced commit, and six that were not synced.
fn with_unsynced(folder: &Folder) {
    let mut store = SqliteStore::open(folder).unwrap();
    store.commit(&put(Space::Journal, 1, b"synced"), true).unwrap();
    for key in 2..8 {
        store
            .commit(&put(Space::Journal, key, &noise(3000, key)), false)
            .unwrap();
    }
}

#[test]
fn a_store_whose_log_was_accepted_is_synced_also_if_a_reader_holds_the_log() {
    let folder = Folder::new();
    with_unsynced(&folder);
    let log = folder.join("frontier.sqlite-wal");
    let mut bytes = fs::read(&log).unwrap();
    let at = 32 + (bytes.len() - 32) / 4120 * 2 / 3 * 4120 + 2000;
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    let reader = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM journal").unwrap();
    let mut store = SqliteStore::open(&folder).unwrap();
    assert!(store.unread_commits() > 0);
    // As a frontier does that is opened.
    store.commit(&put(Space::Journal, 50, b"not synced"), false).unwrap();
    store.accept().unwrap();
    store.commit(&put(Space::Journal, 51, b"not synced"), false).unwrap();
    let image = image_of(&folder);
    assert_eq!(SqliteStore::discard_unsynced(&image).unwrap(), 1);
    let found = keys(&SqliteStore::open(&image).unwrap());
    assert_eq!(found.last(), Some(&50), "{found:?}");
}

#[test]
fn what_another_program_has_moved_into_the_database_is_not_discarded() {
    let folder = Folder::new();
    with_unsynced(&folder);
    let tool = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    tool.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())).unwrap();
    // It does not come to remove the log.
    let image = image_of(&folder);
    drop(tool);
    assert_eq!(SqliteStore::discard_unsynced(&image).unwrap(), 0);
    assert_eq!(keys(&SqliteStore::open(&image).unwrap()), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn nothing_is_discarded_while_another_program_reads() {
    let folder = Folder::new();
    with_unsynced(&folder);
    let reader = SqliteStore::open_read_only(&folder).unwrap();
    let refused = SqliteStore::discard_unsynced(&folder).unwrap_err();
    assert!(refused.to_string().contains("another program reads it"), "{refused}");
    assert_eq!(keys(&reader).len(), 7);
    drop(reader);
    assert_eq!(SqliteStore::discard_unsynced(&folder).unwrap(), 6);
    assert_eq!(keys(&SqliteStore::open(&folder).unwrap()), [1]);
}

#[test]
fn the_log_of_a_salvage_has_a_bound() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    for key in 0..60 {
        store
            .commit(&put(Space::Segment, key, &noise(1_000_000, key)), key == 59)
            .unwrap();
    }
    drop(store);
    let to = Folder::new();
    let sizes = Sizes {
        log_bytes: 1 << 20,
        long_log_bytes: 1 << 20,
        ..SIZES
    };
    let mut store = SqliteStore::open_sized(&to, sizes).unwrap();
    crate::store::salvage(&folder, &mut store).unwrap();
    let log = fs::metadata(to.join("frontier.sqlite-wal")).unwrap().len();
    assert!(log < 20_000_000, "{log}");
}
