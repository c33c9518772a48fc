//! The seen-set of a checkpoint: empty in the first one, where it takes no part, because the configuration says all of it; and full.

use sieve::snapshot::{Snapshot as _, SnapshotCounts};
use sieve::{Filter as _, Hashing, OnSaturation, SeenSet};

use super::super::parts::{self, PartsReader};
use super::super::seen_set::{encode_seen_set, read_seen_set};
use super::common::{START, config, url};
use super::damage::manifest;
use super::pair::picture;
use super::stores::{Recorder, open_store, read_store};
use crate::Verdict;
use crate::config::{FrontierConfig, SeenSetConfig};
use crate::error::OpenError;
use crate::store::{Batch, MemoryStore, Space, Store as _};

#[test]
fn a_store_whose_checkpoint_has_an_empty_seen_set_is_opened() {
    let mut fixed = config();
    fixed.seen_set.exact = false;
    fixed.seen_set.hash = Hashing::Hardened { key: [7; 16] };
    let growing = FrontierConfig {
        seen_set: SeenSetConfig {
            on_saturation: OnSaturation::Grow,
            ..fixed.clone().seen_set
        },
        ..fixed.clone()
    };
    for config in [fixed, growing, config()] {
        let recorder = Recorder::default();
        let mut frontier = open_store(recorder.clone(), config, START).unwrap().frontier;
        let pages = ["http://a.example/", "http://a.example/1", "http://b.example/"].map(url);
        for page in &pages {
            frontier.add_seed(page, START).unwrap();
        }
        frontier.persist(b"", START).unwrap();
        let image = recorder.image();
        assert_eq!(manifest(&image).seen_set_parts, 0);
        let mut opened = read_store(image).unwrap().frontier;
        assert_eq!(picture(&opened), picture(&frontier));
        for page in &pages {
            assert_eq!(opened.add_seed(page, START).unwrap(), Verdict::Seen);
        }
    }
}

fn of_capacity(capacity: u64, on_saturation: OnSaturation) -> FrontierConfig {
    FrontierConfig {
        seen_set: SeenSetConfig {
            exact: false,
            capacity,
            hash: Hashing::Hardened { key: [7; 16] },
            on_saturation,
            ..config().seen_set
        },
        ..config()
    }
}

fn with_keys(config: &FrontierConfig, keys: u32) -> SeenSet {
    let mut seen = crate::state::bloom_filter(config).unwrap();
    for key in 0..keys {
        seen.insert(&key.to_le_bytes());
    }
    seen
}

fn plain(seen: &SeenSet) -> Vec<u8> {
    let mut bytes = Vec::new();
    seen.write_to(&SnapshotCounts::default(), &mut bytes).unwrap();
    bytes
}

#[test]
fn a_seen_set_is_read_as_it_was_written_however_full_it_is() {
    for on_saturation in [OnSaturation::Warn, OnSaturation::Grow] {
        let config = of_capacity(10_000, on_saturation);
        for keys in [0, 1, 2, 30, 400, 3_000, 10_000, 40_000] {
            let seen = with_keys(&config, keys);
            let (plain_bytes, stored) = (plain(&seen), encode_seen_set(&seen).unwrap());
            let read = read_seen_set(&mut stored.as_slice(), stored.len() as u64, &config).unwrap();
            assert_eq!(plain(&read), plain_bytes, "{keys} keys");
            // What has to grow at its end is in memory twice.
            assert_eq!(stored.capacity(), stored.len(), "{keys} keys");
            assert_eq!(stored.is_empty(), keys == 0);
        }
    }
}

#[test]
fn a_seen_set_that_is_damaged_is_an_error_and_never_another_one() {
    let config = of_capacity(2_000, OnSaturation::Grow);
    let seen = with_keys(&config, 20);
    let stored = encode_seen_set(&seen).unwrap();
    let right = plain(&seen);
    let is_error_or_same = |bytes: &[u8]| {
        let read = read_seen_set(&mut &*bytes, stored.len() as u64, &config);
        read.is_err() || read.is_ok_and(|read| plain(&read) == right)
    };
    for at in 0..stored.len() {
        assert!(at == 0 || is_error_or_same(&stored[..at]), "cut at {at}");
        let mut wrong = stored.clone();
        wrong[at] ^= 1 << (at % 8);
        assert!(is_error_or_same(&wrong), "a bit at {at}");
    }
}

#[test]
fn a_seen_set_in_many_parts_is_whole_or_an_error() {
    let config = of_capacity(10_000, OnSaturation::Grow);
    let seen = with_keys(&config, 8_000);
    let stored = encode_seen_set(&seen).unwrap();
    let chunks: Vec<_> = stored.chunks(70).collect();
    let read = |missing: Option<usize>| {
        let mut store = MemoryStore::default();
        let mut batch = Batch::default();
        for (at, part) in chunks.iter().enumerate().filter(|(at, _)| Some(*at) != missing) {
            batch.put(Space::Checkpoint, at as u64, *part);
        }
        store.commit(&batch, false).unwrap();
        let mut reader = PartsReader::new(parts::parts(&store, 0..chunks.len() as u64));
        read_seen_set(&mut reader, stored.len() as u64, &config)
    };
    assert_eq!(plain(&read(None).unwrap()), plain(&seen));
    for missing in 0..chunks.len() {
        let error = read(Some(missing)).unwrap_err();
        assert!(matches!(error, OpenError::Damaged(_)), "part {missing}: {error}");
    }
}
