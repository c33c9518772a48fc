//! Checksums put right, so that damaged files reach the checks behind them.
//!
//! The format is written down a second time here, from the docs of `sieve::snapshot` and not from its code.

use std::sync::LazyLock;

use sieve::snapshot::{Snapshot, SnapshotCounts};
use sieve::{BloomFilter, Hashing, Sizing};

/// The length of a header.
pub const HEADER_BYTES: usize = 96;
/// The bytes between two checksums.
pub const CHUNK_BYTES: usize = 64 << 10;
/// The key of the hardened hash in all targets.
pub const SECRET: [u8; 16] = *b"0123456789abcdef";

/// Where the fields lie; the layers are the higher half of a number.
const KIND: usize = 10;
const LAYOUT: usize = 11;
const HASH: usize = 13;
const LAYERS: usize = 16;
const BITS: usize = 24;
const SEED: usize = 40;
const ONES: usize = 48;
const BASE: usize = 80;
const SUM: usize = 88;

/// What is put right in the file of a filter beside its checksums.
#[derive(Debug, Clone, Copy)]
pub struct Repairs {
    /// The number of ones is that of the words.
    pub ones: bool,
    /// The words are as many as the header says, if the file is no longer than this then.
    pub longest: usize,
}

/// What the header of a file made with [`SECRET`] has in the place of the seed.
static FINGERPRINT: LazyLock<u64> = LazyLock::new(|| {
    let sizing = Sizing::explicit(64, 1).unwrap();
    let filter = BloomFilter::with_hashing(sizing, Hashing::Hardened { key: SECRET }).unwrap();
    number(&file_of(&filter), SEED)
});

/// Returns the file of a filter without counts.
pub fn file_of(filter: &impl Snapshot) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&SnapshotCounts::default(), &mut file).unwrap();
    file
}

/// Puts the checksums of the file of a filter right.
pub fn filter(file: &mut Vec<u8>, repairs: Repairs) {
    if file.len() < HEADER_BYTES {
        return;
    }
    if file[KIND] != 3 {
        standard(file, 0, repairs);
        return;
    }
    let mut ones = 0_u64;
    let mut at = HEADER_BYTES;
    for _ in 0..number(file, LAYERS) >> 32 {
        if file.len() < at + HEADER_BYTES {
            break;
        }
        let end = standard(file, at, repairs);
        ones = ones.wrapping_add(number(file, at + ONES));
        at = end;
    }
    if repairs.ones {
        put(file, ONES, ones);
    }
    seal_header(file, 0);
}

/// Puts the checksums of the file of a delta right and, if told so, the state of the filter that it belongs to and the
/// length of its code.
pub fn delta(file: &mut [u8], base: Option<u64>, length: bool) {
    if file.len() < HEADER_BYTES {
        return;
    }
    if let Some(base) = base {
        put(file, BASE, base);
    }
    let sum = seal_header(file, 0);
    if file.len() < HEADER_BYTES + 16 {
        return;
    }
    if length {
        let code = file.len() - HEADER_BYTES - 16;
        put(file, HEADER_BYTES, code as u64);
    }
    let end = file.len() - 8;
    let sum = checksum(&file[HEADER_BYTES..end], sum);
    put(file, end, sum);
}

/// Returns the number by which a delta recognises the words of a file.
pub fn fingerprint(file: &[u8]) -> u64 {
    let words = words_of(file);
    let sum = words.len() as u64 / 8;
    words.chunks(CHUNK_BYTES).fold(sum, |sum, chunk| checksum(chunk, sum))
}

/// Returns the words of the file of a standard filter, without their checksums.
pub fn words_of(file: &[u8]) -> Vec<u8> {
    let chunks = file[HEADER_BYTES..].chunks(CHUNK_BYTES + 8);
    chunks.flat_map(|chunk| &chunk[..chunk.len() - 8]).copied().collect()
}

