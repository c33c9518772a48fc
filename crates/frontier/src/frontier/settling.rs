//! What settles a lease, and what becomes of its entry.

use std::time::Duration;

use sieve::Filter;

use super::Frontier;
use crate::admission::entry;
use crate::entry::{Entry, Purpose};
use crate::jitter::spread;
use crate::lease::{Fate, NotFetched, Outcome, Settled, Settlement, Verdict};
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::HostKey;

impl<F: Filter> Frontier<F> {
    pub(super) fn settle_one(&mut self, settlement: &Settlement, now: Time) -> Settled {
        let Some(taken) = self.leases.remove(&settlement.lease) else {
            return Settled::alone(Fate::Stale);
        };
        let is_page = taken.entry.purpose == Purpose::Page;
        self.leased_pages -= u64::from(is_page);
        if taken.entry.purpose == Purpose::Address {
            self.hosts().unused(&taken, now);
            return Settled::alone(Fate::Final);
        }
        if matches!(settlement.outcome, Outcome::NotFetched(_) | Outcome::Hindered) {
            self.hosts().unused(&taken, now);
        } else {
            self.hosts().ended(&taken, now);
        }
        if settlement.outcome == Outcome::Moved && taken.entry.metadata.seed {
            settlement
                .links
                .iter()
                .for_each(|target| self.scope.add_seed(&target.url));
        }
        let respelled = match settlement.outcome {
            Outcome::Moved => taken.entry.respelled_by(&settlement.links),
            _ => None,
        };
        let is_repeat = taken.is_repeat;
        let host = taken.entry.queue.clone();
        let (fate, given_up) = self.conclude(taken.entry, settlement.outcome, now);
        let was_had = fate == Fate::GaveUp || matches!(settlement.outcome, Outcome::Done | Outcome::Gone);
        let over_budget = if is_page && was_had {
            self.take_over_budget(&host, now)
        } else {
            Vec::new()
        };
        let verdicts = match respelled {
            Some(link) => vec![self.follow_respelled(link, now)],
            None if is_repeat => self.refuse_new(&settlement.links, Refusal::NearDuplicates),
            None => self.sift(&settlement.links, now),
        };
        Settled {
            fate,
            verdicts,
            given_up,
            over_budget,
        }
    }

    /// Counts a page of a host, and takes out what waits for it once its budget is spent.
    fn take_over_budget(&mut self, host: &HostKey, now: Time) -> Vec<Entry> {
        let over = self.hosts().count_page(host, now);
        if !over.is_empty() {
            *self.not_fetched.entry(NotFetched::HostBudget).or_default() += over.len() as u64;
        }
        over
    }

    /// Queues the target of a redirect that the filter would take for its own source.
    fn follow_respelled(&mut self, link: &Link, now: Time) -> Verdict {
        let admitted = self.scope.judge(link).and_then(|()| self.sieve.queue().admit(link));
        let verdict = match admitted {
            Ok(()) => {
                self.hosts().enqueue(entry(link), now);
                Verdict::Queued
            }
            Err(refusal) => Verdict::Refused(refusal),
        };
        self.count(link, verdict);
        verdict
    }

    /// Decides what becomes of an entry whose lease has ended.
    fn conclude(&mut self, entry: Entry, outcome: Outcome, now: Time) -> (Fate, Vec<Entry>) {
        let host = entry.queue.clone();
        let is_page = entry.purpose == Purpose::Page;
        match outcome {
            Outcome::Done | Outcome::Moved | Outcome::Gone => {
                self.hosts().answered(&entry);
                if outcome == Outcome::Done && matches!(entry.purpose, Purpose::Sitemap(_)) {
                    self.sitemaps.was_read(entry.key());
                }
                if is_page {
                    *match outcome {
                        Outcome::Done => &mut self.pages.done,
                        Outcome::Moved => &mut self.pages.moved,
                        _ => &mut self.pages.gone,
                    } += 1;
                }
                (Fate::Final, Vec::new())
            }
            Outcome::NotFetched(why) => {
                if is_page {
                    *self.not_fetched.entry(why).or_default() += 1;
                }
                (Fate::Final, Vec::new())
            }
            Outcome::Retry { after } => {
                self.hosts().answered(&entry);
                let wait = after.unwrap_or_else(|| self.retries.wait_after(entry.attempts));
                let wait = wait.min(self.retries.longest_wait);
                let wait = if after.is_none() {
                    self.spread(wait, &entry)
                } else {
                    wait
                };
                (self.try_again(entry, now + wait, now), Vec::new())
            }
            Outcome::HostDown { until } => {
                let failures = self.hosts().failed(&entry);
                let url = entry.url.clone();
                let until = until.unwrap_or(now + self.spread(self.retries.wait_after(failures), &entry));
                self.hosts().block(&host, until, now);
                let fate = self.try_again(entry, until, now);
                (fate, self.take_given_up(&host, &url, now))
            }
            Outcome::Throttled { after } => {
                let throttles = self.hosts().throttled(&entry, now);
                let url = entry.url.clone();
                let wait = self.retries.rest_after(throttles, after);
                let until = now
                    + if after.is_none() {
                        self.spread(wait, &entry)
                    } else {
                        wait
                    };
                self.hosts().block(&host, until, now);
                let fate = self.put_off(entry, until, now);
                (fate, self.take_given_up(&host, &url, now))
            }
            Outcome::Hindered => {
                let wait = self.retries.wait_after(entry.put_off.saturating_add(1));
                let wait = self.spread(wait, &entry);
                (self.put_off(entry, now + wait, now), Vec::new())
            }
        }
    }

    fn spread(&self, wait: Duration, entry: &Entry) -> Duration {
        let times = entry.attempts.wrapping_add(entry.put_off);
        spread(wait, self.retries.jitter_percent, &entry.url, times)
    }

    /// Takes out what waits for an origin that was given up.
    fn take_given_up(&mut self, host: &HostKey, url: &str, now: Time) -> Vec<Entry> {
        let given_up = self.hosts().take_given_up(host, url, now);
        self.pages.lost_with_host += given_up.iter().filter(|e| e.purpose == Purpose::Page).count() as u64;
        given_up
    }

    /// Queues an entry again without counting the attempt, unless that was done as often as it may be.
    fn put_off(&mut self, mut entry: Entry, due: Time, now: Time) -> Fate {
        entry.put_off = entry.put_off.saturating_add(1);
        if entry.put_off >= self.retries.max_throttles.get() {
            return self.abandon(&entry);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        self.try_again(entry, due, now)
    }

    fn abandon(&mut self, entry: &Entry) -> Fate {
        if entry.purpose == Purpose::Page {
            self.pages.gave_up += 1;
        }
        Fate::GaveUp
    }

    /// Queues an entry again, past the filter, unless it failed as often as it may.
    fn try_again(&mut self, mut entry: Entry, due: Time, now: Time) -> Fate {
        let given_up = self.sieve.queue().gave_up(&entry);
        let most = match entry.purpose {
            Purpose::Robots(_) => self.retries.max_robots_attempts,
            Purpose::Page | Purpose::Sitemap(_) | Purpose::Address => self.retries.max_attempts,
        };
        if given_up || entry.attempts >= most.get() {
            return self.abandon(&entry);
        }
        self.pages.retries += u64::from(entry.purpose == Purpose::Page);
        entry.due = due;
        self.hosts().enqueue(entry, now);
        Fate::Requeued { due }
    }
}
