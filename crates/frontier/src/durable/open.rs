//! Opening a directory: what it has is restored, or a new crawl begins.

use std::sync::Arc;

use sieve::Filter as _;

use super::checkpoint::LOGIC;
use super::keys::SharedKeys;
use super::restore::{Restored, restore};
use super::seen_set::with_keys;
use super::segments::SharedStore;
use super::sizes::Sizes;
use super::{Durable, Source, options};
use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::hosts::HostTable;
use crate::rules::ParseRules;
use crate::state::{Call, State, bloom_filter};
use crate::store::{Space, Store};
use crate::time::Time;

/// A state that was opened. `Opened` says what its fields are.
pub(crate) struct Opening {
    pub(crate) state: State,
    /// `None` if it was only read.
    pub(crate) durable: Option<Box<Durable>>,
    pub(crate) attachment: Vec<u8>,
    pub(crate) released: u64,
    pub(crate) for_new_links: Vec<&'static str>,
    pub(crate) now: Time,
    pub(crate) config: FrontierConfig,
}

/// Opens a store to continue, or begins one.
pub(crate) fn open(
    store: Box<dyn Store>,
    config: FrontierConfig,
    now: Time,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Opening, OpenError> {
    let config = config.with_shares()?;
    let store = &SharedStore::new(store);
    let source = Source { store, parse, sizes };
    let mut opening = match restore(source, true)? {
        Some(restored) => go_on(source, restored, config, now)?,
        None => begin(source, config, now)?,
    };
    if let Some(durable) = &mut opening.durable {
        // The first commit is synced: a power cut goes back to it with the attachment of this run, and not to what an earlier run has left.
        durable.sync_next();
    }
    Ok(opening)
}

/// Begins a crawl in an empty store.
fn begin(source: Source<'_>, config: FrontierConfig, now: Time) -> Result<Opening, OpenError> {
    let keys = || SharedKeys::new(source.store.clone(), source.sizes);
    let keys = config.seen_set.exact.then(keys);
    let segments = source.segments(0);
    let mut state = State::new(&config, with_keys(bloom_filter(&config)?, &config, keys.as_ref()))?;
    state.lie_on_disk(&config, HostTable::default(), source.on_disk(&segments))?;
    state.share_memory(source.sizes.resident_bytes);
    let mut durable = Durable::new(source, segments, keys, config.clone(), now);
    durable.write_checkpoint(&mut state, now)?;
    Ok(Opening {
        state,
        durable: Some(Box::new(durable)),
        attachment: Vec::new(),
        released: 0,
        for_new_links: Vec::new(),
        now,
        config,
    })
}

/// Continues a crawl, in this order: the configuration is compared, as the journal after it follows a checkpoint if it decides something else; the
/// state is read under the new one; the leases of the last run end by a call; what waits moves to where the new configuration has it, leases
/// included.
fn go_on(source: Source<'_>, mut restored: Restored, wanted: FrontierConfig, now: Time) -> Result<Opening, OpenError> {
    let config = options::next_run(&restored.config, wanted)?;
    let for_new_links = options::for_new_links(&restored.config, &config);
    let is_changed = config.what_decides() != restored.config.what_decides();
    // The calls from now on must not follow those of another version, or under another configuration: they follow a checkpoint.
    let needs_checkpoint = is_changed || restored.manifest.logic != LOGIC;
    // If the clock was set back, no host may be asked too early.
    let now = now.max(restored.state.latest());
    if is_changed {
        restored = under(restored, &config, source)?;
    }
    let (segments, keys) = (Arc::clone(&restored.segments), restored.keys.clone());
    let mut durable = Durable::new(source, segments, keys, config.clone(), now);
    durable.continue_from(&restored)?;
    let Restored {
        mut state, attachment, ..
    } = restored;
    durable.begins_with_checkpoint = needs_checkpoint;
    // The first commit of this run has it: a start that is refused before leaves the directory as it was, but for segments of a long replay.
    let released = durable.apply(&mut state, Call::ReleaseLeases, now)?.released;
    if is_changed {
        state.place_anew(&restored.config, &config, now);
    }
    Ok(Opening {
        state,
        durable: Some(Box::new(durable)),
        attachment,
        released,
        for_new_links,
        now,
        config,
    })
}

/// Reads the state under another configuration.
fn under(mut restored: Restored, config: &FrontierConfig, source: Source<'_>) -> Result<Restored, OpenError> {
    let mut state = restored.state;
    let encoded = state.encode().map_err(OpenError::damaged)?;
    let hosts = std::mem::take(state.host_table());
    let seen_set = match state.into_seen_set() {
        // It is stored by its configuration alone.
        empty if empty.load().ones == 0 => bloom_filter(config)?,
        used => used,
    };
    let seen_set = with_keys(seen_set, config, restored.keys.as_ref());
    let decoded = State::decode(&encoded, seen_set, hosts, config, source.on_disk(&restored.segments));
    restored.state = decoded?;
    restored.state.share_memory(source.sizes.resident_bytes);
    let ordered = restored.state.ordered().clone();
    let [before, after] = [&restored.config, config].map(|config| config.under(&ordered));
    restored.state.note_widened_limits(&before, &after)?;
    if config.freshness.keeps_fresh && !restored.config.freshness.keeps_fresh {
        restored.state.plan_from(restored.next_row);
    }
    Ok(restored)
}

/// Reads a store, and leaves it as it is.
pub(crate) fn read(store: Box<dyn Store>, parse: &ParseRules) -> Result<Opening, OpenError> {
    let store = &SharedStore::new(store);
    let restored = restore(Source::new(store, parse), false)?.ok_or_else(|| no_checkpoint(store))?;
    Ok(Opening {
        now: restored.state.latest(),
        state: restored.state,
        durable: None,
        attachment: restored.attachment,
        released: 0,
        for_new_links: Vec::new(),
        config: restored.config,
    })
}

/// Says why a store has no checkpoint. The first commit has the first one.
pub(crate) fn no_checkpoint(store: &SharedStore) -> OpenError {
    if is_empty(&**store.lock()) {
        OpenError::NotBegun
    } else {
        OpenError::damaged("it has no checkpoint")
    }
}

fn is_empty(store: &dyn Store) -> bool {
    Space::ALL.iter().all(|space| store.last_key(*space).is_none())
}
