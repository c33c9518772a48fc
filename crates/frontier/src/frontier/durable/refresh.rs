//! Refreshing: pages whose record is old become due again, in the order of their records.
//!
//! Records lie in the order of time, and each fetch of a page adds one. So one place in them is enough to know which pages were queued
//! again: what lies before it was, and what lies behind it will be when it is old enough. The place belongs to the state of the frontier,
//! and moves in the same call that queues the pages.

use std::time::Duration;

use url::Url;

use super::super::{Frontier, FrontierError};
use super::record::{self, PageEnd, PageRecord};
use crate::link::{Link, PreviousFetch};
use crate::settlement::Verdict;
use crate::store::{MAX_KEY, Space, StoreError};
use crate::time::Time;
use crate::url::CanonicalUrl;

/// What a call of [`Frontier::refresh`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Refreshed {
    /// Pages that were queued again.
    pub queued: u64,
    /// Pages that were not: out of the scope now, or their origin was given up.
    pub refused: u64,
    /// When the next page comes of age, or the present time if there are more pages that have; `None` if no page is left that will.
    pub next: Option<Time>,
}

/// The next row of records.
enum Next {
    /// It is old, and these of its pages are fetched again.
    Old(u64, Vec<Link>),
    /// It is of this time.
    Young(Time),
    End,
}

impl Frontier {
    /// Queues pages again whose last fetch is older than an age, the oldest first, until there are `up_to` or a few more. It goes past the
    /// seen-set, as a retry does. The entries have the [version](crate::Settlement::with_version) of that fetch, for conditional requests.
    ///
    /// Pages that were fetched, redirected, rejected or failed are queued. Those that left the queue without a request are not. A page
    /// that is queued again spends no budget of pages, and is not compared with others.
    ///
    /// It looks only at fetches that are [persisted](Self::persist), and at each once, whatever happens between two calls. While the
    /// queue is [full](crate::FrontierConfig::max_queued), it does nothing. In memory, it does nothing either. Cost: it reads the records
    /// that have come of age since the last call.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if records cannot be read. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn refresh(&mut self, age: Duration, up_to: usize, now: Time) -> Result<Refreshed, FrontierError> {
        let age_millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let until = Time::from_millis(now.as_millis().saturating_sub(age_millis));
        let room = self.sieve.queue().room();
        let up_to = up_to.min(usize::try_from(room).unwrap_or(usize::MAX));
        let (mut links, mut row) = (Vec::new(), self.refreshed_row);
        let next = loop {
            if links.len() >= up_to {
                break Some(now);
            }
            match self.next_records(row, until)? {
                Next::Old(at, old) => {
                    row = at;
                    links.extend(old);
                }
                Next::Young(time) => break Some(time + age),
                Next::End => break None,
            }
        };
        let mut refreshed = Refreshed {
            next,
            ..Refreshed::default()
        };
        if row > self.refreshed_row {
            let verdicts = self.queue_again_until(&links, row, now)?;
            let queued = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued);
            refreshed.queued = queued.count() as u64;
            refreshed.refused = verdicts.len() as u64 - refreshed.queued;
        }
        Ok(refreshed)
    }

    /// Reads the first row of records behind another one.
    fn next_records(&self, before: u64, until: Time) -> Result<Next, FrontierError> {
        let Some(durable) = &self.durable else {
            return Ok(Next::End);
        };
        let mut found = None;
        let end = durable
            .store
            .lock()
            .range(Space::Record, before.saturating_add(1)..=MAX_KEY, &mut |row, bytes| {
                let (mut links, mut latest) = (Vec::new(), Time::EPOCH);
                let read = record::visit_row(&bytes, &mut |record| {
                    latest = latest.max(record.time);
                    links.extend(link_of(&record));
                });
                found = Some(read.map(|()| match latest <= until {
                    true => Next::Old(row, links),
                    false => Next::Young(latest),
                }));
                // One is enough.
                Err(StoreError::Failed)
            });
        match (found, end) {
            (Some(Ok(next)), _) => Ok(next),
            (Some(Err(error)), _) => Err(FrontierError::not_saved(&format!("records cannot be read: {error}"))),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(())) => Ok(Next::End),
        }
    }
}

/// Returns the link to fetch a page again; `None` if it is not fetched again.
fn link_of(record: &PageRecord<'_>) -> Option<Link> {
    if record.is_superseded || matches!(record.end, PageEnd::NotFetched(_)) {
        return None;
    }
    let url = Url::parse(&record.url).ok()?;
    let previous = PreviousFetch {
        validators: record.validators.clone(),
        content: record.content,
        is_of_this_crawl: true,
        ..PreviousFetch::default()
    };
    let url = CanonicalUrl::new(url, record.key.as_deref().map(Into::into));
    Some(Link {
        referrer: record.referrer.as_deref().map(Into::into),
        depth: record.depth,
        embedded: record.embedded,
        seed: record.referrer.is_none() && record.depth == 0,
        previous: Some(previous.into()),
        ..Link::seed(url)
    })
}
