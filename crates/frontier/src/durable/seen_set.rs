//! A seen-set as bytes: the format of its own file, and nothing while it is empty. The store compresses what few bits of are set.

use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::Arc;

use sieve::snapshot::{Snapshot as _, SnapshotCounts, SnapshotError};
use sieve::{Filter as _, Hashing, SeenSet};

use super::keys::SharedKeys;
use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::state::{Seen, bloom_filter};

/// Returns a seen-set as bytes: none while it is empty, because the configuration says all that it is then.
///
/// Cost: a copy of it.
pub(crate) fn encode_seen_set(seen: &SeenSet) -> io::Result<Vec<u8>> {
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
pub(crate) fn read_seen_set(reader: &mut impl Read, most: u64, config: &FrontierConfig) -> Result<SeenSet, OpenError> {
    let mut reader = BufReader::new(reader);
    if reader.fill_buf().map_err(unreadable)?.is_empty() {
        return Ok(bloom_filter(config)?);
    }
    let secret = match &config.seen_set.hash {
        Hashing::Hardened { key } => Some(*key),
        _ => None,
    };
    let (seen, _) = SeenSet::read_from(&mut reader, most, secret).map_err(unreadable)?;
    // What is behind it, too, so that no part that is missing goes unnoticed.
    io::copy(&mut reader, &mut io::sink()).map_err(unreadable)?;
    Ok(seen)
}

fn unreadable(error: impl Into<SnapshotError>) -> OpenError {
    let damaged = |error| OpenError::damaged(format_args!("its seen-set cannot be read: {error}"));
    match error.into() {
        // That of a part, as it is.
        SnapshotError::Io(error) => error.downcast().unwrap_or_else(|error| damaged(error.into())),
        error => damaged(error),
    }
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
