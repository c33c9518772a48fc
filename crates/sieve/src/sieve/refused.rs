//! What is handed back.

use std::fmt;

#[cfg(doc)]
use crate::on_saturation::OnSaturation;

/// Why an item was neither queued nor taken for seen. There is nobody else to refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedBy<R> {
    /// The queue, by its own [`Refusal`](crate::Accepts::Refusal).
    Queue(R),
    /// The filter is past its capacity, and was built with [`OnSaturation::Refuse`].
    Saturation,
}

/// An item that was refused, handed back. It was not marked as seen: it can be offered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<T, R> {
    /// The item.
    pub item: T,
    /// Who refused it.
    pub by: RefusedBy<R>,
}

impl<T, R: fmt::Display> fmt::Display for Refused<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            RefusedBy::Queue(refusal) => refusal.fmt(f),
            RefusedBy::Saturation => f.write_str("the filter is past its capacity: start again with a larger one"),
        }
    }
}

impl<T: fmt::Debug, R: fmt::Debug + fmt::Display> std::error::Error for Refused<T, R> {}
