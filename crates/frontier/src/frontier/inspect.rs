//! Looks at a frontier: its numbers, and why a URL was or was not fetched.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Frontier, FrontierError};
use crate::entry::Entry;
use crate::hosts::Facts;
use crate::link::Link;
use crate::report::{AwayReport, HostReport, QueuePlace, Report, Wait, Why};
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::CanonicalUrl;

impl Frontier {
    /// Says what decides about a URL now: the rule that refuses it, what it waits for, or that it is in flight. The URL is one that a
    /// [`Canonicalizer`](crate::Canonicalizer) made by the same rules; [`Entry::canonical_url`](crate::Entry::canonical_url) makes
    /// one from an entry.
    ///
    /// It has no memory of what has ended: a URL that was fetched, failed, or dropped is [`Seen`](Why::Seen), whichever it was. Record
    /// that yourself as it happens, from [`Settled`](crate::Settled) and [`Leasing::Dropped`](crate::Leasing::Dropped), if you want to
    /// say later why a URL was not fetched. The URL of a robots.txt is no page: the answer is that of a page with this URL.
    ///
    /// Cost: the length of its host's queue.
    pub fn why(&self, url: &CanonicalUrl, now: Time) -> Why {
        let key = url.key();
        if let Some(taken) = self.leases.values().find(|taken| taken.entry.key() == key) {
            return Why::Leased {
                attempt: taken.entry.attempts,
            };
        }
        let queues = self.sieve.queue();
        match queues.why_waiting(url, now) {
            Some(Why::Queued { host, wait }) => {
                let is_spent = self.max_pages.is_some_and(|most| self.pages.spent() >= most);
                let wait = match wait {
                    _ if is_spent => Wait::PageBudget,
                    Wait::Turn if self.budget_left() == 0 => Wait::PagesInFlight,
                    wait => wait,
                };
                return Why::Queued { host, wait };
            }
            Some(why) => return why,
            None => {}
        }
        if let Some(why) = queues.why_dropped(key) {
            return Why::WillBeDropped(why);
        }
        if self.sieve.contains(key) {
            return Why::Seen {
                false_positive_rate: self.sieve.saturation().rate,
            };
        }
        let link = Link::found(url.clone(), 0, "".into());
        match self.scope.judge(&link).and_then(|()| queues.admit(&link)) {
            Ok(()) if self.sieve.is_refusing() => Why::Refused(Refusal::Saturated),
            Ok(()) => Why::NeverOffered,
            Err(refusal) => Why::Refused(refusal),
        }
    }

    /// Says behind how many a URL waits; `None` if it does not wait.
    ///
    /// Cost: a copy of each entry of its host that comes before it; of all that wait for its host if it does not.
    pub fn place_in_queue(&self, url: &CanonicalUrl) -> Option<QueuePlace> {
        self.sieve.queue().place_of(url)
    }

    /// Returns how many pages are left: queued, or in flight. A robots.txt, a sitemap or an address in flight counts, too. Cost: O(1).
    pub fn pages_left(&self) -> u64 {
        self.sieve.queue().queued_pages() + self.leases.len() as u64
    }

    /// Returns the numbers. Cost: O(1).
    pub fn report(&self) -> Report {
        let queues = self.sieve.queue();
        let (closed_prefixes, postponed_prefixes) = queues.traps().prefixes();
        Report {
            queued: self.sieve.len() as u64,
            queued_pages: queues.queued_pages(),
            postponed: queues.postponed(),
            leased: self.leases.len() as u64,
            pages: self.pages,
            not_fetched: self.not_fetched.clone(),
            links: self.links.clone(),
            sitemaps: self.sitemaps.counts.clone(),
            hosts: queues.hosts().len() as u64,
            origins_given_up: queues.given_up(),
            rules_bytes: queues.rules_bytes() as u64,
            resemblance: self.clusters.counts(),
            postponed_prefixes,
            closed_prefixes,
            refused_earlier: self.refused_under.is_some(),
            saturation: self.sieve.saturation(),
            memory: self.memory_report(),
        }
    }

    /// Iterates over the hosts that are remembered, each with what it was asked and how politely.
    pub fn host_reports(&self) -> impl Iterator<Item = HostReport> {
        let rules = self.sieve.queue().rules();
        self.sieve.queue().hosts().iter().map(move |(key, host)| HostReport {
            host: key.clone(),
            requests: host.requests(),
            delay: host.delay(rules),
            shortest_gap: host.shortest_gap(),
            queued: host.queued() + host.postponed(),
            given_up: host.gave_up_any(),
        })
    }

    /// Iterates over the origins that are away, in no particular order. Cost: a look at each host.
    pub fn away(&self) -> impl Iterator<Item = AwayReport> {
        let hosts = self.sieve.queue().hosts().iter_if(Facts::is_away);
        hosts.flat_map(|(key, host)| {
            let away = host.origins().iter().filter_map(|origin| {
                let outage = origin.outage()?;
                Some(AwayReport {
                    origin: origin.id.origin(key)?,
                    since: outage.since,
                    cause: Arc::clone(&outage.cause),
                    next_probe: outage.next,
                    waiting: origin.waiting_len(),
                })
            });
            // The host may be a copy that does not live on.
            away.collect::<Vec<_>>()
        })
    }

    /// Visits every entry that waits, until the visitor breaks: pages, the postponed ones included, retries, sitemaps, and robots.txt
    /// files that redirects led to. The order is none in particular.
    ///
    /// Cost: a copy of each entry, one after the other. The memory is that of one segment of a queue, about 4 KiB.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotRead`] if a part of a queue cannot be read. The visitor has met all others.
    pub fn visit_waiting(&self, visit: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<(), FrontierError> {
        let queues = self.sieve.queue();
        for (key, host) in queues.hosts().iter() {
            if host.visit_waiting(key, queues.rules(), visit).is_break() {
                return Ok(());
            }
        }
        if queues.rules().is_broken() {
            return Err(FrontierError::NotRead);
        }
        Ok(())
    }
}
