//! A directory whose crawl ended before it saved anything.

use std::sync::Arc;

use frontier::{Directory, Frontier, FrontierConfig, OpenError, Time};

use super::damaged_files::FILE;
use super::{TemporaryDir, parse};

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
    let unsynced = Directory::new(&dir.0).unsynced().unwrap().unwrap();
    assert_eq!(unsynced.attachment, b"");
}
