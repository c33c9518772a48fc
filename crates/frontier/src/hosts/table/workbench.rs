//! The workbench: resident hosts, what they take, and which of them are evicted first.
//!
//! The hosts are leased in a circle, so the host that was not used for longest is the next one to be used. An order by the last use would
//! evict each host just before it is used. So most of the room is for hosts that are **kept** until their turn has come, and
//! the others pass through the rest of the room in the order in which they came.

use std::collections::VecDeque;

use crate::hosts::host::{Host, HostState};
use crate::url::HostKey;

/// What a host takes in the table, in the rounds and with its name, in bytes.
const BYTES_OF_NAME: usize = 200;

/// A host in memory.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) host: Host,
    /// The number of the last copy in which it is.
    pub(super) copied_in: u16,
    /// The bytes that are counted for it.
    bytes: u32,
    is_kept: bool,
    /// Whether it is in a group that is about to be written.
    is_leaving: bool,
}

impl Resident {
    pub(super) fn new(host: Host, copied_in: u16) -> Self {
        Self {
            host,
            copied_in,
            bytes: 0,
            is_kept: false,
            is_leaving: false,
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.host.state, HostState::Idle | HostState::Resting(_))
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
    /// The hosts that are not kept, in the order in which they came. One that was removed, and came again, is in it twice.
    passing: VecDeque<HostKey>,
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
        }
    }
}

impl Workbench {
    pub(super) fn add(&mut self, key: &HostKey, resident: &mut Resident) {
        (resident.bytes, resident.is_kept) = (0, false);
        self.passing.push_back(key.clone());
        self.residents += 1;
        self.count(key, resident);
    }

    /// Counts what the changes of a host have added or taken away. A kept one that must make room passes from now on.
    pub(super) fn count(&mut self, key: &HostKey, resident: &mut Resident) {
        let before = u64::from(resident.bytes);
        resident.bytes = u32::try_from(resident.host.bytes()).unwrap_or(u32::MAX);
        let bytes = u64::from(resident.bytes);
        self.bytes = self.bytes + bytes - before;
        if resident.is_kept {
            self.kept_bytes = self.kept_bytes + bytes - before;
            if resident.is_idle() || self.kept_bytes > self.most_kept() {
                self.kept_bytes -= bytes;
                resident.is_kept = false;
                self.passing.push_back(key.clone());
            }
        }
        if bytes < before {
            self.lower_full_at();
        }
    }

    fn most_kept(&self) -> u64 {
        self.most / 8 * 7
    }

    /// What was too much once is no measure for what is too much now.
    fn lower_full_at(&mut self) {
        let full_at = self.bytes.saturating_add(self.retry_after).max(self.most);
        self.full_at = self.full_at.min(full_at);
    }

    /// Removes a host.
    pub(super) fn remove(&mut self, resident: &Resident) {
        self.bytes -= u64::from(resident.bytes);
        self.residents -= 1;
        self.lower_full_at();
        if resident.is_kept {
            self.kept_bytes -= u64::from(resident.bytes);
        }
    }

    pub(super) fn memory(&self, hosts: usize, evicted: u64) -> HostMemory {
        HostMemory {
            residents: self.bytes,
            names: (hosts * BYTES_OF_NAME) as u64,
            evicted,
        }
    }

    pub(super) fn set_most(&mut self, most: u64) {
        if most != self.most {
            self.most = most;
            self.full_at = most;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.full_at
    }

    pub(super) fn has_too_many_keys(&self) -> bool {
        self.passing.len() > 2 * self.residents + 64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn passing(&self) -> usize {
        self.passing.len()
    }

    /// Returns the host that came first of those that are not kept. It may have been removed since.
    pub(super) fn next(&mut self) -> Option<HostKey> {
        self.passing.pop_front()
    }

    /// Returns whether the [next](Self::next) host may be evicted. If not, it is kept from now on, or comes again.
    pub(super) fn may_go(&mut self, key: &HostKey, resident: &mut Resident) -> bool {
        if resident.is_kept || resident.is_leaving {
            // It was removed, and has come again.
            return false;
        }
        // A settlement would bring it back at once.
        if resident.host.pace.in_flight() > 0 {
            self.passing.push_back(key.clone());
            return false;
        }
        let bytes = u64::from(resident.bytes);
        // Of large hosts fewer fit, and each is used as seldom as a small one.
        let is_small = bytes * self.residents as u64 <= 2 * self.bytes;
        resident.is_kept = is_small && !resident.is_idle() && self.kept_bytes + bytes <= self.most_kept();
        if resident.is_kept {
            self.kept_bytes += bytes;
        }
        resident.is_leaving = !resident.is_kept;
        resident.is_leaving
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

    /// Lets all hosts pass that are resident, once most of the passing ones were removed, or too many are kept to make room.
    pub(super) fn begin_anew<'r>(&mut self, residents: impl Iterator<Item = (&'r HostKey, &'r mut Resident)>) {
        if self.has_too_many_keys() || self.passing.is_empty() && self.kept_bytes > self.most_kept() {
            self.kept_bytes = 0;
            self.passing = residents
                .map(|(key, resident)| {
                    resident.is_kept = false;
                    key.clone()
                })
                .collect();
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
