//! Leasing: the next entries, and the entries that were dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use crate::entry::{Entry, Purpose};
use crate::hosts::{LeasedEntry, counts_as_page};
use crate::lease::{Lease, LeaseId, Leasing};
use crate::time::Time;

/// Bits of a lease id below the milliseconds of the first lease.
const IDS_PER_MILLISECOND_BITS: u32 = 20;

/// What is in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Leases {
    pub(super) in_flight: BTreeMap<LeaseId, LeasedEntry>,
    /// Those that may spend the page budget.
    pages: u64,
    last_id: u64,
    /// The last call returned dropped entries: this one returns leases first.
    has_just_dropped: bool,
}

impl Leases {
    pub(super) fn end(&mut self, id: LeaseId) -> Option<LeasedEntry> {
        let leased = self.in_flight.remove(&id)?;
        self.pages -= u64::from(counts_as_page(&leased.entry));
        Some(leased)
    }

    fn begin(&mut self, leased: LeasedEntry, now: Time) -> LeaseId {
        if self.last_id == 0 {
            self.last_id = now.as_millis() << IDS_PER_MILLISECOND_BITS;
        }
        self.last_id += 1;
        self.pages += u64::from(counts_as_page(&leased.entry));
        self.in_flight.insert(LeaseId(self.last_id), leased);
        LeaseId(self.last_id)
    }
}

impl State {
    pub(super) fn lease_ready(&mut self, now: Time, up_to: usize) -> Leasing {
        if self.sieve.queue().has_dropped() && !self.tables.leases.has_just_dropped {
            return self.return_dropped(now);
        }
        self.tables.leases.has_just_dropped = false;
        self.hold_new(now);
        self.release_postponed(now);
        loop {
            let is_outbox_full = self.is_outbox_full();
            let ready = self.take_ready(now, if is_outbox_full { 0 } else { up_to });
            if !ready.is_empty() {
                return Leasing::Ready(ready);
            }
            if self.sieve.queue().has_dropped() {
                return self.return_dropped(now);
            }
            if self.is_drained() {
                return Leasing::Drained;
            }
            let revisits_alone = self.sieve.queue().holds_new;
            if self.budget_left() == 0 && !revisits_alone {
                return if self.tables.leases.in_flight.is_empty() {
                    Leasing::BudgetSpent
                } else {
                    Leasing::AllLeased
                };
            }
            if is_outbox_full {
                return Leasing::AllLeased;
            }
            if up_to == 0 && self.hosts().is_due(now) {
                return Leasing::Ready(ready);
            }
            if !self.release_postponed(now) {
                let nothing = match revisits_alone && self.tables.leases.in_flight.is_empty() {
                    true => Leasing::BudgetSpent,
                    false => Leasing::AllLeased,
                };
                return self.hosts().next_time().map_or(nothing, Leasing::NotUntil);
            }
        }
    }

    fn take_ready(&mut self, now: Time, up_to: usize) -> Vec<Lease> {
        let mut ready = Vec::new();
        while ready.len() < up_to && (self.budget_left() > 0 || self.sieve.queue().holds_new) {
            let Some((leased, delay)) = self.hosts().take(now) else {
                break;
            };
            let (entry, pause) = (Arc::clone(&leased.entry), leased.gap);
            ready.push(Lease {
                id: self.tables.leases.begin(leased, now),
                wants_fingerprint: self.is_compared(&entry),
                delay,
                pause,
                entry,
            });
        }
        ready
    }

    fn return_dropped(&mut self, now: Time) -> Leasing {
        let mut dropped = self.hosts().take_dropped();
        for one in &mut dropped {
            self.count_not_fetched(&one.entry.purpose, one.why);
            if let Purpose::Sitemap(_) = one.entry.purpose {
                self.tables.sitemaps.ended(one.entry.key(), now);
            }
            one.entry.page = self.page_of(&one.entry);
        }
        self.tables.leases.has_just_dropped = true;
        Leasing::Dropped(dropped)
    }

    /// Returns whether a page is compared with others. The choice is under a secret hash, so that a site cannot predict it.
    fn is_compared(&self, entry: &Entry) -> bool {
        if !counts_as_page(entry) {
            return false;
        }
        let (traps, compare_one_of) = (&self.sieve.queue().traps, self.config.traps.compare_one_of.get());
        compare_one_of == 1
            || traps.bounds_near_duplicates()
                && (self
                    .tables
                    .hash
                    .of(&*entry.url)
                    .is_multiple_of(u64::from(compare_one_of))
                    || traps.suspects(&entry.queue))
    }

    /// Once the page budget is spent, revisits alone are asked for, if pages are kept fresh.
    fn hold_new(&mut self, now: Time) {
        let held = self.sieve.queue().holds_new;
        // A page that failed, and is asked for again, gives its place back.
        let has_little = held
            && self
                .max_pages
                .is_some_and(|most| self.tables.pages.spent() >= most - most / 64);
        let holds = self.freshness.keeps_fresh && (self.is_budget_spent() || has_little);
        if holds != held {
            let config = self.config.under(&self.tables.ordered);
            self.hosts().set_holds_new(holds);
            self.hosts().place_anew(&config, &config, now);
        }
    }

    /// Queues some of the postponed pages, if nothing but revisits waits or is in flight. Returns whether there were any.
    fn release_postponed(&mut self, now: Time) -> bool {
        let queues = self.sieve.queue();
        if queues.postponed() == 0 || queues.has_new() || self.budget_left() == 0 {
            return false;
        }
        let mut in_flight = self.tables.leases.in_flight.values();
        !in_flight.any(|leased| !leased.entry.is_revisit()) && self.hosts().release_postponed(now)
    }

    pub(super) fn budget_left(&self) -> u64 {
        self.max_pages.map_or(u64::MAX, |max| {
            max.saturating_sub(self.tables.pages.spent() + self.tables.leases.pages)
        })
    }
}
