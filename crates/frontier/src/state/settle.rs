//! Settling a lease: what happens to its entry and its links.
//!
//! `settle_page` goes in this order: the request ends at its host, so that what follows may lease it again; the reach is widened by the target of
//! a seed, before links are asked whether they are in reach; the page is compared with others, and counts against the budget of its host, before
//! its links are offered: both may refuse them; a loop is closed last, as the verdict on its link says whether it is one. A target with new cookies,
//! or of the same key as its page, goes past the seen-set, which knows it.
//!
//! A further [`Outcome`]: the compiler names `was_made`, the `match` of `settle_page`, `robots.rs` and `stored_page.rs`. To be looked at
//! besides are `is_redirect` and `is_spent` in `settle_page`, `count_final`, `is_done` in `compare`, `are_all_stored` in `state/call.rs`, and
//! who matches on it in the crate `crawler`. With another decision, `LOGIC` of `durable/checkpoint.rs` goes up.

mod robots;

use std::sync::Arc;
use std::time::Duration;

use super::State;
use super::exchange::Sending;
use crate::entry::{Entry, Purpose};
use crate::hosts::{Address, Consequence, Failed, LeasedEntry, counts_as_page};
use crate::lease::NotFetched;
use crate::link::Link;
use crate::notice::Notice;
use crate::scope::Refusal;
use crate::settlement::{Fate, Outcome, Settled, Settlement, Verdict};
use crate::time::Time;
use crate::traps::{ClusterMember, LinkTreatment};

/// How long an address is valid before it is looked up again. A look-up that found none is done, too, without an address.
const ADDRESS_LIFETIME: Duration = Duration::from_secs(60 * 60);

impl State {
    /// Settles a lease. Returns the entry, too, if it was of a page or a sitemap.
    pub(super) fn settle_one(&mut self, settlement: &Settlement, now: Time) -> (Settled, Option<Arc<Entry>>) {
        let Some(leased) = self.tables.leases.end(settlement.lease) else {
            return (Settled::new(Fate::Stale), None);
        };
        let entry = Arc::clone(&leased.entry);
        match &entry.purpose {
            Purpose::Page | Purpose::Sitemap(_) => (self.settle_page(&leased, settlement, now), Some(entry)),
            Purpose::Robots(origin) => (self.settle_robots(&leased, origin, settlement, now), None),
            Purpose::Address => {
                self.hosts().end_request(&leased, false, now);
                let address = settlement.address.filter(|_| settlement.outcome == Outcome::Done);
                let until = now + settlement.lifetime.unwrap_or(ADDRESS_LIFETIME);
                let known = Address::Known(address, until);
                self.hosts().set_address(&entry.queue, known, now);
                (Settled::new(Fate::Final), None)
            }
        }
    }

    fn settle_page(&mut self, leased: &LeasedEntry, settlement: &Settlement, now: Time) -> Settled {
        let (outcome, links) = (&settlement.outcome, &settlement.links);
        let entry = &*leased.entry;
        self.hosts().end_request(leased, was_made(outcome), now);
        let mut settled = Settled::default();
        let is_redirect = *outcome == Outcome::Redirected;
        if is_redirect && entry.metadata.seed {
            links.iter().for_each(|target| self.widen_reach(target));
        }
        let past_seen = entry.target_past_seen(links).filter(|_| is_redirect);
        let sending = if is_redirect { Sending::All } else { Sending::New };
        let treatment = self.compare(entry, settlement, &mut settled);
        match outcome {
            Outcome::Done | Outcome::Redirected | Outcome::Rejected => {
                settled.notices.extend(self.hosts().answered(leased, false, now));
                self.count_final(entry, outcome);
            }
            Outcome::NotFetched(why) => self.count_not_fetched(&entry.purpose, *why),
            Outcome::Failed { failure, retry_after } => {
                let failed = Failed::new(leased, failure, *retry_after, self.retries, now);
                settled.fate = self.settle_failed(&failed, &mut settled.notices);
            }
        }
        let is_spent = settled.fate == Fate::GaveUp || matches!(outcome, Outcome::Done | Outcome::Rejected);
        if is_spent && counts_as_page(entry) && self.hosts().count_page(&entry.queue, now) {
            self.hosts().drop_queues(&entry.queue, NotFetched::HostBudget, now);
        }
        settled.verdicts = match past_seen {
            Some(link) => vec![self.offer_past_seen(link, entry, now)],
            None if treatment.is_refused => self.refuse_new(links, Refusal::NearDuplicates),
            None => self.offer_links(links, treatment.is_postponed, Some(entry), sending, now),
        };
        self.count_omitted(settlement);
        settled.notices.extend(treatment.notices);
        if let (true, Purpose::Page, [target]) = (is_redirect, &entry.purpose, links.as_slice()) {
            self.close_loop(entry, target, &mut settled);
        }
        let goes_on = settled.verdicts == [Verdict::Queued] && past_seen.is_some_and(|to| to.url.key() == entry.key());
        if !goes_on && !matches!(settled.fate, Fate::Requeued { .. }) {
            settled.page = self.page_of(entry);
            if let Purpose::Sitemap(_) = entry.purpose {
                self.tables.sitemaps.ended(entry.key(), now);
            }
        }
        settled
    }

