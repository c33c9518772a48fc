//! The host queues as the queue of the frontier's sieve.

use std::time::Duration;

use super::HostQueues;
use crate::entry::Entry;
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;
use crate::traps::Screening;
use crate::url::HostKey;

impl HostQueues {
    pub(crate) fn room(&self) -> u64 {
        self.config.limits.max_queued.saturating_sub(HostQueues::len(self))
    }

    pub(crate) fn room_for_retries(&self) -> u64 {
        self.config
            .limits
            .max_queued
            .div_ceil(2)
            .saturating_sub(HostQueues::len(self))
    }

    /// Checks whether a page may be queued whose last fetch has ended.
    pub(crate) fn admit_again(&self, page: &Link, is_refused_if_given_up: bool) -> Result<(), Refusal> {
        if HostQueues::len(self) >= self.config.limits.max_queued {
            return Err(Refusal::QueueFull);
        }
        match self.hosts.get(page.url.host_str()) {
            _ if self.is_closed(&page.url.host()) || self.config.drops(page.url.key()) => Err(Refusal::ByOrder),
            Some(host) if is_refused_if_given_up && host.gave_up(page.url.url().as_str()) => Err(Refusal::HostDown),
            None if self.hosts.len() >= self.config.limits.max_hosts => Err(Refusal::TooManyHosts),
            _ => Ok(()),
        }
    }

    /// Takes the time of the next revisit of a host.
    pub(crate) fn book_revisit(&mut self, key: &HostKey, now: Time) -> Time {
        let mut at = now;
        self.change(key, now, |host, config| at = host.book_revisit(now, config));
        at.max(Time::from_millis(1))
    }

    /// When the next revisit of a host may be requested, and the time between two.
    pub(crate) fn next_revisit(&self, key: &HostKey) -> Option<(Time, Duration)> {
        let host = self.get(key)?;
        Some((host.next_revisit(&self.config), host.revisit_interval(&self.config)))
    }

    pub(crate) fn has_spent_budget(&self, key: &HostKey) -> bool {
        let Some(host) = self.get(key) else { return false };
        let most = host.max_pages(&self.config);
        most.is_some_and(|most| host.settled_pages() >= most)
    }

    /// Queues a link that was admitted, past the seen-set. `page` is the number of its page if that has ended before, or 0.
    pub(crate) fn queue_link(&mut self, link: &Link, page: u64, is_postponed: bool, now: Time) {
        self.count_host(link);
        let entry = Entry {
            page,
            ..self.entry_of(link)
        };
        self.queue(entry, is_postponed, now);
    }

    /// Makes an entry of a link that will be queued, in its class.
    pub(crate) fn entry_of(&self, link: &Link) -> Entry {
        let mut entry = Entry::of(link);
        if link.class.is_some() {
            return entry;
        }
        if let Some(rule) = self.config.order.rule_of(entry.key()) {
            entry.class = rule.class;
        } else if self.has_policies() {
            entry.class = self.class_of(&entry.queue).unwrap_or_default();
        }
        entry
    }

    fn queue(&mut self, mut entry: Entry, is_postponed: bool, now: Time) {
        if is_postponed {
            entry.queue = self.hosts.shared_name(&entry.queue);
            self.postpone(&entry, now);
        } else {
            self.enqueue(entry, now);
        }
    }

    /// Counts the host of a link that is about to be queued, if it is the first one. It may be known already: by a robots.txt that was
    /// redirected to it, or by its own delay.
    fn count_host(&mut self, link: &Link) {
        let facts = self.hosts.facts(link.url.host_str());
        if !facts.is_some_and(|facts| facts.is_counted) {
            self.traps.count_host(link);
        }
    }
}

impl sieve::Queue for HostQueues {
    fn len(&self) -> usize {
        usize::try_from(HostQueues::len(self)).unwrap_or(usize::MAX)
    }
}

impl sieve::Accepts<Arrival<'_>> for HostQueues {
    type Refusal = Refusal;

    fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        self.admit(arrival.link, arrival.is_late)
    }

    /// While nothing is near its bound, a batch of links needs no checks.
    fn admits_next(&self, count: usize) -> bool {
        let room = count as u64;
        HostQueues::len(self) + room <= self.config.limits.max_queued
            && self.hosts.len() + count <= self.config.limits.max_hosts
            && self.config.limits.max_pages_per_host.is_none()
            && !self.has_policies()
            && self.config.dropped.is_none()
            && self.given_up == 0
            && !self.has_crowded_hosts
            && self.traps.admits_next(count)
    }

    fn push(&mut self, arrival: Arrival<'_>) {
        self.count_host(arrival.link);
        let is_over_budget = self.traps.count(arrival.link, arrival.is_late);
        let entry = self.entry_of(arrival.link);
        // What a postponed page leads to waits too: otherwise it would not be known of the next page that it is found on a postponed one.
        let is_postponed = arrival.is_postponed
            || arrival.is_late
            || is_over_budget
            || self.traps.screen(&entry) == Screening::Postpone;
        self.queue(entry, is_postponed, arrival.at);
    }
}

/// A link that is pushed into the sieve, with its time of arrival. An entry is created for a new one only.
#[derive(Debug)]
pub(crate) struct Arrival<'l> {
    pub(crate) link: &'l Link,
    pub(crate) at: Time,
    /// Whether it is postponed, because of the page that it was found on.
    pub(crate) is_postponed: bool,
    /// Whether that page was postponed itself.
    pub(crate) is_late: bool,
}

impl AsRef<[u8]> for Arrival<'_> {
    fn as_ref(&self) -> &[u8] {
        self.link.url.key().as_bytes()
    }
}
