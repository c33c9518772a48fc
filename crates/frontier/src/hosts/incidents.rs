//! The effect of answers and failures on an origin, and what follows for the entries.
//!
//! ```text
//!               its first failure, or several silent pages
//! is answering ────────────────────────────────────────────▶ is away ──── a probe fails after too long ───▶ is given up
//!      ▲  ▲                                                  │ ▲   │                                           ▲   │
//!      │  └──────── answers a request that began since ──────┘ └───┘ a probe fails: a longer wait              │   │
//!      ▼                                                                                                       │   │
//!  is resting ────────────────────── throttles too often in a row ─────────────────────────────────────────────┘   │
//!      ▲ throttles                                                                                                 │
//!      └─ reopen: a later run tries it again ──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `outage.rs` has when an origin is away and when it is probed, [`OriginQueue::consequence`] what a failure means for its entry. Nothing
//! else is decided here: the functions of [`HostQueues`] find the origin, and make notices of what has changed. `state/settle.rs` and
//! `state/settle/robots.rs` call them, and queue the entry again or not.
//!
//! | to change | see |
//! |---|---|
//! | which failure is whose | `failure.rs` |
//! | when an origin is away, how often it is probed, when it is given up | `outage.rs` |
//! | whether a failure costs an entry an attempt | [`OriginQueue::consequence`] |
//! | what an operator reads | the functions of [`HostQueues`] here |

use std::sync::Arc;
use std::time::Duration;

use super::host::Host;
use super::host::budget::Leaving;
use super::jitter::jitter_thousandths;
use super::origin_id::OriginId;
use super::origin_queue::OriginQueue;
use super::outage::{Failed, Incident, Patience};
use super::{HostQueues, LeasedEntry, is_page, origin_of};
use crate::config::RetryPolicy;
use crate::entry::Entry;
use crate::failure::{Blame, Failure, FailureKind};
use crate::notice::Notice;
use crate::report::Health;
use crate::time::Time;
use crate::url::HostKey;

/// What follows from a failure for its entry.
#[derive(Debug)]
pub(crate) enum Consequence {
    /// The failure counts against the entry.
    Counts,
    /// The failure does not count: the entry waits with all others of its origin.
    Deferred,
    /// The failure counts, and the entry gets one attempt more.
    Spared,
    /// The origin is given up.
    GivenUp,
    /// The entry is given up: another request would fail the same.
    Final,
}

/// A page whose attempts are spent is retried if it was deferred less often than this, and its origin was away before.
const SECOND_CHANCES: u32 = 2;

impl OriginQueue {
    /// How long it may be away.
    fn patience(&self, retries: &RetryPolicy) -> Duration {
        if self.has_answered {
            retries.max_host_downtime
        } else {
            retries.max_first_downtime
        }
    }

    /// Records a failure. `page` is the hash of its URL.
    fn failed(
        &mut self,
        entry: &Entry,
        page: u64,
        failed: Failed<'_>,
        retries: &RetryPolicy,
    ) -> (Incident, Consequence) {
        let kind = failed.failure.kind;
        if self.is_given_up {
            return (Incident::Known, Consequence::GivenUp);
        }
        // Nobody can speak to it securely, which is no outage.
        if kind == FailureKind::Tls && !self.has_answered && !self.is_away() {
            return (Incident::None, Consequence::Final);
        }
        let patience = Patience {
            retries,
            limit: self.patience(retries),
            jitter: jitter_thousandths(&entry.url, failed.now.as_millis() as u32),
        };
        let is_first_word = !self.has_answered && !is_page(entry);
        let is_last = is_last_attempt(entry, retries);
        let health = self.health_mut();
        let incident = match kind.blame() {
            Blame::SilentPage if !is_first_word => health.page_was_silent(page, is_last, failed, &patience),
            _ => health.failed(failed, &patience),
        };
        if incident == Incident::None && is_page(entry) {
            health.note(Health::Hanging, failed.failure, None, failed.now);
        }
        (incident, self.consequence(incident, entry, retries))
    }

    /// What a failure means for its entry: a table.
    fn consequence(&self, incident: Incident, entry: &Entry, retries: &RetryPolicy) -> Consequence {
        let is_last = is_last_attempt(entry, retries);
        // Its attempts may have been spent on an outage before that was detected.
        let has_suffered = self.was_away() && entry.deferrals < SECOND_CHANCES;
        // It is not known whether the page is silent, or its origin: until then the last attempt waits.
        let may_be_silent = is_page(entry) && self.is_uncertain();
        match incident {
            Incident::TooLong => Consequence::GivenUp,
            Incident::None if is_last && has_suffered => Consequence::Deferred,
            Incident::None => Consequence::Counts,
            Incident::Begun | Incident::Known if !may_be_silent => Consequence::Deferred,
            Incident::Begun | Incident::Known if entry.attempts == retries.max_attempts.get() => Consequence::Spared,
            Incident::Begun | Incident::Known => Consequence::Counts,
        }
    }
}

/// Those of a robots.txt are counted apart.
fn is_last_attempt(entry: &Entry, retries: &RetryPolicy) -> bool {
    is_page(entry) && entry.attempts >= retries.max_attempts.get()
}

