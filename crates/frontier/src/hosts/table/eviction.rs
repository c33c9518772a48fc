//! Eviction: when the workbench is full, groups of hosts go to the store.

use std::sync::Arc;

use super::groups::NewGroup;
use super::workbench::HostMemory;
use super::{HostTable, Resident, Slot};
use crate::hosts::{HostConfig, SegmentStore};
use crate::rules::ParseRules;

/// The hosts that are looked at for one access, of which some stay.
const LOOKS: usize = 512;

impl HostTable {
    /// Sets where groups lie, after the hosts were read from a store. Nothing is evicted before there is a bound.
    pub(crate) fn configure(
        &mut self,
        rules: HostConfig,
        segments: Arc<dyn SegmentStore>,
        parse: ParseRules,
        group_bytes: usize,
    ) {
        self.rules = rules;
        if !self.groups.are_used() {
            for (key, slot) in &mut self.slots {
                if let Slot::Resident(resident) = slot {
                    self.workbench.add(key, resident);
                }
            }
        }
        self.groups.configure(segments, parse, group_bytes);
    }

    pub(crate) fn may_be_on_disk(&self) -> bool {
        self.groups.are_used()
    }

    pub(crate) fn memory(&self) -> HostMemory {
        self.workbench.memory(self.slots.len(), self.groups.live())
    }

    pub(crate) fn set_most_resident(&mut self, bytes: u64) {
        self.workbench.set_most(bytes);
    }

    /// Evicts hosts if the workbench is full. Cost: O(hosts that are evicted), and a look at some others.
    pub(super) fn make_room(&mut self) {
        if self.workbench.is_full() {
            self.evict();
        } else if !self.workbench.has_too_many_keys() {
            return;
        }
        let residents = self.slots.iter_mut().filter_map(|(key, slot)| match slot {
            Slot::Resident(resident) => Some((key, &mut **resident)),
            Slot::Evicted(_) => None,
        });
        self.workbench.begin_anew(residents);
    }

    fn evict(&mut self) {
        let at_once = 2 * self.groups.group_bytes() as u64;
        let target = self.workbench.most().saturating_sub(at_once);
        let mut group = NewGroup::default();
        let mut looks = LOOKS.min(2 * self.workbench.passing());
        while looks > 0 && (self.workbench.bytes() > target || !group.is_empty()) {
            looks -= 1;
            let Some(next) = self.workbench.next() else { break };
            let Some((index, key, slot)) = self.slots.get_full_mut(&next) else {
                continue;
            };
            let Slot::Resident(resident) = slot else { continue };
            if !self.workbench.may_go(key, resident) {
                continue;
            }
            self.copy.before_change(key, slot);
            if let Slot::Resident(resident) = slot
                && group.add(index, key, &resident.host)
                && group.len() >= self.groups.group_bytes()
            {
                self.close(std::mem::take(&mut group));
            }
        }
        self.close(group);
        self.workbench.set_full(at_once);
    }

    /// Puts a group of hosts into the store.
    fn close(&mut self, group: NewGroup) {
        if group.is_empty() {
            return;
        }
        let workbench = &mut self.workbench;
        let gone = |resident: &Resident| workbench.remove(resident);
        self.groups.put(group, &mut self.slots, &self.rules, gone);
    }
}
