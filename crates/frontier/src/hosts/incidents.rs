//! The effect of answers and failures on an origin, and what follows for the entries.
//!
//! ```text
//!    ┌─ reopen: a later run tries it again, and its failures are forgotten ────────────────────────────────────────────┐
//!    ▼          its first failure, or several silent pages                                                             │
//! is answering ────────────────────────────────────────────▶ is away ──── a probe fails after too long ───▶ is given up
//!      ▲  ▲                                                  │ ▲   │                                           ▲
//!      │  └──────── answers a request that began since ──────┘ └───┘ a probe fails: a longer wait              │
//!      ▼ throttles                                                                                             │
//!  is resting ────────────────────── throttles too often in a row ─────────────────────────────────────────────┘
//! ```
//!
//! A failure goes this way, and the functions stand in this order; each decides something, as its table says:
//!
//! ```text
//! request_failed (whose failure is it?) ─┬─▶ throttled (traffic: the host rests, or is given up)
//!                                        └─▶ origin_failed ─▶ OriginQueue::record_failure (is it given up, can it speak securely?)
//!        is it away? OriginHealth::blame_origin, page_was_silent (outage.rs) ◀─┘└─▶ OriginHealth::consequence (what of the entry?)
//! ```
//!
//! The other functions find the origin, and make notices of what has changed. `state/settle.rs` and `state/settle/robots.rs` queue the entry
//! again, or not. With another decision, `LOGIC` of `durable/checkpoint.rs` goes up.
//!
//! | to change | see |
//! |---|---|
//! | which failure is whose, and how many silent pages blame the origin | `failure.rs` |
//! | what a failure means for its entry | `request_failed`, `consequence` |
//! | when an origin is away, how often it is probed, when it is given up | `outage.rs`; the times are those of [`RetryPolicy`] |
//! | what an operator reads | `notice.rs`, `health.rs`, and the other functions here |

use std::sync::Arc;
use std::time::Duration;

use super::failed::Failed;
use super::host::Host;
use super::origin_id::OriginId;
use super::origin_queue::OriginQueue;
use super::outage::{Incident, OriginHealth};
use super::{HostQueues, LeasedEntry, is_page, origin_of};
use crate::config::RetryPolicy;
use crate::failure::{Blame, FailureKind};
use crate::lease::NotFetched;
use crate::notice::Notice;
use crate::report::Health;
use crate::time::Time;
use crate::url::HostKey;

/// What follows from a failure for its entry.
#[derive(Debug)]
pub(crate) enum Consequence {
    /// The failure counts against the entry.
    Counts,
    /// The failure counts, and the entry gets one attempt more.
    Spared,
    /// The failure does not count: the entry waits with all others of its origin.
    Deferred,
    /// The failure does not count: the entry waits until a time.
    Later(Time),
    /// Its origin is given up.
    GivenUp,
    /// The entry is given up: another request would fail the same.
    Final,
}

