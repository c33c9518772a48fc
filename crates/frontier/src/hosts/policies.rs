//! The policies of hosts: what is set while the crawl runs, and what follows for links and for what waits. A host has its own in
//! `host/politeness.rs`.

use super::{HostQueues, counts_as_page, is_page};
use crate::class::Class;
use crate::entry::Entry;
use crate::lease::NotFetched;
use crate::policy::HostPolicy;
use crate::time::Time;
use crate::url::HostKey;

impl HostQueues {
    /// Sets the policy of one host. If that closes it, drops what waits.
    pub(crate) fn set_policy(&mut self, key: &HostKey, policy: &HostPolicy, now: Time) {
        let had_one = self.get(key).is_some_and(|host| host.own_policy().is_some());
        self.own_policies = self.own_policies + u64::from(*policy != HostPolicy::NONE) - u64::from(had_one);
        self.change(key, now, |host, config| {
            host.set_policy(key, policy.clone(), config);
            host.update_crawl_delay(config.politeness.max_crawl_delay);
        });
        self.drop_barred(key, now);
    }

    /// Drops what may not wait for a host any more: it is closed, or its budget is spent.
    pub(super) fn drop_barred(&mut self, key: &HostKey, now: Time) {
        let why = match self.get(key) {
            Some(host) if host.policy().is_closed() => NotFetched::ByOrder,
            Some(host) if host.exceeds_budget(&self.config) => NotFetched::HostBudget,
            _ => return,
        };
        self.drop_queues(key, why, now);
    }

    /// Why an entry of a host may not wait any more, by its policy. It may have changed while the entry was in flight.
    pub(super) fn barred(&self, entry: &Entry) -> Option<NotFetched> {
        let facts = self.hosts.facts(entry.queue.as_str()).filter(|_| is_page(entry))?;
        if facts.is_closed {
            return Some(NotFetched::ByOrder);
        }
        let is_spent = !facts.takes_pages && counts_as_page(entry) && self.has_spent_budget(&entry.queue);
        is_spent.then_some(NotFetched::HostBudget)
    }

    /// Whether nothing of a host is fetched.
    pub(crate) fn is_closed(&self, key: &HostKey) -> bool {
        match self.hosts.facts(key.as_str()) {
            Some(facts) => facts.is_closed,
            None => self.config.policies.of(key.as_str()).is_closed(),
        }
    }

    pub(super) fn has_policies(&self) -> bool {
        self.own_policies > 0 || !self.config.policies.is_empty()
    }

    /// The class of a host, by its policy.
    pub(super) fn class_of(&self, key: &HostKey) -> Option<Class> {
        match self.hosts.facts(key.as_str()) {
            Some(facts) => facts.class,
            None => self.config.policies.of(key.as_str()).class,
        }
    }
}
