//! What became of a page: one row for each that has ended, for people and tools, and for what is fetched again. Nothing else is decided by it.

use std::sync::Arc;
use std::time::Duration;

use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::entry::Entry;
use crate::failure::FailureKind;
use crate::fingerprint::Fingerprint;
use crate::freshness::Observed;
use crate::lease::{Dropped, NotFetched};
use crate::link::{OwnData, Validators};
use crate::settlement::{Outcome, Settlement};
use crate::time::Time;

/// What became of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredPage {
    /// The row of the journal that it was saved with.
    pub(crate) saved_in: u64,
    /// The URL that was requested, or dropped.
    pub url: Box<str>,
    /// The key that it is deduplicated on; `None` if that is the URL itself.
    pub key: Option<Box<str>>,
    /// How its last fetch ended.
    pub end: PageEnd,
    /// When that was settled or dropped.
    pub time: Time,
    /// The number of links on the first path from a seed; 0 for a seed.
    pub depth: u32,
    /// What comes first: the class that it waited in.
    pub class: Class,
    /// Requests of its last fetch that counted as attempts.
    pub attempts: u32,
    /// The page with the first link to it; `None` for a seed.
    pub referrer: Option<Arc<str>>,
    /// Steps in a row that load it as a part of another resource; 0 for a page.
    pub embedded: u8,
    /// The [data](crate::Link::data) of its first link.
    pub data: Option<OwnData>,
    /// The failure for which its origin was given up, if the page left the queue for it.
    pub cause: Option<FailureKind>,
    /// The last answer. One that failed replaces none that did not.
    pub answer: StoredAnswer,
    /// The fetches that did not fail.
    pub visits: Visits,
    /// When it is visited next; `None` if it never is, or [pages are not kept fresh](crate::FreshnessConfig::keeps_fresh).
    pub next_visit: Option<Time>,
    /// What the caller has planned for it.
    pub own_plan: Option<OwnPlan>,
    /// What its visits saw; `None` as above.
    pub(crate) observed: Option<Observed>,
}

/// When a page is visited again by a plan of the caller's, in place of the [policy](crate::FreshnessConfig): politeness and the share of revisits hold,
/// [`min_age`](crate::FreshnessConfig::min_age) does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OwnPlan {
    /// Once, at this time; then by the policy.
    At(Time),
    /// Each time so long after it has ended.
    Every(Duration),
}

impl OwnPlan {
    /// The milliseconds of the time, or less than 0 those between.
    pub(crate) fn to_number(self) -> i64 {
        match self {
            Self::At(time) => i64::try_from(time.as_millis()).unwrap_or(i64::MAX),
            Self::Every(every) => -i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1),
        }
    }

    pub(crate) fn of_number(number: i64) -> Self {
        match number < 0 {
            true => Self::Every(Duration::from_millis(number.unsigned_abs())),
            false => Self::At(Time::from_millis(number.unsigned_abs())),
        }
    }
}

/// What a page answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredAnswer {
    /// The HTTP status, if the settlement [named it](Settlement::with_status). 304 leaves that of the version that has not changed.
    pub status: Option<u16>,
    /// Where it redirects to.
    pub target: Option<Box<str>>,
    /// The validators of this version, if the settlement [named them](Settlement::with_version).
    pub validators: Validators,
    /// The hashes of this version, if the settlement named them.
    pub fingerprint: Fingerprint,
}

/// When and how often a page was fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Visits {
    /// How many there were.
    pub count: u32,
    /// How many of them found another status, target or content than the one before.
    pub changes: u32,
    /// The time of the first.
    pub first: Option<Time>,
    /// The time of the last.
    pub last: Option<Time>,
    /// The time of the last that found a change.
    pub last_change: Option<Time>,
}

/// How a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PageEnd {
    /// It was fetched.
    Done,
    /// It answered with a redirect.
    Redirected,
    /// Its answer is final and no page: HTTP 4xx.
    Rejected,
    /// It failed in all its attempts. The kind of the last failure.
    GaveUp(FailureKind),
    /// It left the queue without a request.
    NotFetched(NotFetched),
}

