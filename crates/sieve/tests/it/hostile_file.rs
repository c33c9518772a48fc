//! Crafted files with valid checksums and invalid fields: loading is an error, without a panic or a hang.

use std::collections::VecDeque;

use sieve::{
    BloomFilter, CountingBloomFilter, Delta, Filter, Hashing, ScalableBloomFilter, Sieve, Sizing, Snapshot,
    SnapshotError,
};

const HEADER_BYTES: usize = 96;
const KIND: usize = 10;
const LAYOUT: usize = 11;
const LAYERS: usize = 20;
const BITS: usize = 24;
const CAPACITY: usize = 32;
const ACCEPTED: usize = 56;
const LOST: usize = 64;
const EXTRA: usize = 72;
const BASE: usize = 80;

fn put(file: &mut [u8], at: usize, number: u64) {
    file[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Puts the checksums right from `at` to the end: a header, and what follows it as one chunk.
fn seal(file: &mut [u8], at: usize) {
    let checksum = |bytes: &[u8], seed| {
        let hash = fastmurmur3::murmur3_x64_128(bytes, seed).to_ne_bytes();
        u64::from_ne_bytes(*hash.first_chunk().unwrap())
    };
    let sum = checksum(&file[at..at + 88], 0);
    put(file, at + 88, sum);
    let end = file.len() - 8;
    if at + HEADER_BYTES < end {
        let sum = checksum(&file[at + HEADER_BYTES..end], sum);
        put(file, end, sum);
    }
}

fn bytes(filter: &impl Snapshot) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&Default::default(), &mut file).unwrap();
    file
}

fn read<F: Snapshot>(file: &[u8]) -> Result<F, SnapshotError> {
    Ok(F::read_from(&mut &*file, file.len() as u64, None)?.0)
}

fn standard() -> Vec<u8> {
    let mut filter = BloomFilter::with_hashing(Sizing::explicit_blocks(1, 8).unwrap(), Hashing::default()).unwrap();
    filter.insert(b"key");
    bytes(&filter)
}

/// A scalable filter of two layers, the capacity of each as given.
fn scalable(capacity: u64) -> Vec<u8> {
    let mut layer = standard();
    put(&mut layer, CAPACITY, capacity);
    seal(&mut layer, 0);
    let mut header = layer[..HEADER_BYTES].to_vec();
    header[KIND] = 3;
    header[LAYERS] = 2;
    put(&mut header, 48, 16);
    put(&mut header, EXTRA, 0.01_f64.to_bits());
    seal(&mut header, 0);
    [header, layer.clone(), layer].concat()
}

/// Spoils one number; the caller has to seal the file again.
fn with_field(mut file: Vec<u8>, at: usize, number: u64) -> Vec<u8> {
    put(&mut file, at, number);
    file
}

#[track_caller]
fn names(error: Result<impl Sized, SnapshotError>, expected: &str) {
    match error.map(|_| ()) {
        Err(SnapshotError::Field(field)) => assert_eq!(field, expected),
        other => panic!("{other:?} instead of an error that names the {expected}"),
    }
}

#[test]
fn counts_that_nothing_can_have_counted_to_are_refused() {
    for accepted in [u64::MAX, 1 << 63] {
        let mut file = with_field(standard(), ACCEPTED, accepted);
        seal(&mut file, 0);
        names(read::<BloomFilter>(&file), "number of accepted keys");
    }
    let mut lost = with_field(standard(), LOST, 1e300_f64.to_bits());
    seal(&mut lost, 0);
    names(read::<BloomFilter>(&lost), "loss");

    let counting = bytes(&CountingBloomFilter::new(10, 0.01).unwrap());
    let mut removed = with_field(counting, EXTRA, u64::MAX);
    seal(&mut removed, 0);
    names(read::<CountingBloomFilter>(&removed), "number of removals");
}

#[test]
fn blocks_that_are_not_whole_are_no_shape_and_a_third_layout_does_not_exist() {
    for bits in [0, 510, 512] {
        let mut file = with_field(standard(), BITS, bits);
        seal(&mut file, 0);
        names(read::<BloomFilter>(&file), "shape");
    }
    for layout in [0, 3] {
        let mut file = standard();
        file[LAYOUT] = layout;
        seal(&mut file, 0);
        names(read::<BloomFilter>(&file), "layout");
    }
}

#[test]
fn a_negative_loss_is_refused_even_minus_zero() {
    for lost in [-0.0_f64, -1.0] {
        let mut file = with_field(standard(), LOST, lost.to_bits());
        seal(&mut file, 0);
        names(read::<BloomFilter>(&file), "loss");

        let mut file = scalable(1);
        put(&mut file[..HEADER_BYTES], BASE, lost.to_bits());
        seal(&mut file[..HEADER_BYTES], 0);
        names(read::<ScalableBloomFilter>(&file), "loss");
    }
}

