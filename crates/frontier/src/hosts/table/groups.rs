//! Eviction, and the way back: hosts go to the store in groups, and a group comes back whole.
//!
//! A group is one segment of the store: name and host, one after the other, as postcard writes them. Hosts of one group were evicted one
//! after the other, so they are used again one after the other, too, and one read serves them all. So no group has a host that is
//! resident or removed, and nobody counts who is left in one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::workbench::Resident;
use super::{HostTable, Slot};
use crate::appended::append;
use crate::hosts::SegmentStore;
use crate::hosts::host::Host;
use crate::rules::ParseRules;
use crate::url::HostKey;

/// Where hosts lie that are not in memory.
#[derive(Clone)]
pub(crate) struct HostsOnDisk {
    pub(crate) segments: Arc<dyn SegmentStore>,
    /// Makes rules of the texts of robots.txt files.
    pub(crate) parse: ParseRules,
    /// The size of a group in bytes, about. A host that takes more is a group alone.
    pub(crate) group_bytes: usize,
}

impl fmt::Debug for HostsOnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.fmt(f)
    }
}

/// Where an evicted host lies, and what is asked of it most.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Evicted {
    pub(super) group: u64,
    pub(super) facts: Facts,
    #[serde(skip)]
    pub(super) copied_in: u16,
}

impl HostTable {
    /// Evicts hosts if the workbench is full. Cost: O(hosts that are evicted).
    pub(super) fn make_room(&mut self) {
        if self.workbench.excess() == 0 {
            return;
        }
        let Some(on_disk) = self.on_disk.clone() else { return };
        // More than must be, so that groups are large.
        let spare = 2 * on_disk.group_bytes as u64;
        let mut left = self.workbench.excess() + spare;
        while left > 0 {
            let before = self.workbench.bytes;
            self.evict_group(&on_disk, left);
            let gone = before - self.workbench.bytes;
            if gone == 0 {
                break;
            }
            left = left.saturating_sub(gone);
        }
    }

    /// Evicts a group of hosts, which take about `most` bytes in memory or have the size of a group.
    fn evict_group(&mut self, on_disk: &HostsOnDisk, most: u64) {
        let (mut bytes, mut leaving) = (Vec::new(), Vec::new());
        let before = self.workbench.bytes;
        while bytes.len() < on_disk.group_bytes && before - self.workbench.bytes < most {
            let Some(next) = self.workbench.first_to_go() else {
                break;
            };
            let Some((index, key, slot)) = self.slots.get_full_mut(&next) else {
                break;
            };
            self.copy.before_change(key, slot);
            let Slot::Resident(resident) = slot else { break };
            if append(&(key, &resident.host), &mut bytes).is_err() {
                break;
            }
            self.workbench.remove(resident);
            leaving.push(index);
        }
        if leaving.is_empty() {
            return;
        }
        let group = on_disk.segments.put(bytes.into_boxed_slice());
        for index in leaving {
            let Some((_, slot)) = self.slots.get_index_mut(index) else {
                continue;
            };
            if let Slot::Resident(resident) = slot {
                *slot = Slot::Evicted(Box::new(Evicted {
                    group,
                    facts: Facts::of(&resident.host, &self.config),
                    copied_in: resident.copied_in,
                }));
            }
        }
    }

    /// Brings a host back with its group, if it is evicted. `None` as in [`SegmentStore`].
    pub(super) fn bring_here(&mut self, index: usize) -> Option<()> {
        let (name, Slot::Evicted(evicted)) = self.slots.get_index(index)? else {
            return Some(());
        };
        let group = evicted.group;
        for (name, host) in self.read_group(group, name)? {
            let (_, key, slot) = self.slots.get_full_mut(&name)?;
            self.copy.before_change(key, slot);
            let mut resident = Resident::new(host, *slot.copied_in());
            self.workbench.add(key, &mut resident);
            *slot = Slot::Resident(Box::new(resident));
        }
        self.on_disk.as_ref()?.segments.discard(group);
        Some(())
    }

    /// A copy of the hosts of a group, of which one has this name. `None` as in [`SegmentStore`].
    pub(super) fn read_group(&self, group: u64, name: &HostKey) -> Option<Vec<(HostKey, Host)>> {
        let on_disk = self.on_disk.as_ref()?;
        let bytes = on_disk.segments.read(group)?;
        let hosts = self.hosts_in(&bytes, group, &on_disk.parse);
        let hosts = hosts.filter(|hosts| hosts.iter().any(|(its_name, _)| its_name == name));
        if hosts.is_none() {
            on_disk.segments.set_damaged(group);
        }
        hosts
    }

    /// `None` if the bytes are no group, or have a host that should lie elsewhere.
    fn hosts_in(&self, bytes: &[u8], group: u64, parse: &ParseRules) -> Option<Vec<(HostKey, Host)>> {
        let (mut hosts, mut left) = (Vec::new(), bytes);
        while !left.is_empty() {
            let ((name, mut host), after): ((HostKey, Host), _) = postcard::take_from_bytes(left).ok()?;
            if !self.slots.get(&name)?.is_in(group) {
                return None;
            }
            host.parse_rules(parse);
            hosts.push((name, host));
            left = after;
        }
        Some(hosts)
    }
}
