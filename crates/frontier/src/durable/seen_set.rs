//! A seen-set as bytes: the format of its own file, and nothing while it is empty. The store compresses what few bits of are set.

use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::Arc;

use sieve::snapshot::{Snapshot as _, SnapshotCounts, SnapshotError};
use sieve::{Filter as _, Hashing, SeenSet};

use super::keys::SharedKeys;
use crate::config::FrontierConfig;
use crate::state::{Seen, StateError, bloom_filter};

/// Returns a seen-set as bytes: none while it is empty, because the configuration says all that it is then.
///
/// Cost: a copy of it.
pub(crate) fn encode_seen_set(seen: &SeenSet) -> Result<Vec<u8>, StateError> {
    let load = seen.load();
    if load.bits > 0 && load.ones == 0 {
        return Ok(Vec::new());
    }
    // The counters of the sieve have these counts exactly.
    let counts = SnapshotCounts::default();
    // Exactly: if it had to grow at its end, an allocator would have it twice.
    let mut bytes = Vec::with_capacity(usize::try_from(seen.snapshot_bytes()).unwrap_or(0));
    seen.write_to(&counts, &mut bytes)?;
    Ok(bytes)
}

/// Reads what [`encode_seen_set`] returned, of at most `most` bytes. The seen-set has the size that was written, whatever the capacity is now.
pub(crate) fn read_seen_set(reader: &mut impl Read, most: u64, config: &FrontierConfig) -> Result<SeenSet, StateError> {
    let mut reader = BufReader::new(reader);
    if reader.fill_buf().map_err(SnapshotError::from)?.is_empty() {
        return Ok(bloom_filter(config)?);
    }
    let secret = match &config.seen_set.hash {
        Hashing::Hardened { key } => Some(*key),
        _ => None,
    };
    read_to_end(&mut reader, most, secret)
}

/// Reads a filter and what is behind it, so that no part that is missing goes unnoticed.
fn read_to_end(reader: &mut impl Read, most: u64, secret: Option<[u8; 16]>) -> Result<SeenSet, StateError> {
    let (seen, _) = SeenSet::read_from(reader, most, secret)?;
    io::copy(reader, &mut io::sink()).map_err(SnapshotError::from)?;
    Ok(seen)
}

pub(crate) fn with_keys(mut seen: SeenSet, config: &FrontierConfig, keys: Option<&SharedKeys>) -> Seen {
    if let SeenSet::Growing(growing) = &mut seen {
        growing.set_max_bytes(config.seen_set.max_seen_set_bytes);
        growing.set_reported_capacity(config.seen_set.capacity);
    }
    match keys {
        Some(keys) => Seen::with_keys(seen, Arc::new(keys.clone()), keys.lock().len()),
        None => seen.into(),
    }
}
