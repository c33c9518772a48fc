//! Where closed segments lie, and rows of hosts, if not in memory.

use std::fmt;

/// Keeps closed segments apart from the queue that they belong to, and hosts that were not used for long, such as on disk. A row of hosts
/// is a segment, too.
///
/// It never fails: what cannot be read is `None`, and the owner of the shelf learns the reason.
pub(crate) trait Shelf: fmt::Debug + Send + Sync {
    /// Puts a segment on the shelf and returns its number.
    fn put(&self, segment: Box<[u8]>) -> u64;

    /// Returns a segment, which stays on the shelf.
    fn read(&self, number: u64) -> Option<Box<[u8]>>;

    /// Removes a segment from the shelf.
    fn discard(&self, number: u64);

    /// Records that the bytes of a segment cannot be what was put there.
    fn set_damaged(&self, number: u64);

    /// Returns whether a segment could not be read.
    fn is_broken(&self) -> bool;
}
