//! Settling a lease: what happens to its entry and its links.

mod robots;

use std::sync::Arc;
use std::time::Duration;

use super::State;
use super::exchange::Sending;
use crate::entry::{Entry, Purpose};
use crate::failure::{Blame, Failure};
use crate::hosts::{Consequence, LeasedEntry, counts_as_page, jitter_thousandths, with_jitter};
use crate::link::Link;
use crate::notice::Notice;
use crate::scope::Refusal;
use crate::settlement::{Fate, Outcome, Settled, Settlement, Verdict};
use crate::time::Time;
use crate::traps::{ClusterMember, LinkTreatment};

/// How long an address is valid before it is looked up again.
const ADDRESS_LIFETIME: Duration = Duration::from_secs(60 * 60);

impl State {
    /// Settles a lease. Returns the entry, too, if it was of a page or a sitemap.
    pub(super) fn settle_one(&mut self, settlement: &Settlement, now: Time) -> (Settled, Option<Arc<Entry>>) {
        let Some(leased) = self.tables.leases.end(settlement.lease) else {
            return (Settled::new(Fate::Stale), None);
        };
        let entry = Arc::clone(&leased.entry);
        match &entry.purpose {
            Purpose::Page | Purpose::Sitemap(_) => (self.settle_page(leased, settlement, now), Some(entry)),
            Purpose::Robots(origin) => (self.settle_robots(leased, origin, settlement, now), None),
            Purpose::Address => {
                self.hosts().request_not_made(&leased, now);
                let address = settlement.address.filter(|_| settlement.outcome == Outcome::Done);
                let until = now + settlement.lifetime.unwrap_or(ADDRESS_LIFETIME);
                self.hosts().address_known(&entry.queue, address, until, now);
                (Settled::new(Fate::Final), None)
            }
        }
    }

    /// Ends the request of a lease, or undoes it if none was made.
    pub(super) fn end_request(&mut self, leased: &LeasedEntry, was_made: bool, now: Time) {
        if was_made {
            self.hosts().request_ended(leased, now);
        } else {
            self.hosts().request_not_made(leased, now);
            self.hosts().probe_not_sent(leased, now);
        }
    }

    /// Records an answer of the origin that was not throttling.
    fn note_answer(&mut self, leased: &LeasedEntry, notices: &mut Vec<Notice>, now: Time) {
        notices.extend(self.hosts().answered(leased, now));
        self.hosts().reset_throttles(leased, now);
    }

    fn settle_page(&mut self, leased: LeasedEntry, settlement: &Settlement, now: Time) -> Settled {
        let (outcome, links) = (&settlement.outcome, &settlement.links);
        let entry = Arc::clone(&leased.entry);
        self.end_request(&leased, was_made(outcome), now);
        let mut settled = Settled::default();
        let is_redirect = *outcome == Outcome::Redirected;
        if is_redirect && entry.metadata.seed {
            links.iter().for_each(|target| self.widen_reach(target));
        }
        let past_seen = entry.target_past_seen(links).filter(|_| is_redirect);
        let sending = if is_redirect { Sending::All } else { Sending::New };
        let from = self.compare(&entry, settlement, &mut settled);
        match outcome {
            Outcome::Done | Outcome::Redirected | Outcome::Rejected => {
                self.note_answer(&leased, &mut settled.notices, now);
                self.count_final(&entry, outcome);
            }
            Outcome::NotFetched(why) => self.count_not_fetched(&entry.purpose, *why),
            Outcome::Failed { failure, retry_after } => {
                settled.fate = self.settle_failed(leased, failure, *retry_after, &mut settled.notices, now);
            }
        }
        let is_spent = settled.fate == Fate::GaveUp || matches!(outcome, Outcome::Done | Outcome::Rejected);
        if is_spent && counts_as_page(&entry) && self.hosts().count_page(&entry.queue, now) {
            self.hosts().drop_new_pages_of(&entry.queue, now);
        }
        settled.verdicts = match past_seen {
            Some(link) => vec![self.offer_past_seen(link, entry.postponed, now)],
            None if from.is_refused => self.refuse_new(links, Refusal::NearDuplicates),
            None => self.offer_links(links, from.is_postponed, Some(&entry), sending, now),
        };
        self.count_omitted(settlement);
        settled.notices.extend(from.notices);
        if let (true, Purpose::Page, [target]) = (is_redirect, &entry.purpose, links.as_slice()) {
            self.close_loop(&entry, target, &mut settled);
        }
        settled
    }

    /// Learns where a page redirects to, and which redirects lead back to it.
    fn close_loop(&mut self, entry: &Entry, target: &Link, settled: &mut Settled) {
        let to = target.url.url().as_str();
        let lost = self.tables.redirects.closed_by(&entry.url, to);
        if target.has_new_cookies {
            // It may lead elsewhere now.
            self.tables.redirects.forget(to);
        }
        // When a page is fetched again, redirects of others may be out of date.
        let is_certain = !entry.is_refresh() || to == &*entry.url;
        if settled.verdicts == [Verdict::Seen] && is_certain {
            settled.redirect_loop = lost;
        }
    }

