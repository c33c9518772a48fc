//! The workbench: resident hosts, what they take, and which of them are evicted first.
//!
//! Hosts take turns in a circle, so the host that was not used for longest is the next one to be used. An order by the last use would
//! evict each host just before its turn. So most of the room is for hosts that are **kept** for as long as they have turns at all, and
//! the others pass through the rest of the room in the order in which they came, which is that of their next turns.

use std::collections::VecDeque;

use crate::hosts::host::Host;
use crate::url::HostKey;

/// What a host takes in the table, in the rounds and with its name, in bytes.
const BYTES_OF_NAME: usize = 200;

/// A host in memory.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) host: Host,
    /// The number of the last copy in which it is.
    pub(super) copied_in: u32,
    /// Its place in a queue of the workbench is the one with this number; 0 for none.
    seat: u32,
    /// The bytes that are counted for it.
    bytes: u32,
    /// How many hosts had come when it came, or was looked at, and when it was used last.
    came_at: u32,
    used_at: u32,
    is_kept: bool,
}

impl Resident {
    pub(super) fn new(host: Host, copied_in: u32) -> Self {
        Self {
            host,
            copied_in,
            seat: 0,
            bytes: 0,
            came_at: 0,
            used_at: 0,
            is_kept: false,
        }
    }

    /// Returns whether it has this seat.
    pub(super) fn has_seat(&self, seat: &Seat) -> bool {
        self.seat == seat.number
    }
}

/// What hosts take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostMemory {
    /// Resident hosts, in bytes.
    pub(crate) residents: u64,
    /// Names, and where hosts are: of all, also of those on disk. In bytes.
    pub(crate) names: u64,
    /// The number of hosts on disk.
    pub(crate) evicted: u64,
}

/// A place in a queue.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) host: HostKey,
    number: u32,
}

/// The resident hosts.
#[derive(Debug)]
pub(super) struct Workbench {
    /// The bytes that residents may take.
    most: u64,
    bytes: u64,
    kept_bytes: u64,
    residents: usize,
    /// Nothing is evicted before there are more bytes than this.
    full_at: u64,
    /// After an attempt that did not help, the next one is made when there are as many bytes more.
    retry_after: u64,
    passing: VecDeque<Seat>,
    kept: VecDeque<Seat>,
    /// The hosts that have come so far.
    came: u32,
    /// The share of a kept host that is to be looked at.
    aged: u64,
}

impl Default for Workbench {
    fn default() -> Self {
        Self {
            most: u64::MAX,
            bytes: 0,
            kept_bytes: 0,
            residents: 0,
            full_at: u64::MAX,
            retry_after: u64::MAX,
            passing: VecDeque::new(),
            kept: VecDeque::new(),
            came: 0,
            aged: 0,
        }
    }
}

impl Workbench {
    /// Adds a host.
    pub(super) fn add(&mut self, key: &HostKey, resident: &mut Resident) {
        // Zero is no seat.
        self.came = self.came.wrapping_add(1).max(1);
        resident.seat = self.came;
        (resident.came_at, resident.used_at) = (self.came, self.came);
        resident.is_kept = false;
        self.passing.push_back(Seat {
            host: key.clone(),
            number: resident.seat,
        });
        self.residents += 1;
        resident.bytes = 0;
        self.count(resident);
    }

    fn count(&mut self, resident: &mut Resident) {
        let before = u64::from(resident.bytes);
        resident.bytes = u32::try_from(resident.host.bytes()).unwrap_or(u32::MAX);
        let bytes = u64::from(resident.bytes);
        self.bytes = self.bytes + bytes - before;
        if resident.is_kept {
            self.kept_bytes = self.kept_bytes + bytes - before;
        }
        if bytes < before {
            self.lower_full_at();
        }
    }

    /// What was too much once is no measure for what is too much now.
    fn lower_full_at(&mut self) {
        let full_at = self.bytes.saturating_add(self.retry_after).max(self.most);
        self.full_at = self.full_at.min(full_at);
    }

