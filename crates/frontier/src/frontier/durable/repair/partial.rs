//! A checkpoint of which parts are missing.

use std::ops::{ControlFlow, Range};

use super::super::checkpoint::Manifest;
use super::super::error::OpenError;
use super::super::keys::SharedKeys;
use super::super::parts;
use super::super::restore::{self, Restored};
use super::super::shelf::SharedStore;
use super::super::sizes::Sizes;
use super::journal::put_rest_out;
use super::{PutOut, RepairReport, Salvaged, found, rebuilt};
use crate::config::FrontierConfig;
use crate::hosts::{HostReader, HostTable, names_of};
use crate::rules::ParseRules;
use crate::store::{Space, Store};

/// Restores the state at the checkpoint without the hosts that are missing; `None` if more is missing than hosts.
pub(super) fn restore_hosts(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Option<Restored>, OpenError> {
    let guard = store.lock();
    let Some((manifest, config)) = restore::manifest(&**guard)? else {
        return Ok(None);
    };
    let state = found(parts::parts(&**guard, &manifest, 0, manifest.state_parts))?;
    let seen_set = found(restore::seen_set(&**guard, &manifest, &config, sizes))?;
    let (Some(state), Some(seen_set)) = (state, seen_set) else {
        return Ok(None);
    };
    let hosts = whole_hosts(&**guard, &manifest, parse)?;
    drop(guard);
    let keys = restore::stores_keys(&config)
        .then(|| SharedKeys::load(store.clone(), restore::looks_up(&config), sizes.keys, manifest.covered))
        .transpose()?;
    let restored = Restored::at_checkpoint(&state, (seen_set, keys), hosts, (config, manifest), parse, store, sizes);
    let restored = found(restored)?;
    if let Some(restored) = &restored
        && let Some(keys) = restored.frontier.sieve.filter().keys()
    {
        keys.lock().journal_has_ended();
    }
    Ok(restored)
}

/// Returns the hosts of a checkpoint that are whole. What an earlier copy has of a host that a missing part had is dropped, too: since then,
/// pages of it have ended.
fn whole_hosts(store: &dyn Store, manifest: &Manifest, parse: &ParseRules) -> Result<HostTable, OpenError> {
    let (mut hosts, mut longest) = (HostReader::new(parse), 0);
    let first = manifest
        .hosts()
        .next()
        .map_or(0, |copy| Manifest::key(copy.generation, 0));
    let last = manifest.hosts().last().map_or(0, |copy| copy.keys().end);
    store.range(Space::Checkpoint, first..=last, &mut |_, part| {
        longest = longest.max(part.len());
        Ok(())
    })?;
    for (at, copy) in manifest.hosts().enumerate() {
        if at > 0 {
            hosts.next_copy_with_gaps();
        }
        let is_whole = read_copy(store, copy.keys(), longest, &mut hosts)?;
        if at > 0 && !is_whole {
            let names = found(parts::joined(store, copy.keys_of_names()))?;
            hosts.drop_older(names.and_then(|names| names_of(&names)).as_ref());
        }
    }
    Ok(hosts.finish_with_gaps())
}

/// Reads a copy with gaps, of which the longest part has `longest` bytes. Returns whether there are none.
///
/// The parts lie one after the other, without regard to where a host begins. Those that were written at once end with a part that is
/// shorter, and the next part begins with a host: there reading continues after a gap.
fn read_copy(
    store: &dyn Store,
    keys: Range<u64>,
    longest: usize,
    hosts: &mut HostReader<'_>,
) -> Result<bool, OpenError> {
    if keys.is_empty() {
        return Ok(true);
    }
    let mut run = Vec::new();
    let (mut next, mut begins_with_host, mut is_whole) = (keys.start, true, true);
    store.range(Space::Checkpoint, keys.start..=keys.end - 1, &mut |at, part| {
        if at != next {
            take_whole(&mut run, hosts);
            (begins_with_host, is_whole) = (false, false);
        }
        next = at + 1;
        let is_short = part.len() < longest;
        if begins_with_host {
            run.extend_from_slice(&part);
        }
        if is_short {
            is_whole &= take_whole(&mut run, hosts);
            begins_with_host = true;
        }
        Ok(())
    })?;
    is_whole &= take_whole(&mut run, hosts);
    Ok(is_whole && next == keys.end)
}

/// Moves the hosts that are whole, and drops the rest. Returns whether there is none.
fn take_whole(run: &mut Vec<u8>, hosts: &mut HostReader<'_>) -> bool {
    let is_whole = hosts.read_between_gaps(run);
    run.clear();
    is_whole
}

/// Hands out all records, and all URLs that wait, as far as they can be read.
pub(super) fn put_all_out(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    report: &mut RepairReport,
    put_out: &mut PutOut<'_>,
) -> Result<(), OpenError> {
    let manifest = found(restore::manifest(&**store.lock()))?.flatten();
    if let Some((manifest, config)) = manifest
        && let Some(mut restored) = without_seen_set(store, &manifest, &config, parse, sizes)?
    {
        let frontier = &mut restored.frontier;
        let leased: Vec<_> = frontier.leases.drain().map(|(_, leased)| leased.entry).collect();
        let mut visit = |entry| {
            report.urls_put_out += 1;
            put_out(Salvaged::Waiting(entry));
            ControlFlow::Continue(())
        };
        let _ = leased.into_iter().try_for_each(&mut visit);
        // A segment that is missing is no obstacle here.
        let _ = frontier.visit_waiting(&mut visit);
    }
    put_rest_out(store, 0, report, put_out)
}

/// Restores the frontier of a checkpoint with an empty seen-set: good enough to see what waits.
fn without_seen_set(
    store: &SharedStore,
    manifest: &Manifest,
    config: &FrontierConfig,
    parse: &ParseRules,
    sizes: Sizes,
) -> Result<Option<Restored>, OpenError> {
    let hosts = || whole_hosts(&**store.lock(), manifest, parse);
    let (nothing, seen_set) = rebuilt::empty_state(config)?;
    let state = found(parts::parts(&**store.lock(), manifest, 0, manifest.state_parts))?;
    let at_checkpoint = |state: &[u8], seen_set, hosts| {
        let of_store = (config.clone(), manifest.clone());
        found(Restored::at_checkpoint(
            state,
            (seen_set, None),
            hosts,
            of_store,
            parse,
            store,
            sizes,
        ))
    };
    if let Some(state) = state
        && let Some(restored) = at_checkpoint(&state, seen_set.clone(), hosts()?)?
    {
        return Ok(Some(restored));
    }
    at_checkpoint(&nothing, seen_set, hosts()?)
}
