//! A seen-set as bytes: the format of its own file, coded while few of its bits are set, and nothing while none is.

use std::io::{self, BufReader, Read};

use sieve::snapshot::{Counts, Snapshot as _, SnapshotError};
use sieve::{Filter as _, Hashing, SeenSet};

use super::super::bloom_filter;
use super::error::StateError;
use super::keys::SharedKeys;
use super::seen::Seen;
use super::sparse::{MOST_EXPANDED, SparseReader, SparseWriter};
use crate::config::FrontierConfig;

/// If fewer than one in this many bits are set, the [sparse](super::sparse) form is taken. It has a byte or two per bit that is set: about half as many as the plain form, or fewer.
const SPARSE: u64 = 16;
/// The first bytes of the sparse form. The file of a filter begins with others.
const SPARSE_MAGIC: [u8; 4] = *b"ONES";
/// What the sparse form has beside its codes, about.
const ROOM_FOR_HEADS: usize = 4096;

/// Returns a seen-set as bytes: none while it is empty, because the configuration says all that it is then.
///
/// Cost: a copy of it; while it is sparse, a pass over it, a byte or two per bit that is set, and two per 4 KiB without any.
pub(super) fn encode_seen_set(seen: &SeenSet) -> Result<Vec<u8>, StateError> {
    let load = seen.load();
    if load.bits > 0 && load.ones == 0 {
        return Ok(Vec::new());
    }
    // The counters of the sieve have these counts exactly.
    let counts = Counts::default();
    if load.ones < load.bits / SPARSE {
        // At most: what is not written takes no memory.
        let length = 2 * load.ones + load.bits / 16_000;
        let mut code = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + ROOM_FOR_HEADS);
        code.extend_from_slice(&SPARSE_MAGIC);
        let mut sparse = SparseWriter::new(code);
        seen.write_to(&counts, &mut sparse)?;
        return Ok(sparse.finish());
    }
    // Exactly: if it had to grow at its end, an allocator would have it twice.
    let mut bytes = Vec::with_capacity(usize::try_from(seen.snapshot_bytes()).unwrap_or(0));
    seen.write_to(&counts, &mut bytes)?;
    Ok(bytes)
}

/// Reads what [`encode_seen_set`] returned, of at most `most` bytes. The seen-set has the size that was written, whatever the capacity is now.
pub(super) fn read_seen_set(reader: &mut impl Read, most: u64, config: &FrontierConfig) -> Result<SeenSet, StateError> {
    let mut start = Vec::new();
    let head = reader.by_ref().take(SPARSE_MAGIC.len() as u64).read_to_end(&mut start);
    head.map_err(SnapshotError::from)?;
    if start.is_empty() {
        return Ok(bloom_filter(config)?);
    }
    let secret = match &config.hashing {
        Hashing::Hardened { key } => Some(*key),
        _ => None,
    };
    if start == SPARSE_MAGIC {
        let mut sparse = SparseReader::new(BufReader::new(reader));
        return read_to_end(&mut sparse, most.saturating_mul(MOST_EXPANDED), secret);
    }
    read_to_end(&mut start.as_slice().chain(reader), most, secret)
}

/// Reads a filter and what is behind it, so that no part that is missing goes unnoticed.
fn read_to_end(reader: &mut impl Read, most: u64, secret: Option<[u8; 16]>) -> Result<SeenSet, StateError> {
    let (seen, _) = SeenSet::read_from(reader, most, secret)?;
    io::copy(reader, &mut io::sink()).map_err(SnapshotError::from)?;
    Ok(seen)
}

/// Makes the seen-set of a filter and the digests of its keys, if they are stored.
pub(super) fn with_keys(mut seen: SeenSet, config: &FrontierConfig, keys: Option<SharedKeys>) -> Seen {
    if let SeenSet::Growing(growing) = &mut seen {
        growing.set_first_capacity(config.capacity);
        growing.set_max_bytes(config.max_seen_set_bytes);
    }
    match keys {
        Some(keys) => Seen::with_keys(seen, keys, config),
        None => seen.into(),
    }
}
