//! Settling the lease of a robots.txt: what it means for its origin.

use std::sync::Arc;
use std::time::Duration;

use super::{Sending, State};
use crate::entry::{Entry, Purpose, origin_text};
use crate::failure::{Blame, Failure, FailureKind};
use crate::hosts::{Consequence, LeasedEntry};
use crate::link::Link;
use crate::notice::Notice;
use crate::rules::{MAX_ROBOTS_REDIRECTS, Policy, ROBOTS_LIFETIME, without_robots};
use crate::settlement::{Fate, RobotsOutcome, Settled};
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// The longest lifetime of rules.
const LONGEST_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl State {
    pub(super) fn settle_robots(
        &mut self,
        leased: LeasedEntry,
        origin: &Origin,
        outcome: &RobotsOutcome,
        sitemaps: &[Link],
        now: Time,
    ) -> Settled {
        let mut settled = Settled::default();
        let was_made = match outcome {
            RobotsOutcome::NotFetched(_) => false,
            RobotsOutcome::Failed { failure, .. } => failure.kind.blame().was_requested(),
            _ => true,
        };
        self.end_request(&leased, was_made, now);
        let notices = &mut settled.notices;
        match outcome {
            RobotsOutcome::Known { rules, lifetime } => {
                self.note_answer(&leased, notices, now);
                let until = now + (*lifetime).min(LONGEST_LIFETIME);
                let policy = Policy::Rules(Arc::clone(rules));
                self.hosts().robots_known(origin, policy, until, now);
            }
            RobotsOutcome::Redirected(target) if leased.entry.hops < MAX_ROBOTS_REDIRECTS => {
                self.note_answer(&leased, notices, now);
                self.follow(&leased.entry, origin, target, now);
            }
            RobotsOutcome::Redirected(_) | RobotsOutcome::Unavailable => {
                self.note_answer(&leased, notices, now);
                let until = now + ROBOTS_LIFETIME;
                self.hosts().robots_known(origin, Policy::AllowAll, until, now);
            }
            RobotsOutcome::NotFetched(why) => {
                let until = now + ROBOTS_LIFETIME;
                self.hosts()
                    .decided_without(origin, Policy::Closed(*why, None), until, now);
            }
            RobotsOutcome::Failed { failure, retry_after } => {
                settled.fate = self.robots_failed(leased, origin, failure, *retry_after, notices, now);
            }
        }
        settled.verdicts = self.offer_links(sitemaps, false, None, Sending::All, now);
        settled
    }

    /// Follows a redirect of a robots.txt, past the seen-set and the budgets.
    fn follow(&mut self, from: &Entry, origin: &Origin, target: &CanonicalUrl, now: Time) {
        let url = target.url().as_str().into();
        let mut entry = Entry::prerequisite(target.host(), url, Purpose::Robots(origin.clone()));
        entry.hops = from.hops.saturating_add(1);
        if self.partition.is_some_and(|partition| !partition.owns(target)) {
            self.count_robots_elsewhere();
        }
        self.hosts().robots_redirected(origin, now);
        self.hosts().enqueue(entry, now);
    }

    fn robots_failed(
        &mut self,
        leased: LeasedEntry,
        origin: &Origin,
        failure: &Failure,
        retry_after: Option<Duration>,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Fate {
        let cause = Arc::new(failure.clone());
        let is_own = origin_text(&leased.entry.url) == origin.as_str();
        match failure.kind.blame() {
            Blame::Us => {
                let wait = self.retries.wait_after(leased.entry.deferrals.saturating_add(1));
                let due = now + self.with_jitter(wait, &leased.entry);
                self.defer_robots(leased.entry, origin, &cause, due, notices, now)
            }
            Blame::Traffic => {
                let until = self.rest(&leased, failure, retry_after, notices, now);
                if self.sieve.queue().gave_up(&leased.entry.queue, &leased.entry.url) {
                    return self.give_up_robots(is_own, origin, &cause, notices, now);
                }
                self.defer_robots(leased.entry, origin, &cause, until, notices, now)
            }
            Blame::Origin | Blame::SilentPage if is_own => {
                let retries = self.retries;
                let (consequence, notice) = self.hosts().failed(&leased, &cause, false, &retries, now);
                notices.extend(notice);
                match consequence {
                    Consequence::Counts => self.retry_robots(leased, origin, &cause, retry_after, notices, now),
                    Consequence::Deferred | Consequence::Spared => {
                        let attempts = leased.entry.attempts.saturating_sub(1);
                        self.hosts().ask_robots_again(origin, attempts, now, now);
                        Fate::Requeued { due: now }
                    }
                    Consequence::GivenUp => self.give_up_robots(true, origin, &cause, notices, now),
                    Consequence::Final => self.close(origin, &cause, notices, now),
                }
            }
            Blame::Origin if failure.kind == FailureKind::Tls => self.close(origin, &cause, notices, now),
            Blame::Origin | Blame::SilentPage => self.retry_robots(leased, origin, &cause, retry_after, notices, now),
            Blame::Answer => {
                self.note_answer(&leased, notices, now);
                self.close(origin, &cause, notices, now)
            }
            Blame::NotRequested => self.close(origin, &cause, notices, now),
            Blame::Page => {
                if failure.kind.says_nothing_of_the_host() {
                    self.hosts().probe_not_sent(&leased, now);
                } else {
                    self.note_answer(&leased, notices, now);
                }
                self.retry_robots(leased, origin, &cause, retry_after, notices, now)
            }
        }
    }

    /// Handles a robots.txt whose server was given up: the origin itself, or the target of a redirect.
    fn give_up_robots(
        &mut self,
        is_own: bool,
        origin: &Origin,
        cause: &Arc<Failure>,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Fate {
        if !is_own {
            return self.close(origin, cause, notices, now);
        }
        self.hosts().ask_robots_again(origin, 0, now, now);
        Fate::GaveUp
    }

    /// Queues a robots.txt again, or closes its origin for a while if the attempts are spent.
    fn retry_robots(
        &mut self,
        leased: LeasedEntry,
        origin: &Origin,
        cause: &Arc<Failure>,
        retry_after: Option<Duration>,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Fate {
        let mut entry = leased.entry;
        // The origin counts them in a byte.
        let most = self.retries.max_robots_attempts.get().min(u8::MAX.into());
        if entry.attempts >= most {
            return self.close(origin, cause, notices, now);
        }
        let wait = retry_after.map_or_else(
            || self.with_jitter(self.retries.wait_after(entry.attempts), &entry),
            |after| after.min(self.retries.longest_wait),
        );
        let due = now + wait;
        notices.extend(self.hosts().robots_fails(origin, cause, due, now));
        if origin_text(&entry.url) == origin.as_str() && entry.hops == 0 {
            self.hosts().ask_robots_again(origin, entry.attempts, due, now);
        } else {
            entry.due = due;
            self.hosts().enqueue(entry, now);
        }
        Fate::Requeued { due }
    }

    /// Queues a robots.txt again without counting the attempt.
    fn defer_robots(
        &mut self,
        mut entry: Entry,
        origin: &Origin,
        cause: &Arc<Failure>,
        due: Time,
        notices: &mut Vec<Notice>,
        now: Time,
    ) -> Fate {
        entry.deferrals = entry.deferrals.saturating_add(1);
        if entry.deferrals >= self.retries.max_throttles.get() {
            return self.close(origin, cause, notices, now);
        }
        entry.attempts = entry.attempts.saturating_sub(1);
        entry.due = due;
        // Until then it waits as an entry of its own.
        self.hosts().robots_redirected(origin, now);
        self.hosts().enqueue(entry, now);
        Fate::Requeued { due }
    }

    /// Gives up on a robots.txt for now: extends its last rules, or closes the origin for a while.
    fn close(&mut self, origin: &Origin, cause: &Arc<Failure>, notices: &mut Vec<Notice>, now: Time) -> Fate {
        let (policy, rest) = without_robots(self.sieve.queue().known(origin).as_ref(), Arc::clone(cause));
        let (origin_said, cause) = (origin.clone(), Arc::clone(cause));
        notices.push(match &policy {
            Policy::Closed(..) => Notice::Closed {
                origin: origin_said,
                cause,
                rest,
            },
            Policy::AllowAll | Policy::Rules(_) => Notice::RulesExtended {
                origin: origin_said,
                cause,
            },
        });
        self.hosts().decided_without(origin, policy, now + rest, now);
        Fate::GaveUp
    }
}