impl HostQueues {
    /// Records a request that failed. Returns what that means for its entry, by whose failure it is: a table. Adds what an operator should
    /// know.
    pub(crate) fn request_failed(&mut self, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Consequence {
        let (leased, kind) = (failed.leased, failed.cause.kind);
        match kind.blame() {
            Blame::Page => {
                notices.extend(self.answered(leased, false, failed.now));
                Consequence::Counts
            }
            Blame::Answer => {
                notices.extend(self.answered(leased, false, failed.now));
                Consequence::Final
            }
            Blame::Caller => {
                self.probe_not_sent(leased, failed.now);
                Consequence::Counts
            }
            Blame::NotRequested => Consequence::Final,
            Blame::Traffic => self.throttled(failed, notices),
            Blame::Us => {
                let wait = failed.retries.wait_after(leased.entry.deferrals.saturating_add(1));
                Consequence::Later(failed.now + failed.with_jitter(wait))
            }
            // It says nothing of the origin that waits for it.
            Blame::Origin if leased.entry.is_robots_elsewhere() && kind == FailureKind::Tls => Consequence::Final,
            Blame::Origin | Blame::SilentPage if leased.entry.is_robots_elsewhere() => Consequence::Counts,
            Blame::Origin | Blame::SilentPage => self.origin_failed(failed, notices),
        }
    }

    /// Records a throttling answer: the host rests. A longer rest stays.
    ///
    /// Throttling answers to requests that were in flight when the rest began do not count.
    fn throttled(&mut self, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Consequence {
        let (entry, now) = (&failed.leased.entry, failed.now);
        let (key, id) = (&entry.queue, origin_of(entry));
        notices.extend(self.answered(failed.leased, true, now));
        let throttles = self.change_origin(key, id, now, |host| {
            let is_resting = host.blocked_until() > now;
            let health = host.origin(id).health_mut();
            if !is_resting || health.throttles == 0 {
                health.throttles = health.throttles.saturating_add(1);
            }
            health.throttles
        });
        let throttles = throttles.unwrap_or(1);
        if throttles >= failed.retries.max_throttles.get() {
            notices.extend(self.give_up(failed));
        }
        let (cause, asked_for, until) = (&failed.cause, failed.retry_after, now + failed.rest(throttles));
        let is_first = self.change_origin(key, id, now, |host| {
            host.block(until);
            let origin = host.origin(id);
            !origin.is_given_up && origin.health_mut().note(Health::Resting, cause, asked_for, now)
        });
        let origin = id.origin(key).filter(|_| is_first == Some(true));
        notices.extend(origin.map(|origin| Notice::Throttled {
            origin,
            cause: Arc::clone(cause),
            asked_for,
            rest: until.since(now),
        }));
        if self.gave_up(key, &entry.url) {
            Consequence::GivenUp
        } else {
            Consequence::Later(until)
        }
    }

    fn origin_failed(&mut self, failed: &Failed<'_>, notices: &mut Vec<Notice>) -> Consequence {
        let entry = &failed.leased.entry;
        let (key, id) = (&entry.queue, origin_of(entry));
        let page = self.traps.hash.of(&*entry.url);
        let found = self.change_origin(key, id, failed.now, |host| {
            let origin = host.origin(id);
            let (incident, consequence) = origin.record_failure(page, failed);
            (incident, origin.newly_away(&failed.retries), consequence)
        });
        let Some((incident, newly_away, consequence)) = found else {
            return Consequence::Counts;
        };
        notices.extend(match (incident, newly_away) {
            (Incident::TooLong, _) => self.give_up(failed),
            (_, Some(patience)) => id.origin(key).map(|origin| Notice::Away {
                origin,
                cause: Arc::clone(&failed.cause),
                patience,
            }),
            (_, None) => None,
        });
        consequence
    }
}

/// A page whose attempts are spent is retried if it was deferred less often than this, and its origin was away before.
const SECOND_CHANCES: u32 = 2;

impl OriginQueue {
    /// How long it may be away.
    pub(super) fn patience(&self, retries: &RetryPolicy) -> Duration {
        if self.has_answered {
            retries.max_host_downtime
        } else {
            retries.max_first_downtime
        }
    }

    /// Records a failure that may be its own. `page` is the hash of the URL.
    fn record_failure(&mut self, page: u64, failed: &Failed<'_>) -> (Incident, Consequence) {
        let (entry, kind) = (&failed.leased.entry, failed.cause.kind);
        if self.is_given_up {
            return (Incident::Outage, Consequence::GivenUp);
        }
        // Nobody can speak to it securely, which is no outage.
        if kind == FailureKind::Tls && !self.has_answered && !self.is_away() {
            return (Incident::None, Consequence::Final);
        }
        let patience = self.patience(&failed.retries);
        let is_first_word = !self.has_answered && !is_page(entry);
        let health = self.health_mut();
        let incident = match kind.blame() {
            Blame::SilentPage if !is_first_word => health.page_was_silent(page, failed, patience),
            _ => health.blame_origin(failed, patience),
        };
        if kind.blame() == Blame::SilentPage && is_page(entry) {
            health.note(Health::Hanging, &failed.cause, None, failed.now);
        }
        (incident, health.consequence(incident, failed))
    }

    /// How long it may be away, if it is, and that was not reported since a page was answered. Now it is.
    fn newly_away(&mut self, retries: &RetryPolicy) -> Option<Duration> {
        let since = self.outage().filter(|_| self.state() == Health::Away)?.since;
        let reported = &mut self.health_mut().reported_away;
        let is_new = reported.is_none();
        reported.get_or_insert(since);
        is_new.then(|| self.patience(retries))
    }
}

impl OriginHealth {
    /// What such a failure means for its entry: a table. An attempt counts, is spared or is deferred:
    ///
    /// | incident | the last attempt | else |
    /// |---|---|---|
    /// | none | counts; deferred if its attempts may have been spent on an outage before, which was surely one | counts |
    /// | an outage, of a page, and the origin may be well: it is not known yet who is silent | spared, once | counts |
    /// | any other outage | deferred | deferred |
    /// | too long | given up | given up |
    fn consequence(&self, incident: Incident, failed: &Failed<'_>) -> Consequence {
        let entry = &failed.leased.entry;
        // Its attempts may have been spent on an outage before that was detected.
        let has_suffered = self.was_surely_away && entry.deferrals < SECOND_CHANCES;
        // It is not known whether the page is silent, or its origin: until then the last attempt waits.
        let may_be_silent = is_page(entry) && !self.was_surely_away;
        match incident {
            Incident::TooLong => Consequence::GivenUp,
            Incident::None if failed.is_last_attempt() && has_suffered => Consequence::Deferred,
            Incident::None => Consequence::Counts,
            Incident::Outage if !may_be_silent => Consequence::Deferred,
            // Once only: the next failure of this entry counts.
            Incident::Outage if entry.attempts == failed.retries.max_attempts.get() => Consequence::Spared,
            Incident::Outage => Consequence::Counts,
        }
    }
}

impl HostQueues {
    /// Records an answer of an origin. Returns a notice if it was away. An answer that does not throttle ends the count of those in a row
    /// that do.
    pub(crate) fn answered(&mut self, leased: &LeasedEntry, is_throttling: bool, now: Time) -> Option<Notice> {
        let (key, id) = (&leased.entry.queue, origin_of(&leased.entry));
        if self.get(key)?.find(id)?.is_answering() {
            return None;
        }
        let after = self.change_origin(key, id, now, |host| {
            let origin = host.origin(id);
            origin.has_answered = true;
            let is_page = is_page(&leased.entry);
            let health = origin.health()?;
            let after = health.note_answer(leased.started, leased.is_probe, is_page, now);
            if is_page && leased.entry.attempts > 1 {
                health.retry_answered();
            }
            if !is_throttling && health.throttles > 0 {
                health.throttles = 0;
                health.trouble.take_if(|trouble| trouble.state == Health::Resting);
            }
            after
        });
        let after = after.flatten()?;
        let origin = id.origin(key)?;
        Some(Notice::Back { origin, after })
    }

    /// Records that a probe was not sent.
    pub(crate) fn probe_not_sent(&mut self, leased: &LeasedEntry, now: Time) {
        if leased.is_probe {
            self.end_probe(&leased.entry.queue, origin_of(&leased.entry), now);
        }
    }

    /// Records that no probe of an origin is in flight.
    pub(super) fn end_probe(&mut self, key: &HostKey, id: OriginId, now: Time) {
        self.change_origin(key, id, now, |host| {
            if let Some(outage) = host.origin(id).health().and_then(|health| health.outage.as_mut()) {
                outage.is_probing = false;
            }
        });
    }

    pub(crate) fn gave_up(&self, key: &HostKey, url: &str) -> bool {
        self.get(key).is_some_and(|host| host.gave_up(url))
    }

    /// Makes an origin askable again that was given up, or closed because its robots.txt could not be fetched. Its failures are forgotten.
    pub(crate) fn reopen(&mut self, key: &HostKey, url: &str, now: Time) {
        let id = OriginId::of(url);
        let is_shut = |host: &Host| host.find(id).is_some_and(OriginQueue::is_shut);
        if !self.get(key).is_some_and(|host| is_shut(&host)) {
            return;
        }
        let mut was_given_up = false;
        self.change_origin(key, id, now, |host| was_given_up = host.reopen(id));
        self.given_up -= u64::from(was_given_up).min(self.given_up);
    }

    /// Does the same for all such origins. Cost: a look at all hosts, and at the evicted ones with such an origin.
    pub(crate) fn reopen_all(&mut self, now: Time) {
        let mut shut = Vec::new();
        for (key, host) in self.hosts.iter_if(|_, facts| facts.is_shut) {
            let of_host = host.origins().iter().filter(|origin| origin.is_shut());
            shut.extend(of_host.map(|origin| (key.clone(), origin.id.text(key))));
        }
        // Hosts join rounds in this order, wherever they lie.
        shut.sort_unstable();
        for (key, origin) in shut {
            self.reopen(&key, &origin, now);
        }
    }

    fn give_up(&mut self, failed: &Failed<'_>) -> Option<Notice> {
        let (cause, now) = (&failed.cause, failed.now);
        let (key, id) = (&failed.leased.entry.queue, origin_of(&failed.leased.entry));
        let since = self.get(key)?.find(id)?.outage().map(|away| away.since);
        let after = since.map(|since| now.since(since)).unwrap_or_default();
        let is_new = self.change_origin(key, id, now, |host| {
            let is_new = host.give_up(id);
            if is_new {
                host.origin(id).health_mut().note(Health::GivenUp, cause, None, now);
            }
            is_new
        });
        if is_new != Some(true) {
            return None;
        }
        self.given_up += 1;
        let lost = self.drop_queue(key, id, (NotFetched::HostDown, Some(cause)), now);
        Some(Notice::GivenUp {
            origin: id.origin(key)?,
            cause: Arc::clone(cause),
            after,
            lost,
        })
    }
}
