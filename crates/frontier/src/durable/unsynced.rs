//! What a power cut may take from a program's outputs, though not from the directory: the way back to the last sync.
//!
//! Each synced commit states the last row that it has. A checkpoint counts from a synced commit on, so that checkpoint and journal make the
//! state of this row again, whatever has come since: to go back to it, later rows are removed.

use serde::{Deserialize, Serialize};

use super::journal;
use super::restore::manifest;
use crate::error::OpenError;
use crate::store::{Batch, MAX_KEY, Space, Store, system_start};

/// The key of the last row that was synced, in [`Space::Meta`].
const SYNCED: u64 = 3;

/// What a synced commit states.
#[derive(Debug, Serialize, Deserialize)]
struct Synced {
    row: u64,
    system_start: Option<String>,
}

/// The commits since the last synced one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsynced {
    /// How many rows they have.
    pub commits: u64,
    /// The caller's own text of the last one.
    pub attachment: Vec<u8>,
    /// Whether the system was started anew since the last sync. Then files that were not synced may lack anything, also in their middle.
    /// `false` where that is not known: it is on Linux.
    pub is_system_restarted: bool,
}

pub(crate) fn state_last_row(batch: &mut Batch, row: u64) -> Result<(), postcard::Error> {
    let synced = Synced {
        row,
        system_start: system_start().map(str::to_owned),
    };
    batch.put(Space::Meta, SYNCED, postcard::to_allocvec(&synced)?);
    Ok(())
}

fn stated(store: &dyn Store) -> Result<Option<Synced>, OpenError> {
    let synced = store.get(Space::Meta, SYNCED)?;
    let synced = synced.map(|synced| postcard::from_bytes(&synced));
    synced.transpose().map_err(OpenError::damaged)
}

pub(crate) fn stated_row(store: &dyn Store) -> Option<u64> {
    Some(stated(store).ok()??.row)
}

/// `None` if there are none, or there is no frontier.
pub(crate) fn unsynced(store: &dyn Store) -> Result<Option<Unsynced>, OpenError> {
    let Some((manifest, _)) = manifest(store)? else {
        return Ok(None);
    };
    let synced = stated(store)?.ok_or_else(|| OpenError::damaged("it does not say what was synced"))?;
    if synced.row < manifest.covered {
        return Err(OpenError::damaged("its checkpoint was not synced"));
    }
    let row = store.last(Space::Journal, MAX_KEY)?;
    let Some((last, row)) = row.filter(|(last, _)| *last > synced.row) else {
        return Ok(None);
    };
    let (attachment, _) = journal::split(&row).map_err(OpenError::damaged)?;
    Ok(Some(Unsynced {
        commits: last - synced.row,
        attachment: attachment.to_vec(),
        is_system_restarted: synced
            .system_start
            .is_some_and(|then| system_start().is_some_and(|now| then != now)),
    }))
}

/// Removes the rows since the last synced commit. Returns how many there were.
pub(crate) fn discard(store: &mut dyn Store) -> Result<u64, OpenError> {
    let Some(unsynced) = unsynced(store)? else {
        return Ok(0);
    };
    let last = store.last_key(Space::Journal).unwrap_or_default();
    let mut batch = Batch::default();
    for space in [Space::Journal, Space::Record] {
        batch.delete(space, last - unsynced.commits + 1..=MAX_KEY);
    }
    store.commit(&batch, true)?;
    Ok(unsynced.commits)
}