impl PageEnd {
    /// Returns whether the page has no answer, or no whole one, and another request may have one.
    pub fn is_unanswered(self) -> bool {
        match self {
            Self::Done | Self::Redirected | Self::Rejected => false,
            Self::GaveUp(kind) => !matches!(
                kind,
                FailureKind::Status | FailureKind::Redirect | FailureKind::AddressForbidden
            ),
            Self::NotFetched(why) => matches!(why, NotFetched::HostDown | NotFetched::RobotsUnreachable),
        }
    }

    /// Returns its name, and the name of the reason if it has one, each as one word in snake case, for counters and files.
    pub fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Done => ("done", None),
            Self::Redirected => ("redirected", None),
            Self::Rejected => ("rejected", None),
            Self::GaveUp(kind) => ("gave_up", Some(kind.name())),
            Self::NotFetched(why) => ("not_fetched", Some(why.name())),
        }
    }

    pub(crate) fn of_names(end: &str, reason: Option<&str>) -> Option<Self> {
        match (end, reason) {
            ("gave_up", Some(kind)) => named(kind).map(Self::GaveUp),
            ("not_fetched", Some(why)) => named(why).map(Self::NotFetched),
            _ => named(end),
        }
    }

    pub(crate) fn has_answer(self) -> bool {
        matches!(self, Self::Done | Self::Redirected | Self::Rejected)
    }

    /// Whether it failed, and another request may have an answer; `None` if it did not fail.
    pub(crate) fn failed_unanswered(self) -> Option<bool> {
        (!matches!(self, Self::Done | Self::Redirected)).then(|| self.is_unanswered())
    }
}

/// The value that has this name in snake case.
pub(crate) fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Option<T> {
    let name: StrDeserializer<'de, Error> = name.into_deserializer();
    T::deserialize(name).ok()
}

impl StoredPage {
    fn new(entry: &Entry, end: PageEnd, time: Time) -> Self {
        Self {
            saved_in: 0,
            url: entry.url.clone(),
            key: entry.key.clone(),
            end,
            time,
            depth: entry.depth,
            class: entry.class,
            attempts: entry.attempts,
            referrer: entry.metadata.referrer.clone(),
            embedded: entry.metadata.embedded,
            data: entry.metadata.data.clone(),
            cause: None,
            answer: StoredAnswer::default(),
            visits: Visits::default(),
            next_visit: None,
            observed: None,
            own_plan: None,
        }
    }

    pub(crate) fn dropped(dropped: &Dropped, now: Time) -> Self {
        let cause = dropped.cause.as_ref().filter(|_| dropped.why == NotFetched::HostDown);
        Self {
            cause: cause.map(|cause| cause.kind),
            ..Self::new(&dropped.entry, PageEnd::NotFetched(dropped.why), now)
        }
    }

    /// The end of a page whose settlement is its last.
    pub(crate) fn settled(entry: &Entry, settlement: &Settlement, now: Time) -> Self {
        let (mut target, mut visits) = (None, Visits::default());
        let end = match &settlement.outcome {
            Outcome::Done => PageEnd::Done,
            Outcome::Redirected => PageEnd::Redirected,
            Outcome::Rejected => PageEnd::Rejected,
            Outcome::NotFetched(why) => PageEnd::NotFetched(*why),
            Outcome::Failed { failure, .. } => PageEnd::GaveUp(failure.kind),
        };
        if let (PageEnd::Redirected, [link]) = (end, &*settlement.links) {
            target = Some(link.url.url().as_str().into());
        }
        if end.has_answer() {
            visits.add(now, false);
        }
        Self {
            answer: StoredAnswer {
                status: settlement.status,
                target,
                validators: settlement.validators.clone(),
                fingerprint: Fingerprint {
                    content: settlement.content,
                    // Of the same version: that may be selected values alone.
                    text: settlement
                        .fingerprint
                        .filter(|fingerprint| fingerprint.content == settlement.content)
                        .and_then(|fingerprint| fingerprint.text),
                },
            },
            visits,
            ..Self::new(entry, end, now)
        }
    }

