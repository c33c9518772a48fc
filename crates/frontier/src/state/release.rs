//! Releasing leases whose requests have ended without a result, or were not made.

use std::sync::Arc;

use super::State;
use crate::entry::Purpose;
use crate::hosts::{Address, LeasedEntry};
use crate::lease::{LeaseId, NotFetched};
use crate::time::Time;

impl State {
    /// Queues everything again that is in flight, the oldest lease first. Returns the number of entries.
    pub(super) fn release_all(&mut self, now: Time) -> u64 {
        let leases: Vec<_> = self.tables.leases.in_flight.keys().copied().collect();
        self.release(&leases, true, now)
    }

    /// Queues entries again, whose requests were made or not. Returns their number.
    pub(super) fn release(&mut self, leases: &[LeaseId], were_made: bool, now: Time) -> u64 {
        let mut released = 0;
        for id in leases {
            if let Some(leased) = self.tables.leases.end(*id) {
                self.queue_released(leased, were_made, now);
                released += 1;
            }
        }
        released
    }

    /// Queues an entry again, or drops it with its origin. Unlike a retry, it does not count: nothing failed.
    fn queue_released(&mut self, leased: LeasedEntry, was_made: bool, now: Time) {
        if leased.entry.purpose == Purpose::Address {
            self.hosts().end_request(&leased, false, now);
            self.hosts().set_address(&leased.entry.queue, Address::Unknown, now);
            return;
        }
        self.hosts().end_request(&leased, was_made, now);
        // Without a result, it was no probe of its origin.
        self.hosts().probe_not_sent(&leased, now);
        let mut entry = Arc::unwrap_or_clone(leased.entry);
        entry.attempts = entry.attempts.saturating_sub(1);
        match &entry.purpose {
            Purpose::Robots(origin) => {
                if entry.hops == 0 && entry.deferrals == 0 && !entry.is_robots_elsewhere() {
                    self.hosts().ask_robots_again(origin, entry.attempts, now, now);
                } else {
                    self.hosts().enqueue(entry, now);
                }
            }
            Purpose::Page | Purpose::Sitemap(_) | Purpose::Address => {
                entry.due = now;
                if self.sieve.queue().gave_up(&entry.queue, &entry.url) {
                    self.hosts().drop_entry(entry, NotFetched::HostDown, None);
                } else {
                    self.hosts().enqueue(entry, now);
                }
            }
        }
    }
}
