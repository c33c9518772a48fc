//! Other people's filters.

use std::hash::BuildHasher;

use fastbloom::BloomFilter;
use sbbf_rs_safe::Filter;
use xxhash_rust::xxh3::xxh3_64;

use super::queued::{Seen, queued};
use super::{Contender, RATE};

/// What 256-bit split blocks need for a true 1 %.
const SBBF_BITS_PER_KEY: f64 = 10.54;
const SBBF_BLOCK_BYTES: usize = 32;

pub(super) fn fastbloom_siphash(capacity: u64) -> Box<dyn Contender> {
    let filter = BloomFilter::with_false_pos(RATE).expected_items(capacity as usize);
    queued(Fastbloom(filter))
}

pub(super) fn fastbloom_foldhash(capacity: u64) -> Box<dyn Contender> {
    let filter = BloomFilter::with_false_pos(RATE)
        .hasher(foldhash::fast::RandomState::default())
        .expected_items(capacity as usize);
    queued(Fastbloom(filter))
}

pub(super) fn fastbloom_xxh3(capacity: u64) -> Box<dyn Contender> {
    let filter = BloomFilter::with_false_pos(RATE).expected_items(capacity as usize);
    queued(FastbloomXxh3(filter))
}

pub(super) fn sbbf(capacity: u64) -> Box<dyn Contender> {
    let bytes = (capacity as f64 * SBBF_BITS_PER_KEY / 8.0).ceil() as usize;
    // Its own constructor takes whole bits per key only.
    let zeros = vec![0; bytes.next_multiple_of(SBBF_BLOCK_BYTES)];
    queued(Sbbf(Filter::from_bytes(&zeros).expect("whole blocks are accepted")))
}

struct Fastbloom<S>(BloomFilter<S>);

impl<S: BuildHasher> Seen for Fastbloom<S> {
    fn insert(&mut self, url: &str) -> bool {
        !self.0.insert(url)
    }

    fn contains(&self, url: &str) -> bool {
        self.0.contains(url)
    }

    fn bits(&self) -> u64 {
        self.0.num_bits() as u64
    }
}

/// Given the hash instead of the URL: faster than by way of a `Hasher`, which xxh3 makes from a state of half a kilobyte.
struct FastbloomXxh3(BloomFilter);

impl Seen for FastbloomXxh3 {
    fn insert(&mut self, url: &str) -> bool {
        !self.0.insert_hash(xxh3_64(url.as_bytes()))
    }

    fn contains(&self, url: &str) -> bool {
        self.0.contains_hash(xxh3_64(url.as_bytes()))
    }

    fn bits(&self) -> u64 {
        self.0.num_bits() as u64
    }
}

struct Sbbf(Filter);

impl Seen for Sbbf {
    fn insert(&mut self, url: &str) -> bool {
        !self.0.insert_hash(xxh3_64(url.as_bytes()))
    }

    fn contains(&self, url: &str) -> bool {
        self.0.contains_hash(xxh3_64(url.as_bytes()))
    }

    fn bits(&self) -> u64 {
        self.0.as_bytes().len() as u64 * 8
    }
}
