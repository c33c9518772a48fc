//! Whether a page repeats others, and what the frontier makes of it.
//!
//! Where nobody wants to see the fingerprints, one of [`ONE_OF`] pages gets one, which stands for as many, until its site is
//! suspect: then all do. A fingerprint costs a third to a half of finding the links of a page.

use std::hash::{BuildHasher, RandomState};

use frontier::{Entry, FrontierError, Outcome, Purpose, Repeat, Settlement};
use sieve::Filter;

use crate::engine::Crawl;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::settling::Aftermath;

/// How many pages there are for each that is compared, on a site that is not suspect.
const ONE_OF: u32 = 32;

/// Draws the pages that are compared. No site can know which they are.
#[derive(Debug, Default)]
pub(crate) struct Draw(RandomState);

impl Draw {
    fn takes(&self, url: &str) -> bool {
        self.0.hash_one(url).is_multiple_of(u64::from(ONE_OF))
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Says whether a page is to be compared with others.
    pub(crate) fn wants_fingerprint(&self, entry: &Entry) -> bool {
        let options = self.options();
        entry.purpose == Purpose::Page
            && (options.fingerprints
                || options.frontier.max_near_duplicates.is_some()
                    && (self.draw.takes(&entry.url) || self.frontier().is_suspect(&entry.queue)))
    }

    /// How many pages of its site each that is compared stands for.
    fn stands_for(&self, entry: &Entry) -> u32 {
        if self.options().fingerprints || self.frontier().is_suspect(&entry.queue) {
            1
        } else {
            ONE_OF
        }
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Compares a page with those before it, marks its record, and tells the frontier before the page is settled.
    pub(crate) fn compare(&mut self, settlement: &Settlement, aftermath: &mut Aftermath) -> Result<(), FrontierError> {
        let Some((record, fingerprint)) = aftermath.page().filter(|_| settlement.outcome == Outcome::Done) else {
            return Ok(());
        };
        let resemblance = self.duplicates.place(&record.url, fingerprint);
        record.duplicate_of = resemblance.duplicate_of.as_deref().map(str::to_owned);
        record.near_duplicate_of = resemblance.near_duplicate_of.as_deref().map(str::to_owned);
        let (Some(cluster), Some(first)) = (resemblance.cluster, resemblance.near_duplicate_of) else {
            return Ok(());
        };
        let stands_for = self.stands_for(aftermath.entry());
        if let Repeat::PrefixClosed(prefix) =
            self.frontier_mut()
                .near_duplicate(settlement.lease, cluster, stands_for)?
        {
            self.tell(&Event::PrefixClosed {
                prefix: &prefix,
                repeated: &first,
            });
        }
        Ok(())
    }
}
