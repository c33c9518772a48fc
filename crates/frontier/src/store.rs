//! The store: what a durable frontier keeps on disk, as blobs with a number.
//!
//! Above it are commits of a frontier, below it is a database. The store knows neither URLs nor hosts: it keeps values by [`Space`] and
//! key, and writes a [`Batch`] of them wholly or not at all. [`Store`] is all that the frontier asks of an engine, so that another engine
//! is one more file.
//!
//! It is not a cache: every call reaches the database. It is not shared: one process writes, and a lock keeps others out; any number of
//! processes read beside it.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use serde::{Deserialize, Serialize};

mod error;
pub(crate) mod lock;
#[cfg(any(test, fuzzing, feature = "simulation"))]
#[path = "../tests/shared/memory_store.rs"]
mod memory;
mod system_start;

pub use error::StoreError;
pub use lock::LockHolder;
#[cfg(any(test, fuzzing, feature = "simulation"))]
pub(crate) use memory::MemoryStore;
pub(crate) use system_start::system_start;

/// One family of blobs, ordered by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Space {
    Meta,
    Journal,
    Checkpoint,
    Segment,
    /// A [`StoredPage`](crate::StoredPage) for each number.
    Page,
    Undo,
    Tag,
    Digest,
}

impl Space {
    /// All spaces; each stands at its number.
    #[rustfmt::skip]
    pub(crate) const ALL: [Self; 8] = [Self::Meta, Self::Journal, Self::Checkpoint, Self::Segment, Self::Page, Self::Undo, Self::Tag, Self::Digest];

    /// The name of its table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Journal => "journal",
            Self::Checkpoint => "checkpoint",
            Self::Segment => "segment",
            Self::Page => "page",
            Self::Undo => "undo",
            Self::Tag => "tag",
            Self::Digest => "digest",
        }
    }
}

/// The greatest key: keys are below 2^63.
pub(crate) const MAX_KEY: u64 = i64::MAX as u64;

/// What one commit writes and removes: all of it or nothing.
///
/// Puts and deletes happen in the order of the calls. A put replaces an earlier value of its key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Put(Space, u64, Vec<u8>),
    Delete(Space, RangeInclusive<u64>),
}

impl Batch {
    /// Writes a value. It may have up to 900 MB.
    ///
    /// # Panics
    /// If the key is greater than [`MAX_KEY`].
    pub(crate) fn put(&mut self, space: Space, key: u64, value: impl Into<Vec<u8>>) {
        assert!(key <= MAX_KEY, "the key {key} of {space:?} is not below 2^63");
        self.changes.push(Change::Put(space, key, value.into()));
    }

    /// Removes the values of all keys in the range; of none, if it is empty.
    pub(crate) fn delete(&mut self, space: Space, keys: RangeInclusive<u64>) {
        self.changes.push(Change::Delete(space, keys));
    }

    /// Whether a commit of it would change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// An order of pages: those that were saved first come first, or whose next visit is; and then those with a lower number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageOrder {
    /// All.
    Saved,
    /// Those that ended without a page: first those with a final answer.
    Failed,
    /// Those that ended without a page, and may have one another time.
    Unanswered,
    /// Those that have a time of their next visit, which stands for the row.
    Due,
}

/// What is called with keys and values. Its error ends the visit.
pub(crate) type Visit<'v> = dyn FnMut(u64, Vec<u8>) -> Result<(), StoreError> + 'v;

/// As [`Visit`], and it may break off.
pub(crate) type VisitUntil<'v> = dyn FnMut(u64, Vec<u8>) -> Result<ControlFlow<()>, StoreError> + 'v;

/// A container of blobs: ordered, atomic, durable.
pub(crate) trait Store: fmt::Debug + Send {
    /// Writes a batch atomically, after all earlier ones. It survives the death of the process; with `sync`, it and all earlier ones
    /// survive a power cut, too. An empty batch with `sync` syncs the earlier ones.
    ///
    /// # Errors
    /// After [`StoreError::Full`] the batch is not applied. After another error, a store that is opened again has all of it or nothing.
    /// Every further call answers [`StoreError::Failed`]: nothing is tried twice.
    fn commit(&mut self, batch: &Batch, sync: bool) -> Result<(), StoreError>;

    /// Fails if the store is no longer where it was opened, as a commit that syncs does.
    fn check_place(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Visits the values of the keys, in order.
    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// The values of the keys, in order.
    fn values(&self, space: Space, keys: RangeInclusive<u64>) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let mut values = Vec::new();
        self.range(space, keys, &mut |key, value| {
            values.push((key, value));
            Ok(())
        })?;
        Ok(values)
    }

    /// The greatest key at or below, with its value.
    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError>;

    /// The value of a key.
    fn get(&self, space: Space, key: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let last = self.last(space, key)?;
        Ok(last.filter(|(at, _)| *at == key).map(|(_, value)| value))
    }

    /// Visits pages in an order, from a row of the journal (or a time) and a number on, until the visitor breaks.
    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError>;

    /// The greatest key of a space. Its value is not read.
    fn last_key(&self, space: Space) -> Option<u64>;
}
