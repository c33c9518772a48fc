//! The concurrent filter beside the plain one, under real threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sieve::snapshot::{Snapshot as _, SnapshotCounts};
use sieve::{BloomFilter, ConcurrentBloomFilter, ConfigError, Hashing, Layout, Sizing};

const KEYS: u32 = 40_000;

fn shared() -> ConcurrentBloomFilter {
    ConcurrentBloomFilter::new(20_000, 0.01).unwrap()
}

#[test]
fn one_thread_alone_gets_the_answers_of_the_plain_filter() {
    let (shared, mut plain) = (shared(), BloomFilter::new(20_000, 0.01).unwrap());
    for n in 0..KEYS {
        let key = (n / 2 * 7).to_le_bytes();
        assert_eq!(shared.insert(key), plain.insert(key));
    }
    for n in 0..KEYS {
        assert_eq!(shared.contains(n.to_le_bytes()), plain.contains(n.to_le_bytes()));
    }
    let copy = shared.to_filter().unwrap();
    assert_eq!(copy.ones(), plain.ones());
    assert_eq!(copy.delta(&plain).unwrap().added(), 0);
    assert!((shared.estimated_len() - plain.estimated_len()).abs() < 1e-6);
}

#[test]
fn if_threads_insert_the_same_keys_one_wins_each() {
    for round in 0..5_u64 {
        let sizing = Sizing::in_layout(Layout::Blocks, u64::from(KEYS), 1e-5).unwrap();
        let shared = ConcurrentBloomFilter::with_hashing(sizing, Hashing::Xxh3 { seed: round }).unwrap();
        let wins: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let keys: Vec<[u8; 4]> = (0..KEYS).map(u32::to_le_bytes).collect();
        thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, wins, keys) = (&shared, &wins, &keys);
                scope.spawn(move || {
                    let count = |key: &[u8], new: bool| {
                        let n = u32::from_le_bytes(key.try_into().unwrap());
                        wins[n as usize].fetch_add(u64::from(new), Ordering::Relaxed);
                    };
                    if thread % 2 == 0 {
                        shared.insert_all(keys.iter().map(<[u8; 4]>::as_slice), count);
                    } else {
                        keys.iter().for_each(|key| count(key, shared.insert(key)));
                    }
                });
            }
        });
        assert!(
            wins.iter().all(|wins| wins.load(Ordering::Relaxed) <= 1),
            "a key had two winners"
        );
        let lost = wins.iter().filter(|wins| wins.load(Ordering::Relaxed) == 0).count();
        assert!(
            lost <= 4,
            "{lost} keys had no winner: more than the false-positive rate explains"
        );
        assert!(keys.iter().all(|key| shared.contains(key)));
    }
}

#[test]
fn the_classic_layout_is_refused() {
    let sizing = Sizing::in_layout(Layout::Classic, 100, 0.01).unwrap();
    let error = ConcurrentBloomFilter::with_hashing(sizing, Hashing::default()).unwrap_err();
    assert_eq!(error, ConfigError::BlocksNeeded);
    assert!(error.to_string().contains("Layout::Blocks"));
}

#[test]
fn a_batch_of_any_length_reports_its_keys_in_order() {
    for length in [0, 1, 31, 32, 33, 64, 65] {
        let shared = shared();
        let keys: Vec<[u8; 4]> = (0..length).map(|n: u32| (n / 2).to_le_bytes()).collect();
        let mut reported = Vec::new();
        shared.insert_all(keys.iter().map(<[u8; 4]>::as_slice), |key, new| {
            reported.push((key.to_vec(), new));
        });
        let expected: Vec<_> = (0..length)
            .map(|n| ((n / 2).to_le_bytes().to_vec(), n % 2 == 0))
            .collect();
        assert_eq!(reported, expected);
    }
}

#[test]
fn a_saved_concurrent_filter_can_be_loaded_and_shared() {
    let hashing = Hashing::Xxh3 { seed: 3 };
    let sizing = Sizing::for_rate(5_000, 0.01).unwrap();
    let before = ConcurrentBloomFilter::with_hashing(sizing, hashing).unwrap();
    for n in 0..5_000_u32 {
        before.insert(n.to_le_bytes());
    }
    let mut file = Vec::new();
    let copy = before.to_filter().unwrap();
    copy.write_to(&SnapshotCounts::default(), &mut file).unwrap();
    let (read, _) = BloomFilter::read_from(&mut file.as_slice(), file.len() as u64, None).unwrap();
    let after = ConcurrentBloomFilter::from_filter(&read).unwrap();
    for n in 0..10_000_u32 {
        let key = n.to_le_bytes();
        assert_eq!(after.contains(key), before.contains(key));
        assert_eq!(after.insert(key), before.insert(key), "and no block of it is locked");
    }
    let classic = Sizing::in_layout(Layout::Classic, 100, 0.01).unwrap();
    let classic = BloomFilter::with_hashing(classic, hashing).unwrap();
    assert_eq!(
        ConcurrentBloomFilter::from_filter(&classic).unwrap_err(),
        ConfigError::BlocksNeeded
    );
}
