//! What the last copy of a host has of its queues.

use super::super::origin_queue::OriginQueue;
use super::super::packed_entries::PackedEntries;
use super::Host;

impl Host {
    /// Its packed queues: of each origin the pages, then the postponed ones, if there are any.
    fn packed_mut(&mut self) -> impl Iterator<Item = &mut PackedEntries> {
        self.origins.iter_mut().flat_map(|origin| {
            let (pages, postponed) = origin.packed_mut();
            std::iter::once(pages).chain(postponed)
        })
    }

    /// Returns of each packed queue how many bytes of its open segment the last copy has.
    pub(crate) fn copied(&self) -> Vec<u32> {
        let packed = self.origins.iter().flat_map(|origin| origin.packed());
        packed.map(PackedEntries::copied).collect()
    }

    /// Records that a copy has all of it.
    pub(crate) fn is_copied(&mut self) {
        self.packed_mut().for_each(PackedEntries::is_copied);
    }

    /// Calls a function with the host as it is without what the last copy has of its open segments.
    pub(crate) fn with_rest<T>(&mut self, call: impl FnOnce(&Self) -> T) -> T {
        let open: Vec<Vec<u8>> = self.packed_mut().map(PackedEntries::leave_rest).collect();
        let called = call(self);
        for (packed, open) in self.packed_mut().zip(open) {
            packed.put_back(open);
        }
        called
    }

    /// Puts the first bytes of the open segments of an earlier copy in front of its own, as many as `lengths` says of each queue. Returns
    /// false if the earlier copy lacks them.
    pub(crate) fn continue_from(&mut self, earlier: &mut Self, lengths: &[u32]) -> bool {
        let mut lengths = lengths.iter();
        let mut join = |queue: &mut PackedEntries, before: Option<&mut PackedEntries>| match (lengths.next(), before) {
            (Some(0), _) => true,
            (Some(length), Some(before)) => queue.continue_from(before, *length),
            _ => false,
        };
        for origin in &mut self.origins {
            let before = earlier.origins.iter_mut().find(|before| before.id == origin.id);
            let (before_pages, before_postponed) = before.map(OriginQueue::packed_mut).unzip();
            let (pages, postponed) = origin.packed_mut();
            let is_joined = join(pages, before_pages)
                && postponed.is_none_or(|postponed| join(postponed, before_postponed.flatten()));
            if !is_joined {
                return false;
            }
        }
        lengths.next().is_none()
    }
}
