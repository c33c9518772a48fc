//! The ways back to an earlier state: to the last sync, and to the last checkpoint.
//!
//! ```text
//! rows of the journal:   checkpoint ≤ … ≤ last synced row ≤ … ≤ last row
//!                            │                  └─ discard_unsynced: what is behind it goes
//!                            └─ discard_other_logic: what is behind it goes
//! ```
//!
//! * **To the last sync**, after a power cut, which may take from a program's outputs what the directory still has. Each synced commit states its
//!   last row. A checkpoint replaces the one before in a synced commit only, so it is never of a later row than that.
//! * **To the checkpoint**, of a directory of another version of this crate (`LOGIC`): the calls of its journal might do something else here, so
//!   they are not made again. A checkpoint is a state, which both versions read.
//!
//! `directory.rs` has both for the caller, who cuts the outputs back with them; `directory/repair.rs` removes what is behind a damaged row.

use super::checkpoint::LOGIC;
use super::restore::manifest;
use super::{journal, options, pages};
use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::store::{Batch, MAX_KEY, Space, Store, system_start};

/// The key of the last row that was synced, in [`Space::Meta`].
const SYNCED: u64 = 3;

/// What a synced commit states: its last row, and the start of the system that it was made on. It is stored: with another form, `VERSION` of
/// `sqlite/format.rs` goes up.
type Synced = (u64, Option<String>);

/// The commits since the last synced one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsynced {
    /// How many rows they have.
    pub commits: u64,
    /// The caller's own text of the last one; empty if there was none yet.
    pub attachment: Vec<u8>,
    /// Whether the system was started anew since the last sync. Then files that were not synced may lack anything, also in their middle.
    /// `false` where that is not known: it is on Linux.
    pub is_system_restarted: bool,
}

/// The commits since the last checkpoint, by a version of this crate that decides differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherLogic {
    /// How many they are.
    pub commits: u64,
    /// Whether some were synced. Then other processes may know of them.
    pub are_synced: bool,
    /// The caller's own text of the checkpoint.
    pub at_checkpoint: Vec<u8>,
    /// The caller's own text of the last commit.
    pub at_end: Vec<u8>,
}

pub(crate) fn state_last_row(batch: &mut Batch, row: u64) -> Result<(), postcard::Error> {
    let synced: Synced = (row, system_start().map(str::to_owned));
    batch.put(Space::Meta, SYNCED, postcard::to_allocvec(&synced)?);
    Ok(())
}

fn stated(store: &dyn Store) -> Result<Option<Synced>, OpenError> {
    let synced = store.get(Space::Meta, SYNCED)?;
    let synced = synced.map(|synced| postcard::from_bytes(&synced));
    synced.transpose().map_err(OpenError::damaged)
}

pub(crate) fn stated_row(store: &dyn Store) -> Option<u64> {
    Some(stated(store).ok()??.0)
}

/// The last row of the journal, and the caller's own text in it; `None` if there is none after this row.
fn last_after(row: u64, store: &dyn Store) -> Result<Option<(u64, Vec<u8>)>, OpenError> {
    let last = store.last(Space::Journal, MAX_KEY)?;
    let Some((last, calls)) = last.filter(|(last, _)| *last > row) else {
        return Ok(None);
    };
    let (attachment, _) = journal::split(&calls).map_err(OpenError::damaged)?;
    Ok(Some((last, attachment.to_vec())))
}

/// Removes the rows after this one, and what they did to pages.
pub(crate) fn remove_after(row: u64, store: &dyn Store, batch: &mut Batch) -> Result<(), OpenError> {
    batch.delete(Space::Journal, row + 1..=MAX_KEY);
    pages::go_back(row, store, batch)
}

/// `None` if there are none, or there is no frontier.
pub(crate) fn unsynced(store: &dyn Store) -> Result<Option<Unsynced>, OpenError> {
    let Some((manifest, _)) = manifest(store)? else {
        return Ok(None);
    };
    let (row, started) = stated(store)?.ok_or_else(|| OpenError::damaged("it does not say what was synced"))?;
    if row < manifest.covered {
        return Err(OpenError::damaged("its checkpoint was not synced"));
    }
    let last = last_after(row, store)?;
    let is_other = |then: String| system_start().is_some_and(|now| then != now);
    Ok(last.map(|(last, attachment)| Unsynced {
        commits: last - row,
        attachment,
        is_system_restarted: started.is_some_and(is_other),
    }))
}

/// Removes the rows since the last synced commit. Returns how many there were.
pub(crate) fn discard_unsynced(store: &mut dyn Store) -> Result<u64, OpenError> {
    let (Some(unsynced), Some((row, _))) = (unsynced(store)?, stated(store)?) else {
        return Ok(0);
    };
    let mut batch = Batch::default();
    remove_after(row, store, &mut batch)?;
    store.commit(&batch, true)?;
    Ok(unsynced.commits)
}

/// `None` if there are none, or there is no frontier.
pub(crate) fn other_logic(store: &dyn Store) -> Result<Option<OtherLogic>, OpenError> {
    let Some((manifest, _)) = manifest(store)?.filter(|(manifest, _)| manifest.logic != LOGIC) else {
        return Ok(None);
    };
    let last = last_after(manifest.covered, store)?;
    Ok(last.map(|(last, at_end)| OtherLogic {
        commits: last - manifest.covered,
        are_synced: stated_row(store).is_none_or(|row| row > manifest.covered),
        at_checkpoint: manifest.attachment,
        at_end,
    }))
}

/// Removes these commits, if the checkpoint can be continued under this configuration.
pub(crate) fn discard_other_logic(store: &mut dyn Store, wanted: &FrontierConfig) -> Result<(), OpenError> {
    let (Some(_), Some((manifest, stored))) = (other_logic(store)?, manifest(store)?) else {
        return Ok(());
    };
    options::next_run(&stored, wanted.clone().with_shares()?)?;
    let mut batch = Batch::default();
    remove_after(manifest.covered, store, &mut batch)?;
    state_last_row(&mut batch, manifest.covered).map_err(OpenError::damaged)?;
    Ok(store.commit(&batch, true)?)
}
