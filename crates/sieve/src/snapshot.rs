//! Snapshots: save a filter to any writer, and load it on any platform.
//!
//! ```
//! use sieve::BloomFilter;
//! use sieve::snapshot::{SnapshotCounts, Snapshot};
//!
//! let mut seen = BloomFilter::new(1000, 0.01)?;
//! seen.insert(b"https://example.com/");
//! let mut file = Vec::new();
//! seen.write_to(&SnapshotCounts::default(), &mut file)?;
//!
//! let limit = file.len() as u64; // for a real file, the length in its metadata
//! let (again, _counts) = BloomFilter::read_from(&mut file.as_slice(), limit, None)?;
//! assert!(again.contains(b"https://example.com/"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Format, version 1
//!
//! All numbers are little-endian. A header of 96 bytes:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic, `SIEVE\r\n\x1a`: a transfer that changes line ends is noticed |
//! | 8 | 2 | version, 1 |
//! | 10 | 1 | kind: 1 standard, 2 counting, 3 scalable, 4 delta |
//! | 11 | 1 | layout: 1 classic, 2 blocks |
//! | 12 | 1 | rule from digest to positions, 1 |
//! | 13 | 1 | hash: 1 murmur3, 2 xxh3, 3 hardened |
//! | 14 | 2 | zero |
//! | 16 | 4 | probes per key, k |
//! | 20 | 4 | layers that follow, of a scalable filter; else 0 |
//! | 24 | 8 | bits, m |
//! | 32 | 8 | capacity, n |
//! | 40 | 8 | seed, or the fingerprint of the key of the hardened hash (never the key) |
//! | 48 | 8 | ones, X (of a delta: those it adds) |
//! | 56 | 8 | keys accepted, A, below 2⁶³; 0 in a layer and a delta |
//! | 64 | 8 | keys lost, L1, as a float, below 2⁶³; 0 in a layer and a delta |
//! | 72 | 8 | total rate of a scalable filter, as a float; Rice parameter of a delta; removals of a counting filter; else 0 |
//! | 80 | 8 | checksum of the state that a delta belongs to; keys lost to older layers of a scalable filter, as a float; else 0 |
//! | 88 | 8 | checksum of the 88 bytes before |
//!
//! Then the words of the filter, in chunks of 64 KiB (the last may be shorter), each followed by 8 bytes of checksum. A checksum is the first
//! half of MurmurHash3 with the checksum before as its seed, so that chunks cannot change places. A scalable filter has
//! no words, but its layers after each other, each a whole standard filter.
//!
//! # What loading guarantees
//!
//! * Every truncation and every flipped bit is an error. It is never a panic, nor a filter that answers "no" for a key that was saved.
//! * Every field is checked before memory is allocated. No more is allocated than the limit and the length of the file. (The
//!   formulas of [`sizing`](crate::sizing) build one table per number of probes, once for all filters.)
//! * Ones are counted again.
//!
//! Writing a file safely is up to you: write a temporary file, sync it, then rename it.

mod filters;
mod header;

use std::io::{self, Read, Write};

use crate::hash::{Hashing, checksum};
use crate::memory::Memory;
use crate::sizing::ConfigError;

pub(crate) use header::{Header, Kind, check_field};

/// The bytes between two checksums.
const CHUNK_BYTES: usize = 64 << 10;

/// The counts of a sieve that are saved with its filter, so that the loss continues after loading.
///
/// Of a filter that was filled without a sieve, and is to be resumed as one, `accepted` is how many keys were new to it, and `lost` is its
/// `estimated_len` less these. With zeros, the self-check of the sieve takes the filter for damaged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SnapshotCounts {
    /// The number of accepted keys, A.
    pub accepted: u64,
    /// The expected number of lost keys, L1.
    pub lost: f64,
}

/// A filter that was read, and the counts that were saved with it.
pub type Loaded<F> = Result<(F, SnapshotCounts), SnapshotError>;

/// A filter that can be saved and loaded.
///
/// The standard, the counting and the scalable filter implement it, and a [`SeenSet`](crate::SeenSet) of a standard or scalable one.
/// The rotating and the exact filter do not. Of a concurrent filter, save the [copy](crate::ConcurrentBloomFilter::to_filter).
pub trait Snapshot: Sized {
    /// Writes the filter.
    ///
    /// # Errors
    ///
    /// The errors of the writer; [`io::ErrorKind::Unsupported`] for [`SeenSet::Exact`](crate::SeenSet::Exact), before anything is written.
    fn write_to(&self, counts: &SnapshotCounts, writer: &mut impl Write) -> io::Result<()>;

    /// Returns how many bytes [`write_to`](Self::write_to) writes: to reserve memory, or to see whether they fit on a disk. 0 for
    /// [`SeenSet::Exact`](crate::SeenSet::Exact), of which nothing is written.
    ///
    /// Cost: O(layers).
    fn snapshot_bytes(&self) -> u64;

