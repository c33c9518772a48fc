//! What a power cut may take from a program's outputs, though not from the directory: the way back to the last sync.

use std::path::Path;

use super::super::Frontier;
use super::calls;
use super::error::OpenError;
use super::restore::manifest;
use crate::store::{MAX_KEY, Space, SqliteStore, Store};

/// The commits since the last synced one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsynced {
    /// How many there are.
    pub commits: u64,
    /// The caller's own text of the last one.
    pub attachment: Vec<u8>,
    /// Whether the system was started anew since the last sync. Then files that were not synced may lack anything, also in their middle.
    /// `false` where that is not known: it is on Linux.
    pub is_system_restarted: bool,
}

impl Frontier {
    /// Returns the commits of a directory since the last synced one; `None` if there are none, or there is no frontier.
    ///
    /// After a power cut, the directory may have commits whose outputs are lost: the system writes what was not synced in any order. Compare the
    /// outputs with the attachment. If they lack something, [`discard_unsynced`](Self::discard_unsynced) goes back to the last sync, before
    /// which the outputs were synced. If they do not, sync them before [`open`](Self::open): opening may sync the directory.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn unsynced(dir: &Path) -> Result<Option<Unsynced>, OpenError> {
        let Some(store) = SqliteStore::open_with_log(dir)? else {
            return Ok(None);
        };
        let unsynced = store.unsynced_commits()?;
        let Some((manifest, _)) = manifest(&store)?.filter(|_| unsynced.count > 0) else {
            return Ok(None);
        };
        let attachment = match store.last(Space::Journal, MAX_KEY)? {
            Some((key, row)) if key > manifest.covered => {
                let split = calls::split(&row);
                split.map_err(|error| OpenError::Damaged(error.to_string()))?.0.to_vec()
            }
            _ => manifest.attachment,
        };
        Ok(Some(Unsynced {
            commits: unsynced.count,
            attachment,
            is_system_restarted: unsynced.is_system_restarted,
        }))
    }

    /// Removes the commits of a directory since the last synced one, so that it is as it was then. Returns how many there were; 0, and leaves it
    /// as it is, if they cannot be removed, because an earlier version has moved them.
    ///
    /// # Errors
    ///
    /// A directory that is open, cannot be read or written, or is damaged.
    pub fn discard_unsynced(dir: &Path) -> Result<u64, OpenError> {
        Ok(SqliteStore::discard_unsynced(dir)?)
    }
}
