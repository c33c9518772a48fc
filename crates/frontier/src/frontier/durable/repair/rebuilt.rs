//! A seen-set, or the digests of its keys, made anew: every key that was accepted waits, is in flight, was dropped, or has a record.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sieve::{Filter as _, SeenSet};

use super::super::error::OpenError;
use super::super::keys::{self, SharedKeys};
use super::super::parts;
use super::super::record;
use super::super::restore::{self, Restored};
use super::super::shelf::SharedStore;
use super::super::sizes::Sizes;
use super::{Frontier, found};
use crate::config::FrontierConfig;
use crate::entry::{Entry, Purpose};
use crate::frontier::bloom_filter;
use crate::rules::ParseRules;
use crate::store::{Batch, Space};

/// Returns the state and the seen-set of a frontier that has met nothing.
pub(super) fn empty_state(config: &FrontierConfig) -> Result<(Vec<u8>, SeenSet), OpenError> {
    let frontier = Frontier::with_seen_set(config.clone(), bloom_filter(config)?)?;
    Ok((
        frontier.encode_without_seen_set(u64::MAX / 2)?,
        frontier.into_seen_set(),
    ))
}

/// Restores the state at the checkpoint, with digests that are made anew; `None` if more is missing.
pub(super) fn with_new_keys(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    has_records: bool,
) -> Result<Option<Restored>, OpenError> {
    restore(store, parse, sizes, has_records, false)
}

/// Restores the state at the checkpoint, with a seen-set that is made anew; `None` if more is missing.
pub(super) fn with_new_seen_set(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    has_records: bool,
) -> Result<Option<Restored>, OpenError> {
    restore(store, parse, sizes, has_records, true)
}

fn restore(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    has_records: bool,
    has_new_filter: bool,
) -> Result<Option<Restored>, OpenError> {
    let guard = store.lock();
    let Some((manifest, config)) = found(restore::manifest(&**guard))?.flatten().filter(|_| has_records) else {
        return Ok(None);
    };
    let seen_set = match has_new_filter {
        true => Some(bloom_filter(&config)?),
        false => found(restore::seen_set(&**guard, &manifest, &config, sizes))?,
    };
    let state = found(parts::parts(&**guard, &manifest, 0, manifest.state_parts))?;
    let hosts = found(restore::hosts(&**guard, &manifest, parse))?;
    drop(guard);
    let (Some(state), Some(seen_set), Some(hosts)) = (state, seen_set, hosts) else {
        return Ok(None);
    };
    let restored = Restored::at_checkpoint(&state, (seen_set, None), hosts, (config, manifest), parse, store, sizes);
    let Some(mut restored) = found(restored)? else {
        return Ok(None);
    };
    let accepted = accepted(&mut restored, store)?;
    let config = restored.config.clone();
    let keys = || SharedKeys::new(store.clone(), restore::looks_up(&config), sizes.keys);
    let keys = restore::stores_keys(&config).then(keys);
    restored.frontier.sieve.reshape_filter(|seen, _| {
        let mut digests = HashSet::new();
        for key in &accepted {
            let digest = seen.digest(key.as_bytes());
            if has_new_filter {
                seen.insert_digest(key.as_bytes(), digest);
            }
            if digests.insert(u128::from(digest))
                && let Some(keys) = &keys
            {
                keys.lock().add(digest.into());
            }
        }
        if let Some(keys) = keys {
            seen.set_keys(keys, &config);
        }
    });
    let mut batch = Batch::default();
    keys::remove_all(&mut batch);
    store.lock().commit(&batch, false)?;
    Ok(Some(restored))
}

/// Returns all keys that were accepted up to the checkpoint.
fn accepted(restored: &mut Restored, store: &SharedStore) -> Result<HashSet<Box<str>>, OpenError> {
    let mut accepted = HashSet::new();
    let mut add = |entry: Entry| {
        if entry.purpose == Purpose::Page {
            accepted.insert(entry.key().into());
        }
    };
    let frontier = &mut restored.frontier;
    for leased in frontier.leases.values() {
        add(leased.entry.clone());
    }
    frontier.hosts().visit_dropped(&mut add);
    // A segment that is missing is dropped later, and its keys are forgotten, so that its pages can be found again.
    let _ = frontier.visit_waiting(&mut |entry| {
        add(entry);
        ControlFlow::Continue(())
    });
    let _ = restored.shelf.error();
    let covered = restored.manifest.covered;
    store.lock().range(Space::Record, 0..=covered, &mut |_, row| {
        let _ = record::visit_row(&row, &mut |record| {
            accepted.insert(record.key.as_deref().unwrap_or(&record.url).into());
        });
        Ok(())
    })?;
    Ok(accepted)
}