    /// Reads a filter. `secret` is the key of the hardened hash; other hashes ignore it.
    ///
    /// `limit` is the length of the file in bytes, or the memory that may be allocated. The reader stops after the last byte of the
    /// filter.
    ///
    /// # Errors
    ///
    /// The errors of the reader; a file that is not a filter, is damaged, of another kind or version, larger than the limit, or has
    /// another key.
    fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Loaded<Self>;
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The reader failed, or ended early.
    #[error("{}", of_reader(.0))]
    Io(#[from] io::Error),
    /// It does not begin like the file of a filter.
    #[error("the file is not the file of a filter: check the path")]
    NotAFilter,
    /// It has a version of the format that this crate does not support.
    #[error("the filter's file has version {0}, this program supports version 1: update the program")]
    Version(u16),
    /// It contains another kind of filter.
    #[error("the file contains a {found}, not a {wanted}: load it as a {found}")]
    Kind {
        /// The kind that was requested.
        wanted: &'static str,
        /// The kind in the file.
        found: &'static str,
    },
    /// A field of the header has no meaning.
    #[error("the filter's file has an invalid {0}: use an older copy, or start with an empty filter")]
    Field(&'static str),
    /// It is damaged: a checksum is wrong.
    #[error("the filter's file is damaged: use an older copy, or start with an empty filter")]
    Damaged,
    /// It needs more bytes than the limit: it was cut, or the limit is too low.
    #[error(
        "the filter's file needs {needed} bytes, more than the limit of {limit}: it was cut, or the limit is too low"
    )]
    TooLong {
        /// The bytes it would need.
        needed: u64,
        /// The limit that was given.
        limit: u64,
    },
    /// It uses the hardened hash, and no key was given.
    #[error("the filter uses the hardened hash: give its key")]
    SecretMissing,
    /// It uses another key.
    #[error("the filter uses another key: give the key that it was built with")]
    SecretWrong,
    /// The memory cannot be allocated.
    #[error("{0}")]
    Memory(#[source] ConfigError),
}

fn of_reader(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the filter's file ends early: use an older copy, or start with an empty filter".to_owned()
        }
        _ => format!("the filter's file cannot be read: {error}"),
    }
}

pub(crate) fn stored_bytes(words: u64) -> u64 {
    let bytes = words.saturating_mul(8);
    bytes.saturating_add(bytes.div_ceil(CHUNK_BYTES as u64).saturating_mul(8))
}

pub(crate) fn write_words(words: &[u64], mut sum: u64, writer: &mut impl Write) -> io::Result<()> {
    let mut buffer = Vec::new();
    for chunk in words.chunks(CHUNK_BYTES / 8) {
        let bytes = little_endian(chunk, &mut buffer);
        sum = checksum(bytes, sum);
        writer.write_all(bytes)?;
        writer.write_all(&sum.to_le_bytes())?;
    }
    Ok(())
}

/// Returns the bytes of the words as files have them. On most platforms memory has the same.
fn little_endian<'w>(words: &'w [u64], buffer: &'w mut Vec<u8>) -> &'w [u8] {
    if cfg!(target_endian = "little") {
        return bytemuck::cast_slice(words);
    }
    buffer.clear();
    buffer.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    buffer
}

/// Reads words into fresh memory, which the caller has checked against its limit.
pub(crate) fn read_words(words: u64, mut sum: u64, reader: &mut impl Read) -> Result<Memory, SnapshotError> {
    let mut memory = Memory::zeroed(words).map_err(SnapshotError::Memory)?;
    for chunk in memory.words_mut().chunks_mut(CHUNK_BYTES / 8) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(chunk);
        reader.read_exact(bytes)?;
        sum = checksum(bytes, sum);
        let mut stored = [0; 8];
        reader.read_exact(&mut stored)?;
        if stored != sum.to_le_bytes() {
            return Err(SnapshotError::Damaged);
        }
        for word in chunk {
            *word = u64::from_le(*word);
        }
    }
    Ok(memory)
}

pub(crate) fn fingerprint(words: &[u64]) -> u64 {
    let mut buffer = Vec::new();
    words.chunks(CHUNK_BYTES / 8).fold(words.len() as u64, |sum, chunk| {
        checksum(little_endian(chunk, &mut buffer), sum)
    })
}

pub(crate) fn hashing_of(header: &Header, secret: Option<[u8; 16]>) -> Result<Hashing, SnapshotError> {
    let hashing = match (header.hash, secret) {
        (1, _) => Hashing::Murmur3 { seed: header.seed },
        (2, _) => Hashing::Xxh3 { seed: header.seed },
        (3, Some(key)) => Hashing::Hardened { key },
        (3, None) => return Err(SnapshotError::SecretMissing),
        _ => return Err(SnapshotError::Field("hash")),
    };
    if hashing.stored_seed() == header.seed {
        Ok(hashing)
    } else {
        Err(SnapshotError::SecretWrong)
    }
}
