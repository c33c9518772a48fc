//! Rows: evicted hosts on the shelf, many in one row.
//!
//! A row is a sequence of hosts: the length in 4 bytes, then name and host as postcard writes them. Hosts of one row were evicted one after
//! the other, so their turns come one after the other, too, and one read serves them all. A host that is brought back leaves a hole. A row
//! of holes is removed; [`eviction`](super::eviction) moves the last hosts of others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::HostRef;
use super::facts::Facts;
use super::{Resident, Slot};
use crate::appended::append;
use crate::hosts::host::{Host, HostState};
use crate::hosts::{HostRules, Shelf};
use crate::rules::ParseRules;
use crate::time::Time;
use crate::url::HostKey;

/// Rows that stay in memory after they were read.
const CACHED: usize = 8;

/// The bytes in front of a host: its length.
const HEAD: usize = 4;

/// How hosts lie on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSizes {
    /// A row has at least this many bytes, if so many hosts are evicted at once.
    pub(crate) row_bytes: usize,
    /// Rows may have this many holes more than hosts.
    pub(crate) holes: u64,
}

impl Default for RowSizes {
    fn default() -> Self {
        Self {
            row_bytes: 16 << 10,
            holes: 4096,
        }
    }
}

/// Where an evicted host lies, and what is asked of it most.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Evicted {
    time: Time,
    pub(super) row: u64,
    offset: u32,
    #[serde(skip)]
    pub(super) copied_in: u32,
    kind: StateKind,
    facts: Facts,
}

/// A [`HostState`] without its time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum StateKind {
    Idle,
    Due,
    WaitingForAddress,
    Waiting,
    WaitingForSettlement,
    Resting,
}

impl Evicted {
    pub(super) fn state(&self) -> HostState {
        match self.kind {
            StateKind::Idle => HostState::Idle,
            StateKind::Due => HostState::Due,
            StateKind::WaitingForAddress => HostState::WaitingForAddress,
            StateKind::Waiting => HostState::Waiting(self.time),
            StateKind::WaitingForSettlement => HostState::WaitingForSettlement,
            StateKind::Resting => HostState::Resting(self.time),
        }
    }

    fn new(host: &Host, rules: &HostRules, copied_in: u32) -> Self {
        let (kind, time) = match host.state {
            HostState::Idle => (StateKind::Idle, Time::EPOCH),
            HostState::Due => (StateKind::Due, Time::EPOCH),
            HostState::WaitingForAddress => (StateKind::WaitingForAddress, Time::EPOCH),
            HostState::Waiting(time) => (StateKind::Waiting, time),
            HostState::WaitingForSettlement => (StateKind::WaitingForSettlement, Time::EPOCH),
            HostState::Resting(time) => (StateKind::Resting, time),
        };
        Self {
            time,
            row: u64::MAX,
            offset: 0,
            copied_in,
            kind,
            facts: Facts::of(host, rules),
        }
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts
    }

    fn is_at(&self, row: u64, offset: usize) -> bool {
        self.row == row && self.offset as usize == offset
    }
}

/// A row that is being filled.
#[derive(Debug, Default)]
pub(super) struct NewRow {
    bytes: Vec<u8>,
    /// The hosts in it, by their place in the table, with their offsets.
    hosts: Vec<(usize, u32)>,
}

impl NewRow {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Adds a host; returns false if that is not possible.
    pub(super) fn add(&mut self, index: usize, name: &HostKey, host: &Host) -> bool {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD]);
        if append(&(name, host), &mut self.bytes).is_err() {
            self.bytes.truncate(before);
            return false;
        }
        self.finish(index, before)
    }

    /// Adds a host of another row.
    fn add_bytes(&mut self, index: usize, host: &[u8]) -> bool {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD]);
        self.bytes.extend_from_slice(host);
        self.finish(index, before)
    }

    fn finish(&mut self, index: usize, start: usize) -> bool {
        let length = self.bytes.len() - start - HEAD;
        let (Ok(length), Ok(offset)) = (u32::try_from(length), u32::try_from(start)) else {
            self.bytes.truncate(start);
            return false;
        };
        self.bytes[start..start + HEAD].copy_from_slice(&length.to_le_bytes());
        self.hosts.push((index, offset));
        true
    }
}

