//! Where closed segments lie, if not in memory.

use std::fmt;

/// Keeps closed segments apart from the queue that they belong to, such as on disk.
///
/// It never fails: what cannot be read is `None`, and the owner of the shelf learns the reason.
pub(crate) trait Shelf: fmt::Debug + Send + Sync {
    /// Puts a segment on the shelf and returns its number.
    fn put(&self, segment: Box<[u8]>) -> u64;

    /// Takes a segment from the shelf.
    fn take(&self, number: u64) -> Option<Box<[u8]>>;

    /// Returns whether a segment could not be read.
    fn is_broken(&self) -> bool;

    /// Returns a segment that stays on the shelf.
    fn read(&self, number: u64) -> Option<Box<[u8]>>;
}
