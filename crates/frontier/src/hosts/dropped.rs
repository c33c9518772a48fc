//! Entries that leave the queues without being fetched. They are returned in batches, however many are dropped at once.

use std::collections::VecDeque;
use std::sync::Arc;

use super::HostQueues;
use super::origin_id::OriginId;
use super::origin_queue::Drained;
use super::packed_entries::{OriginRef, SegmentStore};
use crate::entry::Entry;
use crate::failure::Failure;
use crate::lease::{Dropped, MAX_DROPPED, NotFetched};
use crate::time::Time;
use crate::url::HostKey;

/// Entries that were dropped and not returned yet.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct DroppedEntries {
    /// Entries that were dropped at their turn, or when their leases ended.
    single: VecDeque<Dropped>,
    /// Whole queues of origins.
    queues: VecDeque<DroppedQueue>,
    /// The number of entries in them.
    in_queues: u64,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct DroppedQueue {
    host: HostKey,
    origin: String,
    drained: Drained,
    why: NotFetched,
    cause: Option<Arc<Failure>>,
}

impl HostQueues {
    pub(super) fn is_dropped_full(&self) -> bool {
        self.dropped.single.len() >= MAX_DROPPED
    }

    /// Drops an entry that is not queued.
    pub(crate) fn drop_entry(&mut self, entry: Entry, why: NotFetched, cause: Option<Arc<Failure>>) {
        self.dropped.single.push_back(Dropped::new(entry, why, cause));
    }

    /// Drops the queued pages of a host that were not fetched in this crawl before: its budget is spent.
    pub(crate) fn drop_new_pages_of(&mut self, key: &HostKey, now: Time) {
        let ids = self.get(key).map(|host| host.origin_ids()).unwrap_or_default();
        for id in ids {
            self.drop_queue(key, id, None, now);
        }
    }

    /// Drops the queue of an origin that was given up for a failure; without one, those of its pages that would spend a budget. Returns the
    /// number of pages.
    pub(super) fn drop_queue(&mut self, key: &HostKey, id: OriginId, cause: Option<&Arc<Failure>>, now: Time) -> u64 {
        let mut drained = Drained::default();
        self.change(key, now, |host, rules| {
            drained = host.drain(key, id, cause.is_some(), rules);
            host.refresh(id, now, rules);
        });
        let pages = drained.pages();
        if drained.len() > 0 {
            self.dropped.in_queues += drained.len();
            self.dropped.queues.push_back(DroppedQueue {
                origin: id.text(key),
                host: key.clone(),
                drained,
                why: cause.map_or(NotFetched::HostBudget, |_| NotFetched::HostDown),
                cause: cause.cloned(),
            });
        }
        pages
    }

    /// Dropped entries, at most [`MAX_DROPPED`] at a time.
    pub(crate) fn take_dropped(&mut self) -> Vec<Dropped> {
        let single = &mut self.dropped.single;
        let mut dropped: Vec<_> = single.drain(..single.len().min(MAX_DROPPED)).collect();
        while dropped.len() < MAX_DROPPED {
            let Some(queue) = self.dropped.queues.front_mut() else {
                break;
            };
            match queue.next(self.rules.segments()) {
                Some(entry) => {
                    self.dropped.in_queues = self.dropped.in_queues.saturating_sub(1);
                    dropped.push(Dropped::new(entry, queue.why, queue.cause.clone()));
                }
                None => {
                    self.dropped.queues.pop_front();
                }
            }
        }
        dropped
    }

    pub(crate) fn dropped_len(&self) -> u64 {
        self.dropped.single.len() as u64 + self.dropped.in_queues
    }

    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped_len() > 0
    }

    /// Visits the entries that were dropped and not returned yet.
    pub(crate) fn visit_dropped(&self, visit: &mut dyn FnMut(Entry)) {
        self.dropped.visit(self.rules.segments(), visit);
    }

    /// Returns why a key was dropped, if it was not returned yet. Cost: a scan of all such entries.
    pub(crate) fn why_dropped(&self, key: &str) -> Option<NotFetched> {
        let single = self.dropped.single.iter().find(|one| one.entry.key() == key);
        let has_key = |queue: &&DroppedQueue| queue.entries(self.rules.segments()).any(|entry| entry.key() == key);
        let queue = || self.dropped.queues.iter().find(has_key);
        single.map(|one| one.why).or_else(|| queue().map(|queue| queue.why))
    }
}

impl DroppedEntries {
    /// Visits all entries. Cost: a copy of each.
    pub(super) fn visit(&self, segments: Option<&dyn SegmentStore>, visit: &mut dyn FnMut(Entry)) {
        self.single.iter().for_each(|one| visit(one.entry.clone()));
        for queue in &self.queues {
            queue.entries(segments).for_each(&mut *visit);
        }
    }
}

impl DroppedQueue {
    fn entries<'a>(&'a self, segments: Option<&'a dyn SegmentStore>) -> impl Iterator<Item = Entry> + 'a {
        let origin_ref = OriginRef::new(&self.host, &self.origin, segments);
        let packed = self.drained.packed.iter();
        let packed = packed.flat_map(move |packed| packed.iter(origin_ref));
        packed.chain(self.drained.entries.iter().cloned())
    }

    fn next(&mut self, segments: Option<&dyn SegmentStore>) -> Option<Entry> {
        let origin_ref = OriginRef::new(&self.host, &self.origin, segments);
        while let Some(packed) = self.drained.packed.last_mut() {
            if let Some(entry) = packed.pop(origin_ref) {
                return Some(entry);
            }
            self.drained.packed.pop();
        }
        self.drained.entries.pop()
    }
}
