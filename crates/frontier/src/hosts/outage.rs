//! Outages: whether an origin is away, and when it is probed.
//!
//! An origin is away from the first failure that counts against it ([`Blame::Origin`](crate::failure::Blame)), or after some silent
//! pages. It is back when a request that started later is answered. One probe is in flight at a time. All other failures in the
//! meantime belong to the same incident, and change nothing. `incidents.rs` has what follows for the entries. With another decision, `LOGIC` of
//! `durable/checkpoint.rs` goes up.

use std::sync::Arc;
use std::time::Duration;

use super::jitter::{jitter_thousandths, with_jitter};
use super::{LeasedEntry, is_page};
use crate::config::RetryPolicy;
use crate::failure::{Blame, Failure, SILENT_PAGES};
use crate::report::Health;
use crate::time::Time;

/// The recent failures of an origin.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct OriginHealth {
    pub(crate) outage: Option<Outage>,
    /// Pages that were silent since the last answer, as hashes of their URLs.
    silent: Vec<u64>,
    /// Silent requests since the last answer.
    silences: u32,
    /// Throttling answers in a row.
    pub(crate) throttles: u32,
    /// The start and the probes of the last incident, if only robots.txt was answered since.
    unproven: Option<(Time, u32)>,
    /// The end of the last incident. Failures of requests that started earlier belong to it.
    back_at: Time,
    /// Whether an incident was surely an outage: connections failed, or a probe, or a page was answered that was silent before. Of others it is
    /// not known whether its pages never answer.
    pub(super) was_surely_away: bool,
    /// What went wrong last, without an outage; it decides nothing.
    pub(crate) trouble: Option<Box<Trouble>>,
}

/// What holds an origin up that is not away, or why it was given up.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Trouble {
    pub(crate) state: Health,
    pub(crate) since: Time,
    pub(crate) cause: Arc<Failure>,
    /// The last `Retry-After`.
    pub(crate) asked_for: Option<Duration>,
    /// In a row.
    pub(crate) times: u32,
}

/// An outage that is not over.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Outage {
    pub(crate) since: Time,
    pub(crate) cause: Arc<Failure>,
    pub(crate) probes: u32,
    /// When the next probe is due.
    pub(crate) next: Time,
    /// A probe is in flight.
    pub(crate) is_probing: bool,
}

/// What a failure means for its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incident {
    /// The failure belongs to no incident: it counts against its page.
    None,
    /// An incident begins.
    Begun,
    /// The failure belongs to an incident that is known, or already over.
    Known,
    /// The incident has lasted too long.
    TooLong,
}

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Failed<'a> {
    pub(crate) leased: &'a LeasedEntry,
    pub(crate) cause: Arc<Failure>,
    /// What the answer asked for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) retries: RetryPolicy,
    pub(crate) now: Time,
}

impl<'a> Failed<'a> {
    pub(crate) fn new(
        leased: &'a LeasedEntry,
        cause: &Failure,
        retry_after: Option<Duration>,
        retries: RetryPolicy,
        now: Time,
    ) -> Self {
        Self {
            leased,
            cause: Arc::new(cause.clone()),
            retry_after,
            retries,
            now,
        }
    }

    /// When the entry is asked for again, if the failure counts against it.
    pub(crate) fn next_attempt(&self) -> Time {
        let wait = || self.with_jitter(self.retries.wait_after(self.leased.entry.attempts));
        let asked_for = self.retry_after.map(|after| after.min(self.retries.max_retry_wait));
        self.now + asked_for.unwrap_or_else(wait)
    }

    /// How long the host rests after so many throttling answers in a row.
    pub(crate) fn rest(&self, throttles: u32) -> Duration {
        let rest = self.retries.rest_after(throttles, self.retry_after);
        if self.retry_after.is_some() {
            rest
        } else {
            self.with_jitter(rest)
        }
    }

    pub(crate) fn with_jitter(&self, wait: Duration) -> Duration {
        let entry = &self.leased.entry;
        let times = entry.attempts.wrapping_add(entry.deferrals);
        with_jitter(wait, self.retries.retry_jitter, jitter_thousandths(&entry.url, times))
    }

    /// Those of a robots.txt are counted apart.
    pub(crate) fn is_last_attempt(&self) -> bool {
        let entry = &self.leased.entry;
        is_page(entry) && entry.attempts >= self.retries.max_attempts.get()
    }
}

