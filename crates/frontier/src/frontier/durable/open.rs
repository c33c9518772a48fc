//! Opening a directory: the checkpoint, then the calls of the journal.

use std::sync::Arc;

use sieve::OnSaturation;

use super::super::{Frontier, FrontierError, bloom_filter};
use super::checkpoint::{LOGIC, MANIFEST, Manifest, SIZES, Sizes};
use super::keys::SharedKeys;
use super::shelf::{SharedStore, StoreShelf};
use super::state::{EncodedState, StateError, decode_seen_set, with_keys};
use super::{Durable, options};
use crate::config::{ConfigError, FrontierConfig};
use crate::hosts::{HostReader, HostTable, HostsError};
use crate::rules::ParseRules;
use crate::store::{Batch, MAX_KEY, Space, Store, StoreError};
use crate::time::Time;

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An option differs from that of the first run, and the state depends on it.
    #[error(
        "the crawl was begun with {option} {was}, which cannot become {wanted}: give the same again, or another directory"
    )]
    Changed {
        /// The option.
        option: &'static str,
        /// Its value in the first run.
        was: String,
        /// Its value now.
        wanted: String,
    },
    /// The journal was written by a version of this crate that decides differently.
    #[error(
        "the crawl was interrupted under another version of this program (logic {found}, this one has {supported}): let that version \
         open and close it once"
    )]
    OtherLogic {
        /// The version that wrote the journal.
        found: u32,
        /// The version of this crate.
        supported: u32,
    },
    /// What was read is not what was written.
    #[error("the state of the crawl is damaged: {0}. Restore the directory from a copy, or start again in another one")]
    Damaged(String),
    /// The frontier that was read cannot be changed or saved.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl From<StateError> for OpenError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Config(error) => Self::Config(error),
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// A frontier that was opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The frontier.
    pub frontier: Frontier,
    /// The caller's own text of the last [`persist`](Frontier::persist); `None` for a new directory.
    pub attachment: Option<Vec<u8>>,
    /// Entries that were in flight when the last run ended, and are queued again. 0 when only [read](Frontier::read).
    pub released: u64,
    /// The time of opening, or the latest time of the last run if that is later: the clock was set back. Later calls must not be earlier.
    pub now: Time,
    /// The configuration, with the secret of the hash.
    pub config: FrontierConfig,
}

/// The rows of the journal that are read at once.
const ROWS_AT_ONCE: u64 = 64;

/// What was read of a store.
pub(super) struct Restored {
    pub(super) frontier: Frontier,
    pub(super) shelf: Arc<StoreShelf>,
    pub(super) config: FrontierConfig,
    pub(super) manifest: Manifest,
    pub(super) attachment: Vec<u8>,
    pub(super) next_row: u64,
    pub(super) journal_bytes: u64,
    checkpoint_bytes: u64,
}

/// Returns a row of the journal.
pub(super) fn row(attachment: &[u8], calls: &[u8]) -> Result<Vec<u8>, postcard::Error> {
    let mut row = postcard::to_allocvec(serde_bytes::Bytes::new(attachment))?;
    row.extend_from_slice(calls);
    Ok(row)
}

