//! Settling the lease of a robots.txt: what it means for its origin.
//!
//! | what came back | its origin | the robots.txt |
//! |---|---|---|
//! | rules, or that there is none | is asked by them | is asked for anew when they have expired |
//! | a redirect | waits for it | is asked for there, [five times](MAX_ROBOTS_REDIRECTS) at most |
//! | that no request may be made | is closed for that reason | is asked for anew after a day |
//! | a failure, by its [blame](Blame): | | |
//! | of the traffic | rests, and waits | is asked for again, at the end of the rest |
//! | of this machine | waits | is asked for again |
//! | of the origin, or a silence | may be away; it is given up if that takes too long | is the probe, or is asked for again |
//! | of the page | waits | is asked for again; after the last attempt as the next row |
//! | of an answer that stays the same | continues by its last rules, or is closed for a while | is asked for anew after that |
//!
//! A target on another origin is asked as a page there: its failures say nothing of the origin that waits for it.
//!
//! It changes hosts by `hosts/robots.rs` (rules, and when they are asked for) and `hosts/incidents.rs` (outages, rests) alone. How long rules and
//! closings hold is in `rules.rs`, which failure is whose in `failure.rs`, each wait in [`RetryPolicy`](crate::RetryPolicy).

use std::sync::Arc;
use std::time::Duration;

use super::{Sending, State, was_made};
use crate::entry::{Entry, Purpose, origin_text};
use crate::failure::{Blame, Failure, FailureKind};
use crate::hosts::{Consequence, LeasedEntry};
use crate::notice::Notice;
use crate::rules::{MAX_ROBOTS_REDIRECTS, Policy, ROBOTS_LIFETIME, without_robots};
use crate::settlement::{Fate, Outcome, Settled, Settlement};
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// The longest lifetime of rules.
const LONGEST_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A request for the robots.txt of an origin that failed now.
struct RobotsFailure<'a> {
    origin: &'a Origin,
    cause: Arc<Failure>,
    /// What the answer asked for.
    retry_after: Option<Duration>,
    now: Time,
}

