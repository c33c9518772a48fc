//! The round of hosts that can be asked now, one entry each.

use std::net::IpAddr;

use super::host::{HostState, HostTurn};
use super::{HostQueues, LeasedEntry, origin_of};
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::time::Time;
use crate::traps::Screening;
use crate::url::HostKey;

impl HostQueues {
    /// Hands out the next entry that may be asked for now. With the last lease a host may have, it is taken away. What is not to be
    /// fetched is dropped, or waits behind everything else, on the way.
    pub(crate) fn take(&mut self, now: Time) -> Option<LeasedEntry> {
        while !self.is_dropped_full() {
            let key = self.first_due(now)?;
            let admitted_by = self.leave_round();
            let host = self.hosts.get_mut(&key)?;
            let before = host.queued();
            let taking = host.take(&key, now, &self.rules);
            // Taking may have found out that it is to be looked up, and handing out ends its being fresh.
            let address = host.shared_address(now);
            self.queued = self.queued + host.queued() - before;
            let leased = taking.and_then(|taking| self.screen(&key, taking, now));
            let leased = leased.and_then(|(entry, is_probe)| {
                Some(LeasedEntry {
                    gap: self.hosts.get_mut(&key)?.lease(&entry, now),
                    address,
                    entry,
                    started: now,
                    is_probe,
                })
            });
            if let (Some(address), Some(_)) = (address, &leased) {
                self.addresses.start(address, now);
            }
            self.update_state(&key, now);
            self.admit_waiting(admitted_by, now);
            if leased.is_some() {
                return leased;
            }
        }
        None
    }

    /// Decides whether what has its turn is fetched after all.
    fn screen(&mut self, key: &HostKey, taking: HostTurn, now: Time) -> Option<(Entry, bool)> {
        let (entry, is_probe) = match taking {
            HostTurn::Drop(entry, why, cause) => {
                self.drop_entry(entry, why, cause);
                return None;
            }
            HostTurn::Fetch { entry, is_probe } => (entry, is_probe),
        };
        let screening = self.traps.screen(&entry);
        if screening == Screening::Fetch {
            return Some((entry, is_probe));
        }
        if is_probe {
            self.end_probe(key, origin_of(&entry), now);
        }
        if screening == Screening::Postpone {
            self.postpone(&entry, now);
        } else {
            self.drop_entry(entry, NotFetched::NearDuplicates, None);
        }
        None
    }

    /// Says whether something can be handed out now, without doing so.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        self.first_due(now).is_some()
    }

    /// Finds the host whose turn it is, and lets it stay at the head of the round.
    fn first_due(&mut self, now: Time) -> Option<HostKey> {
        self.wake(now);
        while let Some(key) = self.due.front().cloned() {
            if let Some(host) = self.hosts.get_mut(&key) {
                let is_due = host.next_state(now, &self.rules) == HostState::Due;
                let address = host.admitted_by();
                if is_due && address.is_none_or(|address| self.addresses.is_free(address, now)) {
                    return Some(key);
                }
                // What made it due has changed since.
                let admitted_by = self.leave_round();
                self.update_state(&key, now);
                self.admit_waiting(admitted_by, now);
            } else {
                self.due.pop_front();
            }
        }
        None
    }

    /// Takes the host at the head of the round out of it. Returns the address that had let it in, which may let in another.
    fn leave_round(&mut self) -> Option<IpAddr> {
        let key = self.due.pop_front()?;
        if self.due.len() < self.due.capacity() / 4 {
            self.due.shrink_to(self.due.capacity() / 2);
        }
        let host = self.hosts.get_mut(&key)?;
        host.state = HostState::Idle;
        let address = host.admitted_by()?;
        host.set_admitted_by(None);
        self.addresses.left_round(address);
        Some(address)
    }

    /// Lets hosts of an address into the round, as many as it may be asked by now.
    pub(super) fn admit_waiting(&mut self, address: Option<IpAddr>, now: Time) {
        let Some(address) = address else { return };
        while let Some(key) = self.addresses.next(address, now) {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            host.state = HostState::Idle;
            if host.shared_address(now) == Some(address) && host.next_state(now, &self.rules) == HostState::Due {
                host.state = HostState::Due;
                host.set_admitted_by(Some(address));
                self.addresses.admit(address);
                self.due.push_back(key);
            } else {
                self.update_state(&key, now);
            }
        }
    }
}
