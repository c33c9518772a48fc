//! All hosts by name. All changes of hosts go through this table, so that it can be copied while it changes, and so that hosts can lie
//! on disk that were not used for long.
//!
//! ```text
//!             make_room: there are too many bytes
//! resident ───────────────────────────────────────▶ evicted: a group in the store has it, and
//! (a Host) ◀─────────────────────────────────────── the slot has some facts
//!             bring_here: it is needed
//! ```
//!
//! Where a host lies decides nothing: a replay may evict others. After a crash, the last copy names the groups that it needs, which the
//! store keeps that long.
//!
//! | to change | see |
//! |---|---|
//! | which host goes first | `workbench.rs` |
//! | how evicted hosts are written and read | `groups.rs` |
//! | what can be asked of an evicted host without a read | `facts.rs` |
//! | what a checkpoint has of the hosts | `copy.rs` |
//! | what a host takes in memory | `host/memory.rs` |

mod copy;
mod facts;
mod groups;
mod tests;
mod workbench;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::HostConfig;
use super::host::{Host, HostState};
use crate::url::HostKey;
pub(crate) use copy::HostReader;
use facts::Facts;
pub(crate) use groups::HostsOnDisk;
use {copy::HostCopy, groups::Evicted, workbench::Resident, workbench::Workbench};

/// What a host takes in the table, in the rounds and with its name, in bytes.
const BYTES_OF_NAME: usize = 200;

/// The hosts that are remembered.
#[derive(Debug, Default)]
pub(crate) struct HostTable {
    // Its slots have an order, so that it can be copied in slices; and its hashes are kept, so that it grows in a moment.
    slots: IndexMap<HostKey, Slot>,
    workbench: Workbench,
    /// `None` if all hosts stay in memory, which nobody counts then.
    on_disk: Option<HostsOnDisk>,
    copy: HostCopy,
    /// The place that was looked up last, or another one: it is checked before it is used. Calls about the same host follow each other.
    latest: AtomicUsize,
    pub(super) config: HostConfig,
}

/// Where a host is.
#[derive(Debug, Serialize, Deserialize)]
enum Slot {
    // Boxed, because a table of large values wastes memory in its free slots.
    Resident(Box<Resident>),
    Evicted(Box<Evicted>),
}

impl HostTable {
    pub(crate) fn new(config: HostConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Sets where evicted hosts lie, after the hosts were read from a store. Nothing is evicted before there is a bound.
    pub(crate) fn lie_on_disk(&mut self, on_disk: HostsOnDisk) {
        // Once they lie on disk, they are counted already.
        if self.on_disk.replace(on_disk).is_some() {
            return;
        }
        for (key, slot) in &mut self.slots {
            if let Slot::Resident(resident) = slot {
                self.workbench.add(key, resident);
            }
        }
    }

    pub(crate) fn may_be_on_disk(&self) -> bool {
        self.on_disk.is_some()
    }

    pub(crate) fn set_most_resident(&mut self, bytes: u64) {
        self.workbench.most = Some(bytes);
    }

    /// What resident hosts take, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.workbench.bytes
    }

    /// What the names of all hosts take, and where they are, in bytes.
    pub(crate) fn name_bytes(&self) -> u64 {
        (self.len() * BYTES_OF_NAME) as u64
    }

    pub(crate) fn evicted(&self) -> usize {
        self.len() - self.workbench.residents
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    /// Returns a host to look at; `None` if it is not known, or as in [`SegmentStore`](super::SegmentStore). Cost: for an evicted one, a look at its group.
    pub(crate) fn get(&self, name: &str) -> Option<HostRef<'_>> {
        let (key, slot) = self.slots.get_index(self.index_of(name)?)?;
        match slot {
            Slot::Resident(resident) => Some(HostRef::Here(&resident.host)),
            Slot::Evicted(evicted) => {
                let mut group = self.read_group(evicted.group, key)?.into_iter();
                let (_, host) = group.find(|(its_name, _)| its_name == key)?;
                Some(HostRef::Read(Box::new(host)))
            }
        }
    }

    /// Whether a host is known, and in this state.
    pub(super) fn is_in(&self, key: &HostKey, state: HostState) -> bool {
        self.facts(key.as_str()).is_some_and(|facts| facts.state == state)
    }

    /// Nothing is read.
    pub(crate) fn facts(&self, name: &str) -> Option<Facts> {
        let (_, slot) = self.slots.get_index(self.index_of(name)?)?;
        Some(slot.facts(&self.config))
    }

    /// Iterates over what is known of all hosts without a read.
    pub(crate) fn all_facts(&self) -> impl Iterator<Item = (&HostKey, Facts)> {
        self.slots.iter().map(|(key, slot)| (key, slot.facts(&self.config)))
    }

    pub(crate) fn shared_name(&self, key: &HostKey) -> HostKey {
        let own = self
            .index_of(key.as_str())
            .and_then(|index| self.slots.get_index(index));
        own.map_or_else(|| key.clone(), |(own, _)| own.clone())
    }

