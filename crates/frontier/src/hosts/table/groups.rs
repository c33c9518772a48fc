//! Groups of evicted hosts, each of which is one segment of the store.
//!
//! A group is a sequence of hosts: the length in 4 bytes, then name and host as postcard writes them. Hosts of one group were evicted one after
//! the other, so they are used again one after the other, too, and one read serves them all. Once most of a group were brought back, the rest
//! is, too, and the group is removed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::{Resident, Slot};
use crate::appended::append;
use crate::hosts::host::{Host, HostState};
use crate::hosts::{HostConfig, SegmentStore};
use crate::rules::ParseRules;
use crate::url::HostKey;

/// Groups that stay in memory after they were read.
const CACHED: usize = 8;

/// The bytes in front of a host: its length.
const HEAD: usize = 4;

/// Where an evicted host lies, and what is asked of it most.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Evicted {
    pub(super) state: HostState,
    pub(super) group: u64,
    offset: u32,
    #[serde(skip)]
    pub(super) copied_in: u16,
    pub(super) facts: Facts,
}

impl Evicted {
    fn is_at(&self, group: u64, offset: usize) -> bool {
        self.group == group && self.offset as usize == offset
    }
}

/// A group that is being filled.
#[derive(Debug, Default)]
pub(super) struct NewGroup {
    bytes: Vec<u8>,
    /// The hosts in it, by their place in the table, with their offsets.
    hosts: Vec<(usize, u32)>,
}

impl NewGroup {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(super) fn add(&mut self, index: usize, name: &HostKey, host: &Host) -> bool {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD]);
        let is_written = append(&(name, host), &mut self.bytes).is_ok();
        let length = u32::try_from(self.bytes.len() - start - HEAD);
        let (true, Ok(length), Ok(offset)) = (is_written, length, u32::try_from(start)) else {
            self.bytes.truncate(start);
            return false;
        };
        self.bytes[start..start + HEAD].copy_from_slice(&length.to_le_bytes());
        self.hosts.push((index, offset));
        true
    }
}

/// The numbers of hosts in a group.
#[derive(Debug, Clone, Copy)]
struct Count {
    /// With those that have left.
    total: u32,
    live: u32,
}

/// Where groups lie.
struct Disk {
    segments: Arc<dyn SegmentStore>,
    parse: ParseRules,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.fmt(f)
    }
}

/// The groups with evicted hosts.
#[derive(Debug, Default)]
pub(super) struct HostGroups {
    /// A group has at least this many bytes, unless fewer hosts are evicted at once.
    group_bytes: usize,
    disk: Option<Disk>,
    counts: BTreeMap<u64, Count>,
    /// The number of evicted hosts.
    live: u64,
    /// The groups that were read last.
    cache: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl HostGroups {
    pub(super) fn are_used(&self) -> bool {
        self.disk.is_some()
    }

    pub(super) fn configure(&mut self, segments: Arc<dyn SegmentStore>, parse: ParseRules, group_bytes: usize) {
        self.group_bytes = group_bytes;
        self.disk = Some(Disk { segments, parse });
    }

    pub(super) fn group_bytes(&self) -> usize {
        self.group_bytes
    }

    pub(super) fn live(&self) -> u64 {
        self.live
    }

    pub(super) fn totals(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().map(|(group, count)| (*group, count.total))
    }

    /// Adds a group that a copy names. Returns false if that cannot be.
    pub(super) fn add(&mut self, group: u64, total: u32) -> bool {
        self.counts.insert(group, Count { total, live: 0 }).is_none()
    }

    /// Counts an evicted host that a copy names. Returns false if that cannot be.
    pub(super) fn count(&mut self, evicted: &Evicted) -> bool {
        let Some(count) = self.counts.get_mut(&evicted.group) else {
            return false;
        };
        count.live += 1;
        self.live += 1;
        count.live <= count.total
    }

    pub(super) fn are_whole(&self) -> bool {
        self.counts.values().all(|count| count.live > 0)
    }

    /// `None` if it cannot be read, which the store remembers.
    fn bytes(&self, group: u64) -> Option<Arc<[u8]>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = cache.iter().find(|(cached, _)| *cached == group) {
            return Some(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = self.disk.as_ref()?.segments.read(group)?.into();
        if cache.len() >= CACHED {
            cache.pop_front();
        }
        cache.push_back((group, Arc::clone(&bytes)));
        Some(bytes)
    }

    /// `None` if it cannot be read, which the store remembers.
    pub(super) fn read(&self, name: &str, evicted: &Evicted) -> Option<Host> {
        let bytes = self.bytes(evicted.group)?;
        let entry = entry_at(&bytes, evicted.offset as usize);
        let host = entry.and_then(|entry| postcard::from_bytes::<(&str, Host)>(entry).ok());
        let host = host.filter(|(its_name, _)| *its_name == name);
        let Some((_, mut host)) = host else {
            self.disk.as_ref()?.segments.set_damaged(evicted.group);
            return None;
        };
        host.parse_rules(&self.disk.as_ref()?.parse);
        Some(host)
    }

    /// Records that a host is not in its group any more. Returns whether most of the group have left, and some are there.
    pub(super) fn leave(&mut self, evicted: &Evicted) -> bool {
        let Some(count) = self.counts.get_mut(&evicted.group) else {
            return false;
        };
        count.live -= 1;
        self.live -= 1;
        if count.live > 0 {
            return count.live < count.total / 2;
        }
        self.counts.remove(&evicted.group);
        let cache = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|(cached, _)| *cached != evicted.group);
        if let Some(disk) = &self.disk {
            disk.segments.discard(evicted.group);
        }
        false
    }

    /// Puts a group in the store, and evicts its hosts, which leave the memory. `gone` learns of each.
    pub(super) fn put(
        &mut self,
        new: NewGroup,
        slots: &mut IndexMap<HostKey, Slot>,
        rules: &HostConfig,
        mut gone: impl FnMut(&Resident),
    ) {
        let Some(disk) = &self.disk else { return };
        let group = disk.segments.put(new.bytes.into_boxed_slice());
        let total = u32::try_from(new.hosts.len()).unwrap_or(u32::MAX);
        self.counts.insert(group, Count { total, live: total });
        self.live += u64::from(total);
        for (index, offset) in new.hosts {
            let Some((_, slot)) = slots.get_index_mut(index) else {
                continue;
            };
            if let Slot::Resident(resident) = slot {
                gone(resident);
                *slot = Slot::Evicted(Box::new(Evicted {
                    state: resident.host.state,
                    group,
                    offset,
                    copied_in: resident.copied_in,
                    facts: Facts::of(&resident.host, rules),
                }));
            }
        }
    }

    pub(super) fn hosts_of<'t>(
        &self,
        group: u64,
        slots: &'t IndexMap<HostKey, Slot>,
    ) -> Vec<(usize, &'t HostKey, &'t Evicted)> {
        let mut hosts = Vec::new();
        let Some(bytes) = self.bytes(group) else { return hosts };
        let mut offset = 0;
        while let Some(entry) = entry_at(&bytes, offset) {
            let name = postcard::take_from_bytes::<&str>(entry);
            let found = name.ok().and_then(|(name, _)| slots.get_full(name));
            if let Some((index, key, Slot::Evicted(evicted))) = found
                && evicted.is_at(group, offset)
            {
                hosts.push((index, key, evicted));
            }
            offset += HEAD + entry.len();
        }
        hosts
    }
}

fn entry_at(group: &[u8], offset: usize) -> Option<&[u8]> {
    let (length, rest) = group.get(offset..)?.split_first_chunk::<HEAD>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}
