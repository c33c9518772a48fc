//! The order in which the entries of an origin are leased: sitemaps and pages take turns, and pages come before retries, as `take_entry` takes
//! them and `find_queued` counts them. Postponed pages come last: they are queued anew when nothing else is left (`HostQueues::release_postponed`).

use std::collections::VecDeque;

use super::{OriginQueue, Rare};
use crate::entry::{Entry, Purpose};
use crate::hosts::packed_entries::OriginRef;
use crate::hosts::packed_entries::closed::SegmentStore;
use crate::url::HostKey;

impl OriginQueue {
    pub(super) fn take_entry(&mut self, host: &HostKey, segments: Option<&dyn SegmentStore>) -> Option<Entry> {
        let sitemap = if self.page_is_next {
            None
        } else {
            self.take_rare(|rare| &mut rare.sitemaps)
        };
        let first = sitemap
            .or_else(|| {
                let origin = &self.id.text(host);
                self.pages.pop(OriginRef { host, origin, segments })
            })
            .or_else(|| self.take_rare(|rare| &mut rare.retries))
            .or_else(|| self.take_rare(|rare| &mut rare.sitemaps))?;
        self.page_is_next = matches!(first.purpose, Purpose::Sitemap(_));
        Some(first)
    }

    fn take_rare(&mut self, queue: fn(&mut Rare) -> &mut VecDeque<Entry>) -> Option<Entry> {
        let queue = queue(self.rare.as_mut()?);
        let entry = queue.pop_front();
        if queue.len() < queue.capacity() / 4 {
            queue.shrink_to(queue.capacity() / 2);
        }
        entry
    }

    /// Finds the entry with a key. Returns it with how many entries come before it, and whether it is postponed. Cost: a copy of each of
    /// these.
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
