//! What is handed back.

use std::fmt;

#[cfg(doc)]
use crate::OnSaturation;

/// Why an item was neither queued nor taken for seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedBy {
    /// The queue has no room for it.
    Queue,
    /// The filter is past its capacity, and was built with [`OnSaturation::Refuse`].
    Saturation,
}

/// An item that was refused, handed back. It was not marked as seen: it can be offered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// The item.
    pub item: T,
    /// Who refused it.
    pub by: RefusedBy,
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            RefusedBy::Queue => "the queue is full: take items out before offering more",
            RefusedBy::Saturation => "the filter is past its capacity: start again with a larger one",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for Refused<T> {}
