//! The frontier of a directory: a durable frontier over the store in a SQLite database.

mod repair;

use std::path::Path;

pub use repair::{Exported, RepairOutcome, RepairReport};

use crate::config::FrontierConfig;
use crate::durable::sizes::SIZES;
use crate::durable::{OpenError, PageRecord, Unsynced, open, record, restore, unsynced};
use crate::frontier::{Frontier, Opened};
use crate::rules::ParseRules;
use crate::sqlite::SqliteStore;
use crate::store::{LockHolder, StoreError};
use crate::time::Time;

impl Frontier {
    /// Opens the frontier of a directory, or creates one there. Entries that were in flight are queued again.
    ///
    /// `config` may differ from that of the run before, except in what the state depends on: capacity, rate, exactness and growth of the
    /// seen-set, reach, politeness per address. The secret of the hash is that of the first run. `parse` makes rules of the texts of
    /// robots.txt files that [`RobotsRules::text`](crate::RobotsRules::text) returned, and makes the same ones as in the run before:
    /// [`Directory::config`] has the name for it. To read them by another name, open the directory by the stored one first,
    /// and make a [`checkpoint`](Self::checkpoint).
    ///
    /// A changed option takes effect at once: hosts are due by the new delays, pages beyond a lower budget of their host are dropped, and a
    /// higher limit of near-duplicates opens what was closed. What is queued stays queued, also if it is more than a lower
    /// [`max_queued`](FrontierConfig::max_queued), or out of a smaller scope.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, RobotsRules, Time};
    ///
    /// #[derive(Debug)]
    /// struct AllowAll;
    /// impl RobotsRules for AllowAll {
    ///     fn allows(&self, _path: &str) -> bool { true }
    ///     fn text(&self) -> Option<&[u8]> { Some(b"") }
    /// }
    ///
    /// let dir = std::env::temp_dir().join(format!("crawl-{}", std::process::id()));
    /// let open = |now| Frontier::open(&dir, FrontierConfig::default(), now, Arc::new(|_: &[u8]| Arc::new(AllowAll) as _));
    ///
    /// let now = Time::from_millis(1_700_000_000_000);
    /// let mut frontier = open(now)?.frontier;
    /// frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now)?;
    /// frontier.persist(b"my own state", now)?;
    /// drop(frontier); // or the process is killed
    ///
    /// let opened = open(now)?;
    /// assert_eq!(opened.attachment.as_deref(), Some(&b"my own state"[..]));
    /// assert_eq!(opened.frontier.report().queued_pages, 1);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Handle or ignore SIGXFSZ, so that a file at its size limit (RLIMIT_FSIZE) is an error: on Unix, that signal ends the program by default.
    ///
    /// # Errors
    ///
    /// A directory that another process uses, that cannot be read or written, or that is damaged; a configuration that does not fit it.
    pub fn open(dir: &Path, config: FrontierConfig, now: Time, parse: ParseRules) -> Result<Opened, OpenError> {
        let store = SqliteStore::open(dir)?;
        Ok(open::open(Box::new(store), config, now, &parse, SIZES)?.into())
    }
}

/// The directory of a durable frontier, closed or in use: what it says of the frontier, and how it is mended. [`Frontier::open`] opens it.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'d>(&'d Path);

impl<'d> Directory<'d> {
    /// Names a directory, which need not be there.
    pub fn new(path: &'d Path) -> Self {
        Self(path)
    }

    /// Reads the frontier of a directory, beside the process that runs it, as of its last [`persist`](Frontier::persist). The copy is in
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
        match SqliteStore::open_read_only(self.0) {
            Ok(store) => Ok(restore::manifest(&store)?.map(|(_, config)| config)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a directory has no frontier, nor what is left of a damaged one: [`Frontier::open`] begins one there.
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

    /// Returns the commits since the last synced one; `None` if there are none, or there is no frontier.
    ///
    /// After a power cut, the directory may have commits whose outputs are lost: the system writes what was not synced in any order. Compare the
    /// outputs with the attachment. If they lack something, [`discard_unsynced`](Self::discard_unsynced) goes back to the last sync, before
    /// which the outputs were synced. If they do not, sync them before [`Frontier::open`]: opening may sync the directory.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or is damaged.
    pub fn unsynced(self) -> Result<Option<Unsynced>, OpenError> {
        match SqliteStore::open_unchecked(self.0) {
            Ok(store) => unsynced::unsynced(&store),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the commits of a directory since the last synced one, so that it is as it was then. Returns how many there were.
    ///
    /// # Errors
    ///
    /// A directory that is open, cannot be read or written, or is damaged.
    pub fn discard_unsynced(self) -> Result<u64, OpenError> {
        unsynced::discard(&mut SqliteStore::open(self.0)?)
    }

    /// Visits what became of each page, in order.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, or one that cannot be read or is damaged.
    pub fn read_records(self, visit: &mut dyn FnMut(PageRecord<'_>)) -> Result<(), OpenError> {
        let store = SqliteStore::open_read_only(self.0)?;
        record::visit(&store, visit)
    }
}
