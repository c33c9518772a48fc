//! What must be set after the queues were read from a store: the configuration, the rules of robots.txt, shared names.

use std::cmp::Reverse;

use super::table::HostTable;
use super::timers::Timers;
use super::{HostQueues, HostRules};
use crate::config::FrontierConfig;
use crate::rules::ParseRules;
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
