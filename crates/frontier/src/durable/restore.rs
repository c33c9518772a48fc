//! Restoring a frontier: the checkpoint, then the calls of the journal.

use std::sync::Arc;

use sieve::SeenSet;

use super::Source;
use super::checkpoint::{LAST_GENERATION, MANIFEST, Manifest};
use super::keys::SharedKeys;
use super::parts::{PartsReader, parts};
use super::seen_set::{read_seen_set, with_keys};
use super::segments::{SharedStore, StoredSegments};
use super::sizes::{SIZES, Sizes};
use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::hosts::{HostReader, HostTable, HostsOnDisk, SegmentStore};
use crate::rules::ParseRules;
use crate::state::State;
use crate::store::{Batch, MAX_KEY, Space, Store, StoreError};

/// The rows that are read at once.
pub(super) const ROWS_AT_ONCE: u64 = 64;

/// What was read of a store.
pub(crate) struct Restored {
    pub(crate) state: State,
    pub(crate) segments: Arc<StoredSegments>,
    pub(crate) keys: Option<SharedKeys>,
    pub(crate) config: FrontierConfig,
    pub(crate) manifest: Manifest,
    pub(crate) attachment: Vec<u8>,
    pub(crate) next_row: u64,
    pub(crate) journal_bytes: u64,
}

impl<'s> Source<'s> {
    pub(crate) fn new(store: &'s SharedStore, parse: &'s ParseRules) -> Self {
        let sizes = SIZES;
        Self { store, parse, sizes }
    }

    pub(crate) fn on_disk(&self, segments: &Arc<StoredSegments>) -> HostsOnDisk {
        HostsOnDisk {
            segments: Arc::clone(segments) as Arc<dyn SegmentStore>,
            parse: Arc::clone(self.parse),
            group_bytes: self.sizes.group_bytes,
        }
    }

    pub(crate) fn segments(&self, next_segment: u64) -> Arc<StoredSegments> {
        Arc::new(StoredSegments::new(
            self.store.clone(),
            next_segment,
            self.sizes.young_at_once,
        ))
    }
}

/// Restores the state of a store; `None` if there is none yet. If it may write, it writes what no checkpoint needs.
pub(crate) fn restore(source: Source<'_>, may_write: bool) -> Result<Option<Restored>, OpenError> {
    let Some(mut restored) = restore_checkpoint(source)? else {
        return Ok(None);
    };
    if may_write {
        restored.state.share_memory(source.sizes.resident_bytes);
    }
    restored.replay(source, MAX_KEY, may_write)?;
    if let Some(keys) = &restored.keys {
        keys.lock().journal_has_ended()?;
    }
    Ok(Some(restored))
}

/// Restores the state as it was at the checkpoint.
pub(crate) fn restore_checkpoint(source: Source<'_>) -> Result<Option<Restored>, OpenError> {
    let store = source.store.lock();
    let Some((manifest, config)) = manifest(&**store)? else {
        return Ok(None);
    };
    let state = state(&**store, &manifest)?;
    let seen_set = seen_set(&**store, &manifest, &config, source.sizes)?;
    let hosts = hosts(&**store, &manifest, source.parse)?;
    // The calls of the journal read segments and keys.
    drop(store);
    let load = || SharedKeys::load(source.store.clone(), source.sizes, manifest.covered);
    let keys = config.seen_set.exact.then(load).transpose()?;
    let seen_set = with_keys(seen_set, &config, keys.as_ref());
    let segments = source.segments(manifest.next_segment);
    let decoded = State::decode(&state, seen_set, hosts, &config, source.on_disk(&segments));
    Ok(Some(Restored {
        state: decoded?,
        segments,
        keys,
        config,
        attachment: manifest.attachment.clone(),
        next_row: manifest.covered + 1,
        journal_bytes: 0,
        manifest,
    }))
}

