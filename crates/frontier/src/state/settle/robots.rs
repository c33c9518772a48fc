//! Settling the lease of a robots.txt: what it means for its origin.
//!
//! | what came back | its origin | the robots.txt |
//! |---|---|---|
//! | rules, or that there is none | is asked by them | is asked for anew when they have expired |
//! | a redirect | waits for it | is asked for there, [five times](MAX_ROBOTS_REDIRECTS) at most |
//! | that no request may be made | is closed for that reason | is asked for anew after a day |
//! | a failure, by its [blame](crate::failure::Blame): | | |
//! | of the traffic | rests, and waits | is asked for again, at the end of the rest |
//! | of this machine | waits | is asked for again |
//! | of the origin, or a silence | may be away; it is given up if that takes too long | is the probe, or is asked for again |
//! | of the page | waits | is asked for again; after the last attempt as the next row |
//! | of an answer that stays the same | continues by its last rules, or is closed for a while | is asked for anew after that |
//!
//! A target on another origin is asked as a page there: its failures say nothing of the origin that waits for it.
//!
//! `hosts/incidents.rs` decides what a failure means, and changes outages and rests; here follows what it means for the robots.txt. Rules, and
//! when they are asked for, are changed by `hosts/robots.rs` alone. How long rules and closings hold is in `rules.rs`, which failure is whose in
//! `failure.rs`, each wait in [`RetryPolicy`](crate::RetryPolicy).

use std::sync::Arc;
use std::time::Duration;

