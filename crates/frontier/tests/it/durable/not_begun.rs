//! A directory whose crawl ended before it saved anything.

use std::fs;
use std::sync::Arc;

use frontier::{Directory, Frontier, FrontierConfig, Leasing, OpenError, Time};

use super::damaged_files::FILE;
use super::{TemporaryDir, parse};
use crate::common::{START, config, pages};
use crate::shared::pair::Place as _;

#[test]
fn a_directory_in_which_nothing_was_saved_is_not_called_damaged_and_a_crawl_begins_in_it() {
    let dir = TemporaryDir::new();
    let now = Time::from_millis(1_700_000_000_000);
    let refused = FrontierConfig {
        max_memory: Some(1),
        ..FrontierConfig::default()
    };
    let open = |config| Frontier::open(&dir.0, config, now, Arc::new(parse));
    assert!(matches!(open(refused).unwrap_err(), OpenError::Config(_)));
    assert!(dir.0.join(FILE).exists());
    assert!(matches!(dir.read().unwrap_err(), OpenError::NotBegun));
    let repaired = Directory::new(&dir.0).repair(&|_| Arc::new(parse), &mut |_| {});
    assert!(matches!(repaired.unwrap_err(), OpenError::NotBegun));
    let opened = open(FrontierConfig::default()).unwrap();
    assert_eq!(opened.attachment, None);
    drop(opened);
    assert_eq!(dir.read().unwrap().attachment, None);

    // It was opened, and nothing was persisted.
    let opened = open(FrontierConfig::default()).unwrap();
    assert_eq!(opened.attachment, None);
    assert_eq!(Directory::new(&dir.0).unsynced().unwrap(), None);
}

#[test]
fn a_run_that_saves_nothing_leaves_the_directory_of_a_killed_one_as_it_was() {
    let (dir, killed) = (TemporaryDir::new(), TemporaryDir::new());
    let mut frontier = dir.open(config(), START).frontier;
    frontier.offer(&pages("http://host.example/page-", 9), START).unwrap();
    let Leasing::Ready(leases) = frontier.lease(START, 1).unwrap() else {
        panic!("none is ready")
    };
    assert_eq!(leases.len(), 1);
    frontier.persist(b"", START).unwrap();
    // A crash leaves these files.
    fs::create_dir_all(&killed.0).unwrap();
    let files = || [FILE, "frontier.sqlite-wal"].map(|file| fs::read(killed.0.join(file)).unwrap());
    for file in [FILE, "frontier.sqlite-wal"] {
        fs::copy(dir.0.join(file), killed.0.join(file)).unwrap();
    }
    let before = files();
    let refused = FrontierConfig {
        max_memory: Some(1),
        ..config()
    };
    assert!(Frontier::open(&killed.0, refused, START, Arc::new(parse)).is_err());
    assert!(files() == before, "a start that is refused");
    let mut changed = config();
    changed.limits.max_pages = Some(5);
    for config in [config(), changed.clone()] {
        let opened = killed.open(config, START);
        assert_eq!(opened.released, 1);
        drop(opened);
        assert!(files() == before, "a run that saves nothing");
    }
    let mut opened = killed.open(changed.clone(), START);
    assert_eq!(opened.released, 1);
    opened.frontier.persist(b"", START).unwrap();
    drop(opened);
    assert_eq!(killed.open(changed, START).released, 0);
}
