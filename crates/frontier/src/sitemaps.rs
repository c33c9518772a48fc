//! Which sitemaps were asked for, and what became of the links to them.

use std::collections::HashSet;

use crate::report::LinkCounts;
use crate::scope::Refusal;
use crate::settlement::Verdict;

/// The seen-set of sitemaps: few enough to be remembered exactly.
///
/// Memory: at most as many keys as there may be sitemaps, each at most as long as a URL may be.
#[derive(Debug)]
pub(crate) struct Sitemaps {
    most: usize,
    seen: HashSet<Box<str>>,
    /// Those of them that are what they were taken for: no pages.
    read: HashSet<Box<str>>,
    pub(crate) counts: LinkCounts,
}

impl Sitemaps {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            seen: HashSet::new(),
            read: HashSet::new(),
            counts: LinkCounts::default(),
        }
    }

    /// Takes note that one was read.
    pub(crate) fn was_read(&mut self, key: &str) {
        self.read.insert(key.into());
    }

    /// Says whether a URL was read as a sitemap, so that it need not be asked for as a page.
    pub(crate) fn has_read(&self, key: &str) -> bool {
        !self.read.is_empty() && self.read.contains(key)
    }

    /// Takes note of a sitemap, unless it is known or one too many.
    pub(crate) fn insert(&mut self, key: &str) -> Verdict {
        if self.seen.contains(key) {
            return Verdict::Seen;
        }
        if self.seen.len() >= self.most {
            return Verdict::Refused(Refusal::TooManySitemaps);
        }
        self.seen.insert(key.into());
        Verdict::Queued
    }
}
