//! Entries that leave the queues without being fetched. They are returned in batches, however many are dropped at once.

use std::collections::VecDeque;
use std::sync::Arc;

use super::HostQueues;
use super::origin_id::OriginId;
use super::origin_queue::Drained;
use super::packed_entries::OriginRef;
use super::packed_entries::closed::SegmentStore;
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

    /// Drops the queues of a host.
    pub(crate) fn drop_queues(&mut self, key: &HostKey, why: NotFetched, now: Time) {
        let ids = self.get(key).map(|host| host.origin_ids()).unwrap_or_default();
        for id in ids {
            self.drop_queue(key, id, (why, None), now);
        }
    }

    /// Drops the queue of an origin, for a reason and its cause; of one whose budget is spent, the pages that were not fetched in this crawl
    /// before. Returns the number of pages.
    pub(super) fn drop_queue(
        &mut self,
        key: &HostKey,
        id: OriginId,
        (why, cause): (NotFetched, Option<&Arc<Failure>>),
        now: Time,
    ) -> u64 {
        let mut drained = Drained::default();
        self.change(key, now, |host, config| {
            drained = host.drain(key, id, why != NotFetched::HostBudget, config);
            host.refresh(id, now, config);
        });
        let pages = drained.pages();
        if drained.len() > 0 {
            self.dropped.in_queues += drained.len();
            self.dropped.queues.push_back(DroppedQueue {
                origin: id.text(key),
                host: key.clone(),
                drained,
                why,
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
            match queue.next(self.config.segments()) {
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

    /// Queues what was dropped by order, was not returned yet, and is allowed now.
    pub(crate) fn take_back_dropped(&mut self, now: Time) {
        let dropped = std::mem::take(&mut self.dropped);
        let is_allowed = |queues: &Self, host: &HostKey, why| why == NotFetched::ByOrder && !queues.is_closed(host);
        for one in dropped.single {
            match is_allowed(self, &one.entry.queue, one.why) {
                true => self.enqueue(one.entry, now),
                false => self.dropped.single.push_back(one),
            }
        }
        let segments = self.config.segments.clone();
        for mut queue in dropped.queues {
            if is_allowed(self, &queue.host, queue.why) {
                while let Some(entry) = queue.next(segments.as_deref()) {
                    self.enqueue(entry, now);
                }
            } else {
                self.dropped.in_queues += queue.drained.len();
                self.dropped.queues.push_back(queue);
            }
        }
    }

    pub(crate) fn dropped_len(&self) -> u64 {
        self.dropped.single.len() as u64 + self.dropped.in_queues
    }

    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped_len() > 0
    }

    /// Iterates over the entries that were dropped and not returned yet, with the reasons. Cost: a copy of each.
    pub(crate) fn dropped_entries(&self) -> impl Iterator<Item = (Entry, NotFetched)> {
        let segments = self.config.segments();
        let single = self.dropped.single.iter().map(|one| (one.entry.clone(), one.why));
        let queues = self.dropped.queues.iter();
        single.chain(queues.flat_map(move |queue| queue.entries(segments).map(move |entry| (entry, queue.why))))
    }
}

impl DroppedQueue {
    fn entries<'a>(&'a self, segments: Option<&'a dyn SegmentStore>) -> impl Iterator<Item = Entry> + 'a {
        let origin_ref = OriginRef::new(&self.host, &self.origin, segments);
        let packed = self.drained.packed.iter();
        let packed = packed.flat_map(move |(class, packed)| packed.iter(origin_ref.of_class(*class)));
        packed.chain(self.drained.entries.iter().cloned())
    }

    fn next(&mut self, segments: Option<&dyn SegmentStore>) -> Option<Entry> {
        let origin_ref = OriginRef::new(&self.host, &self.origin, segments);
        while let Some((class, packed)) = self.drained.packed.last_mut() {
            if let Some(entry) = packed.pop(origin_ref.of_class(*class)) {
                return Some(entry);
            }
            self.drained.packed.pop();
        }
        self.drained.entries.pop()
    }
}