impl OriginHealth {
    /// Notes what goes wrong. Returns whether nothing of that kind went wrong just before.
    pub(crate) fn note(&mut self, state: Health, cause: &Arc<Failure>, asked_for: Option<Duration>, now: Time) -> bool {
        let same = self.trouble.take_if(|trouble| trouble.state == state);
        let (since, times) = same.map_or((now, 0), |same| (same.since, same.times));
        self.trouble = Some(Box::new(Trouble {
            state,
            since,
            cause: Arc::clone(cause),
            asked_for,
            times: times.saturating_add(1),
        }));
        times == 0
    }

    pub(crate) fn is_over(&self) -> bool {
        self.outage.is_none() && self.silences == 0 && self.throttles == 0
    }

    pub(crate) fn is_uncertain(&self) -> bool {
        !self.was_surely_away && !self.outage.as_ref().is_some_and(Outage::is_certain)
    }

    /// Records the answer to a page that failed before. If the origin was taken for away, it was.
    pub(crate) fn retry_answered(&mut self) {
        self.was_surely_away |= self.back_at > Time::EPOCH;
    }

    /// Records a failure that counts against the origin, which may be away for as long as `patience`.
    pub(crate) fn blame_origin(&mut self, failed: &Failed<'_>, patience: Duration) -> Incident {
        let (now, started) = (failed.now, failed.leased.started);
        let Some(outage) = &mut self.outage else {
            if started < self.back_at {
                return Incident::Known;
            }
            // If only robots.txt was answered, the origin is not back: the incident continues, with its start and probes, or such an origin would
            // begin anew each time and never be given up.
            let is_of_origin = failed.cause.kind.blame() == Blame::Origin;
            let is_soon = started.since(self.back_at) <= failed.retries.longest_probe_wait;
            let goes_on = self.unproven.filter(|_| is_of_origin && is_soon);
            let (since, probes) = goes_on.unwrap_or((now, 0));
            let mut outage = Outage {
                since,
                cause: Arc::clone(&failed.cause),
                probes,
                next: now,
                is_probing: false,
            };
            let is_too_long = now >= since + patience && probes > 0;
            outage.wait(failed, patience);
            self.outage = Some(outage);
            return if is_too_long {
                Incident::TooLong
            } else {
                Incident::Begun
            };
        };
        if !failed.leased.is_probe {
            return Incident::Known;
        }
        outage.is_probing = false;
        outage.cause = Arc::clone(&failed.cause);
        if now >= outage.since + patience {
            return Incident::TooLong;
        }
        outage.wait(failed, patience);
        Incident::Known
    }

    /// Records a silent page: no answer, or only a part of it. `page` is the hash of its URL.
    pub(crate) fn page_was_silent(&mut self, page: u64, failed: &Failed<'_>, patience: Duration) -> Incident {
        if self.outage.is_some() || failed.leased.started < self.back_at {
            return self.blame_origin(failed, patience);
        }
        self.silences = self.silences.saturating_add(1);
        if !self.silent.contains(&page) {
            self.silent.push(page);
        }
        // Without any answer between the attempts of a page, the origin may be away. One or two attempts are not enough to know.
        let attempts = failed.retries.max_attempts.get().max(SILENT_PAGES as u32);
        if self.silent.len() >= SILENT_PAGES || failed.is_last_attempt() && self.silences >= attempts {
            self.silent = Vec::new();
            self.silences = 0;
            return self.blame_origin(failed, patience);
        }
        Incident::None
    }

    /// Records the answer to a request. Returns how long the origin was away, if this ends the outage.
    pub(crate) fn note_answer(&mut self, started: Time, is_probe: bool, is_page: bool, now: Time) -> Option<Duration> {
        self.silent = Vec::new();
        self.silences = 0;
        // One of a robots.txt says nothing of its pages.
        self.trouble
            .take_if(|trouble| is_page && trouble.state == Health::Hanging);
        // A late answer to a request from before the outage proves nothing.
        let outage = self.outage.take_if(|outage| is_probe || started >= outage.since);
        if is_page {
            self.unproven = None;
        } else if let Some(outage) = &outage {
            self.unproven = Some((outage.since, outage.probes));
        }
        let outage = outage?;
        self.back_at = now;
        self.was_surely_away |= outage.is_certain();
        Some(now.since(outage.since))
    }
}

impl Outage {
    pub(crate) fn is_certain(&self) -> bool {
        self.probes > 1 || self.cause.kind.blame() == Blame::Origin
    }

    fn wait(&mut self, failed: &Failed<'_>, patience: Duration) {
        self.probes += 1;
        let (retries, now) = (&failed.retries, failed.now);
        let wait = retries.wait_after(self.probes).min(retries.longest_probe_wait);
        let jitter = jitter_thousandths(&failed.leased.entry.url, now.as_millis() as u32);
        let wait = with_jitter(wait, retries.retry_jitter, jitter);
        self.next = (now + wait).min((self.since + patience).max(now));
    }
}