    /// The row after another end: the last answer stays until there is another one. `leads_on` says whether it has links to new URLs.
    pub(crate) fn after(mut self, earlier: Self, leads_on: bool) -> Self {
        self.own_plan = earlier.own_plan;
        if !self.end.has_answer() && earlier.was_fetched() {
            (self.answer, self.visits, self.observed) = (earlier.answer, earlier.visits, earlier.observed);
        } else if self.end.has_answer() {
            if self.answer.status == Some(304) && earlier.was_fetched() {
                let validators = std::mem::take(&mut self.answer.validators);
                self.answer = StoredAnswer {
                    validators,
                    ..earlier.answer.clone()
                };
            }
            let (new, old) = (&mut self.answer.fingerprint, earlier.answer.fingerprint);
            // Only if both are known.
            let is_same = new.content.zip(old.content).map(|(new, old)| new == old);
            let is_same_text = new.text.zip(old.text).map(|(new, old)| new == old).or(is_same);
            new.text = new.text.or(old.text.filter(|_| is_same == Some(true)));
            let head = |answer: &StoredAnswer| (answer.status, answer.target.clone());
            let has_other_head = head(&self.answer) != head(&earlier.answer);
            let is_changed = has_other_head || is_same == Some(false);
            self.observed = earlier.visits.last.map(|last| {
                let seen = earlier.observed.unwrap_or_default();
                let is_other = has_other_head || leads_on || is_same_text == Some(false);
                seen.with(self.time.since(last), is_other)
            });
            self.visits = earlier.visits;
            self.visits.add(self.time, is_changed && earlier.was_fetched());
        }
        self
    }

    /// The same, with a visit at a time.
    pub(crate) fn planned_for(mut self, time: Time) -> Self {
        self.next_visit = Some(time);
        self
    }

    /// Returns whether it was ever fetched: what has failed until now was not.
    pub fn was_fetched(&self) -> bool {
        self.visits.count > 0
    }

    /// Returns the key that it is deduplicated on.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.url)
    }
}

impl Visits {
    fn add(&mut self, time: Time, is_changed: bool) {
        self.count += 1;
        self.changes += u32::from(is_changed);
        self.first.get_or_insert(time);
        self.last = Some(time);
        self.last_change = if is_changed { Some(time) } else { self.last_change };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_its_words_were_written() {
        let kinds = [
            FailureKind::AddressForbidden,
            FailureKind::Unresolved,
            FailureKind::Connect,
            FailureKind::Tls,
            FailureKind::Timeout,
            FailureKind::HeadTooLarge,
            FailureKind::Broken,
            FailureKind::Incomplete,
            FailureKind::Status,
            FailureKind::Throttled,
            FailureKind::OutOfHandles,
            FailureKind::Redirect,
            FailureKind::HostDown,
            FailureKind::Panic,
            FailureKind::Other,
            FailureKind::Malformed,
        ];
        let reasons = [
            NotFetched::RobotsForbid,
            NotFetched::RobotsUnreachable,
            NotFetched::AddressForbidden,
            NotFetched::NearDuplicates,
            NotFetched::HostBudget,
            NotFetched::HostDown,
        ];
        let ends = [PageEnd::Done, PageEnd::Redirected, PageEnd::Rejected].into_iter();
        let ends = ends
            .chain(kinds.map(PageEnd::GaveUp))
            .chain(reasons.map(PageEnd::NotFetched));
        for end in ends {
            let (word, reason) = end.names();
            assert_eq!(PageEnd::of_names(word, reason), Some(end));
        }
        assert_eq!(PageEnd::of_names("gave_up", None), None);
    }
}
