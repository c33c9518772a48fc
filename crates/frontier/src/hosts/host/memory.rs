//! What a host takes in memory: an estimate, which bounds the workbench.

use super::super::origin_id::OriginId;
use super::super::origin_queue::OriginQueue;
use super::{Host, Rare};
use crate::entry::Entry;
use crate::time::Time;

/// What an allocator adds to each allocation, about.
const OVERHEAD: usize = 16;

impl Host {
    /// Returns about how many bytes it takes. Cost: O(origins).
    pub(crate) fn bytes(&self) -> usize {
        let origins: usize = self.origins.iter().map(OriginQueue::heap_bytes).sum();
        let of_origins = size_of_val(&*self.origins) + 2 * OVERHEAD;
        size_of::<Self>() + of_origins + origins + self.rare.as_deref().map_or(0, Rare::bytes)
    }
}

impl Rare {
    fn bytes(&self) -> usize {
        let delayed = self.delayed.len() * size_of::<((Time, u64), Entry)>();
        let urgent = self.urgent.capacity() * size_of::<Entry>();
        let timed = self.timed.capacity() * size_of::<(Time, OriginId)>();
        let texts = (self.delayed.len() + self.urgent.len()) * Entry::BYTES_OF_TEXTS;
        let policy = self.policy.as_deref().map_or(0, size_of_val);
        let turns = self.turns.as_deref().map_or(0, size_of_val);
        size_of::<Self>() + 3 * OVERHEAD + delayed + urgent + timed + texts + policy + turns
    }
}
