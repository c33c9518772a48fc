//! Draining the queue of an origin: all of it, or the pages that would spend a budget.

use std::cmp::Reverse;

use super::OriginQueue;
use crate::class::Class;
use crate::entry::{Entry, Purpose};
use crate::hosts::packed_entries::closed::SegmentStore;
use crate::hosts::packed_entries::{OriginRef, PackedEntries};
use crate::url::HostKey;

/// The entries that were drained from the queue of one origin.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Drained {
    /// With the class of entries whose records have none. The last comes first.
    pub(crate) packed: Vec<(Class, PackedEntries)>,
    pub(crate) entries: Vec<Entry>,
}

impl Drained {
    pub(crate) fn pages(&self) -> u64 {
        let others = self.entries.iter().filter(|entry| entry.purpose == Purpose::Page);
        self.packed_len() + others.count() as u64
    }

    fn packed_len(&self) -> u64 {
        self.packed.iter().map(|(_, packed)| packed.len()).sum()
    }

    pub(crate) fn len(&self) -> u64 {
        self.packed_len() + self.entries.len() as u64
    }
}

impl OriginQueue {
    /// Drains all, or the pages only that were not fetched in this crawl before.
    pub(crate) fn drain(&mut self, host: &HostKey, is_all: bool, segments: Option<&dyn SegmentStore>) -> Drained {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef::new(host, origin, segments);
        let drain = |class: Class, packed: &mut PackedEntries| {
            let drained = match is_all {
                true => std::mem::take(packed),
                false => packed.take_new(origin_ref.of_class(class)),
            };
            (class, drained)
        };
        let usual = drain(Class::default(), &mut self.pages);
        let Some(rare) = &mut self.rare else {
            return Drained {
                packed: vec![usual],
                entries: Vec::new(),
            };
        };
        let mut entries = Vec::new();
        for (_, retries) in rare.retries.iter_mut() {
            let (drained, kept): (Vec<_>, _) = std::mem::take(retries)
                .into_iter()
                .partition(|entry| is_all || !entry.is_refresh());
            entries.extend(drained);
            *retries = kept.into_iter().collect();
        }
        if is_all {
            entries.extend(std::mem::take(&mut rare.sitemaps));
        }
        let others = rare.pages.iter_mut().map(|(class, pages)| drain(class, pages));
        let mut packed: Vec<_> = others.chain([usual]).collect();
        packed.sort_unstable_by_key(|(class, _)| Reverse(*class));
        packed.insert(0, drain(Class::default(), &mut rare.postponed));
        Drained { packed, entries }
    }

    /// Returns how many pages wait that were fetched in this crawl before, the postponed ones included. Cost: a look at all retries.
    pub(crate) fn refreshes(&self) -> u64 {
        let others = self.rare.as_deref().map_or(0, |rare| {
            let retries = rare.retries().filter(|entry| entry.is_refresh());
            rare.postponed.refreshes() + retries.count() as u64
        });
        let pages: u64 = self.queues().map(|(_, pages)| pages.refreshes()).sum();
        pages + others
    }
}
