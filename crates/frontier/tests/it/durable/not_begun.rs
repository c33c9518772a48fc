//! A directory whose crawl ended before it saved anything.

use std::fs;
use std::sync::Arc;

use frontier::{Frontier, FrontierConfig, OpenError, Time};

use super::damaged_files::{FILE, write};
use super::{TemporaryDir, parse};

const LOG: &str = "frontier.sqlite-wal";

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
    let read = Frontier::read(&dir.0, Arc::new(parse));
    assert!(matches!(read.unwrap_err(), OpenError::NotBegun));
    let repaired = Frontier::repair(&dir.0, &|_| Arc::new(parse), &mut |_| {});
    assert!(matches!(repaired.unwrap_err(), OpenError::NotBegun));
    let opened = open(FrontierConfig::default()).unwrap();
    assert!(opened.attachment.is_none());
    drop(opened);
    assert!(Frontier::read(&dir.0, Arc::new(parse)).is_ok());
}

#[test]
fn a_directory_is_called_damaged_if_all_that_was_saved_is_in_a_log_that_cannot_be_read() {
    let dir = TemporaryDir::new();
    let now = Time::from_millis(1_700_000_000_000);
    let open = |dir: &TemporaryDir, config| Frontier::open(&dir.0, config, now, Arc::new(parse));
    let refused = FrontierConfig {
        max_memory: Some(1),
        ..FrontierConfig::default()
    };
    open(&dir, refused).unwrap_err();
    // While it reads, nothing is moved from the log to the database.
    let reader = rusqlite::Connection::open(dir.0.join(FILE)).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM spaces").unwrap();
    let mut frontier = open(&dir, FrontierConfig::default()).unwrap().frontier;
    frontier.persist(b"attachment", now).unwrap();
    let mut log = fs::read(dir.0.join(LOG)).unwrap();
    let database = fs::read(dir.0.join(FILE)).unwrap();
    drop((reader, frontier));
    // In the first frame.
    log[40] ^= 1;
    let damaged = TemporaryDir::new();
    write(&damaged.0, &[(FILE, database), (LOG, log)]);
    let read = Frontier::read(&damaged.0, Arc::new(parse)).unwrap_err();
    assert!(matches!(read, OpenError::Damaged(_)), "{read:?}");
    let opened = open(&damaged, FrontierConfig::default()).unwrap_err();
    assert!(matches!(opened, OpenError::Damaged(_)), "{opened:?}");
    let report = Frontier::repair(&damaged.0, &|_| Arc::new(parse), &mut |_| {}).unwrap();
    assert!(report.tables.iter().any(|table| table.found > 0), "{report:?}");
}
