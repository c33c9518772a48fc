//! What must be set after the queues were read from a store: the configuration, the rules of robots.txt, shared names.
//!
//! The stored times and rounds are those of the configuration before. If it has changed, all hosts are placed anew.

use std::cmp::Reverse;

use super::host::HostState;
use super::table::HostTable;
use super::timers::Timers;
use super::{HostQueues, HostRules};
use crate::config::FrontierConfig;
use crate::lease::NotFetched;
use crate::rules::ParseRules;
use crate::time::Time;
use crate::url::HostKey;

impl HostQueues {
    /// Returns the hosts, to copy them.
    pub(crate) fn table_mut(&mut self) -> &mut HostTable {
        &mut self.hosts
    }

    /// Makes queues usable that were read from a store.
    pub(crate) fn configure(&mut self, rules: HostRules, config: &FrontierConfig, parse: &ParseRules) {
        self.addresses.configure(rules.per_host, rules.delay);
        self.traps.configure(config);
        self.rules = rules;
        self.hosts.for_each_mut(|host| host.parse_rules(parse));
        self.share_names();
    }

    /// Places all hosts anew, after the configuration has changed: when they are due, and which share an address now. Drops what exceeds
    /// a budget.
    ///
    /// The hosts that were due keep their order; the others follow by name. Cost: O(hosts log hosts).
    pub(crate) fn place_anew(&mut self, before: &FrontierConfig, after: &FrontierConfig, now: Time) {
        self.traps.limits_changed(before, after);
        let mut keys: Vec<HostKey> = self.due.drain(..).collect();
        keys.extend(self.addresses.take_waiting());
        let is_in_round = |state| matches!(state, HostState::Due | HostState::WaitingForAddress);
        let others = self.hosts.iter().filter(|(_, host)| !is_in_round(host.state));
        let mut others: Vec<HostKey> = others.map(|(key, _)| key.clone()).collect();
        others.sort_unstable();
        keys.append(&mut others);
        self.waiting.clear();
        self.resting.clear();
        for key in &keys {
            if let Some(host) = self.hosts.get_mut(key) {
                host.state = HostState::Idle;
                host.apply_rules(now, &self.rules);
            }
        }
        for key in &keys {
            self.update_state(key, now);
            if self
                .hosts
                .get(key.as_str())
                .is_some_and(|host| host.exceeds_budget(&self.rules))
            {
                self.drop_pages_of(key, NotFetched::HostBudget, now);
            }
        }
    }

    /// Lets all references to a host share one copy of its name.
    fn share_names(&mut self) {
        let hosts = &self.hosts;
        let share = |key: &mut HostKey| *key = hosts.shared_name(key);
        self.due.iter_mut().for_each(share);
        self.postponed_at.iter_mut().for_each(|(key, _)| share(key));
        self.addresses.replace_names(share);
        for timers in [&mut self.waiting, &mut self.resting] {
            let mut marks = std::mem::take(timers).into_vec();
            marks.iter_mut().for_each(|Reverse((_, key))| share(key));
            *timers = Timers::from(marks);
        }
    }
}
