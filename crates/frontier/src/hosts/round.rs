//! Hosts that take turns: those of a class one after the other, and the [classes](crate::Class) by their order.
//!
//! A host whose class becomes better gets a place there, too. Its state says which class it has: at a place of another one it has no turn. It has
//! one place at most in each class: with its old class again, it waits at the old place.

use std::collections::VecDeque;

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

    /// Counts a turn of a class. One in which nothing was requested counts for none.
    pub(super) fn count_turn(&mut self, class: Class) {
        self.turns.count(class);
    }

    /// Removes the first place of a class.
    pub(super) fn remove_first(&mut self, class: Class) {
        let Some(hosts) = self.hosts.get_mut(class) else { return };
        hosts.pop_front();
        if hosts.len() < hosts.capacity() / 4 {
            hosts.shrink_to(hosts.capacity() / 2);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.iter().all(|(_, hosts)| hosts.is_empty())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut HostKey> {
        self.hosts.iter_mut().flat_map(|(_, hosts)| hosts)
    }

    /// Removes all places, those of the best class first.
    pub(super) fn drain(&mut self) -> Vec<HostKey> {
        self.hosts.iter_mut().flat_map(|(_, hosts)| hosts.drain(..)).collect()
    }
}
