//! A seen-set as bytes: the format of its own file, compressed while few of its bits are set, and nothing while none is.

use std::io::{self, Read, Write as _};

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use sieve::snapshot::{Counts, Snapshot as _, SnapshotError};
use sieve::{Filter as _, Hashing, SeenSet};

use super::super::bloom_filter;
use super::error::StateError;
use super::keys::SharedKeys;
use super::seen::Seen;
use crate::config::FrontierConfig;

/// With fewer ones than one in this many bits, the compressed form is smaller: a one takes four bytes of it.
const SPARSE: u64 = 32;
/// The first bytes of the compressed form, an LZ4 frame, little-endian:
/// <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>.
const LZ4_MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
/// The decompressed length of an LZ4 block is at most this many times its own length.
const MOST_COMPRESSED: u64 = 255;
/// What the plain form has beside the bits, about.
const ROOM_FOR_HEADS: usize = 4096;

/// Returns a seen-set as bytes: none while it is empty, because the configuration says all that it is then.
///
/// Cost: a copy of it; while it is sparse, a pass over it.
pub(super) fn encode_seen_set(seen: &SeenSet) -> Result<Vec<u8>, StateError> {
    let load = seen.load();
    if load.bits > 0 && load.ones == 0 {
        return Ok(Vec::new());
    }
    // The counters of the sieve have these counts exactly.
    let counts = Counts::default();
    if load.ones < load.bits / SPARSE {
        let mut frame = FrameEncoder::new(Vec::new());
        seen.write_to(&counts, &mut frame)?;
        frame.flush()?;
        return Ok(frame.finish().map_err(io::Error::from)?);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(load.bits / 8).unwrap_or(0) + ROOM_FOR_HEADS);
    seen.write_to(&counts, &mut bytes)?;
    Ok(bytes)
}

/// Reads what [`encode_seen_set`] returned, of at most `most` bytes. The seen-set has the size that was written, whatever the capacity is now.
pub(super) fn read_seen_set(reader: &mut impl Read, most: u64, config: &FrontierConfig) -> Result<SeenSet, StateError> {
    let mut start = Vec::new();
    let head = reader.by_ref().take(LZ4_MAGIC.len() as u64).read_to_end(&mut start);
    head.map_err(SnapshotError::from)?;
    if start.is_empty() {
        return Ok(bloom_filter(config)?);
    }
    let secret = match &config.hashing {
        Hashing::Hardened { key } => Some(*key),
        _ => None,
    };
    let is_compressed = start == LZ4_MAGIC;
    let mut whole = start.as_slice().chain(reader);
    if is_compressed {
        return read_to_end(
            &mut FrameDecoder::new(whole),
            most.saturating_mul(MOST_COMPRESSED),
            secret,
        );
    }
    read_to_end(&mut whole, most, secret)
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