/// Puts right what begins at `at`, and returns where it ends.
fn standard(file: &mut Vec<u8>, at: usize, repairs: Repairs) -> usize {
    let bits = number(file, at + BITS);
    let words = match (file[at + KIND], file[at + LAYOUT]) {
        (2, _) => bits.div_ceil(16),
        (_, 1) => bits.div_ceil(64),
        _ => bits / 511 * 8,
    };
    let bytes = usize::try_from(words).unwrap_or(usize::MAX).saturating_mul(8);
    let sums = bytes.div_ceil(CHUNK_BYTES).saturating_mul(8);
    let end = bytes.saturating_add(sums).saturating_add(at + HEADER_BYTES);
    if end > file.len() && end <= repairs.longest {
        file.resize(end, 0);
    }
    let end = end.min(file.len());
    if repairs.ones {
        let ones = recount(&file[at + HEADER_BYTES..end], file[at + KIND] == 2);
        put(file, at + ONES, ones);
    }
    let mut sum = seal_header(file, at);
    let mut from = at + HEADER_BYTES;
    while from + 8 < end {
        let to = (from + CHUNK_BYTES).min(end - 8);
        sum = checksum(&file[from..to], sum);
        put(file, to, sum);
        from = to + 8;
    }
    end
}

/// Counts the bits, or the counters of four bits, that are not zero, without the checksums between them.
fn recount(words: &[u8], counters: bool) -> u64 {
    let chunks = words.chunks(CHUNK_BYTES + 8);
    let bytes = chunks.flat_map(|chunk| &chunk[..chunk.len().saturating_sub(8)]);
    bytes
        .map(|byte| match counters {
            true => u64::from(byte & 15 != 0) + u64::from(byte >> 4 != 0),
            false => u64::from(byte.count_ones()),
        })
        .sum()
}

/// Puts the checksum of a header right, and returns it.
fn seal_header(file: &mut [u8], at: usize) -> u64 {
    if file[at + HASH] == 3 {
        put(file, at + SEED, *FINGERPRINT);
    }
    let sum = checksum(&file[at..at + SUM], 0);
    put(file, at + SUM, sum);
    sum
}

/// Reads the number at a place.
pub fn number(file: &[u8], at: usize) -> u64 {
    file[at..].first_chunk().copied().map(u64::from_le_bytes).unwrap()
}

/// Writes a number to a place.
pub fn put(file: &mut [u8], at: usize, number: u64) {
    file[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The first half of MurmurHash3, x64, 128 bit, after A. Appleby's reference implementation.
pub fn checksum(bytes: &[u8], seed: u64) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let first = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let second = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        h1 = (h1 ^ first(number(block, 0))).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ second(number(block, 8))).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    h2 ^= second(number(&last, 8)) ^ bytes.len() as u64;
    h1 ^= first(number(&last, 0)) ^ bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    mixed(h1).wrapping_add(mixed(h2))
}

fn mixed(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

#[cfg(test)]
mod tests {
    use sieve::CountingBloomFilter;

    use super::*;

    const REPAIRS: Repairs = Repairs {
        ones: true,
        longest: 1 << 20,
    };

    /// Seals a spoilt file of a filter and compares with the file.
    fn comes_back(kept: &impl Snapshot) {
        let file = file_of(kept);
        let mut spoilt = file.clone();
        put(&mut spoilt, SUM, 0);
        put(&mut spoilt, ONES, 0);
        let end = spoilt.len() - 8;
        put(&mut spoilt, end, 0);
        filter(&mut spoilt, REPAIRS);
        assert!(spoilt == file);
    }

    #[test]
    fn a_sealed_file_is_the_one_that_the_crate_wrote() {
        let keys = || (0..2000_u32).map(u32::to_le_bytes);
        // Three chunks of words.
        let mut standard = BloomFilter::new(120_000, 0.01).unwrap();
        let mut counting = CountingBloomFilter::new(500, 0.01).unwrap();
        let mut scalable = sieve::ScalableBloomFilter::new(100, 0.01).unwrap();
        keys().for_each(|key| {
            standard.insert(&key);
            counting.insert(&key);
            scalable.insert(&key);
        });
        comes_back(&standard);
        comes_back(&counting);
        comes_back(&scalable);
    }

    #[test]
    fn a_sealed_delta_is_the_one_that_the_crate_wrote() {
        let older = BloomFilter::new(120_000, 0.01).unwrap();
        let mut newer = older.clone();
        newer.insert(b"key");
        let mut file = Vec::new();
        newer.delta(&older).unwrap().write_to(&mut file).unwrap();
        let mut spoilt = file.clone();
        for at in [BASE, SUM, HEADER_BYTES] {
            put(&mut spoilt, at, 0);
        }
        delta(&mut spoilt, Some(fingerprint(&file_of(&older))), true);
        assert!(spoilt == file);
    }
}
