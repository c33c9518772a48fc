//! Draining the queue of an origin: all of it, or the pages that would spend a budget.

use super::OriginQueue;
use crate::entry::{Entry, Purpose};
use crate::hosts::packed_entries::closed::SegmentStore;
use crate::hosts::packed_entries::{OriginRef, PackedEntries};
use crate::url::HostKey;

/// The entries that were drained from the queue of one origin.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Drained {
    pub(crate) packed: Vec<PackedEntries>,
    pub(crate) entries: Vec<Entry>,
}

impl Drained {
    pub(crate) fn pages(&self) -> u64 {
        let packed: u64 = self.packed.iter().map(PackedEntries::len).sum();
        let others = self.entries.iter().filter(|entry| entry.purpose == Purpose::Page);
        packed + others.count() as u64
    }

    pub(crate) fn len(&self) -> u64 {
        self.packed.iter().map(PackedEntries::len).sum::<u64>() + self.entries.len() as u64
    }
}

impl OriginQueue {
    /// Drains all, or the pages only that were not fetched in this crawl before.
    pub(crate) fn drain(&mut self, host: &HostKey, is_all: bool, segments: Option<&dyn SegmentStore>) -> Drained {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef { host, origin, segments };
        let drain = |packed: &mut PackedEntries| match is_all {
            true => std::mem::take(packed),
            false => packed.take_new(origin_ref),
        };
        let pages = drain(&mut self.pages);
        let Some(rare) = &mut self.rare else {
            return Drained {
                packed: vec![pages],
                entries: Vec::new(),
            };
        };
        let retries = std::mem::take(&mut rare.retries).into_iter();
        let (mut entries, kept): (Vec<_>, Vec<_>) = retries.partition(|entry| is_all || !entry.is_refresh());
        rare.retries = kept.into();
        if is_all {
            entries.extend(std::mem::take(&mut rare.sitemaps));
        }
        Drained {
            packed: vec![drain(&mut rare.postponed), pages],
            entries,
        }
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
