//! Where an entry stands in the queue of its origin.

use super::OriginQueue;
use crate::hosts::packed_entries::{OriginRef, SegmentStore};
use crate::url::HostKey;

impl OriginQueue {
    /// Returns how many entries come before the one with a key; `None` if it does not wait here. Cost: a copy of each of these.
    ///
    /// Sitemaps take every second turn; pages come before retries, and postponed pages last.
    pub(crate) fn ahead_of(&self, host: &HostKey, key: &str, segments: Option<&dyn SegmentStore>) -> Option<u64> {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef { host, origin, segments };
        let rare = self.rare.as_deref();
        let (sitemaps, retries) = rare.map_or((0, 0), |rare| (rare.sitemaps.len() as u64, rare.retries.len() as u64));
        let others = self.pages.len() + retries;
        if let Some(at) = place(self.pages.iter(origin_ref), |entry| entry.key() == key) {
            return Some(at + sitemaps.min(at + u64::from(!self.page_is_next)));
        }
        let rare = rare?;
        if let Some(at) = place(rare.retries.iter(), |entry| entry.key() == key) {
            let at = self.pages.len() + at;
            return Some(at + sitemaps.min(at + u64::from(!self.page_is_next)));
        }
        if let Some(at) = place(rare.sitemaps.iter(), |entry| entry.key() == key) {
            return Some(at + others.min(at + u64::from(self.page_is_next)));
        }
        let at = place(rare.postponed.iter(origin_ref), |entry| entry.key() == key)?;
        Some(others + sitemaps + at)
    }
}

fn place<T>(mut items: impl Iterator<Item = T>, is_meant: impl Fn(&T) -> bool) -> Option<u64> {
    items.position(|item| is_meant(&item)).map(|at| at as u64)
}