    /// Learns where a page redirects to, and which redirects lead back to it.
    fn close_loop(&mut self, entry: &Entry, target: &Link, settled: &mut Settled) {
        let to = target.url.url().as_str();
        let looped = self.tables.redirects.closed_by(&entry.url, to);
        if target.has_new_cookies {
            // It may lead elsewhere now.
            self.tables.redirects.forget(to);
        }
        // When a page is fetched again, redirects of others may be out of date.
        let is_certain = !entry.is_refresh() || to == &*entry.url;
        if settled.verdicts == [Verdict::Seen] && is_certain {
            settled.redirect_loop = looped;
        }
    }

    fn count_final(&mut self, entry: &Entry, outcome: &Outcome) {
        match (&entry.purpose, outcome) {
            (Purpose::Page, _) if entry.is_refresh() => self.tables.pages.refreshed += 1,
            (Purpose::Page, Outcome::Done) => self.tables.pages.done += 1,
            (Purpose::Page, Outcome::Redirected) => self.tables.pages.redirected += 1,
            (Purpose::Page, Outcome::Rejected) => self.tables.pages.rejected += 1,
            (Purpose::Sitemap(_), Outcome::Done) => self.tables.sitemaps.was_read(entry.key()),
            _ => {}
        }
    }

    /// Compares a page with earlier pages, and decides how its links are treated.
    fn compare(&mut self, entry: &Entry, settlement: &Settlement, settled: &mut Settled) -> LinkTreatment {
        let is_done = entry.purpose == Purpose::Page && settlement.outcome == Outcome::Done;
        let Some(fingerprint) = settlement.fingerprint.filter(|_| is_done && !entry.is_refresh()) else {
            return LinkTreatment::default();
        };
        let resemblance = self.tables.clusters.classify(&entry.url, fingerprint);
        settled.duplicate_of = resemblance.duplicate_of;
        settled.near_duplicate_of = resemblance.near_duplicate_of;
        // Pages with too little text to compare are a cluster of their own if they lead on, so that a chain of them ends.
        let leads_on = !settlement.links.is_empty() || settlement.links_known > 0 || !settlement.other_links.is_empty();
        let is_alone = resemblance.cluster.is_none() || settled.near_duplicate_of.is_none();
        if is_alone && (fingerprint.text.is_some() || !leads_on) {
            return LinkTreatment::default();
        }
        // Of a site that is not suspect, only one page in `compare_one_of` is compared.
        let stands_for = if self.sieve.queue().traps.suspects(&entry.queue) {
            1
        } else {
            self.config.traps.compare_one_of.get()
        };
        let first = settled.near_duplicate_of.clone();
        let member = ClusterMember {
            cluster: resemblance.cluster.filter(|_| !is_alone),
            first: first.as_deref().unwrap_or(&entry.url),
            stands_for,
        };
        self.hosts().traps.count_member(entry, &member)
    }

    /// Queues an entry again whose request failed, past the seen-set, or gives it up.
    fn settle_failed(&mut self, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Fate {
        let now = failed.now;
        let mut entry = Entry::clone(&failed.leased.entry);
        match self.hosts().request_failed(failed, notices) {
            Consequence::Counts if entry.attempts < self.retries.max_attempts.get() => {
                entry.due = failed.next_attempt();
                self.requeue(entry, now)
            }
            // A failed probe is no deferral of its entry.
            Consequence::Deferred => self.defer(entry, u32::from(!failed.leased.is_probe), now, now),
            Consequence::Spared => {
                // Its attempt stays counted: `defer` takes one back.
                entry.attempts += 1;
                self.defer(entry, 1, now, now)
            }
            Consequence::Later(due) => self.defer(entry, 1, due, now),
            Consequence::Counts | Consequence::GivenUp | Consequence::Final => self.abandon(&entry),
        }
    }

    /// Queues an entry again without counting the attempt, unless its deferrals are spent: as many as an origin may throttle, so that an entry
    /// is not deferred for ever by failures of other kinds.
    fn defer(&mut self, mut entry: Entry, deferrals: u32, due: Time, now: Time) -> Fate {
        entry.deferrals = entry.deferrals.saturating_add(deferrals);
        if entry.deferrals >= self.retries.max_throttles.get() {
            return self.abandon(&entry);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        entry.due = due;
        self.requeue(entry, now)
    }

    fn requeue(&mut self, entry: Entry, now: Time) -> Fate {
        if self.sieve.queue().gave_up(&entry.queue, &entry.url) {
            return self.abandon(&entry);
        }
        self.tables.pages.retries += u64::from(entry.purpose == Purpose::Page);
        let due = entry.due;
        self.hosts().enqueue(entry, now);
        Fate::Requeued { due }
    }

    fn abandon(&mut self, entry: &Entry) -> Fate {
        let is_page = entry.purpose == Purpose::Page;
        self.tables.pages.gave_up += u64::from(is_page);
        self.tables.pages.gave_up_again += u64::from(is_page && entry.is_refresh());
        Fate::GaveUp
    }
}

fn was_made(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotFetched(_) => false,
        Outcome::Failed { failure, .. } => failure.kind.blame().was_requested(),
        Outcome::Done | Outcome::Redirected | Outcome::Rejected => true,
    }
}