use super::{Sending, State, was_made};
use crate::entry::{Entry, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::hosts::{Consequence, Failed, LeasedEntry};
use crate::notice::Notice;
use crate::rules::{MAX_ROBOTS_REDIRECTS, Policy, ROBOTS_LIFETIME, without_robots};
use crate::settlement::{Fate, Outcome, Settled, Settlement};
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// The longest lifetime of rules.
const LONGEST_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl State {
    pub(super) fn settle_robots(
        &mut self,
        leased: &LeasedEntry,
        origin: &Origin,
        settlement: &Settlement,
        now: Time,
    ) -> Settled {
        let (outcome, mut links) = (&settlement.outcome, settlement.links.as_slice());
        let mut settled = Settled::default();
        self.hosts().end_request(leased, was_made(outcome), now);
        let notices = &mut settled.notices;
        match (outcome, &settlement.rules) {
            (Outcome::Done, Some(rules)) => {
                notices.extend(self.hosts().answered(leased, false, now));
                let lifetime = settlement.lifetime.unwrap_or(ROBOTS_LIFETIME).min(LONGEST_LIFETIME);
                let policy = Policy::Rules(Arc::clone(rules));
                self.hosts().robots_known(origin, policy, now + lifetime, now);
            }
            (Outcome::Done, None) => {
                let failure = Failure::new(FailureKind::Other, "the robots.txt was settled without its rules");
                let failed = Failed::new(leased, &failure, None, self.retries, now);
                settled.fate = self.robots_failed(origin, &failed, notices);
            }
            (Outcome::Redirected | Outcome::Rejected, _) => {
                notices.extend(self.hosts().answered(leased, false, now));
                let targets = if *outcome == Outcome::Redirected {
                    // It is followed below, and not offered.
                    std::mem::take(&mut links)
                } else {
                    &[]
                };
                match targets {
                    [target]
                        if leased.entry.hops < MAX_ROBOTS_REDIRECTS && !self.hosts().is_closed(&target.url.host()) =>
                    {
                        self.follow(&leased.entry, origin, &target.url, now);
                    }
                    _ => {
                        let until = now + ROBOTS_LIFETIME;
                        self.hosts().robots_known(origin, Policy::AllowAll, until, now);
                    }
                }
            }
            (Outcome::NotFetched(why), _) => {
                let (policy, until) = (Policy::Closed(*why, None), now + ROBOTS_LIFETIME);
                self.hosts().decided_without(origin, policy, until, now);
            }
            (Outcome::Failed { failure, retry_after }, _) => {
                let failed = Failed::new(leased, failure, *retry_after, self.retries, now);
                settled.fate = self.robots_failed(origin, &failed, notices);
            }
        }
        settled.verdicts = self.offer_links(links, false, None, Sending::All, now);
        settled
    }

    /// Follows a redirect of a robots.txt, past the seen-set and the budgets.
    fn follow(&mut self, from: &Entry, origin: &Origin, target: &CanonicalUrl, now: Time) {
        let url = target.url().as_str().into();
        let mut entry = Entry::new(target.host(), url, Purpose::Robots(origin.clone()));
        entry.hops = from.hops.saturating_add(1);
        if self.partition.is_some_and(|partition| !partition.owns(target)) {
            self.count_robots_elsewhere();
        }
        self.hosts().robots_wait_as_entry(origin, now);
        self.hosts().enqueue(entry, now);
    }

    fn robots_failed(&mut self, origin: &Origin, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (entry, now) = (&failed.leased.entry, failed.now);
        match self.hosts().request_failed(failed, notices) {
            Consequence::Counts => self.retry_robots(origin, failed, notices),
            Consequence::Later(due) => self.defer_robots(origin, failed, due, notices),
            Consequence::Deferred | Consequence::Spared => {
                let attempts = entry.attempts.saturating_sub(1);
                self.hosts().ask_robots_again(origin, attempts, now, now);
                Fate::Requeued { due: now }
            }
            // Nothing of the origin waits any more. It is no longer being asked, so that a later page asks for it.
            Consequence::GivenUp if !entry.is_robots_elsewhere() => {
                self.hosts().ask_robots_again(origin, 0, now, now);
                Fate::GaveUp
            }
            Consequence::GivenUp | Consequence::Final => self.close(origin, failed, notices),
        }
    }

    /// Queues a robots.txt again, or closes its origin for a while if the attempts are spent.
    fn retry_robots(&mut self, origin: &Origin, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (entry, now) = (&failed.leased.entry, failed.now);
        // The origin counts them in a byte.
        let most = self.retries.max_robots_attempts.get().min(u8::MAX.into());
        if entry.attempts >= most {
            return self.close(origin, failed, notices);
        }
        let due = failed.next_attempt();
        notices.extend(self.hosts().robots_fails(origin, &failed.cause, due, now));
        if entry.hops == 0 && !entry.is_robots_elsewhere() {
            self.hosts().ask_robots_again(origin, entry.attempts, due, now);
        } else {
            let mut entry = Entry::clone(entry);
            entry.due = due;
            self.hosts().enqueue(entry, now);
        }
        Fate::Requeued { due }
    }

    /// Queues a robots.txt again without counting the attempt.
    fn defer_robots(&mut self, origin: &Origin, failed: &Failed<'_>, due: Time, notices: &mut Vec<Notice>) -> Fate {
        let mut entry = Entry::clone(&failed.leased.entry);
        entry.deferrals = entry.deferrals.saturating_add(1);
        if entry.deferrals >= self.retries.max_throttles.get() {
            return self.close(origin, failed, notices);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        entry.due = due;
        // Until then it waits as an entry of its own.
        self.hosts().robots_wait_as_entry(origin, failed.now);
        self.hosts().enqueue(entry, failed.now);
        Fate::Requeued { due }
    }

    /// Gives up on a robots.txt for now: extends its last rules, or closes the origin for a while.
    fn close(&mut self, waiting: &Origin, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (origin, cause) = (waiting.clone(), Arc::clone(&failed.cause));
        let (policy, rest) = without_robots(self.sieve.queue().known(&origin).as_ref(), Arc::clone(&cause));
        notices.push(match &policy {
            Policy::Closed(..) => Notice::Closed { origin, cause, rest },
            Policy::AllowAll | Policy::Rules(_) => Notice::RulesExtended { origin, cause },
        });
        let until = failed.now + rest;
        self.hosts().decided_without(waiting, policy, until, failed.now);
        Fate::GaveUp
    }
}
