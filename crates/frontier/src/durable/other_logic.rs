//! The way back to the last checkpoint, past a journal that another version of this crate has written.
//!
//! Its calls might do something else here, so they are not made again. A checkpoint is a state, which both versions read.

use super::options;
use super::restore::manifest;
use super::unsynced::{state_last_row, stated_row};
use super::{checkpoint::LOGIC, journal};
use crate::error::OpenError;
use crate::config::FrontierConfig;
use crate::store::{Batch, MAX_KEY, Space, Store};

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

/// `None` if there are none, or there is no frontier.
pub(crate) fn other_logic(store: &dyn Store) -> Result<Option<OtherLogic>, OpenError> {
    let Some((manifest, _)) = manifest(store)?.filter(|(manifest, _)| manifest.logic != LOGIC) else {
        return Ok(None);
    };
    let last = store.last(Space::Journal, MAX_KEY)?;
    let Some((last, row)) = last.filter(|(last, _)| *last > manifest.covered) else {
        return Ok(None);
    };
    let (at_end, _) = journal::split(&row).map_err(OpenError::damaged)?;
    Ok(Some(OtherLogic {
        commits: last - manifest.covered,
        are_synced: stated_row(store).is_none_or(|row| row > manifest.covered),
        at_checkpoint: manifest.attachment,
        at_end: at_end.to_vec(),
    }))
}

/// Removes these commits, if the checkpoint can be continued under this configuration.
pub(crate) fn discard(store: &mut dyn Store, wanted: &FrontierConfig) -> Result<(), OpenError> {
    if other_logic(store)?.is_none() {
        return Ok(());
    }
    let Some((manifest, stored)) = manifest(store)? else {
        return Ok(());
    };
    options::next_run(&stored, wanted.clone().with_shares()?)?;
    let mut batch = Batch::default();
    for space in [Space::Journal, Space::Record] {
        batch.delete(space, manifest.covered + 1..=MAX_KEY);
    }
    state_last_row(&mut batch, manifest.covered).map_err(OpenError::damaged)?;
    Ok(store.commit(&batch, true)?)
}

/// Changes the version of the logic that a store says it was written by, for tests.
#[cfg(any(test, feature = "simulation"))]
pub(crate) fn change_logic(store: &mut dyn Store) -> Result<(), OpenError> {
    let Some((mut manifest, _)) = manifest(store)? else {
        return Ok(());
    };
    manifest.logic += 1;
    let changed = postcard::to_allocvec(&manifest).map_err(OpenError::damaged)?;
    let mut batch = Batch::default();
    batch.put(Space::Meta, super::checkpoint::MANIFEST, changed);
    Ok(store.commit(&batch, true)?)
}
