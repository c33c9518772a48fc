//! The round of due hosts: one entry of each in turn, by their classes (`round.rs`). A host of which only the robots.txt was fetched comes first, once.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::host::{Host, HostState};
use super::{HostQueues, LeasedEntry, is_page, origin_of};
use crate::class::Class;
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::time::Time;
use crate::traps::Screening;
use crate::url::HostKey;

impl HostQueues {
    /// Returns the next entry to lease, and the delay of its host. A host with all its requests in flight leaves the round. Entries that
    /// are not fetched are dropped or postponed.
    pub(crate) fn take(&mut self, now: Time) -> Option<(LeasedEntry, Duration)> {
        while !self.is_dropped_full() && !self.config.is_broken() {
            let (class, key) = self.first_due(now)?;
            let admitted_by = self.leave_round(class, &key);
            let host = self.hosts.get_mut(&key)?;
            let before = host.waiting();
            let taken = host.take(&key, now, &self.config);
            // Before the lease, which ends the freshness of the address.
            let address = host.shared_address(now);
            self.waiting.update(before, host.waiting());
            let leased = taken.and_then(|(entry, is_probe)| {
                let mut entry = self.screened(entry, is_probe, now)?;
                entry.attempts += 1;
                let host = self.hosts.get_mut(&key)?;
                let leased = LeasedEntry {
                    gap: host.lease(&entry, now),
                    address,
                    entry: Arc::new(entry),
                    started: now,
                    is_probe,
                };
                Some((leased, host.delay(&self.config)))
            });
            if let (Some(address), Some(_)) = (address, &leased) {
                self.addresses.start(address, now);
                self.addresses.waiting(address).count_turn(class);
            }
            self.update_state(&key, now);
            self.admit_waiting(admitted_by, now);
            if leased.is_some() {
                self.due.count_turn(class);
                return leased;
            }
        }
        None
    }

    /// Returns an entry that is fetched. Drops or postpones any other.
    fn screened(&mut self, entry: Entry, is_probe: bool, now: Time) -> Option<Entry> {
        let host = self.hosts.get(entry.queue.as_str());
        let screening = self.screen(host.as_deref(), true, &entry);
        if screening == Screening::Fetch {
            return Some(entry);
        }
        if is_probe {
            self.end_probe(&entry.queue, origin_of(&entry), now);
        }
        if let Screening::Drop(why, cause) = screening {
            self.drop_entry(entry, why, cause);
        } else {
            self.postpone(&entry, now);
        }
        None
    }

    /// Decides whether an entry is fetched at its turn: a page by the policy of its host, by the rules of its origin, if they are known, and by its near-duplicates. Leases
    /// and `why` both decide by it.
    pub(super) fn screen(&self, host: Option<&Host>, are_rules_known: bool, entry: &Entry) -> Screening {
        let is_closed = host.is_some_and(|host| host.policy().is_closed());
        if is_page(entry) && (is_closed || self.config.drops(entry.key())) {
            return Screening::Drop(NotFetched::ByOrder, None);
        }
        let origin = host.and_then(|host| host.find(origin_of(entry)));
        let forbidden = origin
            .filter(|_| is_page(entry) && are_rules_known)
            .and_then(|origin| origin.forbids(entry, &self.config));
        let by_rules = forbidden.map(|(why, cause)| Screening::Drop(why, cause));
        by_rules.unwrap_or_else(|| self.traps.screen(entry))
    }

    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        self.first_due(now).is_some()
    }

    fn first_due(&mut self, now: Time) -> Option<(Class, HostKey)> {
        self.wake(now);
        while let Some((class, key)) = self.due.first() {
            let Some(host) = self
                .hosts
                .get_mut(&key)
                .filter(|host| host.state == HostState::Due(class))
            else {
                // It has a place among hosts of a better class, or had its turn there.
                self.remove_place(class, &key);
                self.update_state(&key, now);
                continue;
            };
            let is_due = host.next_state(now, &self.config) == HostState::Due(class);
            let address = host.admitted_by();
            if is_due && address.is_none_or(|address| self.addresses.is_free(address, now, &self.config)) {
                return Some((class, key));
            }
            // It is not due any more, or its class is another.
            let admitted_by = self.leave_round(class, &key);
            self.update_state(&key, now);
            self.admit_waiting(admitted_by, now);
        }
        None
    }

    /// Removes the host at the head of a class. Returns the address that admitted it, which may admit another.
    fn leave_round(&mut self, class: Class, key: &HostKey) -> Option<IpAddr> {
        let host = self.remove_place(class, key)?;
        host.state = HostState::Idle;
        let address = host.admitted_by()?;
        host.set_admitted(false);
        self.addresses.left_round(address);
        Some(address)
    }

    /// Removes the place at the head of a class, which is that of this host.
    fn remove_place(&mut self, class: Class, key: &HostKey) -> Option<&mut Host> {
        self.due.remove_first(class);
        let host = self.hosts.get_mut(key)?;
        host.left_place(class, None);
        Some(host)
    }

    /// Admits waiting hosts of an address to the round, as many as it allows now.
    pub(super) fn admit_waiting(&mut self, address: Option<IpAddr>, now: Time) {
        let Some(address) = address else { return };
        while let Some((class, key)) = self.addresses.next(address, now, &self.config) {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            host.left_place(class, Some(address));
            if host.state != HostState::WaitingForAddress(class) {
                self.update_state(&key, now);
                continue;
            }
            host.state = HostState::Idle;
            let state = host.next_state(now, &self.config);
            if let HostState::Due(class) = state
                && host.shared_address(now) == Some(address)
            {
                host.state = state;
                host.set_admitted(true);
                self.addresses.admit(address);
                if host.takes_place(None) {
                    self.due.join(class, key, host.is_just_met());
                }
            } else {
                self.update_state(&key, now);
            }
        }
    }
}
