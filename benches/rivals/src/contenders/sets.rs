//! Simple ways to remember URLs: sets of themselves, of their digests and of their fingerprints, and a bitmap with one probe.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::Contender;
use super::queued::{Seen, queued};

// Both are told how many keys will come, as the filters are: no table grows in the timed part.

pub(super) fn strings(capacity: u64) -> Box<dyn Contender> {
    queued(Strings {
        set: HashSet::with_capacity(capacity as usize),
        text_bytes: 0,
    })
}

pub(super) fn fingerprints(capacity: u64) -> Box<dyn Contender> {
    let set = HashSet::with_capacity_and_hasher(capacity as usize, BuildHasherDefault::default());
    queued(Fingerprints(set))
}

pub(super) fn digests(capacity: u64) -> Box<dyn Contender> {
    let set = HashSet::with_capacity_and_hasher(capacity as usize, BuildHasherDefault::default());
    queued(Digests(set))
}

/// A hundred bits for each key: one of them is set by another key with a chance of 1 − e^(−1/100).
const BITS_WITH_ONE_PROBE: u64 = 100;

pub(super) fn bitmap(capacity: u64) -> Box<dyn Contender> {
    let words = (capacity * BITS_WITH_ONE_PROBE).div_ceil(64) as usize;
    queued(Bitmap(vec![0; words]))
}

/// The places of a table of the standard library: a power of two, of which up to seven eighths are used.
fn places(capacity: usize) -> u64 {
    (capacity as u64 * 8 / 7).next_power_of_two()
}

struct Strings {
    set: HashSet<String>,
    text_bytes: u64,
}

impl Seen for Strings {
    fn insert(&mut self, url: &str) -> bool {
        // Asked by reference first: a seen URL costs no allocation.
        if self.set.contains(url) {
            return false;
        }
        self.text_bytes += url.len() as u64;
        self.set.insert(url.to_owned())
    }

    fn contains(&self, url: &str) -> bool {
        self.set.contains(url)
    }

    fn bits(&self) -> u64 {
        (places(self.set.capacity()) * (size_of::<String>() as u64 + 1) + self.text_bytes) * 8
    }
}

struct Fingerprints(HashSet<u64, BuildHasherDefault<Identity>>);

impl Seen for Fingerprints {
    fn insert(&mut self, url: &str) -> bool {
        self.0.insert(xxh3_64(url.as_bytes()))
    }

    fn contains(&self, url: &str) -> bool {
        self.0.contains(&xxh3_64(url.as_bytes()))
    }

    fn bits(&self) -> u64 {
        places(self.0.capacity()) * (size_of::<u64>() as u64 + 1) * 8
    }
}

struct Digests(HashSet<u128, BuildHasherDefault<Identity>>);

impl Seen for Digests {
    fn insert(&mut self, url: &str) -> bool {
        self.0.insert(xxh3_128(url.as_bytes()))
    }

    fn contains(&self, url: &str) -> bool {
        self.0.contains(&xxh3_128(url.as_bytes()))
    }

    fn bits(&self) -> u64 {
        places(self.0.capacity()) * (size_of::<u128>() as u64 + 1) * 8
    }
}

struct Bitmap(Vec<u64>);

impl Bitmap {
    /// The word and the bit of a URL.
    fn place(&self, url: &str) -> (usize, u64) {
        let bits = self.0.len() as u128 * 64;
        let bit = ((u128::from(xxh3_64(url.as_bytes())) * bits) >> 64) as u64;
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}

impl Seen for Bitmap {
    fn insert(&mut self, url: &str) -> bool {
        let (word, bit) = self.place(url);
        let before = self.0[word];
        self.0[word] = before | bit;
        before & bit == 0
    }

    fn contains(&self, url: &str) -> bool {
        let (word, bit) = self.place(url);
        self.0[word] & bit != 0
    }

    fn bits(&self) -> u64 {
        self.0.len() as u64 * 64
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only whole fingerprints are hashed");
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }
}
