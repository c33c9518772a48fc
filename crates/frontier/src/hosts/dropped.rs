//! What leaves the queues without being fetched: handed over in pieces, however much it is at once.

use std::collections::VecDeque;
use std::sync::Arc;

use super::HostQueues;
use super::host::budget::TakenOut;
use super::origin_queue::OriginId;
use super::packed_entries::OriginRef;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::lease::{Dropped, MAX_DROPPED, NotFetched};
use crate::time::Time;
use crate::url::HostKey;

/// What was dropped, and is to be handed over.
#[derive(Debug, Default)]
pub(super) struct DroppedEntries {
    /// One by one, as their turn came.
    single: Vec<Dropped>,
    /// Whole queues of origins, none of them empty when it came.
    queues: VecDeque<DroppedQueue>,
    /// How many entries they have.
    in_queues: u64,
}

#[derive(Debug)]
struct DroppedQueue {
    host: HostKey,
    origin: String,
    taken_out: TakenOut,
    why: NotFetched,
    cause: Option<Arc<Failure>>,
}

impl HostQueues {
    /// Says whether so much was dropped that it should be handed over first.
    pub(super) fn is_dropped_full(&self) -> bool {
        self.dropped.single.len() >= MAX_DROPPED
    }

    /// Drops an entry whose turn had come.
    pub(super) fn drop_entry(&mut self, entry: Entry, why: NotFetched, cause: Option<Arc<Failure>>) {
        self.dropped.single.push(Dropped::new(entry, why, cause));
    }

    /// Takes the pages of a host out of its queue, because they will not be fetched. Returns how many.
    pub(crate) fn drop_pages_of(&mut self, key: &HostKey, why: NotFetched, now: Time) -> u64 {
        let ids = self.get(key).map(|host| host.origin_ids()).unwrap_or_default();
        ids.into_iter()
            .map(|id| self.drop_queue(key, id, true, why, None, now))
            .sum()
    }

    /// Takes out what waits for an origin. Returns how many pages.
    pub(super) fn drop_queue(
        &mut self,
        key: &HostKey,
        id: OriginId,
        pages_only: bool,
        why: NotFetched,
        cause: Option<Arc<Failure>>,
        now: Time,
    ) -> u64 {
        let taken_out = self.change_origin(key, id, now, |host| host.take_out(id, pages_only));
        let taken_out = taken_out.unwrap_or_default();
        let pages = taken_out.pages();
        if !taken_out.is_empty() {
            self.dropped.in_queues += taken_out.len();
            self.dropped.queues.push_back(DroppedQueue {
                origin: id.text(key),
                host: key.clone(),
                taken_out,
                why,
                cause,
            });
        }
        pages
    }

    /// Hands over what was dropped, at most [`MAX_DROPPED`] at a time.
    pub(crate) fn take_dropped(&mut self) -> Vec<Dropped> {
        let mut dropped = std::mem::take(&mut self.dropped.single);
        while dropped.len() < MAX_DROPPED {
            let Some(queue) = self.dropped.queues.front_mut() else {
                break;
            };
            match queue.next() {
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

    /// Returns how many entries were dropped that are to be handed over.
    pub(crate) fn dropped_len(&self) -> u64 {
        self.dropped.single.len() as u64 + self.dropped.in_queues
    }

    /// Says whether anything was dropped that is to be handed over.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped_len() > 0
    }

    /// Says why the URL of a key was dropped, if it is to be handed over. Costs a look at all that is.
    pub(crate) fn why_dropped(&self, key: &str) -> Option<NotFetched> {
        let single = self.dropped.single.iter().find(|one| one.entry.key() == key);
        let queue = || self.dropped.queues.iter().find(|queue| queue.has(key));
        single.map(|one| one.why).or_else(|| queue().map(|queue| queue.why))
    }
}

impl DroppedQueue {
    fn has(&self, key: &str) -> bool {
        let origin_ref = OriginRef {
            host: &self.host,
            origin: &self.origin,
        };
        let packed = self.taken_out.packed.iter().flat_map(|packed| packed.iter(origin_ref));
        packed
            .chain(self.taken_out.entries.iter().cloned())
            .any(|entry| entry.key() == key)
    }

    fn next(&mut self) -> Option<Entry> {
        let origin_ref = OriginRef {
            host: &self.host,
            origin: &self.origin,
        };
        while let Some(packed) = self.taken_out.packed.last_mut() {
            if let Some(entry) = packed.pop(origin_ref) {
                return Some(entry);
            }
            self.taken_out.packed.pop();
        }
        self.taken_out.entries.pop()
    }
}
