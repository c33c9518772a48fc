//! Looks at a state: its numbers, and why a URL was or was not fetched. [`Frontier`](crate::Frontier) says what each function returns.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::State;
use crate::entry::Entry;
use crate::error::FrontierError;
use crate::hosts::{HostQueues, HostRef};
use crate::link::Link;
use crate::report::{AwayReport, HostReport, Report, Wait, Why};
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey};

impl State {
    pub(crate) fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.scope.reaches(url)
    }

    pub(crate) fn why(&self, url: &CanonicalUrl, now: Time) -> Why {
        let key = url.key();
        if let Some(taken) = self.tables.leases.values().find(|taken| taken.entry.key() == key) {
            return Why::Leased {
                attempt: taken.entry.attempts,
            };
        }
        let queues = self.sieve.queue();
        match queues.why_waiting(url, now) {
            Some(Why::Queued { host, wait, place }) => {
                let is_spent = self.max_pages.is_some_and(|most| self.tables.pages.spent() >= most);
                let wait = match wait {
                    _ if is_spent => Wait::PageBudget,
                    Wait::Turn if self.budget_left() == 0 => Wait::PagesInFlight,
                    wait => wait,
                };
                return Why::Queued { host, wait, place };
            }
            Some(why) => return why,
            None => {}
        }
        if let Some(why) = queues.why_dropped(key) {
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

    pub(crate) fn report(&self) -> Report {
        let queues = self.sieve.queue();
        let (closed_prefixes, postponed_prefixes) = queues.traps().prefixes();
        Report {
            queued: self.sieve.len() as u64,
            queued_pages: queues.queued_pages(),
            postponed: queues.postponed(),
            leased: self.tables.leases.len() as u64,
            pages: self.tables.pages,
            not_fetched: self.tables.not_fetched.clone(),
            links: self.tables.links.clone(),
            sitemaps: self.tables.sitemaps.counts.clone(),
            hosts: queues.hosts().len() as u64,
            origins_given_up: queues.given_up(),
            rules_bytes: queues.rules_bytes() as u64,
            resemblance: self.tables.clusters.counts(),
            postponed_prefixes,
            closed_prefixes,
            refused_earlier: self.tables.refused_under.is_some(),
            saturation: self.sieve.saturation(),
            partition: self.partition,
            exchange: self.exchange_counts(),
            max_outbox: self.max_outbox,
            memory: self.memory_report(),
        }
    }

    pub(crate) fn host_reports(&self) -> impl Iterator<Item = HostReport> {
        let queues = self.sieve.queue();
        let hosts = queues.hosts().iter();
        hosts.map(move |(key, host)| report_of(key, &host, queues))
    }

    pub(crate) fn host_report(&self, key: &HostKey) -> Option<HostReport> {
        let queues = self.sieve.queue();
        queues.get(key).map(|host| report_of(key, &host, queues))
    }

    pub(crate) fn away(&self) -> impl Iterator<Item = AwayReport> {
        let hosts = self.sieve.queue().hosts().iter_if(|facts| facts.is_away);
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

    pub(crate) fn visit_waiting(&self, visit: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<(), FrontierError> {
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

fn report_of(key: &HostKey, host: &HostRef<'_>, queues: &HostQueues) -> HostReport {
    HostReport {
        host: key.clone(),
        requests: host.requests(),
        delay: host.delay(queues.rules()),
        shortest_gap: host.shortest_gap(),
        robots_at: host.robots_at(),
        queued: host.queued() + host.postponed(),
        given_up: host.gave_up_any(),
    }
}
