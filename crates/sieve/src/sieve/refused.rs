//! Refused items.

use std::fmt;

#[cfg(doc)]
use crate::on_saturation::OnSaturation;

/// Why an item was refused: it was neither queued nor seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedBy<R> {
    /// The queue refused it, with its own [`Refusal`](crate::Accepts::Refusal).
    #[error("{0}")]
    Queue(R),
    /// The filter is beyond its capacity, and the policy is [`OnSaturation::Refuse`].
    #[error("the filter is past its capacity: start again with a larger one")]
    Saturation,
}

/// An item that was refused. It was not marked as seen, so it can be pushed again.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{by}")]
pub struct Refused<T, R> {
    /// The item.
    pub item: T,
    /// The reason.
    pub by: RefusedBy<R>,
}

impl<T, R: fmt::Debug> fmt::Debug for Refused<T, R> {
    /// Writes the reason only, so that items need no `Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("by", &self.by).finish_non_exhaustive()
    }
}
