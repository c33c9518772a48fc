//! Where an entry stands in the queue of its origin.

use super::{OriginQueue, Rare};
use crate::entry::Entry;
use crate::hosts::packed_entries::OriginRef;
use crate::hosts::packed_entries::closed::SegmentStore;
use crate::url::HostKey;

impl OriginQueue {
    /// Finds the entry with a key. Returns it with how many entries come before it, and whether it is postponed. Cost: a copy of each of
    /// these.
    ///
    /// Sitemaps take every second turn; pages come before retries, and postponed pages last.
    pub(crate) fn find_queued(
        &self,
        host: &HostKey,
        key: &str,
        segments: Option<&dyn SegmentStore>,
    ) -> Option<(Entry, u64, bool)> {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef { host, origin, segments };
        let rare = self.rare.as_deref();
        let sitemaps = || rare.into_iter().flat_map(|rare| rare.sitemaps.iter().cloned());
        let retries = || rare.into_iter().flat_map(|rare| rare.retries.iter().cloned());
        let lengths = |rare: &Rare| (rare.sitemaps.len() as u64, rare.retries.len() as u64);
        let (of_sitemaps, of_retries) = rare.map_or((0, 0), lengths);
        if let Some((at, entry)) = find(self.pages.iter(origin_ref).chain(retries()), key) {
            let before = of_sitemaps.min(at + u64::from(!self.page_is_next));
            return Some((entry, at + before, false));
        }
        if let Some((at, entry)) = find(sitemaps(), key) {
            let before = (self.pages.len() + of_retries).min(at + u64::from(self.page_is_next));
            return Some((entry, at + before, false));
        }
        let (at, entry) = find(rare?.postponed.iter(origin_ref), key)?;
        Some((entry, self.pages.len() + of_retries + of_sitemaps + at, true))
    }
}

fn find(entries: impl Iterator<Item = Entry>, key: &str) -> Option<(u64, Entry)> {
    (0..).zip(entries).find(|(_, entry)| entry.key() == key)
}
