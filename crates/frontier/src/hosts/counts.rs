//! What is counted against the limits of hosts.

use super::HostQueues;
use crate::time::Time;
use crate::traps::Traps;
use crate::url::HostKey;

impl HostQueues {
    /// Counts a page of a host. Returns whether pages must be dropped, because its budget is spent now.
    pub(crate) fn count_page(&mut self, key: &HostKey, now: Time) -> bool {
        let mut is_over = false;
        if self.hosts.contains(key.as_str()) {
            self.change(key, now, |host, config| is_over = host.count_page(config));
        }
        is_over
    }

    /// Counts anew what limits traps and the pages of hosts. Cost: if there is such a limit of a host, a look at each.
    pub(crate) fn forget_counts(&mut self, now: Time) {
        self.traps = Traps::new(self.traps.limits.clone(), self.traps.hash);
        let has_limit = self.config.limits.max_pages_per_host.is_some() || self.has_policies();
        let hosts = self.hosts.all_facts().map(|(key, _)| key.clone());
        let hosts: Vec<_> = hosts.filter(|_| has_limit).collect();
        for key in hosts {
            self.change(&key, now, |host, _| host.forget_pages());
        }
    }

    /// Takes back that a page of a host was counted.
    pub(crate) fn uncount_page(&mut self, key: &HostKey, now: Time) {
        if self.hosts.contains(key.as_str()) {
            self.change(key, now, |host, _| host.uncount_page());
        }
    }
}
