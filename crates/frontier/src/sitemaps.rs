//! The sitemaps that were queued, and the counts of links to sitemaps.

use std::collections::HashSet;

use crate::report::LinkCounts;
use crate::scope::Refusal;
use crate::settlement::Verdict;

/// The seen-set of sitemaps. It is exact, as there are few.
///
/// Memory: at most [`max_sitemaps`](crate::LimitConfig::max_sitemaps) keys, each at most as long as a URL.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sitemaps {
    seen: HashSet<Box<str>>,
    /// Those that were fetched and are sitemaps.
    read: HashSet<Box<str>>,
    pub(crate) counts: LinkCounts,
}

impl Sitemaps {
    /// Records that a sitemap was read.
    pub(crate) fn was_read(&mut self, key: &str) {
        self.read.insert(key.into());
    }

    /// Returns whether a URL was read as a sitemap. Then it is not fetched as a page.
    pub(crate) fn has_read(&self, key: &str) -> bool {
        !self.read.is_empty() && self.read.contains(key)
    }

    pub(crate) fn insert(&mut self, key: &str, most: usize) -> Verdict {
        if self.seen.contains(key) {
            return Verdict::Seen;
        }
        if self.seen.len() >= most {
            return Verdict::Refused(Refusal::TooManySitemaps);
        }
        self.seen.insert(key.into());
        Verdict::Queued
    }
}
