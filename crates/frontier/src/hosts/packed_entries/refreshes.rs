//! Pages in a queue that were fetched in this crawl before. A budget that is spent drops the others.

use super::{OriginRef, PackedEntries};

impl PackedEntries {
    /// Returns how many pages were fetched in this crawl before.
    pub(crate) fn refreshes(&self) -> u64 {
        u64::from(self.refreshes)
    }

    /// Removes the pages that were not fetched in this crawl before, and returns them. The others keep their order.
    ///
    /// Cost: O(1) if there are only such pages or none. Otherwise each page is read and written again, in memory until the next commit.
    pub(crate) fn take_new(&mut self, origin_ref: OriginRef<'_>) -> Self {
        if self.refreshes == 0 {
            return std::mem::take(self);
        }
        let (mut new, mut kept) = (Self::default(), Self::default());
        if self.refreshes == self.len {
            return new;
        }
        while let Some(entry) = self.pop(origin_ref) {
            let to = if entry.is_refresh() { &mut kept } else { &mut new };
            to.push(&entry, origin_ref);
        }
        *self = kept;
        new
    }
}