    /// Marks a host as used. What its changes have added so far is counted now.
    pub(super) fn touch<'r>(&mut self, resident: &'r mut Resident) -> &'r mut Host {
        if resident.seat != 0 {
            self.count(resident);
            resident.used_at = self.came;
        }
        &mut resident.host
    }

    /// Removes a host.
    pub(super) fn remove(&mut self, resident: &Resident) {
        if resident.seat != 0 {
            self.bytes -= u64::from(resident.bytes);
            self.residents -= 1;
            self.lower_full_at();
            if resident.is_kept {
                self.kept_bytes -= u64::from(resident.bytes);
            }
        }
    }

    /// Returns what all hosts take, of which some are evicted.
    pub(super) fn memory(&self, hosts: usize, evicted: u64) -> HostMemory {
        HostMemory {
            residents: self.bytes,
            names: (hosts * BYTES_OF_NAME) as u64,
            evicted,
        }
    }

    /// Sets the bytes that residents may take.
    pub(super) fn set_most(&mut self, most: u64) {
        if most != self.most {
            self.most = most;
            self.full_at = most;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.full_at
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Returns the number of seats.
    pub(super) fn seats(&self) -> usize {
        self.passing.len() + self.kept.len()
    }

    /// Returns the seat of a host that may be evicted. While all `hosts` have a turn, two kept hosts are looked at.
    pub(super) fn next(&mut self, hosts: usize) -> Option<Seat> {
        self.aged += self.kept.len() as u64;
        if self.aged >= 2 * hosts as u64 {
            self.aged = 0;
            if let Some(seat) = self.kept.pop_front() {
                return Some(seat);
            }
        }
        self.passing.pop_front().or_else(|| self.kept.pop_front())
    }

    /// Returns whether the host of a seat may be evicted. If not, it has a seat further behind.
    pub(super) fn may_go(&mut self, seat: Seat, resident: &mut Resident) -> bool {
        if !resident.has_seat(&seat) {
            // It was removed in between.
            return false;
        }
        let unused = self.came.wrapping_sub(resident.used_at);
        // One that was looked at and not used since came after its last use.
        let between = resident
            .used_at
            .wrapping_sub(resident.came_at)
            .cast_signed()
            .max(0)
            .cast_unsigned();
        // A settlement would bring it back at once.
        let is_in_flight = resident.host.pace.in_flight() > 0;
        if resident.is_kept {
            let is_used = between > 0 || is_in_flight;
            if is_used {
                resident.came_at = resident.used_at;
                self.kept.push_back(seat);
            }
            return !is_used;
        }
        // Uses that follow each other closely belong to one turn.
        let is_used_again = between as usize > self.passing.len() / 4 && between > unused;
        if is_in_flight || is_used_again {
            resident.came_at = self.came;
            self.passing.push_back(seat);
            return false;
        }
        let bytes = u64::from(resident.bytes);
        // Of large hosts fewer fit, and each has a turn as seldom as a small one.
        let is_small = bytes * self.residents as u64 <= 2 * self.bytes;
        if is_small && self.kept_bytes + bytes <= self.most / 8 * 7 {
            resident.is_kept = true;
            resident.came_at = resident.used_at;
            self.kept_bytes += bytes;
            self.kept.push_back(seat);
            return false;
        }
        true
    }

    /// Records that hosts were evicted. If that did not help, the next attempt is made when there are `more` bytes.
    pub(super) fn set_full(&mut self, more: u64) {
        self.retry_after = more;
        self.full_at = if self.bytes > self.most {
            self.bytes + more
        } else {
            self.most
        };
    }

    /// Drops the seats of hosts that were removed, once they may be the majority.
    pub(super) fn sweep(&mut self, is_taken: impl Fn(&Seat) -> bool) {
        if self.seats() > 2 * self.residents + 64 {
            self.passing.retain(&is_taken);
            self.kept.retain(is_taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_could_not_be_evicted_once_are_no_measure_for_what_is_too_much_later() {
        let key = |n: usize| HostKey::of(&url::Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
        let mut bench = Workbench::default();
        let mut residents: Vec<_> = (0..100).map(|_| Resident::new(Host::default(), 0)).collect();
        for (n, resident) in residents.iter_mut().enumerate() {
            bench.add(&key(n), resident);
        }
        let all = bench.bytes();
        bench.set_most(all / 10);
        assert!(bench.is_full());
        // All of them were in flight.
        bench.set_full(all / 100);
        assert!(!bench.is_full());

        residents.drain(5..).for_each(|resident| bench.remove(&resident));
        for n in 0..20 {
            bench.add(&key(n), &mut Resident::new(Host::default(), 0));
        }
        assert!(bench.is_full(), "{} bytes of {}", bench.bytes(), bench.most());
    }
}
