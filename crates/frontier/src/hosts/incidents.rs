//! What answers and failures make of the origin that was asked: it is away, back, resting, or given up.

use std::sync::Arc;

use super::host::Host;
use super::jitter::jitter_thousandths;
use super::origin_queue::OriginId;
use super::outage::{Failed, Incident, Patience};
use super::{HostQueues, LeasedEntry, origin_of};
use crate::config::RetryPolicy;
use crate::failure::{Blame, Failure};
use crate::lease::NotFetched;
use crate::notice::Notice;
use crate::time::Time;
use crate::url::HostKey;

/// How often a page whose attempts are spent may have been deferred to be asked again, at an origin that was away before.
const SECOND_CHANCES: u32 = 2;

/// What follows from a failure for the entry that was asked for.
#[derive(Debug)]
pub(crate) enum Consequence {
    /// It counts against the entry.
    Counts,
    /// It does not count: the entry waits with all others of its origin.
    Deferred(Option<Notice>),
    /// Its origin is given up.
    GivenUp(Option<Notice>),
}

impl HostQueues {
    /// The origin that was asked has answered. Returns what is to be said if it was away.
    pub(crate) fn answered(&mut self, leased: &LeasedEntry, now: Time) -> Option<Notice> {
        let (key, id) = (leased.entry.queue.clone(), origin_of(&leased.entry));
        self.get(&key)?.find(id)?;
        let after = self.change_origin(&key, id, now, |host| {
            let origin = host.origin(id);
            origin.has_answered = true;
            let is_page = super::is_page(&leased.entry);
            origin.health()?.answered(leased.started, leased.is_probe, is_page, now)
        });
        let origin = id.origin(&key)?;
        after.flatten().map(|after| Notice::Back { origin, after })
    }

    /// The origin that was asked has answered with something else than that it wants less traffic.
    pub(crate) fn reset_throttles(&mut self, leased: &LeasedEntry, now: Time) {
        let (key, id) = (&leased.entry.queue, origin_of(&leased.entry));
        let is_throttling = |host: &Host| host.find(id).is_some_and(|origin| origin.throttles() > 0);
        if self.get(key).is_some_and(is_throttling) {
            self.change_origin(&key.clone(), id, now, |host| {
                host.origin(id).health_mut().throttles = 0;
            });
        }
    }

    /// A request has failed without an answer. `is_last` says that the attempts at its page are spent by that.
    pub(crate) fn failed(
        &mut self,
        leased: &LeasedEntry,
        failure: &Arc<Failure>,
        is_last: bool,
        retries: &RetryPolicy,
        now: Time,
    ) -> Consequence {
        let (key, id) = (leased.entry.queue.clone(), origin_of(&leased.entry));
        let Some(origin) = self.get(&key).and_then(|host| host.find(id)) else {
            return Consequence::Counts;
        };
        if origin.is_given_up {
            return Consequence::GivenUp(None);
        }
        let limit = if origin.has_answered {
            retries.max_host_downtime
        } else {
            retries.max_first_downtime
        };
        let patience = Patience {
            retries,
            limit,
            jitter: jitter_thousandths(&leased.entry.url, now.as_millis() as u32),
        };
        let page = self.traps.hash().of(&*leased.entry.url);
        let is_first_word = !origin.has_answered && !super::is_page(&leased.entry);
        let failed = Failed {
            failure,
            started: leased.started,
            is_probe: leased.is_probe,
            now,
        };
        let incident = self.change_origin(&key, id, now, |host| {
            let health = host.origin(id).health_mut();
            match failure.kind.blame() {
                Blame::SilentPage if !is_first_word => health.page_was_silent(page, is_last, failed, &patience),
                _ => health.failed(failed, &patience),
            }
        });
        // What a page was silent for before its origin was found to be away has cost it attempts.
        let has_suffered = || {
            let origin = self.get(&key).and_then(|host| host.find(id));
            leased.entry.deferrals < SECOND_CHANCES && origin.is_some_and(|origin| origin.was_away())
        };
        match incident.unwrap_or(Incident::None) {
            Incident::None if is_last && has_suffered() => Consequence::Deferred(None),
            Incident::None => Consequence::Counts,
            Incident::Known => Consequence::Deferred(None),
            Incident::Begun => Consequence::Deferred(id.origin(&key).map(|origin| Notice::Away {
                origin,
                cause: Arc::clone(failure),
                patience: limit,
            })),
            Incident::TooLong => Consequence::GivenUp(self.give_up(&key, id, failure, now)),
        }
    }

    /// A probe came back without having asked.
    pub(crate) fn probe_not_sent(&mut self, leased: &LeasedEntry, now: Time) {
        if leased.is_probe {
            self.end_probe(&leased.entry.queue.clone(), origin_of(&leased.entry), now);
        }
    }

    /// Nothing asks any longer whether an origin is back.
    pub(super) fn end_probe(&mut self, key: &HostKey, id: OriginId, now: Time) {
        self.change_origin(key, id, now, |host| {
            if let Some(health) = host.origin(id).health() {
                health.probe_not_sent();
            }
        });
    }

    /// The origin that was asked wants less traffic. Returns how often in a row, and what is to be said if it is given up by that.
    ///
    /// Answers to what was in flight when the host began to rest are no further reason.
    pub(crate) fn throttled(
        &mut self,
        leased: &LeasedEntry,
        cause: &Arc<Failure>,
        retries: &RetryPolicy,
        now: Time,
    ) -> (u32, Option<Notice>) {
        let (key, id) = (leased.entry.queue.clone(), origin_of(&leased.entry));
        let throttles = self.change_origin(&key, id, now, |host| {
            let is_resting = host.blocked_until() > now;
            let health = host.origin(id).health_mut();
            if !is_resting || health.throttles == 0 {
                health.throttles = health.throttles.saturating_add(1);
            }
            health.throttles
        });
        let throttles = throttles.unwrap_or(1);
        let notice = if throttles >= retries.max_throttles.get() {
            self.give_up(&key, id, cause, now)
        } else {
            None
        };
        (throttles, notice)
    }

    /// Says whether the origin of an entry was given up.
    pub(crate) fn gave_up(&self, key: &HostKey, url: &str) -> bool {
        self.get(key).is_some_and(|host| host.gave_up(url))
    }

    /// Gives an origin up, with all that waits for it.
    fn give_up(&mut self, key: &HostKey, id: OriginId, cause: &Arc<Failure>, now: Time) -> Option<Notice> {
        let away = self.get(key)?.find(id)?.outage();
        let after = away.map(|away| now.since(away.since)).unwrap_or_default();
        let is_new = self.change_origin(key, id, now, |host| host.give_up(id));
        if is_new != Some(true) {
            return None;
        }
        self.given_up += 1;
        let lost = self.drop_queue(key, id, false, NotFetched::HostDown, Some(Arc::clone(cause)), now);
        Some(Notice::GivenUp {
            origin: id.origin(key)?,
            cause: Arc::clone(cause),
            after,
            lost,
        })
    }
}