/// Reads what a checkpoint consists of, and its configuration; `None` if there is none yet.
pub(crate) fn manifest(store: &dyn Store) -> Result<Option<(Manifest, FrontierConfig)>, OpenError> {
    let Some(manifest) = store.get(Space::Meta, MANIFEST)? else {
        return Ok(None);
    };
    let manifest: Manifest = postcard::from_bytes(&manifest).map_err(OpenError::damaged)?;
    if !manifest.has_possible_numbers() {
        return Err(OpenError::damaged("its numbers cannot be"));
    }
    let config = serde_json::from_str(&manifest.config).map_err(OpenError::damaged)?;
    Ok(Some((manifest, config)))
}

pub(super) fn rows_from(store: &SharedStore, first: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let store = store.lock();
    let mut rows = store.values(Space::Journal, first..=first.saturating_add(ROWS_AT_ONCE - 1))?;
    if rows.is_empty() {
        // Rows behind a gap are for the caller to complain about.
        let behind = store.last(Space::Journal, MAX_KEY)?;
        rows.extend(behind.filter(|(key, _)| *key >= first));
    }
    Ok(rows)
}

impl Manifest {
    fn has_possible_numbers(&self) -> bool {
        let parts = self.state_parts.checked_add(self.seen_set_parts);
        let parts = parts.and_then(|parts| parts.checked_add(self.host_parts));
        let longest = u64::from(u32::MAX >> 1);
        self.covered < MAX_KEY && self.generation <= LAST_GENERATION && parts.is_some_and(|parts| parts <= longest)
    }
}

impl Restored {
    /// Makes the calls of the journal again, up to a row. If it fails, some calls of the [next row](Self::next_row) may have been made.
    pub(crate) fn replay(&mut self, source: Source<'_>, last: u64, may_write: bool) -> Result<(), OpenError> {
        self.state.set_silent(true);
        while self.next_row <= last {
            let mut rows = rows_from(source.store, self.next_row)?;
            rows.retain(|(key, _)| *key <= last);
            if rows.is_empty() {
                break;
            }
            for (key, row) in rows {
                self.make_calls(key, &row, source.parse)?;
            }
            if may_write {
                self.write_segments(source)?;
            }
        }
        self.state.set_silent(false);
        Ok(())
    }

    /// Writes segments of the calls that were made again, if there are many. If this run ends before its first row, a later one removes
    /// them.
    fn write_segments(&self, source: Source<'_>) -> Result<(), StoreError> {
        if self.segments.fresh_bytes() < source.sizes.fresh_bytes {
            return Ok(());
        }
        let mut batch = Batch::default();
        self.segments.write(&mut batch);
        source.store.lock().commit(&batch, false)
    }
}

/// Reads the seen-set of a checkpoint.
fn seen_set(
    store: &dyn Store,
    manifest: &Manifest,
    config: &FrontierConfig,
    sizes: Sizes,
) -> Result<SeenSet, OpenError> {
    let most = manifest.seen_set_parts.saturating_mul(sizes.part_bytes as u64);
    let mut reader = PartsReader::new(parts(store, manifest.keys_of_seen_set()));
    read_seen_set(&mut reader, most, config)
}

/// Reads the state of a checkpoint, but for the seen-set and the hosts.
pub(crate) fn state(store: &dyn Store, manifest: &Manifest) -> Result<Vec<u8>, OpenError> {
    let parts = parts(store, manifest.keys_of_state());
    parts.collect::<Result<Vec<_>, _>>().map(|parts| parts.concat())
}

/// Reads the hosts of a checkpoint.
fn hosts(store: &dyn Store, manifest: &Manifest, parse: &ParseRules) -> Result<HostTable, OpenError> {
    let mut reader = HostReader::new(parse);
    for part in parts(store, manifest.keys_of_hosts()) {
        reader.read(&part?)?;
    }
    reader.finish()
}

/// Reads the hosts of a checkpoint up to the first part that is missing.
pub(crate) fn readable_hosts(store: &dyn Store, manifest: &Manifest, parse: &ParseRules) -> HostTable {
    let mut reader = HostReader::new(parse);
    let mut parts = parts(store, manifest.keys_of_hosts());
    let _ = parts.try_for_each(|part| reader.read(&part.ok()?).ok());
    reader.finish_anyway()
}
