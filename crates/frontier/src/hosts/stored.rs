//! What must be set after the queues were read from a store: the configuration, the rules of robots.txt, shared names.
//!
//! The stored times and rounds are those of the configuration before. If it has changed, all hosts are placed anew.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use indexmap::IndexSet;

use super::host::HostState;
use super::table::{HostTable, HostsOnDisk};
use super::timers::Timers;
use super::{HostConfig, HostQueues};
use crate::config::{FrontierConfig, TrapConfig};
use crate::time::Time;
use crate::url::HostKey;

impl HostQueues {
    pub(crate) fn table_mut(&mut self) -> &mut HostTable {
        &mut self.hosts
    }

    pub(crate) fn configure(
        &mut self,
        config: HostConfig,
        traps: TrapConfig,
        mut hosts: HostTable,
        on_disk: HostsOnDisk,
    ) {
        self.traps.limits = traps;
        self.config.segments = Some(Arc::clone(&on_disk.segments));
        hosts.lie_on_disk(on_disk);
        self.hosts = hosts;
        self.set_config(config);
        self.share_names();
    }

    pub(crate) fn set_config(&mut self, config: HostConfig) {
        let segments = self.config.segments.take();
        self.config = HostConfig {
            segments,
            holds_new: self.holds_new,
            ..config
        };
        self.hosts.config = self.config.clone();
    }

    pub(crate) fn set_holds_new(&mut self, holds_new: bool) {
        self.holds_new = holds_new;
        self.set_config(self.config.clone());
    }

    /// Places all hosts anew, after the configuration has changed: when they are due, and which share an address now. Drops what exceeds
    /// a budget.
    ///
    /// The hosts that were due keep their order; the others follow by their times and names. Hosts without a page so far come first. Cost: O(hosts log hosts).
    pub(crate) fn place_anew(&mut self, before: &FrontierConfig, after: &FrontierConfig, now: Time) {
        self.traps.limits_changed(&before.traps, &after.traps);
        // A host whose class has become better is in several places.
        let mut keys: IndexSet<HostKey> = self.due.drain().into_iter().collect();
        keys.extend(self.addresses.take_waiting());
        // Those that wait by their times, as they were evicted: groups are read one after the other.
        let others = self.hosts.all_facts().filter_map(|(key, facts)| match facts.state {
            HostState::Due(_) | HostState::WaitingForAddress(_) => None,
            HostState::Waiting(time) | HostState::Resting(time) => Some((time, key.clone())),
            HostState::WaitingForSettlement | HostState::Idle => Some((Time::EPOCH, key.clone())),
        });
        let mut others: Vec<(Time, HostKey)> = others.collect();
        others.sort_unstable();
        keys.extend(others.into_iter().map(|(_, key)| key));
        self.timers = Timers::default();
        for key in &keys {
            if let Some(host) = self.hosts.get_mut(key) {
                host.state = HostState::Idle;
                host.resolve_policy(key, &self.config);
                host.apply_config(now, &self.config);
            }
            self.update_state(key, now);
            self.drop_barred(key, now);
        }
    }

    /// Lets all references to a host share one copy of its name.
    fn share_names(&mut self) {
        let hosts = &self.hosts;
        let share = |key: &mut HostKey| *key = hosts.shared_name(key);
        self.due.iter_mut().for_each(share);
        self.postponed_at.iter_mut().for_each(|(key, _)| share(key));
        self.addresses.replace_names(share);
        for timers in [&mut self.timers.waiting, &mut self.timers.resting] {
            let mut marks = std::mem::take(timers).into_vec();
            marks.iter_mut().for_each(|Reverse((_, key))| share(key));
            *timers = BinaryHeap::from(marks);
        }
    }
}
