//! What leaves the queues without being fetched: handed over in pieces, however much it is at once.

use std::collections::VecDeque;
use std::sync::Arc;

use super::HostQueues;
use super::host::budget::TakenOut;
use super::origin_queue::OriginId;
use super::packed_entries::Place;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::lease::{Dropped, MAX_DROPPED, NotFetched};
use crate::time::Time;
use crate::url::HostKey;

/// What was dropped, and is to be handed over.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// One by one, as their turn came.
    single: Vec<Dropped>,
    /// Whole queues of origins.
    queues: VecDeque<Queue>,
}

#[derive(Debug)]
struct Queue {
    host: HostKey,
    origin: String,
    taken_out: TakenOut,
    why: NotFetched,
    cause: Option<Arc<Failure>>,
}

impl HostQueues {
    /// Says whether so much was dropped that it should be handed over first.
    pub(super) fn is_leaving_full(&self) -> bool {
        self.leaving.single.len() >= MAX_DROPPED
    }

    /// Drops an entry whose turn had come.
    pub(super) fn drop_entry(&mut self, entry: Entry, why: NotFetched, cause: Option<Arc<Failure>>) {
        self.leaving.single.push(Dropped::new(entry, why, cause));
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
        self.leaving.queues.push_back(Queue {
            origin: id.text(key),
            host: key.clone(),
            taken_out,
            why,
            cause,
        });
        pages
    }

    /// Hands over what was dropped, at most [`MAX_DROPPED`] at a time.
    pub(crate) fn take_dropped(&mut self) -> Vec<Dropped> {
        let mut dropped = std::mem::take(&mut self.leaving.single);
        while dropped.len() < MAX_DROPPED {
            let Some(queue) = self.leaving.queues.front_mut() else {
                break;
            };
            match queue.next() {
                Some(entry) => dropped.push(Dropped::new(entry, queue.why, queue.cause.clone())),
                None => {
                    self.leaving.queues.pop_front();
                }
            }
        }
        dropped
    }

    /// Says whether anything was dropped that is to be handed over.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.leaving.single.is_empty() || self.leaving.queues.iter().any(|queue| !queue.taken_out.is_empty())
    }
}

impl Queue {
    fn next(&mut self) -> Option<Entry> {
        let place = Place {
            host: &self.host,
            origin: &self.origin,
        };
        while let Some(packed) = self.taken_out.packed.last_mut() {
            if let Some(entry) = packed.pop(place) {
                return Some(entry);
            }
            self.taken_out.packed.pop();
        }
        self.taken_out.entries.pop()
    }
}
