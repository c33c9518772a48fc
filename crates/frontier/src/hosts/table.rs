//! All hosts by name. All changes of hosts go through this table, so that it can be copied while it changes, and so that hosts can lie
//! on disk that were not used for long.
//!
//! A host is either **resident**, on the workbench, or **evicted**: a group in the store has it, with its neighbours of that time. Every
//! access brings it back. Where a host lies decides nothing.

mod copy;
mod eviction;
mod facts;
mod groups;
mod workbench;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;

use super::HostConfig;
use super::host::{Host, HostState};
use crate::report::Health;
use crate::url::HostKey;
pub(crate) use copy::{HostReader, HostsError};
use facts::Facts;
use {copy::HostCopy, groups::Evicted, groups::HostGroups, workbench::Resident, workbench::Workbench};

/// The hosts that are remembered.
#[derive(Debug, Default)]
pub(crate) struct HostTable {
    // Its slots have an order, so that it can be copied in slices; and its hashes are kept, so that it grows in a moment.
    slots: IndexMap<HostKey, Slot>,
    workbench: Workbench,
    groups: HostGroups,
    copy: HostCopy,
    /// The place that was looked up last, or another one: it is checked before it is used. Calls about the same host follow each other.
    latest: AtomicUsize,
    rules: HostConfig,
}

/// Where a host is.
#[derive(Debug)]
enum Slot {
    // Boxed, because a table of large values wastes memory in its free slots.
    Resident(Box<Resident>),
    Evicted(Box<Evicted>),
}

