//! Looks at a state: its numbers, and why a URL was or was not fetched. [`Frontier`](crate::Frontier) says what each function returns.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::State;
use crate::entry::Entry;
use crate::error::FrontierError;
use crate::hosts::{HostRef, LeasedEntry, OriginId};
use crate::link::Link;
use crate::notice::Notice;
use crate::report::{Health, HostReport, Report, Wait, Why};
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey};

impl State {
    pub(crate) fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.scope.reaches(url)
    }

    pub(crate) fn why(&self, url: &CanonicalUrl, now: Time) -> Why {
        let key = url.key();
        if let Some(entry) = self.in_flight().find(|entry| entry.key() == key) {
            return Why::Leased {
                attempt: entry.attempts,
            };
        }
        let queues = self.sieve.queue();
        if let Some(mut why) = queues.why_waiting(url, now) {
            if let Why::Queued { wait, .. } = &mut why {
                if self.is_budget_spent() {
                    *wait = Wait::PageBudget;
                } else if *wait == Wait::Turn && self.budget_left() == 0 {
                    *wait = Wait::PagesInFlight;
                }
            }
            return why;
        }
        if let Some((_, why)) = queues.dropped_entries().find(|(entry, _)| entry.key() == key) {
            return Why::WillBeDropped(why);
        }
        let link = Link::found(url.clone(), 0, "".into());
        if let Some(owner) = self.owner_elsewhere(&link) {
            return Why::Elsewhere { owner };
        }
        if self.sieve.contains(key) {
            return Why::Seen {
                false_positive_rate: self.sieve.saturation().rate,
            };
        }
        match self.scope.judge(&link).and_then(|()| queues.admit(&link, true)) {
            Ok(()) if self.sieve.is_refusing() => Why::Refused(Refusal::Saturated),
            Ok(()) => Why::NeverOffered,
            Err(refusal) => Why::Refused(refusal),
        }
    }

    pub(crate) fn pages_left(&self) -> u64 {
        self.sieve.queue().queued_pages() + self.tables.leases.in_flight.len() as u64
    }

    pub(crate) fn report(&self) -> Report {
        let queues = self.sieve.queue();
        let (closed_prefixes, postponed_prefixes) = queues.traps.prefixes();
        Report {
            queued: self.sieve.len() as u64,
            queued_pages: queues.queued_pages(),
            postponed: queues.postponed(),
            leased: self.tables.leases.in_flight.len() as u64,
            is_budget_spent: self.is_budget_spent(),
            revisits: queues.revisits(),
            pages: self.tables.pages,
            not_fetched: self.tables.not_fetched.clone(),
            links: self.tables.links.clone(),
            sitemaps: self.tables.sitemaps.counts.clone(),
            hosts: queues.hosts().len() as u64,
            origins_given_up: queues.given_up,
            rules_bytes: queues.rules_bytes as u64,
            resemblance: self.tables.clusters.counts(),
            postponed_prefixes,
            closed_prefixes,
            refused_earlier: self.tables.refused_under.is_some(),
            saturation: self.sieve.saturation(),
            partition: self.partition,
            exchange: self.exchange_counts(),
            ordered_max_pages: self.tables.ordered.max_pages,
            max_outbox: self.config.limits.max_outbox,
            memory: self.memory_report(),
        }
    }

    pub(crate) fn host_reports(&self, now: Time) -> impl Iterator<Item = HostReport> {
        let hanging = self.hanging(now);
        let hosts = self.sieve.queue().hosts().iter_if(|_, _| true);
        hosts.map(move |(key, host)| self.report_of(key, &host, hanging.get(key).copied(), now))
    }

    pub(crate) fn host_report(&self, key: &HostKey, now: Time) -> Option<HostReport> {
        let host = self.sieve.queue().get(key)?;
        Some(self.report_of(key, &host, self.hanging(now).remove(key), now))
    }

    pub(crate) fn held_up(&self, now: Time) -> Vec<HostReport> {
        let hanging = &self.hanging(now);
        let hosts = self.sieve.queue().hosts().iter_if(|key, facts| {
            facts.rests || (Health::Resting..Health::Closed).contains(&facts.health) || hanging.contains_key(key)
        });
        let reports = hosts.map(|(key, host)| self.report_of(key, &host, hanging.get(key).copied(), now));
        // The time until which it is closed may be over.
        reports
            .filter(|report| {
                report.health.state >= Health::Resting && report.queued > 0 || hanging.contains_key(&report.host)
            })
            .collect()
    }

    pub(crate) fn hosts_by_health(&self, now: Time) -> BTreeMap<Health, u64> {
        let hanging = self.hanging(now);
        let (mut counts, hosts) = (BTreeMap::new(), self.sieve.queue().hosts());
        for (key, facts) in hosts.all_facts() {
            let hangs = hanging.contains_key(key).then_some(Health::Hanging);
            // Whether it still is closed depends on the time.
            let rests = facts.rests.then(|| hosts.get(key.as_str())).flatten();
            let rests = rests.map(|host| host.health(key, None, &self.retries, now).state);
            *counts
                .entry(facts.health.max(hangs.or(rests).unwrap_or_default()))
                .or_default() += 1;
        }
        counts
    }

    fn hanging(&self, now: Time) -> BTreeMap<&HostKey, &LeasedEntry> {
        let mut hanging: BTreeMap<&HostKey, &LeasedEntry> = BTreeMap::new();
        let leases = self.tables.leases.in_flight.values();
        for leased in leases.filter(|leased| now.since(leased.started) >= Health::HANGING) {
            // The first one is the oldest.
            hanging.entry(&leased.entry.queue).or_insert(leased);
        }
        hanging
    }

    pub(crate) fn began_to_hang(&self, since: Time, now: Time) -> Vec<Notice> {
        let mut began = self.hanging(now);
        began.retain(|key, oldest| {
            let facts = self.sieve.queue().hosts().facts(key.as_str());
            since.since(oldest.started) < Health::HANGING && facts.is_some_and(|facts| facts.health < Health::Hanging)
        });
        let notices = began.into_iter().filter_map(|(key, leased)| {
            Some(Notice::Hanging {
                origin: OriginId::of(&leased.entry.url).origin(key)?,
                url: leased.entry.url.clone(),
                after: now.since(leased.started),
            })
        });
        notices.collect()
    }

    fn report_of(&self, key: &HostKey, host: &HostRef<'_>, hanging: Option<&LeasedEntry>, now: Time) -> HostReport {
        let queues = self.sieve.queue();
        let config = queues.config();
        let oldest = hanging.map(|leased| (leased.started, OriginId::of(&leased.entry.url)));
        HostReport {
            host: key.clone(),
            requests: host.requests(),
            delay: host.delay(config),
            crawl_delay: host.crawl_delay(),
            shortest_gap: host.shortest_gap(),
            robots_at: host.robots_at(),
            queued: host.queued() + host.postponed(),
            postponed: host.postponed(),
            in_flight: host.pace.in_flight(),
            per_host: host.per_host(config),
            max_attempts: self.retries.max_attempts.get(),
            alike: if host.has_postponed() {
                queues.traps.alike_to_come(key)
            } else {
                0
            },
            is_budget_spent: self.is_budget_spent(),
            budget: host.budget_left(config),
            given_up: host.gave_up_any(),
            policy: host.policy().clone(),
            health: host.health(key, oldest, &self.retries, now),
        }
    }

    pub(super) fn is_budget_spent(&self) -> bool {
        self.max_pages.is_some_and(|most| self.tables.pages.spent() >= most)
    }

    pub(crate) fn visit_waiting(&self, visit: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<(), FrontierError> {
        let queues = self.sieve.queue();
        for (key, host) in queues.hosts().iter_if(|_, _| true) {
            if host.visit_waiting(key, queues.config(), visit).is_break() {
                return Ok(());
            }
        }
        if queues.config().is_broken() {
            return Err(FrontierError::NotRead);
        }
        Ok(())
    }
}
