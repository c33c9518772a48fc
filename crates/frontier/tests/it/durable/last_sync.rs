//! The commits after the last sync, which a power cut may take from what was written beside them.

use std::fs;
use std::time::Duration;

use frontier::{Directory, Frontier, FrontierConfig, Leasing, Outcome};

use super::TemporaryDir;
use super::damaged_files::FILE;
use crate::common::{self, START, at, end};
use crate::shared::pair::{Place as _, picture};

#[test]
fn a_directory_goes_back_to_the_commit_of_the_last_sync() {
    let dir = TemporaryDir::new();
    let config = || FrontierConfig {
        sync_interval: Duration::from_secs(3600),
        ..common::config()
    };
    let mut frontier = dir.open(config(), START).frontier;
    frontier.persist(b"the first is synced", START).unwrap();
    let work = |frontier: &mut Frontier, number: u32| {
        let links = common::pages(&format!("http://host{number}.example/page-"), 200);
        frontier.offer(&links, at(number)).unwrap();
        let Leasing::Ready(leases) = frontier.lease(at(number), 3).unwrap() else {
            panic!("none is ready")
        };
        let done: Vec<_> = leases.iter().map(|lease| end(lease, Outcome::Done)).collect();
        frontier.settle(&done, at(number)).unwrap();
    };
    work(&mut frontier, 1);
    frontier.persist(b"not synced", at(1)).unwrap();
    let unsynced = || Directory::new(&dir.0).unsynced().unwrap();
    let of_new = unsynced().unwrap();
    assert_eq!((of_new.commits, of_new.attachment.as_slice()), (1, &b"not synced"[..]));
    work(&mut frontier, 3602);
    assert!(frontier.save_status().unwrap().is_sync_due(at(3602)));
    frontier.persist(b"synced", at(3602)).unwrap();
    assert_eq!(unsynced(), None);
    let next_sync = |frontier: &Frontier| frontier.save_status().unwrap().next_sync;
    assert_eq!(
        next_sync(&frontier),
        None,
        "a program that only waits lets the disk sleep"
    );
    let synced = picture(&frontier);
    for number in 3603..3609 {
        work(&mut frontier, number);
        assert_eq!(next_sync(&frontier), Some(at(7202)), "unsaved");
        frontier
            .persist(format!("later {number}").as_bytes(), at(number))
            .unwrap();
    }
    assert_eq!(next_sync(&frontier), Some(at(7202)), "saved, and not synced");
    let last = unsynced().unwrap();
    assert_eq!((last.commits, last.attachment.as_slice()), (6, &b"later 3608"[..]));
    assert!(!last.is_system_restarted);

    // A crash leaves these files.
    let crashed = TemporaryDir::new();
    fs::create_dir_all(&crashed.0).unwrap();
    for file in [FILE, "frontier.sqlite-wal"] {
        fs::copy(dir.0.join(file), crashed.0.join(file)).unwrap();
    }
    assert!(
        Directory::new(&dir.0).discard_unsynced().is_err(),
        "the directory is open"
    );
    assert_eq!(Directory::new(&crashed.0).discard_unsynced().unwrap(), 6);
    assert_eq!(Directory::new(&crashed.0).unsynced().unwrap(), None);
    let read = crashed.read().unwrap();
    assert_eq!(read.attachment.unwrap(), b"synced");
    assert_eq!(picture(&read.frontier), synced);

    // All of the kill stays, if nobody discards it.
    drop(frontier);
    let opened = dir.open(config(), at(3609));
    assert_eq!(opened.attachment.unwrap(), b"later 3608");
    let mut frontier = opened.frontier;
    frontier.checkpoint(b"the end", at(3610)).unwrap();
    drop(frontier);
    assert_eq!(unsynced(), None);
    assert_eq!(Directory::new(&dir.0).discard_unsynced().unwrap(), 0);
}

#[test]
fn a_text_that_is_persisted_alone_is_synced_when_that_is_due_and_no_interval_is_too_long() {
    for (interval, is_due) in [
        (Duration::ZERO, true),
        (Duration::from_secs(1), true),
        (Duration::MAX, false),
    ] {
        let dir = TemporaryDir::new();
        let config = FrontierConfig {
            sync_interval: interval,
            ..common::config()
        };
        let mut frontier = dir.open(config, START).frontier;
        frontier.persist(b"first", START).unwrap();
        frontier.persist(b"a text alone", at(3600)).unwrap();
        let is_synced = || Directory::new(&dir.0).unsynced().unwrap().is_none();
        assert_eq!(is_synced(), is_due, "{interval:?}");
        let next_sync = frontier.save_status().unwrap().next_sync;
        assert_eq!(next_sync.is_none(), is_due, "{interval:?}");
    }
}