#[test]
fn the_largest_accepted_counts_do_no_harm() {
    let mut file = with_field(standard(), ACCEPTED, (1 << 63) - 1);
    put(&mut file, LOST, 9e18_f64.to_bits());
    seal(&mut file, 0);
    let mut sieve: Sieve<BloomFilter> =
        Sieve::resume(&mut file.as_slice(), file.len() as u64, None, VecDeque::new()).unwrap();
    assert!(sieve.push("another key"));
    assert_eq!(sieve.counters().accepted, 1 << 63);
    let mut saved = Vec::new();
    sieve.save_filter(&mut saved).unwrap();
    read::<BloomFilter>(&saved).expect("what is written can be read");

    let mut filter = CountingBloomFilter::new(10, 0.01).unwrap();
    filter.insert(b"key");
    let mut file = with_field(bytes(&filter), EXTRA, (1 << 63) - 1);
    seal(&mut file, 0);
    let mut filter: CountingBloomFilter = read(&file).unwrap();
    assert!(filter.remove(b"key"));
    read::<CountingBloomFilter>(&bytes(&filter)).expect("what is written can be read");
}

#[test]
fn an_estimate_of_any_size_has_a_level() {
    let mut file = scalable(1);
    put(&mut file[..HEADER_BYTES], BASE, 9e18_f64.to_bits());
    seal(&mut file[..HEADER_BYTES], 0);
    let sieve: Sieve<ScalableBloomFilter> =
        Sieve::resume(&mut file.as_slice(), file.len() as u64, None, VecDeque::new()).unwrap();
    let saturation = sieve.saturation();
    assert!(saturation.estimated > 1e18);
    assert!(!saturation.to_string().is_empty());
    for ratio in [1e18, 1e300, f64::INFINITY] {
        assert!(sieve::Level::of(ratio).threshold() > 1e17);
    }
}

#[test]
fn capacities_of_layers_that_add_up_beyond_sixty_four_bits_are_the_largest_number() {
    let mut filter: ScalableBloomFilter = read(&scalable(u64::MAX)).unwrap();
    assert_eq!(filter.capacity(), u64::MAX);
    assert_eq!(filter.load().capacity, Some(u64::MAX));
    assert!(filter.insert(b"another key"));
}

#[test]
fn a_rate_that_would_make_the_next_layer_far_larger_than_those_of_the_file_is_refused() {
    let mut file = scalable(5);
    put(&mut file[..HEADER_BYTES], EXTRA, 1e-231_f64.to_bits());
    seal(&mut file[..HEADER_BYTES], 0);
    names(read::<ScalableBloomFilter>(&file), "rate");
}

#[test]
fn every_rate_that_a_filter_can_be_built_with_is_accepted_from_a_file() {
    for rate in [0.999, 0.5, 0.01, 1e-6, 1.2e-7, 1e-9, 1e-30] {
        for capacity in [1, 300, 5_000] {
            let mut filter = ScalableBloomFilter::new(capacity, rate).unwrap();
            let mut layers = 0;
            for key in 0..capacity * 20 {
                filter.insert(key.to_le_bytes());
                if filter.layers().len() > layers {
                    layers = filter.layers().len();
                    let again: ScalableBloomFilter = read(&bytes(&filter)).unwrap();
                    assert_eq!(again.load(), filter.load(), "{capacity} keys at {rate}");
                }
            }
        }
    }
}

#[test]
fn a_field_without_a_use_must_be_zero() {
    for at in [LAYERS, EXTRA, BASE] {
        let mut file = standard();
        file[at] = 1;
        seal(&mut file, 0);
        names(read::<BloomFilter>(&file), "unused field");
    }
    for at in [LAYERS, BASE] {
        let mut file =
            bytes(&CountingBloomFilter::with_hashing(Sizing::explicit(64, 3).unwrap(), Hashing::default()).unwrap());
        file[at] = 1;
        seal(&mut file, 0);
        names(read::<CountingBloomFilter>(&file), "unused field");
    }
    let older: BloomFilter = read(&standard()).unwrap();
    let mut newer = older.clone();
    newer.insert(b"another key");
    let mut delta = Vec::new();
    newer.delta(&older).unwrap().write_to(&mut delta).unwrap();
    for at in [LAYERS, ACCEPTED, LOST] {
        let mut file = delta.clone();
        file[at] = 1;
        seal(&mut file, 0);
        names(
            Delta::read_from(&mut file.as_slice(), file.len() as u64, None),
            "unused field",
        );
    }
}

#[test]
fn the_header_of_a_scalable_filter_must_agree_with_its_layers() {
    let mut file = scalable(100);
    put(&mut file[..HEADER_BYTES], CAPACITY, 101);
    seal(&mut file[..HEADER_BYTES], 0);
    names(read::<ScalableBloomFilter>(&file), "shape");

    let mut counted = scalable(100);
    let last = counted.len() - standard().len();
    put(&mut counted[last..], ACCEPTED, 1);
    seal(&mut counted[last..], 0);
    names(read::<ScalableBloomFilter>(&counted), "unused field");
}
