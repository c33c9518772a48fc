//! Hosts that take turns: those of a class one after the other, and the [classes](crate::Class) by their order.
//!
//! A host whose class becomes better gets a second place. Its state says which class it has now: who takes a host out of a round looks at that,
//! and leaves out the places that do not count any more.

use std::collections::{HashSet, VecDeque};

use crate::class::{ByClass, Class, Turns};
use crate::url::HostKey;

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Round {
    hosts: ByClass<VecDeque<HostKey>>,
    turns: Turns,
}

impl Round {
    /// Lets a host join: at the end of its class, or first if it is just met.
    pub(super) fn join(&mut self, class: Class, key: HostKey, is_just_met: bool) {
        let hosts = self.hosts.of(class);
        if is_just_met {
            hosts.push_front(key);
        } else {
            hosts.push_back(key);
        }
    }

    /// The place whose turn it is.
    pub(super) fn first(&self) -> Option<(Class, HostKey)> {
        let in_use = self.hosts.iter().filter(|(_, hosts)| !hosts.is_empty());
        let class = self.turns.next(in_use.map(|(class, _)| class).collect())?;
        let (_, hosts) = self.hosts.iter().find(|(of, _)| *of == class)?;
        Some((class, hosts.front()?.clone()))
    }

    /// Removes the first place of a class, which had its turn.
    pub(super) fn take(&mut self, class: Class) {
        self.remove_first(class);
        self.turns.take(class);
    }

    /// Removes the first place of a class.
    pub(super) fn remove_first(&mut self, class: Class) {
        let Some(hosts) = self.hosts.get_mut(class) else { return };
        hosts.pop_front();
        if hosts.len() < hosts.capacity() / 4 {
            hosts.shrink_to(hosts.capacity() / 2);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.iter().map(|(_, hosts)| hosts.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Beyond `most` places, keeps the first of each host that counts. Cost: a look at all, amortised over as many new ones.
    pub(super) fn sweep(&mut self, most: usize, counts: impl Fn(Class, &HostKey) -> bool) {
        if self.len() <= most {
            return;
        }
        for (class, hosts) in self.hosts.iter_mut() {
            let mut kept = HashSet::new();
            hosts.retain(|key| counts(class, key) && kept.insert(key.clone()));
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut HostKey> {
        self.hosts.iter_mut().flat_map(|(_, hosts)| hosts)
    }

    /// Removes all places, those of the best class first.
    pub(super) fn drain(&mut self) -> Vec<HostKey> {
        self.hosts.iter_mut().flat_map(|(_, hosts)| hosts.drain(..)).collect()
    }
}