impl HostQueues {
    /// Records an answer of an origin. Returns a notice if it was away.
    pub(crate) fn answered(&mut self, leased: &LeasedEntry, now: Time) -> Option<Notice> {
        let (key, id) = (leased.entry.queue.clone(), origin_of(&leased.entry));
        if self.get(&key)?.find(id)?.is_answering() {
            return None;
        }
        let after = self.change_origin(&key, id, now, |host| {
            let origin = host.origin(id);
            origin.has_answered = true;
            let is_page = is_page(&leased.entry);
            let health = origin.health()?;
            let after = health.answered(leased.started, leased.is_probe, is_page, now);
            if is_page && leased.entry.attempts > 1 {
                health.retry_answered();
            }
            after
        });
        let after = after.flatten()?;
        let origin = id.origin(&key)?;
        Some(Notice::Back { origin, after })
    }

    /// Resets the count of throttling answers, after another answer.
    pub(crate) fn reset_throttles(&mut self, leased: &LeasedEntry, now: Time) {
        let (key, id) = (&leased.entry.queue, origin_of(&leased.entry));
        let is_throttling = |host: &Host| host.find(id).is_some_and(|origin| origin.throttles() > 0);
        if self.get(key).is_some_and(|host| is_throttling(&host)) {
            self.change_origin(&key.clone(), id, now, |host| {
                let health = host.origin(id).health_mut();
                health.throttles = 0;
                health.trouble.take_if(|trouble| trouble.state == Health::Resting);
            });
        }
    }

    /// Records a request that failed without an answer. Returns a notice if its origin is away or given up from now on.
    pub(crate) fn failed(
        &mut self,
        leased: &LeasedEntry,
        failure: &Arc<Failure>,
        retries: &RetryPolicy,
        now: Time,
    ) -> (Consequence, Option<Notice>) {
        let (key, id) = (leased.entry.queue.clone(), origin_of(&leased.entry));
        let page = self.traps.hash().of(&*leased.entry.url);
        let failed = Failed {
            failure,
            started: leased.started,
            is_probe: leased.is_probe,
            now,
        };
        let found = self.change_origin(&key, id, now, |host| {
            let origin = host.origin(id);
            (
                origin.patience(retries),
                origin.failed(&leased.entry, page, failed, retries),
            )
        });
        let Some((patience, (incident, consequence))) = found else {
            return (Consequence::Counts, None);
        };
        let notice = match incident {
            Incident::Begun => id.origin(&key).map(|origin| Notice::Away {
                origin,
                cause: Arc::clone(failure),
                patience,
            }),
            Incident::TooLong => self.give_up(&key, id, failure, now),
            Incident::None | Incident::Known => None,
        };
        (consequence, notice)
    }

    /// Records that a probe was not sent.
    pub(crate) fn probe_not_sent(&mut self, leased: &LeasedEntry, now: Time) {
        if leased.is_probe {
            self.end_probe(&leased.entry.queue.clone(), origin_of(&leased.entry), now);
        }
    }

    /// Records that no probe of an origin is in flight.
    pub(super) fn end_probe(&mut self, key: &HostKey, id: OriginId, now: Time) {
        self.change_origin(key, id, now, |host| {
            if let Some(health) = host.origin(id).health() {
                health.probe_not_sent();
            }
        });
    }

    /// Records a throttling answer. Returns their number in a row, and a notice if the origin is given up now.
    ///
    /// Throttling answers to requests that were in flight when the rest began do not count.
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

    /// Lets a host rest until a time; a longer rest stays. Returns a notice if that is its first rest in a row.
    pub(crate) fn rest(
        &mut self,
        leased: &LeasedEntry,
        cause: &Arc<Failure>,
        asked_for: Option<Duration>,
        until: Time,
        now: Time,
    ) -> Option<Notice> {
        let (key, id) = (&leased.entry.queue, origin_of(&leased.entry));
        let is_first = self.change_origin(key, id, now, |host| {
            host.block(until);
            host.origin(id)
                .health_mut()
                .note(Health::Resting, cause, asked_for, now)
        });
        let origin = id.origin(key).filter(|_| is_first == Some(true))?;
        Some(Notice::Throttled {
            origin,
            cause: Arc::clone(cause),
            asked_for,
            rest: until.since(now),
        })
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

    fn give_up(&mut self, key: &HostKey, id: OriginId, cause: &Arc<Failure>, now: Time) -> Option<Notice> {
        let since = self.get(key)?.find(id)?.outage().map(|away| away.since);
        let after = since.map(|since| now.since(since)).unwrap_or_default();
        let is_new = self.change_origin(key, id, now, |host| {
            if let Some(since) = since {
                host.origin(id).health_mut().note(Health::GivenUp, cause, None, since);
            }
            host.give_up(id)
        });
        if is_new != Some(true) {
            return None;
        }
        self.given_up += 1;
        let lost = self.drop_queue(key, id, Leaving::All(Arc::clone(cause)), now);
        Some(Notice::GivenUp {
            origin: id.origin(key)?,
            cause: Arc::clone(cause),
            after,
            lost,
        })
    }
}