/// The numbers of hosts in a row.
#[derive(Debug, Clone, Copy)]
struct Count {
    /// With those that have left.
    total: u32,
    live: u32,
}

/// Where rows lie.
struct Disk {
    shelf: Arc<dyn Shelf>,
    parse: ParseRules,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shelf.fmt(f)
    }
}

/// The rows with evicted hosts.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) sizes: RowSizes,
    disk: Option<Disk>,
    counts: BTreeMap<u64, Count>,
    /// The sums of the counts.
    total: u64,
    live: u64,
    /// The rows that were read last.
    cache: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl Rows {
    pub(super) fn are_used(&self) -> bool {
        self.disk.is_some()
    }

    /// Sets where rows lie, and what makes rules of the texts in them.
    pub(super) fn configure(&mut self, shelf: Arc<dyn Shelf>, parse: ParseRules, sizes: RowSizes) {
        self.sizes = sizes;
        self.disk = Some(Disk { shelf, parse });
    }

    /// Returns the number of evicted hosts.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Returns the number of holes.
    pub(super) fn holes(&self) -> u64 {
        self.total - self.live
    }

    /// Returns the oldest rows.
    pub(super) fn oldest(&self, most: usize) -> Vec<u64> {
        self.counts.keys().take(most).copied().collect()
    }

    /// Returns the numbers of all rows, each with the number of hosts that it ever had.
    pub(super) fn totals(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().map(|(row, count)| (*row, count.total))
    }

    /// Adds a row that a copy names. Returns false if that cannot be.
    pub(super) fn add(&mut self, row: u64, total: u32) -> bool {
        self.total += u64::from(total);
        self.counts.insert(row, Count { total, live: 0 }).is_none()
    }

    /// Counts an evicted host that a copy names. Returns false if that cannot be.
    pub(super) fn count(&mut self, evicted: &Evicted) -> bool {
        let Some(count) = self.counts.get_mut(&evicted.row) else {
            return false;
        };
        count.live += 1;
        self.live += 1;
        count.live <= count.total
    }

    /// Returns whether no row has only holes.
    pub(super) fn are_whole(&self) -> bool {
        self.counts.values().all(|count| count.live > 0)
    }

    /// Returns a row; `None` if it cannot be read, which the shelf remembers.
    fn bytes(&self, row: u64) -> Option<Arc<[u8]>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = cache.iter().find(|(cached, _)| *cached == row) {
            return Some(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = self.disk.as_ref()?.shelf.read(row)?.into();
        if cache.len() >= CACHED {
            cache.pop_front();
        }
        cache.push_back((row, Arc::clone(&bytes)));
        Some(bytes)
    }

    /// Returns a copy of a host; `None` if it cannot be read, which the shelf remembers.
    pub(super) fn read(&self, name: &str, evicted: &Evicted) -> Option<Host> {
        let bytes = self.bytes(evicted.row)?;
        let entry = entry_at(&bytes, evicted.offset as usize);
        let host = entry.and_then(|entry| postcard::from_bytes::<(&str, Host)>(entry).ok());
        let host = host.filter(|(its_name, _)| *its_name == name);
        let Some((_, mut host)) = host else {
            self.disk.as_ref()?.shelf.set_damaged(evicted.row);
            return None;
        };
        host.parse_rules(&self.disk.as_ref()?.parse);
        Some(host)
    }

    /// Records that a host is not in its row any more.
    pub(super) fn leave(&mut self, evicted: &Evicted) {
        let Some(count) = self.counts.get_mut(&evicted.row) else {
            return;
        };
        count.live -= 1;
        self.live -= 1;
        if count.live > 0 {
            return;
        }
        self.total -= u64::from(count.total);
        self.counts.remove(&evicted.row);
        let cache = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|(cached, _)| *cached != evicted.row);
        if let Some(disk) = &self.disk {
            disk.shelf.discard(evicted.row);
        }
    }

    /// Puts a row on the shelf, and evicts its hosts, which may be in another row. `gone` learns those that leave the memory.
    pub(super) fn put(
        &mut self,
        new: NewRow,
        slots: &mut IndexMap<HostKey, Slot>,
        rules: &HostRules,
        mut gone: impl FnMut(&Resident),
    ) {
        let Some(disk) = &self.disk else { return };
        let row = disk.shelf.put(new.bytes.into_boxed_slice());
        let total = u32::try_from(new.hosts.len()).unwrap_or(u32::MAX);
        self.counts.insert(row, Count { total, live: total });
        self.total += u64::from(total);
        self.live += u64::from(total);
        for (index, offset) in new.hosts {
            let Some((_, slot)) = slots.get_index_mut(index) else {
                continue;
            };
            match slot {
                Slot::Resident(resident) => {
                    gone(resident);
                    let mut evicted = Evicted::new(&resident.host, rules, resident.copied_in);
                    (evicted.row, evicted.offset) = (row, offset);
                    *slot = Slot::Evicted(evicted);
                }
                Slot::Evicted(evicted) => {
                    self.leave(evicted);
                    (evicted.row, evicted.offset) = (row, offset);
                }
            }
        }
    }

    /// Adds the hosts that are left in a row to another one. Returns false if the row cannot be read.
    pub(super) fn move_to(
        &self,
        new: &mut NewRow,
        row: u64,
        slots: &mut IndexMap<HostKey, Slot>,
        mut before: impl FnMut(&HostKey, &mut Slot),
    ) -> bool {
        let Some(bytes) = self.bytes(row) else { return false };
        let mut offset = 0;
        while let Some(entry) = entry_at(&bytes, offset) {
            let name = postcard::take_from_bytes::<&str>(entry);
            let found = name.ok().and_then(|(name, _)| slots.get_full_mut(name));
            if let Some((index, key, slot)) = found
                && matches!(slot, Slot::Evicted(evicted) if evicted.is_at(row, offset))
            {
                before(key, slot);
                if !new.add_bytes(index, entry) {
                    return false;
                }
            }
            offset += HEAD + entry.len();
        }
        true
    }

    /// Returns the rows of evicted hosts.
    pub(super) fn rows_of<'e>(&self, evicted: impl Iterator<Item = &'e Evicted>) -> BTreeSet<u64> {
        evicted.map(|evicted| evicted.row).collect()
    }

    /// Returns the hosts of a row.
    pub(super) fn read_row<'t>(&self, row: u64, slots: &'t IndexMap<HostKey, Slot>) -> Vec<(&'t HostKey, HostRef<'t>)> {
        let Some(bytes) = self.bytes(row) else {
            return Vec::new();
        };
        let mut offset = 0;
        let mut hosts = Vec::new();
        while let Some(entry) = entry_at(&bytes, offset) {
            let name = postcard::take_from_bytes::<&str>(entry);
            let found = name.ok().and_then(|(name, _)| slots.get_key_value(name));
            if let Some((key, Slot::Evicted(evicted))) = found
                && evicted.is_at(row, offset)
                && let Some(host) = self.read(key.as_str(), evicted)
            {
                hosts.push((key, HostRef::Read(Box::new(host))));
            }
            offset += HEAD + entry.len();
        }
        hosts
    }
}

/// Returns the name and host at an offset of a row.
fn entry_at(row: &[u8], offset: usize) -> Option<&[u8]> {
    let (length, rest) = row.get(offset..)?.split_first_chunk::<HEAD>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}
