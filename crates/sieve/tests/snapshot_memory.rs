//! What reading a file allocates, by the allocator. One test, so that no other allocates meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use peak_alloc::PeakAlloc;
use sieve::sizing::MAX_BLOCK_HASHES;
use sieve::{BloomFilter, Delta, Filter, Hashing, ScalableBloomFilter, Sizing, Snapshot};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most that was allocated during the work, beyond what was before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    (result, ALLOCATOR.peak_usage().saturating_sub(before))
}

#[test]
fn reading_allocates_no_more_than_the_file_is_long() {
    // The tables behind the rates are made once, whoever needs them first.
    for hashes in 1..=MAX_BLOCK_HASHES {
        let sizing = Sizing::explicit_blocks(1, hashes).unwrap();
        drop(BloomFilter::with_hashing(sizing, Hashing::default()).unwrap());
    }
    // Tiny ones with the number of probes whose rate has the most terms.
    let sizing = Sizing::explicit_blocks(1, 15).unwrap();
    let filters: Vec<_> = (0..100)
        .map(|_| BloomFilter::with_hashing(sizing, Hashing::default()).unwrap())
        .collect();
    let (_, allocated) = peak(|| filters.clone());
    assert!(allocated < 100 * 300, "{allocated} bytes for filters of 64 bytes each");

    let mut grown = ScalableBloomFilter::new(1000, 0.01).unwrap();
    let older = BloomFilter::new(1_000_000, 0.01).unwrap();
    let mut newer = older.clone();
    for key in 0_u32..20_000 {
        grown.insert(key.to_le_bytes());
        newer.insert(key.to_le_bytes());
    }
    let mut file = Vec::new();
    grown.write_to(&Default::default(), &mut file).unwrap();
    let read = || ScalableBloomFilter::read_from(&mut file.as_slice(), file.len() as u64, None);
    let (again, allocated) = peak(|| read().unwrap().0);
    assert_eq!(again.load(), grown.load());
    // The words of its layers are aligned.
    let most = file.len() + again.layers().len() * 300;
    assert!(allocated <= most, "{allocated} bytes for {}", file.len());

    // The words of a large one are mapped, not allocated, and read to their place.
    let mut file = Vec::new();
    newer.write_to(&Default::default(), &mut file).unwrap();
    let read = || BloomFilter::read_from(&mut file.as_slice(), file.len() as u64, None);
    let (again, allocated) = peak(|| read().unwrap().0);
    assert_eq!(again.load(), newer.load());
    assert!(allocated < 1000 && file.len() > 100_000, "{allocated} bytes");

    let mut file = Vec::new();
    newer.delta(&older).unwrap().write_to(&mut file).unwrap();
    let (delta, allocated) = peak(|| Delta::read_from(&mut file.as_slice(), file.len() as u64, None).unwrap());
    assert!(delta.added() > 100_000);
    assert!(allocated <= file.len(), "{allocated} bytes for {}", file.len());
}
