//! Opening a directory: what it has is restored, or a new crawl begins.

use super::super::{Frontier, bloom_filter};
use super::checkpoint::LOGIC;
use super::error::OpenError;
use super::keys::SharedKeys;
use super::restore::{Restored, restore};
use super::seen_set::with_keys;
use super::shelf::SharedStore;
use super::sizes::{SIZES, Sizes};
use super::{Durable, options};
use crate::config::FrontierConfig;
use crate::hosts::HostTable;
use crate::rules::ParseRules;
use crate::store::{Space, Store};
use crate::time::Time;

/// A frontier that was opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The frontier.
    pub frontier: Frontier,
    /// The caller's own text of the last [`persist`](Frontier::persist); `None` for a new directory.
    pub attachment: Option<Vec<u8>>,
    /// Entries that were in flight when the last run ended, and are queued again. 0 when only read.
    pub released: u64,
    /// Options of the scope that differ from those of the last run: they hold for links from now on. What is queued is not checked again, and what was refused is not looked at again.
    pub for_new_links: Vec<&'static str>,
    /// The time of opening, or the latest time of the last run if that is later: the clock was set back. Later calls must not be earlier.
    pub now: Time,
    /// The configuration, with the secret of the hash.
    pub config: FrontierConfig,
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
    match restore(&store, parse, sizes, true)? {
        Some(restored) => go_on(store, restored, config, now, parse, sizes),
        None => begin(store, config, now, parse, sizes),
    }
}

/// Begins a crawl in an empty store.
fn begin(
    store: SharedStore,
    config: FrontierConfig,
    now: Time,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Opened, OpenError> {
    let fresh = Frontier::with_seen_set(config.clone(), bloom_filter(&config)?)?;
    let keys = config.exact.then(|| SharedKeys::new(store.clone(), sizes.keys));
    let state = fresh.encode_without_seen_set(0)?;
    let seen_set = with_keys(fresh.into_seen_set(), &config, keys);
    let empty = HostTable::default();
    let (mut frontier, shelf) = Frontier::decode_state(&state, seen_set, empty, &config, parse, &store, sizes)?;
    frontier.share_memory(&config, sizes);
    frontier.durable = Some(Box::new(Durable::new(store, shelf, config.clone(), now, sizes)));
    frontier.checkpoint_saved(now)?;
    Ok(Opened {
        frontier,
        attachment: None,
        released: 0,
        for_new_links: Vec::new(),
        now,
        config,
    })
}

/// Continues a crawl.
fn go_on(
    store: SharedStore,
    mut restored: Restored,
    wanted: FrontierConfig,
    now: Time,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Opened, OpenError> {
    let config = options::next_run(&restored.config, wanted)?;
    let for_new_links = options::for_new_links(&restored.config, &config);
    // Where hosts lie decides nothing.
    let is_changed = config.without_memory() != restored.config.without_memory();
    // The calls from now on must not follow those of another version, or under another configuration: they follow a checkpoint.
    let needs_checkpoint = is_changed || restored.manifest.logic != LOGIC;
    // If the clock was set back, no host may be asked too early.
    let now = now.max(restored.frontier.latest);
    if is_changed {
        restored = under(restored, &config, parse, &store, sizes)?;
    }
    let Restored {
        mut frontier, shelf, ..
    } = restored;
    let last_part = store.lock().last_key(Space::Checkpoint);
    let mut durable = Durable::new(store, shelf, config.clone(), now, sizes);
    durable.next_row = restored.next_row;
    durable.attachment.clone_from(&restored.attachment);
    durable
        .checkpointer
        .resume(&restored.manifest, restored.journal_bytes, last_part);
    let released;
    if needs_checkpoint {
        released = frontier.release_leases(now)?;
        if is_changed {
            frontier.hosts().place_anew(&restored.config, &config, now);
        }
        frontier.durable = Some(Box::new(durable));
        // No row may come before it.
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
        for_new_links,
        now,
        config,
    })
}

/// Reads the state under another configuration.
fn under(
    mut restored: Restored,
    config: &FrontierConfig,
    parse: &ParseRules,
    store: &SharedStore,
    sizes: Sizes,
) -> Result<Restored, OpenError> {
    let mut frontier = restored.frontier;
    let state = frontier.encode_without_seen_set(restored.shelf.next())?;
    let hosts = std::mem::take(frontier.hosts().table_mut());
    let keys = frontier.sieve.filter().keys().cloned();
    let seen_set = with_keys(frontier.into_seen_set(), config, keys);
    let (mut frontier, shelf) = Frontier::decode_state(&state, seen_set, hosts, config, parse, store, sizes)?;
    shelf.continue_from(&restored.shelf);
    frontier.share_memory(config, sizes);
    frontier.note_widened_limits(&restored.config, config)?;
    (restored.frontier, restored.shelf) = (frontier, shelf);
    Ok(restored)
}

/// Reads a store, and leaves it as it is.
pub(super) fn read(store: Box<dyn Store>, parse: &ParseRules) -> Result<Opened, OpenError> {
    let store = SharedStore::new(store);
    let restored = restore(&store, parse, SIZES, false)?.ok_or_else(|| no_checkpoint(&store))?;
    Ok(Opened {
        now: restored.frontier.latest,
        frontier: restored.frontier,
        attachment: Some(restored.attachment),
        released: 0,
        for_new_links: Vec::new(),
        config: restored.config,
    })
}

/// Says why a store has no checkpoint. The first commit has the first one.
pub(super) fn no_checkpoint(store: &SharedStore) -> OpenError {
    if is_empty(&**store.lock()) {
        OpenError::NotBegun
    } else {
        OpenError::Damaged("it has no checkpoint".to_owned())
    }
}

fn is_empty(store: &dyn Store) -> bool {
    Space::ALL.iter().all(|space| store.last_key(*space).is_none())
}