    fn count_final(&mut self, entry: &Entry, outcome: &Outcome) {
        match (&entry.purpose, outcome) {
            (Purpose::Page, _) if entry.is_refresh() => self.tables.pages.refreshed += 1,
            (Purpose::Page, Outcome::Done) => self.tables.pages.done += 1,
            (Purpose::Page, Outcome::Redirected) => self.tables.pages.redirected += 1,
            (Purpose::Page, _) => self.tables.pages.rejected += 1,
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
        let leads_on = !settlement.links.is_empty() || settlement.links_known > 0 || !settlement.other_links.is_empty();
        let is_alone = resemblance.cluster.is_none() || settled.near_duplicate_of.is_none();
        if is_alone && (fingerprint.text.is_some() || !leads_on) {
            return LinkTreatment::default();
        }
        let stands_for = if self.sieve.queue().traps().suspects(&entry.queue) {
            1
        } else {
            self.compare_one_of
        };
        let first = settled.near_duplicate_of.clone();
        let member = ClusterMember {
            cluster: resemblance.cluster.filter(|_| !is_alone),
            first: first.as_deref().unwrap_or(&entry.url),
            stands_for,
        };
        self.hosts().traps_mut().count_member(entry, &member)
    }

    /// Applies the failure policy, the table of [`failure`](crate::failure), to an entry whose request failed.
    fn settle_failed(
        &mut self,
        leased: LeasedEntry,
        failure: &Failure,
        retry_after: Option<Duration>,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Fate {
        match failure.kind.blame() {
            Blame::Page => {
                if failure.kind.says_nothing_of_the_host() {
                    self.hosts().probe_not_sent(&leased, now);
                } else {
                    self.note_answer(&leased, notices, now);
                }
                self.retry(leased.entry, retry_after, now)
            }
            Blame::Answer => {
                self.note_answer(&leased, notices, now);
                self.abandon(&leased.entry)
            }
            Blame::NotRequested => self.abandon(&leased.entry),
            Blame::Origin | Blame::SilentPage => {
                let (cause, retries) = (Arc::new(failure.clone()), self.retries);
                let (consequence, notice) = self.hosts().failed(&leased, &cause, &retries, now);
                notices.extend(notice);
                match consequence {
                    Consequence::Counts => self.retry(leased.entry, retry_after, now),
                    // A failed probe is no deferral of its entry.
                    Consequence::Deferred => self.defer(leased.entry, u32::from(!leased.is_probe), now, now),
                    Consequence::Spared => {
                        let mut entry = Arc::unwrap_or_clone(leased.entry);
                        entry.attempts += 1;
                        self.defer(Arc::new(entry), 1, now, now)
                    }
                    Consequence::GivenUp | Consequence::Final => self.abandon(&leased.entry),
                }
            }
            Blame::Traffic => {
                let until = self.rest(&leased, failure, retry_after, notices, now);
                self.defer(leased.entry, 1, until, now)
            }
            Blame::Us => {
                let wait = self.retries.wait_after(leased.entry.deferrals.saturating_add(1));
                let due = now + self.with_jitter(wait, &leased.entry);
                self.defer(leased.entry, 1, due, now)
            }
        }
    }

    /// Lets a host rest after it throttled. Returns until when.
    fn rest(
        &mut self,
        leased: &LeasedEntry,
        failure: &Failure,
        retry_after: Option<Duration>,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Time {
        notices.extend(self.hosts().answered(leased, now));
        let (cause, retries) = (Arc::new(failure.clone()), self.retries);
        let (throttles, given_up) = self.hosts().throttled(leased, &cause, &retries, now);
        notices.extend(given_up);
        let wait = retries.rest_after(throttles, retry_after);
        let wait = if retry_after.is_none() {
            self.with_jitter(wait, &leased.entry)
        } else {
            wait
        };
        let until = now + wait;
        notices.extend(self.hosts().rest(leased, &cause, retry_after, until, now));
        until
    }

    fn with_jitter(&self, wait: Duration, entry: &Entry) -> Duration {
        let times = entry.attempts.wrapping_add(entry.deferrals);
        with_jitter(wait, self.retries.retry_jitter, jitter_thousandths(&entry.url, times))
    }

    /// Queues an entry again, past the seen-set, unless its attempts are spent.
    fn retry(&mut self, entry: Arc<Entry>, retry_after: Option<Duration>, now: Time) -> Fate {
        if entry.attempts >= self.retries.max_attempts.get() {
            return self.abandon(&entry);
        }
        let wait = retry_after.unwrap_or_else(|| {
            let wait = self.retries.wait_after(entry.attempts);
            self.with_jitter(wait, &entry)
        });
        let longest = self.retries.max_retry_wait;
        let mut entry = Arc::unwrap_or_clone(entry);
        entry.due = now + if retry_after.is_some() { wait.min(longest) } else { wait };
        self.requeue(entry, now)
    }

    /// Queues an entry again without counting the attempt, unless its deferrals are spent.
    fn defer(&mut self, entry: Arc<Entry>, deferrals: u32, due: Time, now: Time) -> Fate {
        let mut entry = Arc::unwrap_or_clone(entry);
        entry.deferrals = entry.deferrals.saturating_add(deferrals);
        if entry.deferrals >= self.retries.max_throttles.get() {
            return self.abandon(&entry);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        entry.due = due;
        self.requeue(entry, now)
    }

    pub(super) fn requeue(&mut self, entry: Entry, now: Time) -> Fate {
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
