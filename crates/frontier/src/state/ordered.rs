//! What an operator orders while a crawl runs: policies of hosts, and of the crawl as a whole.

use super::State;
use crate::config::FrontierConfigError;
use crate::hosts::HostConfig;
use crate::policy::{CrawlPolicy, HostPolicy};
use crate::scope::Scope;
use crate::time::Time;
use crate::url::HostKey;

impl State {
    pub(crate) fn ordered(&self) -> &CrawlPolicy {
        &self.tables.ordered
    }

    /// Checks that a policy can be obeyed: its patterns.
    pub(crate) fn check(&self, policy: &CrawlPolicy) -> Result<(), FrontierConfigError> {
        let config = self.config.under(policy);
        Scope::new(config.scope.clone())?;
        HostConfig::of(&config, &policy.dropped).map(drop)
    }

    pub(super) fn set_policy(&mut self, host: &HostKey, policy: &HostPolicy, now: Time) {
        let was_closed = self.sieve.queue().is_closed(host);
        self.hosts().set_policy(host, policy, now);
        if was_closed && !self.sieve.queue().is_closed(host) {
            self.opened(now);
        }
    }

    pub(super) fn set_crawl_policy(&mut self, policy: &CrawlPolicy, now: Time) {
        let before = self.config.under(&self.tables.ordered);
        let was = std::mem::replace(&mut self.tables.ordered, policy.clone());
        let after = self.config.under(policy);
        // It was checked before.
        let _ = self.obey_orders();
        let _ = self.note_widened_limits(&before, &after);
        if !was.dropped.iter().all(|pattern| policy.dropped.contains(pattern)) {
            self.opened(now);
        }
        let of_hosts = |config: &crate::FrontierConfig| (config.politeness.delay, config.limits.max_pages_per_host);
        if of_hosts(&before) != of_hosts(&after) {
            self.place_anew(&before, &after, now);
        }
    }

    /// Queues what is still being dropped by an order that is taken back. Notes that links may have been refused by it: as if a configuration
    /// had closed some host.
    fn opened(&mut self, now: Time) {
        self.hosts().take_back_dropped(now);
        let mut narrower = (*self.config).clone();
        let closed = HostPolicy {
            closed: Some(true),
            ..HostPolicy::default()
        };
        narrower.hosts.insert("*".to_owned(), closed);
        let wanted = self.config.under(&self.tables.ordered);
        let _ = self.note_widened_limits(&narrower, &wanted);
    }

    /// Lets the parts go by the configuration under what is ordered.
    pub(super) fn obey_orders(&mut self) -> Result<(), FrontierConfigError> {
        let config = self.config.under(&self.tables.ordered);
        let mut scope = Scope::new(config.scope.clone())?;
        let queues = HostConfig::of(&config, &self.tables.ordered.dropped)?;
        scope.set_reached(self.scope.take_reached());
        (self.scope, self.max_pages, self.freshness) = (scope, config.limits.max_pages, config.freshness);
        self.hosts().set_config(queues);
        Ok(())
    }
}
