//! What a frontier says of itself: numbers, and why a URL was or was not fetched.

use sieve::Filter;

use super::Frontier;
use crate::link::Link;
use crate::report::{HostReceipt, Report, Why};
use crate::url::CanonicalUrl;

impl<F: Filter> Frontier<F> {
    /// Says why a URL was or was not fetched.
    ///
    /// Cost: the length of its host's queue.
    pub fn why(&self, url: &CanonicalUrl) -> Why {
        let key = url.key();
        if let Some(taken) = self.leases.values().find(|taken| taken.entry.key() == key) {
            return Why::Leased {
                attempt: taken.entry.attempts,
            };
        }
        let queues = self.sieve.queue();
        if let Some(host) = queues
            .get(&url.host())
            .filter(|host| host.waiting().any(|entry| entry.key() == key))
        {
            return Why::Queued {
                host: url.host(),
                host_free_from: host.free_from(queues.rules()),
            };
        }
        if self.sieve.contains(key) {
            return Why::Seen {
                false_positive_rate: self.sieve.saturation().rate,
            };
        }
        let link = Link {
            depth: 0,
            ..Link::found(url.clone(), 0, "".into())
        };
        match self.scope.judge(&link).and_then(|()| queues.admit(&link)) {
            Ok(()) => Why::NeverOffered,
            Err(refusal) => Why::Refused(refusal),
        }
    }

    /// Returns the numbers. Cost: O(1).
    pub fn report(&self) -> Report {
        Report {
            queued: self.sieve.len() as u64,
            leased: self.leases.len() as u64,
            pages: self.pages,
            not_fetched: self.not_fetched.clone(),
            links: self.links.clone(),
            sitemaps: self.sitemaps.counts.clone(),
            hosts: self.sieve.queue().iter().len() as u64,
            closed_prefixes: self.sieve.queue().budgets().repeats.closed_ever(),
            saturation: self.sieve.saturation(),
        }
    }

    /// Goes through the hosts that are remembered, each with what it was asked and how politely.
    pub fn receipts(&self) -> impl Iterator<Item = HostReceipt> {
        let default = self.sieve.queue().rules().delay;
        self.sieve.queue().iter().map(move |(key, host)| HostReceipt {
            host: key.clone(),
            requests: host.requests,
            delay: host.delay.map_or(default, |own| own.max(default)),
            shortest_gap: host.shortest_gap,
            queued: host.queued(),
            given_up: host.gave_up_any(),
        })
    }
}