#[cfg(test)]
mod tests {
    use ::url::Url;

    use super::*;
    use crate::entry::{Entry, Purpose};
    use crate::failure::FailureKind;
    use crate::url::HostKey;

    /// As for an origin that has answered.
    const PATIENCE: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Time {
        Time::from_millis(1_000_000 + seconds * 1_000)
    }

    fn leased(started: Time, is_probe: bool) -> LeasedEntry {
        let host = HostKey::of(&Url::parse("http://a.example").unwrap()).unwrap();
        LeasedEntry {
            entry: Arc::new(Entry::new(host, "http://a.example/".into(), Purpose::Page)),
            gap: None,
            started,
            address: None,
            is_probe,
        }
    }

    fn refused(leased: &LeasedEntry, now: Time) -> Failed<'_> {
        Failed {
            leased,
            cause: Arc::new(Failure::new(FailureKind::Connect, "refused")),
            retry_after: None,
            retries: RetryPolicy {
                retry_jitter: 0,
                ..RetryPolicy::default()
            },
            now,
        }
    }

    fn failed(health: &mut OriginHealth, leased: &LeasedEntry, now: Time) -> Incident {
        health.blame_origin(&refused(leased, now), PATIENCE)
    }

    #[test]
    fn the_waits_between_probes_double_and_a_last_probe_comes_at_the_limit() {
        let mut health = OriginHealth::default();
        assert_eq!(failed(&mut health, &leased(at(0), false), at(0)), Incident::Begun);
        let mut probes = Vec::new();
        loop {
            let next = health.outage.as_ref().unwrap().next;
            probes.push(next.since(at(0)).as_secs());
            match failed(&mut health, &leased(next, true), next) {
                Incident::Known => {}
                Incident::TooLong => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(probes, [1, 3, 7, 15, 31, 63, 123, 183, 243, 300]);
    }

    #[test]
    fn failures_of_requests_in_flight_when_an_outage_began_change_nothing() {
        let mut health = OriginHealth::default();
        failed(&mut health, &leased(at(0), false), at(5));
        for _ in 0..100 {
            assert_eq!(failed(&mut health, &leased(at(1), false), at(400)), Incident::Known);
        }
        assert_eq!(
            health.note_answer(at(4), false, true, at(6)),
            None,
            "an answer from before"
        );
        assert_eq!(
            health.note_answer(at(6), false, true, at(7)),
            Some(Duration::from_secs(2))
        );
        assert_eq!(
            failed(&mut health, &leased(at(4), false), at(9)),
            Incident::Known,
            "it belongs to what is over"
        );
        assert_eq!(failed(&mut health, &leased(at(8), false), at(9)), Incident::Begun);
    }

    #[test]
    fn several_silent_pages_or_all_attempts_of_one_start_an_outage() {
        let silent = |health: &mut OriginHealth, page, attempts, time| {
            let mut leased = leased(at(time), false);
            Arc::make_mut(&mut leased.entry).attempts = attempts;
            health.page_was_silent(page, &refused(&leased, at(time)), PATIENCE)
        };
        let mut health = OriginHealth::default();
        for page in 0..2 {
            assert_eq!(silent(&mut health, page, 1, page), Incident::None);
        }
        health.note_answer(at(4), false, true, at(4));
        for page in 0..2 {
            assert_eq!(silent(&mut health, page, 1, page + 5), Incident::None);
            assert_eq!(silent(&mut health, page, 1, page + 5), Incident::None, "the same page");
        }
        assert_eq!(silent(&mut health, 9, 1, 9), Incident::Begun);

        let mut alone = OriginHealth::default();
        let incidents = [1, 2, 3].map(|attempts| silent(&mut alone, 1, attempts, 0));
        assert_eq!(incidents, [Incident::None, Incident::None, Incident::Begun]);
    }

    #[test]
    fn an_answer_to_robots_txt_alone_does_not_end_an_outage() {
        let mut health = OriginHealth::default();
        let mut now = at(0);
        let mut incidents = 0;
        while failed(&mut health, &leased(now, false), now) == Incident::Begun {
            incidents += 1;
            now = health.outage.as_ref().unwrap().next;
            assert!(health.note_answer(now, true, false, now).is_some());
        }
        assert_eq!((incidents, now.since(at(0)).as_secs()), (10, 300));

        health.note_answer(now, false, true, now);
        health.outage = None;
        assert_eq!(failed(&mut health, &leased(now, false), now), Incident::Begun);
        assert_eq!(health.outage.unwrap().since, now, "a page was answered in between");
    }
}
