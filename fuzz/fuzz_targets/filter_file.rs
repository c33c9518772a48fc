//! Reading a filter from any bytes: no panic, no memory beyond the limit, and what is read is a filter that works.
//!
//! The first byte of the input says what is put right before reading, the rest is the file.

#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use sieve::sizing::MAX_BLOCK_HASHES;
use sieve::snapshot::Snapshot;
use sieve::{BloomFilter, CountingBloomFilter, Filter, ScalableBloomFilter, SeenSet, Sieve, Sizing};
use sieve_fuzz::seal::{self, Repairs, SECRET};
use sieve_fuzz::{allocated, logging};

#[global_allocator]
static ALLOCATOR: allocated::Counting = allocated::Counting;

/// What reading may allocate: the filter's words, and bookkeeping for each layer, which may be as long as a tiny layer.
fn most_allocated(limit: usize) -> usize {
    limit + limit.min(seal::CHUNK_BYTES) + LITTLE
}

const LITTLE: usize = 1024;

fuzz_target!(init: prepare(), |input: &[u8]| {
    let Some((&mode, file)) = input.split_first() else {
        return;
    };
    let mut file = file.to_vec();
    if mode & 1 == 1 {
        let repairs = Repairs {
            ones: mode & 2 == 2,
            longest: if mode & 4 == 4 { 8 << 10 } else { 0 },
        };
        seal::filter(&mut file, repairs);
    }
    read::<BloomFilter>(&file);
    read::<CountingBloomFilter>(&file);
    read::<ScalableBloomFilter>(&file);
    read::<SeenSet>(&file);
});

fn prepare() {
    logging::format_all();
    // The tables of the rates are made once, and must not count as what a file allocates.
    for hashes in 1..=MAX_BLOCK_HASHES {
        let sizing = Sizing::explicit_blocks(1, hashes).unwrap();
        let filter = BloomFilter::with_hashing(sizing, Default::default()).unwrap();
        let _ = filter.false_positive_rate();
    }
}

fn read<F: Filter + Snapshot>(file: &[u8]) {
    let mut rest = file;
    let (read, allocated) = allocated::peak(|| F::read_from(&mut rest, file.len() as u64, Some(SECRET)));
    assert!(
        allocated <= most_allocated(file.len()),
        "{allocated} bytes for {}",
        file.len()
    );
    let Ok((filter, counts)) = read else {
        return;
    };
    let used = &file[..file.len() - rest.len()];
    assert!(filter.load().memory_bytes <= used.len() as u64);
    let mut again = Vec::new();
    filter.write_to(&counts, &mut again).unwrap();
    assert!(again == used, "what was read is not what is written");
    assert!(F::read_from(&mut &used[..], used.len() as u64 - 1, Some(SECRET)).is_err());
    works::<F>(used);
}

/// Goes on from the file as a crawl would, and through another save.
fn works<F: Filter + Snapshot>(file: &[u8]) {
    let resume = |file: &[u8]| {
        Sieve::<F, VecDeque<String>>::resume(&mut &file[..], file.len() as u64, Some(SECRET), VecDeque::new()).unwrap()
    };
    let mut sieve = resume(file);
    let before = sieve.counters().accepted;
    for n in 0..4 {
        let key = format!("https://example.com/{n}");
        sieve.push(key.as_str());
        assert!(sieve.contains(&key), "a key that was offered looks new");
    }
    assert_eq!(sieve.counters().accepted - before, sieve.len() as u64);
    let saturation = sieve.saturation();
    assert!(saturation.estimated.is_finite() && saturation.estimate_noise >= 0.0);
    assert!((0.0..=1.0).contains(&saturation.rate) && (0.0..=1.0).contains(&saturation.fill));
    assert!(!saturation.to_string().is_empty());

    let mut saved = Vec::new();
    sieve.save_filter(&mut saved).unwrap();
    let (again, counts) = F::read_from(&mut saved.as_slice(), saved.len() as u64, Some(SECRET)).unwrap();
    assert_eq!(again.ones(), saturation.ones);
    assert!(counts.accepted == saturation.accepted || saturation.accepted >= 1 << 63);
    assert!(sieve.drain().all(|key| again.contains(key.as_bytes())));
}
