//! Draining the queue of an origin: all of it, or the pages that would spend a budget.

use super::OriginQueue;
use crate::entry::Entry;
use crate::hosts::packed_entries::{OriginRef, PackedEntries, SegmentStore};
use crate::url::HostKey;

impl OriginQueue {
    /// Drains all pages, packed and not.
    pub(crate) fn drain_pages(&mut self) -> (Vec<PackedEntries>, Vec<Entry>) {
        let pages = std::mem::take(&mut self.pages);
        match &mut self.rare {
            None => (vec![pages], Vec::new()),
            Some(rare) => {
                let postponed = std::mem::take(&mut rare.postponed);
                (vec![postponed, pages], std::mem::take(&mut rare.retries).into())
            }
        }
    }

    /// Drains all sitemaps.
    pub(crate) fn drain_sitemaps(&mut self) -> Vec<Entry> {
        let sitemaps = self.rare.as_mut().map(|rare| std::mem::take(&mut rare.sitemaps));
        sitemaps.unwrap_or_default().into()
    }

    /// Drains the pages that were not fetched in this crawl before, packed and not.
    pub(crate) fn drain_new_pages(
        &mut self,
        host: &HostKey,
        segments: Option<&dyn SegmentStore>,
    ) -> (Vec<PackedEntries>, Vec<Entry>) {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef { host, origin, segments };
        let pages = self.pages.take_new(origin_ref);
        let Some(rare) = &mut self.rare else {
            return (vec![pages], Vec::new());
        };
        let postponed = rare.postponed.take_new(origin_ref);
        let retries = std::mem::take(&mut rare.retries);
        let (refreshes, new): (Vec<_>, Vec<_>) = retries.into_iter().partition(Entry::is_refresh);
        rare.retries = refreshes.into();
        (vec![postponed, pages], new)
    }

    /// Returns how many pages wait that were fetched in this crawl before, the postponed ones included. Cost: a look at all retries.
    pub(crate) fn refreshes(&self) -> u64 {
        let others = self.rare.as_deref().map_or(0, |rare| {
            let retries = rare.retries.iter().filter(|entry| entry.is_refresh());
            rare.postponed.refreshes() + retries.count() as u64
        });
        self.pages.refreshes() + others
    }
}