    /// Returns the place of a host. It holds until a host is removed.
    fn index_of(&self, name: &str) -> Option<usize> {
        let latest = self.latest.load(Ordering::Relaxed);
        if let Some((key, _)) = self.slots.get_index(latest)
            && key.as_str() == name
        {
            return Some(latest);
        }
        let index = self.slots.get_index_of(name)?;
        self.latest.store(index, Ordering::Relaxed);
        Some(index)
    }

    /// Returns a host to change. What its changes add is counted at its next use.
    pub(crate) fn get_mut(&mut self, key: &HostKey) -> Option<&mut Host> {
        self.make_room();
        let index = self.index_of(key.as_str())?;
        self.bring_here(index)?;
        let (key, slot) = self.slots.get_index_mut(index)?;
        self.copy.before_change(key, slot);
        let Slot::Resident(resident) = slot else { return None };
        if self.on_disk.is_some() {
            self.workbench.count(key, resident);
        }
        Some(&mut resident.host)
    }

    /// Changes a host, and inserts it first if it is not known. What the change adds is counted at once. `None` as in [`get`](Self::get).
    pub(crate) fn change_or_insert<T>(&mut self, key: &HostKey, change: impl FnOnce(&mut Host) -> T) -> Option<T> {
        self.make_room();
        let index = match self.index_of(key.as_str()) {
            Some(index) => index,
            None => self.insert(key.clone()),
        };
        self.bring_here(index)?;
        let (key, slot) = self.slots.get_index_mut(index)?;
        self.copy.before_change(key, slot);
        let Slot::Resident(resident) = slot else { return None };
        let changed = change(&mut resident.host);
        if self.on_disk.is_some() {
            self.workbench.count(key, resident);
        }
        Some(changed)
    }

    fn insert(&mut self, key: HostKey) -> usize {
        // As if it were copied: the copy that is made, if any, is of the hosts before.
        let mut host = Host::default();
        host.resolve_policy(&key, &self.config);
        let mut resident = Resident::new(host, self.copy.number);
        if self.on_disk.is_some() {
            self.workbench.add(&key, &mut resident);
        }
        // A table that doubles has room for as many hosts again.
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len() / 8 + 1);
        }
        self.slots.insert_full(key, Slot::Resident(Box::new(resident))).0
    }

    /// Removes a host and returns it. Cost: for an evicted one, its group comes back.
    pub(crate) fn remove(&mut self, key: &HostKey) -> Option<Host> {
        let index = self.index_of(key.as_str())?;
        self.bring_here(index)?;
        self.copy.before_removal(&mut self.slots, index);
        let (_, Slot::Resident(mut resident)) = self.slots.swap_remove_index(index)? else {
            return None;
        };
        if self.on_disk.is_some() {
            self.workbench.remove(&mut resident);
        }
        Some(resident.host)
    }

    /// Iterates over the hosts with these facts, those of one group after the other. Cost: a look at each host, and each group is read once
    /// that has such a host; one at a time is in memory.
    pub(crate) fn iter_if<'a>(
        &'a self,
        is_wanted: impl Fn(&HostKey, Facts) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = (&'a HostKey, HostRef<'a>)> {
        let is_meant = move |key: &HostKey, slot: &Slot| is_wanted(key, slot.facts(&self.config));
        let meant = self.slots.iter().filter(move |(key, slot)| is_meant(key, slot));
        let groups: BTreeMap<u64, &HostKey> = meant
            .clone()
            .filter_map(|(key, slot)| match slot {
                Slot::Evicted(evicted) => Some((evicted.group, key)),
                Slot::Resident(_) => None,
            })
            .collect();
        let here = meant.filter_map(|(key, slot)| match slot {
            Slot::Resident(resident) => Some((key, HostRef::Here(&resident.host))),
            Slot::Evicted(_) => None,
        });
        let read = move |(group, key)| self.read_group(group, key).unwrap_or_default();
        let evicted = groups.into_iter().flat_map(read);
        here.chain(evicted.filter_map(move |(name, host)| {
            let (_, key, slot) = self.slots.get_full(&name)?;
            is_meant(key, slot).then(|| (key, HostRef::Read(Box::new(host))))
        }))
    }
}

impl Slot {
    fn facts(&self, config: &HostConfig) -> Facts {
        match self {
            Self::Resident(resident) => Facts::of(&resident.host, config),
            Self::Evicted(evicted) => evicted.facts,
        }
    }

    /// The number of the last copy in which it is.
    fn copied_in(&mut self) -> &mut u16 {
        match self {
            Self::Resident(resident) => &mut resident.copied_in,
            Self::Evicted(evicted) => &mut evicted.copied_in,
        }
    }

    fn is_in(&self, group: u64) -> bool {
        matches!(self, Self::Evicted(evicted) if evicted.group == group)
    }
}

/// A resident host, or a copy of an evicted one.
#[derive(Debug)]
pub(crate) enum HostRef<'t> {
    Here(&'t Host),
    Read(Box<Host>),
}

impl Deref for HostRef<'_> {
    type Target = Host;

    fn deref(&self) -> &Host {
        match self {
            Self::Here(host) => host,
            Self::Read(host) => host,
        }
    }
}
