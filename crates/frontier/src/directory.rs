//! The frontier of a directory: a durable frontier over the store in a SQLite database.

mod repair;

use std::path::Path;

pub use repair::{Exported, RepairOutcome, RepairReport};

use crate::config::FrontierConfig;
use crate::durable::{OpenError, OtherLogic, StoredPage, Unsynced, going_back, open, pages, restore};
use crate::frontier::Opened;
use crate::rules::ParseRules;
use crate::sqlite::SqliteStore;
use crate::store::{LockHolder, Store, StoreError};

/// Reads a store, if there is one.
fn if_there<T>(
    opened: Result<SqliteStore, StoreError>,
    read: impl FnOnce(&dyn Store) -> Result<Option<T>, OpenError>,
) -> Result<Option<T>, OpenError> {
    match opened {
        Ok(store) => read(&store),
        Err(StoreError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The directory of a durable frontier, closed or in use: what it says of the frontier, and how it is mended. [`Frontier::open`](crate::Frontier::open) opens it.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'d>(&'d Path);

impl<'d> Directory<'d> {
    /// Names a directory, which need not be there.
    pub fn new(path: &'d Path) -> Self {
        Self(path)
    }

    /// Reads the frontier of a directory, beside the process that runs it, as of its last [`persist`](crate::Frontier::persist). The copy is in
    /// memory: nothing that is done to it reaches the directory.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged; [`OpenError::NotBegun`] before the first is saved.
    pub fn read(self, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = SqliteStore::open_read_only(self.0)?;
        Ok(open::read(Box::new(store), &parse)?.into())
    }

    /// Reads the configuration of the last run, without the rest of the state; `None` if there is no frontier.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn config(self) -> Result<Option<FrontierConfig>, OpenError> {
        let manifest = if_there(SqliteStore::open_read_only(self.0), restore::manifest)?;
        Ok(manifest.map(|(_, config)| config))
    }

    /// Returns whether a directory has no frontier, nor what is left of a damaged one: [`Frontier::open`](crate::Frontier::open) begins one there.
    pub fn is_missing(self) -> bool {
        crate::sqlite::has_none(self.0)
    }

    /// Says whether a process has a directory open. It is the state of this moment: the next moment may be different.
    ///
    /// A process that opens the directory at the very instant of this call may be told that it is in use.
    ///
    /// # Errors
    ///
    /// A lock that cannot be read.
    pub fn lock_holder(self) -> Result<LockHolder, OpenError> {
        Ok(LockHolder::of(self.0)?)
    }

    /// Returns the size of the database and its log, in bytes; `None` if there is none.
    pub fn database_bytes(self) -> Option<u64> {
        crate::sqlite::bytes_in(self.0)
    }

    /// Returns the commits since the last synced one; `None` if there are none, or there is no frontier.
    ///
    /// After a power cut, the directory may have commits whose outputs are lost: the system writes what was not synced in any order. Compare the
    /// outputs with the attachment. If they lack something, [`discard_unsynced`](Self::discard_unsynced) goes back to the last sync, before
    /// which the outputs were synced. If they do not, sync them before [`Frontier::open`](crate::Frontier::open): opening may sync the directory.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn unsynced(self) -> Result<Option<Unsynced>, OpenError> {
        if_there(SqliteStore::open_unchecked(self.0), going_back::unsynced)
    }

    /// Removes the commits of a directory since the last synced one, so that it is as it was then. Returns how many there were.
    ///
    /// # Errors
    ///
    /// A directory that is open, cannot be read or written, or is damaged.
    pub fn discard_unsynced(self) -> Result<u64, OpenError> {
        going_back::discard_unsynced(&mut SqliteStore::open(self.0)?)
    }

    /// Returns the commits since the last checkpoint, if a version of this crate made them that decides differently: their calls cannot be
    /// made again. `None` if there are none, or there is no frontier.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn other_logic(self) -> Result<Option<OtherLogic>, OpenError> {
        if_there(SqliteStore::open_unchecked(self.0), going_back::other_logic)
    }

    /// Removes these commits, so that [`Frontier::open`](crate::Frontier::open) continues from the checkpoint, and returns its attachment. Cut back
    /// to it what belongs to it. What was fetched since is fetched again.
    ///
    /// # Errors
    ///
    /// A directory that is open, cannot be read or written, or is damaged; a configuration under which it cannot be opened. Nothing is removed then.
    pub fn discard_other_logic(self, config: &FrontierConfig) -> Result<(), OpenError> {
        going_back::discard_other_logic(&mut SqliteStore::open(self.0)?, config)
    }

    /// Visits what became of each page, in the order of their first ends; or of those alone that ended without a page, by an index.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged.
    pub fn visit_pages(self, failed_only: bool, visit: &mut dyn FnMut(StoredPage)) -> Result<(), OpenError> {
        let store = SqliteStore::open_read_only(self.0)?;
        Ok(pages::visit(&store, failed_only, visit)?)
    }

    /// Returns what became of the page with a key; `None` if it has not ended. Cost: two bytes of each page.
    ///
    /// # Errors
    ///
    /// Those of [`visit_pages`](Self::visit_pages).
    pub fn find_page(self, key: &str) -> Result<Option<StoredPage>, OpenError> {
        let store = SqliteStore::open_read_only(self.0)?;
        Ok(pages::find(&store, &[key])?.into_values().next_back())
    }
}