impl HostTable {
    pub(crate) fn new(rules: HostConfig) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    /// Returns a host to look at. Cost: for an evicted one, a look at its group.
    pub(crate) fn get(&self, name: &str) -> Option<HostRef<'_>> {
        match self.slot(name)? {
            Slot::Resident(resident) => Some(HostRef::Here(&resident.host)),
            Slot::Evicted(evicted) => {
                let host = self.groups.read(name, evicted)?;
                Some(HostRef::Read(Box::new(host)))
            }
        }
    }

    pub(crate) fn state(&self, name: &str) -> Option<HostState> {
        self.slot(name).map(Slot::state)
    }

    pub(crate) fn facts(&self, name: &str) -> Option<Facts> {
        Some(match self.slot(name)? {
            Slot::Resident(resident) => Facts::of(&resident.host, &self.rules),
            Slot::Evicted(evicted) => evicted.facts,
        })
    }

    /// Returns whether a host counts among those of its site. Nothing is read.
    pub(crate) fn is_counted(&self, name: &str) -> bool {
        self.slot(name).is_some_and(|slot| match slot {
            Slot::Resident(resident) => resident.host.is_counted(),
            Slot::Evicted(evicted) => evicted.facts.is_counted,
        })
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

    fn slot(&self, name: &str) -> Option<&Slot> {
        let (_, slot) = self.slots.get_index(self.index_of(name)?)?;
        Some(slot)
    }

    /// Returns a host to change. What its changes add is counted at its next use.
    pub(crate) fn get_mut(&mut self, key: &HostKey) -> Option<&mut Host> {
        self.make_room();
        let index = self.index_of(key.as_str())?;
        self.bring_here(index)?;
        self.touch(index)
    }

    /// Finds or creates a host, and changes it. What that adds is counted at once. `None` if it cannot be read: the call fails then.
    pub(crate) fn change<T>(&mut self, key: &HostKey, change: impl FnOnce(&mut Host) -> T) -> Option<T> {
        self.make_room();
        let index = match self.index_of(key.as_str()) {
            Some(index) => index,
            None => self.insert(key.clone(), Host::default()),
        };
        self.bring_here(index)?;
        let (key, slot) = self.slots.get_index_mut(index)?;
        self.copy.before_change(key, slot);
        let Slot::Resident(resident) = slot else { return None };
        let changed = change(&mut resident.host);
        if self.groups.are_used() {
            self.workbench.count(key, resident);
        }
        Some(changed)
    }

    fn insert(&mut self, key: HostKey, host: Host) -> usize {
        let mut resident = Resident::new(host, self.copy.number());
        if self.groups.are_used() {
            self.workbench.add(&key, &mut resident);
        }
        // A table that doubles has room for as many hosts again.
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len() / 8 + 1);
        }
        self.slots.insert_full(key, Slot::Resident(Box::new(resident))).0
    }

    /// Marks a resident host as used, before it changes.
    fn touch(&mut self, index: usize) -> Option<&mut Host> {
        let (key, slot) = self.slots.get_index_mut(index)?;
        self.copy.before_change(key, slot);
        let Slot::Resident(resident) = slot else { return None };
        if self.groups.are_used() {
            self.workbench.count(key, resident);
        }
        Some(&mut resident.host)
    }

    /// Brings an evicted host back, with the rest of its group if that is the smaller part; `None` if it cannot be read.
    fn bring_here(&mut self, index: usize) -> Option<()> {
        let Some(sparse) = self.bring_one(index)? else {
            return Some(());
        };
        let rest = self.groups.hosts_of(sparse, &self.slots).into_iter();
        let rest: Vec<usize> = rest.map(|(index, ..)| index).collect();
        rest.into_iter().try_for_each(|index| self.bring_one(index).map(drop))
    }

    /// Brings an evicted host back. Returns its group if most of it were brought back.
    fn bring_one(&mut self, index: usize) -> Option<Option<u64>> {
        let (key, slot) = self.slots.get_index_mut(index)?;
        let Slot::Evicted(evicted) = slot else {
            return Some(None);
        };
        let host = self.groups.read(key.as_str(), evicted)?;
        let sparse = self.groups.leave(evicted).then_some(evicted.group);
        self.copy.before_change(key, slot);
        let mut resident = Resident::new(host, *slot.copied_in());
        self.workbench.add(key, &mut resident);
        *slot = Slot::Resident(Box::new(resident));
        Some(sparse)
    }

    /// Removes a host. Returns it, unless it is evicted and has no rules of robots.txt.
    pub(crate) fn remove(&mut self, key: &HostKey) -> Option<Host> {
        let index = self.index_of(key.as_str())?;
        if self.facts(key.as_str())?.has_rules {
            self.bring_here(index)?;
        }
        self.copy.before_removal(&mut self.slots, index);
        match self.slots.swap_remove_index(index)? {
            (_, Slot::Resident(resident)) => {
                if self.groups.are_used() {
                    self.workbench.remove(&resident);
                }
                Some(resident.host)
            }
            (_, Slot::Evicted(evicted)) => {
                self.groups.leave(&evicted);
                None
            }
        }
    }

    /// Iterates over all hosts, those of one group after the other. Cost: each group is read once, and one at a time is in memory.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HostKey, HostRef<'_>)> {
        self.iter_if(|_, _| true)
    }

    /// Iterates over the hosts with these facts. Cost: a look at each host, and each group is read once that has such a host.
    pub(crate) fn iter_if<'a>(
        &'a self,
        is_wanted: impl Fn(&HostKey, Facts) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = (&'a HostKey, HostRef<'a>)> {
        let here = self.slots.iter().filter_map(move |(key, slot)| match slot {
            Slot::Resident(resident) if is_wanted(key, Facts::of(&resident.host, &self.rules)) => {
                Some((key, HostRef::Here(&resident.host)))
            }
            _ => None,
        });
        let groups: BTreeSet<u64> = self
            .slots
            .iter()
            .filter_map(move |(key, slot)| match slot {
                Slot::Evicted(evicted) if is_wanted(key, evicted.facts) => Some(evicted.group),
                _ => None,
            })
            .collect();
        let evicted = groups
            .into_iter()
            .flat_map(|group| self.groups.hosts_of(group, &self.slots));
        let wanted = evicted.filter(move |(_, key, evicted)| is_wanted(key, evicted.facts));
        here.chain(wanted.filter_map(|(_, key, evicted)| {
            let host = self.groups.read(key.as_str(), evicted)?;
            Some((key, HostRef::Read(Box::new(host))))
        }))
    }

    /// Iterates over what all hosts do, as far as that does not depend on the time. Nothing is read.
    pub(crate) fn healths(&self) -> impl Iterator<Item = (&HostKey, Health)> {
        self.slots.iter().map(|(key, slot)| match slot {
            Slot::Resident(resident) => (key, resident.host.settled_health()),
            Slot::Evicted(evicted) => (key, evicted.facts.state),
        })
    }

    /// Iterates over the states of all hosts. Nothing is read.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&HostKey, HostState)> {
        self.slots.iter().map(|(key, slot)| (key, slot.state()))
    }
}

impl Slot {
    fn state(&self) -> HostState {
        match self {
            Self::Resident(resident) => resident.host.state,
            Self::Evicted(evicted) => evicted.state,
        }
    }

    /// The number of the last copy in which it is.
    fn copied_in(&mut self) -> &mut u16 {
        match self {
            Self::Resident(resident) => &mut resident.copied_in,
            Self::Evicted(evicted) => &mut evicted.copied_in,
        }
    }

    fn evicted(&self) -> Option<&Evicted> {
        match self {
            Self::Resident(_) => None,
            Self::Evicted(evicted) => Some(evicted),
        }
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
