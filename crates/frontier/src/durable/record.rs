//! Records: what became of each page, in order, for people and tools. The frontier itself reads them only for what to fetch again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::appended::append;
use crate::entry::{Entry, Purpose};
use crate::error::{FrontierError, OpenError};
use crate::failure::FailureKind;
use crate::fingerprint::ContentHash;
use crate::lease::{Dropped, NotFetched};
use crate::link::{Link, PreviousFetch, Validators};
use crate::settlement::{Fate, Outcome, Settled, Settlement, Verdict};
use crate::state::LastEnd;
use crate::store::{MAX_KEY, Space, Store};
use crate::time::Time;
use crate::url::CanonicalUrl;

/// What became of one page. `Directory::read_records` visits all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredPage {
    /// The URL that was requested, or dropped.
    pub url: Box<str>,
    /// The key that it is deduplicated on; `None` if that is the URL itself.
    pub key: Option<Box<str>>,
    /// How it ended.
    pub end: PageEnd,
    /// The HTTP status of the last answer, if the settlement [named it](Settlement::with_status).
    pub status: Option<u16>,
    /// When it was settled or dropped.
    pub time: Time,
    /// The number of links on the first path from a seed; 0 for a seed.
    pub depth: u32,
    /// Requests that counted as attempts.
    pub attempts: u32,
    /// The page with the first link to it; `None` for a seed.
    pub referrer: Option<Arc<str>>,
    /// Steps in a row that load it as a part of another resource; 0 for a page.
    pub embedded: u8,
    /// The failure of its origin, or of the robots.txt, if the page left the queue for it.
    pub cause: Option<FailureKind>,
    /// Whether the page was fetched before in this crawl, and this was a refresh.
    pub is_refresh: bool,
    /// The validators of the last version that was fetched, if the settlement [named them](Settlement::with_version).
    pub validators: Validators,
    /// The hash of its bytes, if the settlement named it.
    pub content: Option<ContentHash>,
    /// Whether another record follows of the same page: it redirected to itself, or to another spelling of its URL.
    pub is_superseded: bool,
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

    fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Redirected | Self::Rejected)
    }

    /// `None` if there is none.
    fn last_end(self) -> Option<LastEnd> {
        match self {
            Self::Done | Self::Redirected | Self::Rejected => Some(LastEnd::Answered),
            Self::GaveUp(_) => Some(LastEnd::GaveUp),
            Self::NotFetched(why) => self.is_unanswered().then_some(LastEnd::NotFetched(why)),
        }
    }
}

impl StoredPage {
    fn new(entry: &Entry, end: PageEnd, time: Time) -> Self {
        let earlier = entry.metadata.previous.as_deref().filter(|_| entry.is_refresh());
        Self {
            url: entry.url.clone(),
            key: entry.key.clone(),
            end,
            status: None,
            time,
            depth: entry.depth,
            attempts: entry.attempts,
            referrer: entry.metadata.referrer.clone(),
            embedded: entry.metadata.embedded,
            cause: None,
            is_refresh: entry.is_refresh(),
            validators: earlier.map_or_else(Validators::default, |earlier| earlier.validators.clone()),
            content: earlier.and_then(|earlier| earlier.content),
            is_superseded: false,
        }
    }

    pub(super) fn dropped(dropped: &Dropped, now: Time) -> Self {
        Self {
            cause: dropped.cause.as_ref().map(|cause| cause.kind),
            ..Self::new(&dropped.entry, PageEnd::NotFetched(dropped.why), now)
        }
    }

    /// `None` if it is queued again, or no page.
    pub(crate) fn settled(entry: &Entry, settlement: &Settlement, settled: &Settled, now: Time) -> Option<Self> {
        if entry.purpose != Purpose::Page {
            return None;
        }
        let end = match (settled.fate, &settlement.outcome) {
            (Fate::Requeued { .. } | Fate::Stale, _) => return None,
            (_, Outcome::Done) => PageEnd::Done,
            (_, Outcome::Redirected) => PageEnd::Redirected,
            (_, Outcome::Rejected) => PageEnd::Rejected,
            (_, Outcome::NotFetched(why)) => PageEnd::NotFetched(*why),
            (_, Outcome::Failed { failure, .. }) => PageEnd::GaveUp(failure.kind),
        };
        let past_seen = entry.target_past_seen(&settlement.links);
        let leads_to_itself =
            end == PageEnd::Redirected && past_seen.is_some_and(|target| target.url.key() == entry.key());
        let record = Self {
            status: settlement.status,
            is_superseded: leads_to_itself && settled.verdicts == [Verdict::Queued],
            ..Self::new(entry, end, now)
        };
        if !end.is_final() {
            return Some(record);
        }
        Some(Self {
            validators: settlement.validators.clone(),
            content: settlement.content,
            ..record
        })
    }

    /// Returns the link to fetch the page again, and how its last fetch has ended; `None` if it has not met its end yet, or no other fetch
    /// would end otherwise.
    pub(super) fn again(&self) -> Option<(Link, LastEnd)> {
        let last = self.end.last_end().filter(|_| !self.is_superseded)?;
        let url = Url::parse(&self.url).ok()?;
        // What has failed until now counts as never fetched.
        let was_fetched = self.is_refresh || self.end.is_final();
        let previous = was_fetched.then(|| {
            Arc::new(PreviousFetch {
                validators: self.validators.clone(),
                content: self.content,
                is_of_this_crawl: true,
                ..PreviousFetch::default()
            })
        });
        let url = CanonicalUrl::new(url, self.key.clone());
        let link = Link {
            referrer: self.referrer.clone(),
            depth: self.depth,
            embedded: self.embedded,
            seed: self.referrer.is_none() && self.depth == 0,
            previous,
            ..Link::seed(url)
        };
        Some((link, last))
    }
}

pub(crate) fn add(records: &mut Vec<u8>, record: &StoredPage) -> Result<(), FrontierError> {
    append(record, records).map_err(FrontierError::not_saved)
}

/// Visits the records of a row.
pub(crate) fn visit_row(mut row: &[u8], visit: &mut dyn FnMut(StoredPage)) -> Result<(), postcard::Error> {
    while !row.is_empty() {
        let (record, after) = postcard::take_from_bytes(row)?;
        visit(record);
        row = after;
    }
    Ok(())
}

/// Visits all records of a store.
pub(crate) fn visit(store: &dyn Store, visit: &mut dyn FnMut(StoredPage)) -> Result<(), OpenError> {
    let mut damaged = None;
    store.range(Space::Record, 0..=MAX_KEY, &mut |row, bytes| {
        if damaged.is_none() {
            let visited = visit_row(&bytes, visit);
            damaged = visited.err().map(|error| format!("record row {row}: {error}"));
        }
        Ok(())
    })?;
    damaged.map_or(Ok(()), |what| Err(OpenError::Damaged(what)))
}
