//! Releasing leases whose requests have ended without a result, or were not made.

use super::State;
use crate::entry::{Entry, Purpose, origin_text};
use crate::hosts::{LeasedEntry, counts_as_page};
use crate::lease::{LeaseId, NotFetched};
use crate::time::Time;

impl State {
    /// Queues everything again that is in flight, the oldest lease first. Returns the number of entries.
    pub(super) fn release_all(&mut self, now: Time) -> u64 {
        let mut leases: Vec<_> = std::mem::take(&mut self.tables.leases).into_iter().collect();
        leases.sort_unstable_by_key(|(id, _)| *id);
        let released = leases.len() as u64;
        for (_, leased) in leases {
            self.release(leased, true, now);
        }
        released
    }

    /// Queues entries again whose requests were not made. Returns their number.
    pub(super) fn release_unsent(&mut self, leases: &[LeaseId], now: Time) -> u64 {
        let mut released = 0;
        for id in leases {
            if let Some(leased) = self.tables.leases.remove(id) {
                self.release(leased, false, now);
                released += 1;
            }
        }
        released
    }

    fn release(&mut self, mut leased: LeasedEntry, was_made: bool, now: Time) {
        leased.entry.attempts = leased.entry.attempts.saturating_sub(1);
        match leased.entry.purpose.clone() {
            Purpose::Address => {
                self.hosts().request_not_made(&leased, now);
                self.hosts().address_unknown(&leased.entry.queue, now);
            }
            Purpose::Robots(origin) => {
                self.end_released(&leased, was_made, now);
                let entry = leased.entry;
                let is_first_try = entry.hops == 0 && entry.deferrals == 0;
                if is_first_try && origin_text(&entry.url) == origin.as_str() {
                    self.hosts().ask_robots_again(&origin, entry.attempts, now, now);
                } else {
                    self.hosts().enqueue(entry, now);
                }
            }
            Purpose::Page | Purpose::Sitemap(_) => {
                self.tables.leased_pages -= u64::from(counts_as_page(&leased.entry));
                self.end_released(&leased, was_made, now);
                leased.entry.due = now;
                self.queue_released(leased.entry, now);
            }
        }
    }

    /// Ends a request without a result, which was thus no probe of its origin.
    fn end_released(&mut self, leased: &LeasedEntry, was_made: bool, now: Time) {
        self.end_request(leased, was_made, now);
        self.hosts().probe_not_sent(leased, now);
    }

    /// Queues a page or a sitemap again, or drops it with its origin. Unlike a retry, it does not count: nothing failed.
    fn queue_released(&mut self, entry: Entry, now: Time) {
        if self.sieve.queue().gave_up(&entry.queue, &entry.url) {
            self.hosts().drop_entry(entry, NotFetched::HostDown, None);
        } else {
            self.hosts().enqueue(entry, now);
        }
    }
}
