//! Outages: whether an origin is away, and when it is probed.
//!
//! An outage begins at the first failure that counts against the origin ([`Blame::Origin`](crate::failure::Blame)), or after some silent pages,
//! of which it is not sure until a probe fails. It ends when a request that started later is answered. One probe is in flight at a time. All
//! other failures in the meantime belong to the same incident, and change nothing. It is reported that the origin is away when that is
//! sure, and that it is back when a page is answered. `incidents.rs` has what follows for the entries. With another decision, `LOGIC` of
//! `durable/checkpoint.rs` goes up.

use std::sync::Arc;
use std::time::Duration;

use super::failed::Failed;
use super::jitter::{jitter_thousandths, with_jitter};
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
    /// When the request started whose answer has ended the last silence. Failures of earlier ones belong to that.
    heard: Time,
    /// Throttling answers in a row.
    pub(crate) throttles: u32,
    /// The last outage, and when it ended. Failures of requests that started before that belong to it.
    last_outage: Option<(Outage, Time)>,
    /// Since when it is away, as was reported; `None` again when a page is answered, or it was well for long before another outage.
    pub(super) reported_away: Option<Time>,
    /// Whether an outage, this one or an earlier, was surely one: connections failed, or a probe, or a page was answered that was silent before. Of
    /// others it is not known whether some pages never answer.
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
    /// Failures after which a probe is due: the first, and each probe that failed.
    pub(crate) probes: u32,
    /// When the next probe is due.
    pub(crate) next: Time,
    /// A probe is in flight.
    pub(crate) is_probing: bool,
}

/// What a failure means for its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incident {
    /// The failure belongs to no outage: it counts against its page.
    None,
    /// The failure begins an outage, or belongs to one, also to one that is over.
    Outage,
    /// The outage has lasted too long.
    TooLong,
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

    pub(crate) fn end_outage(&mut self, now: Time) {
        self.last_outage = self
            .outage
            .take()
            .map(|outage| (outage, now))
            .or(self.last_outage.take());
    }

    /// When the last outage ended; the epoch if there was none.
    fn well_since(&self) -> Time {
        self.last_outage.as_ref().map_or(Time::EPOCH, |(_, ended)| *ended)
    }

    /// Records the answer to a page that failed before. If the origin was taken for away, it was.
    pub(crate) fn retry_answered(&mut self) {
        self.was_surely_away |= self.last_outage.is_some();
    }

    /// Records a failure that counts against the origin, which may be away for as long as `patience`.
    pub(crate) fn blame_origin(&mut self, failed: &Failed<'_>, patience: Duration) -> Incident {
        let is_new = self.outage.is_none();
        let (started, well_since) = (failed.leased.started, self.well_since());
        if is_new && started < well_since || !is_new && !failed.leased.is_probe {
            return Incident::Outage;
        }
        let is_soon = started.since(well_since) <= failed.retries.longest_probe_wait;
        self.reported_away.take_if(|_| is_new && !is_soon);
        // If no page was answered since the last one, the origin was not back: it continues. Otherwise an origin of which only robots.txt is answered
        // would begin anew each time, and never be given up.
        let continues = self.reported_away.is_some() && failed.cause.kind.blame() == Blame::Origin;
        let outage = self.outage.get_or_insert_with(|| {
            let last = self.last_outage.take_if(|_| continues);
            last.map_or_else(|| Outage::new(failed), |(last, _)| last)
        });
        outage.is_probing = false;
        outage.cause = Arc::clone(&failed.cause);
        if failed.now >= outage.since + patience && outage.probes > 0 {
            return Incident::TooLong;
        }
        outage.wait(failed, patience);
        self.was_surely_away |= outage.is_certain();
        Incident::Outage
    }

    /// Records a silent page: no answer, or only a part of it. `page` is the hash of its URL.
    pub(crate) fn page_was_silent(&mut self, page: u64, failed: &Failed<'_>, patience: Duration) -> Incident {
        if self.outage.is_some() || failed.leased.started < self.well_since() {
            return self.blame_origin(failed, patience);
        }
        if failed.leased.started < self.heard {
            return Incident::Outage;
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

    /// Records the answer to a request. Returns how long the origin was away, if that was reported, and a page was answered that was requested since.
    pub(crate) fn note_answer(&mut self, started: Time, is_probe: bool, is_page: bool, now: Time) -> Option<Duration> {
        if self.silences > 0 {
            self.heard = self.heard.max(started);
        }
        self.silent = Vec::new();
        self.silences = 0;
        // A late answer to a request from before the outage proves nothing.
        let is_over = |outage: &Outage| is_probe || started >= outage.since;
        if self.outage.as_ref().is_some_and(is_over) {
            self.end_outage(now);
        }
        // An answer to robots.txt says nothing of pages.
        if !is_page || self.outage.is_some() {
            return None;
        }
        self.trouble.take_if(|trouble| trouble.state == Health::Hanging);
        let told = self.reported_away.take_if(|told| started >= *told)?;
        Some(self.well_since().since(told))
    }
}

impl Outage {
    fn new(failed: &Failed<'_>) -> Self {
        Self {
            since: failed.now,
            cause: Arc::clone(&failed.cause),
            probes: 0,
            next: failed.now,
            is_probing: false,
        }
    }

    /// Whether it is not its pages alone that are silent.
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

    use super::super::LeasedEntry;
    use super::*;
    use crate::config::RetryPolicy;
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
        assert_eq!(failed(&mut health, &leased(at(0), false), at(0)), Incident::Outage);
        let mut probes = Vec::new();
        loop {
            let next = health.outage.as_ref().unwrap().next;
            probes.push(next.since(at(0)).as_secs());
            match failed(&mut health, &leased(next, true), next) {
                Incident::Outage => {}
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
        health.reported_away = Some(at(5));
        for _ in 0..100 {
            assert_eq!(failed(&mut health, &leased(at(1), false), at(400)), Incident::Outage);
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
            Incident::Outage,
            "it belongs to what is over"
        );
        assert!(health.outage.is_none());
        assert_eq!(failed(&mut health, &leased(at(8), false), at(9)), Incident::Outage);
        assert!(health.outage.is_some());
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
        assert_eq!(silent(&mut health, 9, 1, 9), Incident::Outage);

        let mut alone = OriginHealth::default();
        let incidents = [1, 2, 3].map(|attempts| silent(&mut alone, 1, attempts, 0));
        assert_eq!(incidents, [Incident::None, Incident::None, Incident::Outage]);
    }

    #[test]
    fn an_answer_to_robots_txt_alone_does_not_end_an_outage() {
        let mut health = OriginHealth::default();
        let mut now = at(0);
        let mut incidents = 0;
        while failed(&mut health, &leased(now, false), now) == Incident::Outage {
            incidents += 1;
            health.reported_away = Some(at(0));
            now = health.outage.as_ref().unwrap().next;
            assert_eq!(health.note_answer(now, true, false, now), None);
        }
        assert_eq!((incidents, now.since(at(0)).as_secs()), (10, 300));

        let away = health.note_answer(now, false, true, now);
        assert_eq!(away, Some(Duration::from_secs(300)), "a page is answered");
        assert_eq!(failed(&mut health, &leased(now, false), now), Incident::Outage);
        assert_eq!(health.outage.unwrap().since, now, "a page was answered in between");
    }
}