/// Opens a store to continue, or begins one.
pub(super) fn open(
    store: Box<dyn Store>,
    config: FrontierConfig,
    now: Time,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Opened, OpenError> {
    let config = config.with_shares()?;
    let store = SharedStore::new(store);
    let Some(restored) = restore(&store, parse, sizes, true)? else {
        let fresh = Frontier::with_seen_set(config.clone(), bloom_filter(&config)?)?;
        let keys = stores_keys(&config).then(|| SharedKeys::new(store.clone(), looks_up(&config), sizes.keys));
        open_spool(keys.as_ref(), &config)?;
        let state = fresh.encode_without_seen_set(0)?;
        let seen_set = with_keys(bloom_filter(&config)?, &config, keys);
        let empty = HostTable::default();
        let (mut frontier, shelf) =
            Frontier::decode_state(&state, seen_set, empty, &config, parse, &store, sizes.rows)?;
        frontier.share_memory(&config, sizes);
        frontier.durable = Some(Box::new(Durable::new(store, shelf, config.clone(), now, sizes)));
        frontier.checkpoint_saved(now)?;
        return Ok(Opened {
            frontier,
            attachment: None,
            released: 0,
            now,
            config,
        });
    };
    let config = options::next_run(&restored.config, config)?;
    // Where hosts lie decides nothing.
    let is_changed = config.without_memory() != restored.config.without_memory();
    // The calls from now on must not follow those of another version, or under another configuration: they follow a checkpoint.
    let needs_checkpoint = is_changed || restored.manifest.logic != LOGIC;
    let (mut frontier, mut shelf) = (restored.frontier, restored.shelf);
    // If the clock was set back, no host may be asked too early.
    let now = now.max(frontier.latest);
    if is_changed {
        let state = frontier.encode_state(shelf.next())?;
        let hosts = std::mem::take(frontier.hosts().table_mut());
        let before = shelf;
        let keys = frontier.sieve.filter().keys().cloned();
        let seen_set = decode_seen_set(&state.seen_set, &config, keys)?;
        (frontier, shelf) = Frontier::decode_state(&state.state, seen_set, hosts, &config, parse, &store, sizes.rows)?;
        shelf.continue_from(&before);
        frontier.share_memory(&config, sizes);
    }
    let mut durable = Durable::new(store, shelf, config.clone(), now, sizes);
    durable.next_row = restored.next_row;
    durable.attachment.clone_from(&restored.attachment);
    durable
        .checkpointer
        .resume(&restored.manifest, restored.checkpoint_bytes, restored.journal_bytes);
    let released;
    if needs_checkpoint {
        released = frontier.release_leases(now)?;
        if is_changed {
            frontier.hosts().place_anew(&restored.config, &config, now);
        }
        frontier.durable = Some(Box::new(durable));
        // No row may come before it, not even one with links to recall.
        frontier.checkpoint_saved(now)?;
    } else {
        frontier.durable = Some(Box::new(durable));
        released = frontier.release_leases(now)?;
        frontier.persist(&restored.attachment, now)?;
    }
    Ok(Opened {
        frontier,
        attachment: Some(restored.attachment),
        released,
        now,
        config,
    })
}

/// Reads a store, and leaves it as it is.
pub(super) fn read(store: Box<dyn Store>, parse: &ParseRules) -> Result<Opened, OpenError> {
    let restored = restore(&SharedStore::new(store), parse, SIZES, false)?;
    let restored = restored.ok_or_else(|| OpenError::Damaged("it has no checkpoint".to_owned()))?;
    Ok(Opened {
        now: restored.frontier.latest,
        frontier: restored.frontier,
        attachment: Some(restored.attachment),
        released: 0,
        config: restored.config,
    })
}

/// Restores the frontier of a store; `None` if there is none yet. If it may write, it writes what no checkpoint needs.
pub(super) fn restore(
    shared: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    may_write: bool,
) -> Result<Option<Restored>, OpenError> {
    let Some(mut restored) = restore_checkpoint(shared, parse, sizes)? else {
        return Ok(None);
    };
    if may_write {
        restored.shelf.continue_removal()?;
        restored.frontier.share_memory(&restored.config, sizes);
    }
    restored.frontier.sieve.set_silent(true);
    loop {
        let rows = rows_from(shared, restored.next_row)?;
        if rows.is_empty() {
            break;
        }
        for (key, row) in rows {
            restored.make_calls(key, &row, parse)?;
        }
        if may_write {
            restored.write_segments(shared, sizes)?;
        }
    }
    restored.frontier.sieve.set_silent(false);
    if let Some(keys) = restored.frontier.sieve.filter().keys() {
        keys.lock().journal_has_ended();
        open_spool(Some(keys), &restored.config)?;
    }
    Ok(Some(restored))
}

/// Returns whether a frontier stores the digests of its keys: to look them up, or to build a larger filter of them.
pub(super) fn stores_keys(config: &FrontierConfig) -> bool {
    looks_up(config) || config.on_saturation == OnSaturation::Grow
}

/// Returns whether digests are looked up: what the filter takes for seen, at once or later.
pub(super) fn looks_up(config: &FrontierConfig) -> bool {
    config.exact || config.recall
}

/// Opens the spool of what is looked up later. No replay adds to it.
fn open_spool(keys: Option<&SharedKeys>, config: &FrontierConfig) -> Result<(), StoreError> {
    match keys {
        Some(keys) if config.recall && !config.exact => keys.lock().open_spool(),
        _ => Ok(()),
    }
}

/// Restores the frontier as it was at the checkpoint.
pub(super) fn restore_checkpoint(
    shared: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Option<Restored>, OpenError> {
    let store = shared.lock();
    let Some((manifest, config)) = manifest(&**store)? else {
        return Ok(None);
    };
    let state = EncodedState {
        state: parts(&**store, &manifest, 0, manifest.state_parts)?,
        seen_set: parts(&**store, &manifest, manifest.state_parts, manifest.seen_set_parts)?,
    };
    let hosts = hosts(&**store, &manifest, parse)?;
    // The calls of the journal read segments and keys.
    drop(store);
    let keys =
        stores_keys(&config).then(|| SharedKeys::load(shared.clone(), looks_up(&config), sizes.keys, manifest.covered));
    let keys = keys.transpose()?;
    let restored = Restored::at_checkpoint(&state, hosts, (config, manifest), parse, shared, keys, sizes)?;
    Ok(Some(restored))
}

/// Reads what a checkpoint consists of, and its configuration; `None` if there is none yet.
pub(super) fn manifest(store: &dyn Store) -> Result<Option<(Manifest, FrontierConfig)>, OpenError> {
    let Some((_, manifest)) = store.last(Space::Meta, MANIFEST)? else {
        return Ok(None);
    };
    let damaged = |what: &dyn std::fmt::Display| OpenError::Damaged(what.to_string());
    let manifest: Manifest = postcard::from_bytes(&manifest).map_err(|error| damaged(&error))?;
    if !manifest.has_possible_numbers() {
        return Err(damaged(&"its numbers cannot be"));
    }
    let config = serde_json::from_str(&manifest.config).map_err(|error| damaged(&error))?;
    Ok(Some((manifest, config)))
}

impl Restored {
    /// Reads the state of a checkpoint.
    pub(super) fn at_checkpoint(
        state: &EncodedState,
        (hosts, host_bytes): (HostTable, u64),
        (config, manifest): (FrontierConfig, Manifest),
        parse: &ParseRules,
        store: &SharedStore,
        keys: Option<SharedKeys>,
        sizes: Sizes,
    ) -> Result<Self, OpenError> {
        let seen_set = decode_seen_set(&state.seen_set, &config, keys)?;
        let (frontier, shelf) =
            Frontier::decode_state(&state.state, seen_set, hosts, &config, parse, store, sizes.rows)?;
        Ok(Self {
            frontier,
            shelf,
            config,
            attachment: manifest.attachment.clone(),
            next_row: manifest.covered + 1,
            journal_bytes: 0,
            checkpoint_bytes: state.bytes() + host_bytes,
            manifest,
        })
    }
}

/// Returns some rows of the journal from `first` on; none at its end.
pub(super) fn rows_from(store: &SharedStore, first: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let store = store.lock();
    let mut rows = Vec::new();
    let mut take = |key, row| {
        rows.push((key, row));
        Ok(())
    };
    store.range(
        Space::Journal,
        first..=first.saturating_add(ROWS_AT_ONCE - 1),
        &mut take,
    )?;
    if rows.is_empty() {
        // Rows behind a gap are for the caller to complain about.
        let behind = store.last(Space::Journal, MAX_KEY)?;
        rows.extend(behind.filter(|(key, _)| *key >= first));
    }
    Ok(rows)
}

impl Manifest {
    /// Returns whether all keys are possible that are made of its numbers, and of those that follow.
    fn has_possible_numbers(&self) -> bool {
        let parts = self.state_parts.checked_add(self.seen_set_parts);
        let parts = parts.and_then(|parts| parts.checked_add(self.host_parts));
        let longest = u64::from(u32::MAX);
        self.covered < MAX_KEY && self.generation < MAX_KEY >> 32 && parts.is_some_and(|parts| parts <= longest)
    }
}

impl Restored {
    /// Writes segments of the calls that were made again, if there are many. If this run ends before its first row, the next one removes
    /// them.
    fn write_segments(&self, store: &SharedStore, sizes: Sizes) -> Result<(), StoreError> {
        if self.shelf.fresh_bytes() < sizes.fresh_bytes {
            return Ok(());
        }
        let mut batch = Batch::default();
        self.shelf.write(&mut batch);
        store.lock().commit(&batch, false)
    }
}

/// Joins parts of a checkpoint.
pub(super) fn parts(store: &dyn Store, manifest: &Manifest, first: u64, count: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    visit_parts(store, manifest, first, count, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

/// Reads the hosts of a checkpoint, and returns their bytes, too.
pub(super) fn hosts(store: &dyn Store, manifest: &Manifest, parse: &ParseRules) -> Result<(HostTable, u64), OpenError> {
    let mut reader = HostReader::new(parse);
    let mut bytes = 0;
    let first = manifest.state_parts + manifest.seen_set_parts;
    visit_parts(store, manifest, first, manifest.host_parts, &mut |part| {
        bytes += part.len() as u64;
        reader.read(part)
    })?;
    let hosts = reader.finish().map_err(StateError::from)?;
    Ok((hosts, bytes))
}

/// Visits parts of a checkpoint.
fn visit_parts(
    store: &dyn Store,
    manifest: &Manifest,
    first: u64,
    count: u64,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), HostsError>,
) -> Result<(), OpenError> {
    let Some(last) = count.checked_sub(1) else {
        return Ok(());
    };
    let key = |part| Manifest::key(manifest.generation, part);
    let mut next = key(first);
    let mut visited = Ok(());
    store.range(Space::Checkpoint, key(first)..=key(first + last), &mut |at, part| {
        if at == next && visited.is_ok() {
            visited = visit(&part);
            next += 1;
        }
        Ok(())
    })?;
    visited.map_err(StateError::from)?;
    if next == key(first + count) {
        Ok(())
    } else {
        Err(OpenError::Damaged("a part of the checkpoint is missing".to_owned()))
    }
}

#[cfg(fuzzing)]
impl Restored {
    /// A frontier without a journal.
    pub(super) fn of(frontier: Frontier, config: FrontierConfig, store: SharedStore) -> Self {
        let manifest = Manifest {
            logic: LOGIC,
            config: String::new(),
            generation: 0,
            covered: 0,
            state_parts: 0,
            seen_set_parts: 0,
            host_parts: 0,
            attachment: Vec::new(),
        };
        Self {
            frontier,
            shelf: Arc::new(StoreShelf::new(store, 0)),
            config,
            manifest,
            attachment: Vec::new(),
            next_row: 1,
            journal_bytes: 0,
            checkpoint_bytes: 0,
        }
    }

    pub(super) fn into_frontier(self) -> Frontier {
        self.frontier
    }
}
