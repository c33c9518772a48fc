//! The round of hosts that can be asked now, one entry each.

use std::net::IpAddr;

use super::{HostQueues, Taken};
use crate::host::Place;
use crate::time::Time;
use crate::url::HostKey;

impl HostQueues {
    /// Hands out the next entry that may be asked for now. With the last lease a host may have, it is taken away.
    pub(crate) fn take(&mut self, now: Time) -> Option<Taken> {
        while let Some(key) = self.first_due(now) {
            let let_in_by = self.leave_round();
            let host = self.hosts.get_mut(&key)?;
            let before = host.queued();
            let entry = host.take(now, &self.rules);
            // Taking may have found out that it is to be looked up, and handing out ends its being fresh.
            let address = host.shared_address(now);
            self.queued = self.queued + host.queued() - before;
            let taken = entry.map(|entry| Taken {
                gap: host.lease(&entry, now),
                address,
                entry,
                started: now,
                is_repeat: false,
            });
            if let (Some(address), Some(_)) = (address, &taken) {
                self.addresses.start(address, now);
            }
            self.place(&key, now);
            self.serve(let_in_by, now);
            if taken.is_some() {
                return taken;
            }
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
                let is_due = host.next_place(now, &self.rules) == Place::Due;
                let address = host.let_in_by;
                if is_due && address.is_none_or(|address| self.addresses.is_free(address, now)) {
                    return Some(key);
                }
                // What made it due has changed since.
                let let_in_by = self.leave_round();
                self.place(&key, now);
                self.serve(let_in_by, now);
            } else {
                self.due.pop_front();
            }
        }
        None
    }

    /// Takes the host at the head of the round out of it. Returns the address that had let it in, which may let in another.
    fn leave_round(&mut self) -> Option<IpAddr> {
        let key = self.due.pop_front()?;
        let host = self.hosts.get_mut(&key)?;
        host.place = Place::Idle;
        let address = host.let_in_by.take()?;
        self.addresses.leave(address);
        Some(address)
    }

    /// Lets hosts of an address into the round, as many as it may be asked by now.
    pub(super) fn serve(&mut self, address: Option<IpAddr>, now: Time) {
        let Some(address) = address else { return };
        while let Some(key) = self.addresses.next(address, now) {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            host.place = Place::Idle;
            if host.shared_address(now) == Some(address) && host.next_place(now, &self.rules) == Place::Due {
                host.place = Place::Due;
                host.let_in_by = Some(address);
                self.addresses.let_in(address);
                self.due.push_back(key);
            } else {
                self.place(&key, now);
            }
        }
    }
}