impl State {
    pub(super) fn settle_robots(
        &mut self,
        leased: LeasedEntry,
        origin: &Origin,
        settlement: &Settlement,
        now: Time,
    ) -> Settled {
        let (outcome, mut links) = (&settlement.outcome, settlement.links.as_slice());
        let mut settled = Settled::default();
        self.end_request(&leased, was_made(outcome), now);
        let notices = &mut settled.notices;
        let failed = |failure: &Failure, retry_after| RobotsFailure {
            origin,
            cause: Arc::new(failure.clone()),
            retry_after,
            now,
        };
        match (outcome, &settlement.rules) {
            (Outcome::Done, Some(rules)) => {
                self.note_answer(&leased, notices, now);
                let lifetime = settlement.lifetime.unwrap_or(ROBOTS_LIFETIME).min(LONGEST_LIFETIME);
                let policy = Policy::Rules(Arc::clone(rules));
                self.hosts().robots_known(origin, policy, now + lifetime, now);
            }
            (Outcome::Done, None) => {
                let failure = Failure::new(FailureKind::Other, "the robots.txt was settled without its rules");
                settled.fate = self.robots_failed(leased, &failed(&failure, None), notices);
            }
            (Outcome::Redirected | Outcome::Rejected, _) => {
                self.note_answer(&leased, notices, now);
                let targets = if *outcome == Outcome::Redirected {
                    std::mem::take(&mut links)
                } else {
                    &[]
                };
                match targets {
                    [target] if leased.entry.hops < MAX_ROBOTS_REDIRECTS => {
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
                settled.fate = self.robots_failed(leased, &failed(failure, *retry_after), notices);
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
        self.hosts().robots_redirected(origin, now);
        self.hosts().enqueue(entry, now);
    }

    fn robots_failed(&mut self, leased: LeasedEntry, failed: &RobotsFailure<'_>, notices: &mut Vec<Notice>) -> Fate {
        let RobotsFailure { origin, cause, now, .. } = failed;
        let is_own = origin_text(&leased.entry.url) == origin.as_str();
        match cause.kind.blame() {
            Blame::Us => {
                let wait = self.retries.wait_after(leased.entry.deferrals.saturating_add(1));
                let due = *now + self.with_jitter(wait, &leased.entry);
                self.defer_robots(leased.entry, failed, due, notices)
            }
            Blame::Traffic => {
                let until = self.rest(&leased, cause, failed.retry_after, notices, *now);
                if !self.sieve.queue().gave_up(&leased.entry.queue, &leased.entry.url) {
                    return self.defer_robots(leased.entry, failed, until, notices);
                }
                if is_own {
                    self.give_up_robots(failed)
                } else {
                    self.close(failed, notices)
                }
            }
            Blame::Origin | Blame::SilentPage if is_own => self.origin_failed(leased, failed, notices),
            Blame::Origin if cause.kind == FailureKind::Tls => self.close(failed, notices),
            Blame::Origin | Blame::SilentPage => self.retry_robots(leased.entry, failed, notices),
            Blame::Answer => {
                self.note_answer(&leased, notices, *now);
                self.close(failed, notices)
            }
            Blame::NotRequested => self.close(failed, notices),
            Blame::Page => {
                if cause.kind.says_nothing_of_the_host() {
                    self.hosts().probe_not_sent(&leased, *now);
                } else {
                    self.note_answer(&leased, notices, *now);
                }
                self.retry_robots(leased.entry, failed, notices)
            }
        }
    }

    /// Handles a failure that may be of the origin whose robots.txt it is.
    fn origin_failed(&mut self, leased: LeasedEntry, failed: &RobotsFailure<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (retries, now) = (self.retries, failed.now);
        let (consequence, notice) = self.hosts().failed(&leased, &failed.cause, &retries, now);
        notices.extend(notice);
        match consequence {
            Consequence::Counts => self.retry_robots(leased.entry, failed, notices),
            Consequence::Deferred | Consequence::Spared => {
                let attempts = leased.entry.attempts.saturating_sub(1);
                self.hosts().ask_robots_again(failed.origin, attempts, now, now);
                Fate::Requeued { due: now }
            }
            Consequence::GivenUp => self.give_up_robots(failed),
            Consequence::Final => self.close(failed, notices),
        }
    }

    fn give_up_robots(&mut self, failed: &RobotsFailure<'_>) -> Fate {
        self.hosts().ask_robots_again(failed.origin, 0, failed.now, failed.now);
        Fate::GaveUp
    }

    /// Queues a robots.txt again, or closes its origin for a while if the attempts are spent.
    fn retry_robots(&mut self, entry: Arc<Entry>, failed: &RobotsFailure<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (origin, now) = (failed.origin, failed.now);
        // The origin counts them in a byte.
        let most = self.retries.max_robots_attempts.get().min(u8::MAX.into());
        if entry.attempts >= most {
            return self.close(failed, notices);
        }
        let wait = failed.retry_after.map_or_else(
            || self.with_jitter(self.retries.wait_after(entry.attempts), &entry),
            |after| after.min(self.retries.max_retry_wait),
        );
        let due = now + wait;
        notices.extend(self.hosts().robots_fails(origin, &failed.cause, due, now));
        if origin_text(&entry.url) == origin.as_str() && entry.hops == 0 {
            self.hosts().ask_robots_again(origin, entry.attempts, due, now);
        } else {
            let mut entry = Arc::unwrap_or_clone(entry);
            entry.due = due;
            self.hosts().enqueue(entry, now);
        }
        Fate::Requeued { due }
    }

    /// Queues a robots.txt again without counting the attempt.
    fn defer_robots(
        &mut self,
        entry: Arc<Entry>,
        failed: &RobotsFailure<'_>,
        due: Time,
        notices: &mut Vec<Notice>,
    ) -> Fate {
        let mut entry = Arc::unwrap_or_clone(entry);
        entry.deferrals = entry.deferrals.saturating_add(1);
        if entry.deferrals >= self.retries.max_throttles.get() {
            return self.close(failed, notices);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        entry.due = due;
        // Until then it waits as an entry of its own.
        self.hosts().robots_redirected(failed.origin, failed.now);
        self.hosts().enqueue(entry, failed.now);
        Fate::Requeued { due }
    }

    /// Gives up on a robots.txt for now: extends its last rules, or closes the origin for a while.
    fn close(&mut self, failed: &RobotsFailure<'_>, notices: &mut Vec<Notice>) -> Fate {
        let (origin, cause) = (failed.origin.clone(), Arc::clone(&failed.cause));
        let (policy, rest) = without_robots(self.sieve.queue().known(&origin).as_ref(), Arc::clone(&cause));
        notices.push(match &policy {
            Policy::Closed(..) => Notice::Closed { origin, cause, rest },
            Policy::AllowAll | Policy::Rules(_) => Notice::RulesExtended { origin, cause },
        });
        let until = failed.now + rest;
        self.hosts().decided_without(failed.origin, policy, until, failed.now);
        Fate::GaveUp
    }
}
