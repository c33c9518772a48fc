//! The sitemaps that were queued, and the counts of links to sitemaps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::link::Link;
use crate::report::LinkCounts;
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin, stored_url};

/// A `lastmod` may have the day alone.
const LASTMOD: Duration = Duration::from_secs(24 * 3600);

/// The seen-set of sitemaps. It is exact, as there are few.
///
/// Memory: at most [`max_sitemaps`](crate::LimitConfig::max_sitemaps) keys, each at most as long as a URL.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sitemaps {
    seen: HashMap<Box<str>, Seen>,
    /// Those that were fetched and are sitemaps.
    read: HashSet<Box<str>>,
    pub(crate) counts: LinkCounts,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Seen {
    /// When it was queued, or its last request ended.
    at: Time,
    is_waiting: bool,
    /// If it is read again, and no sitemap lists it.
    root: Option<Box<Root>>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Root {
    #[serde(with = "stored_url")]
    url: CanonicalUrl,
    of: Origin,
    referrer: Option<Arc<str>>,
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

    /// Notes that a sitemap waits no more.
    pub(crate) fn ended(&mut self, key: &str, now: Time) {
        if let Some(seen) = self.seen.get_mut(key) {
            (seen.at, seen.is_waiting) = (now, false);
        }
    }

    /// Counts a sitemap as queued, if it was not, or ended so long ago, unless its `lastmod` is older than that.
    pub(crate) fn insert(&mut self, link: &Link, most: usize, again_after: Option<Duration>, now: Time) -> Verdict {
        let key = link.url.key();
        // One that another lists was read later than that.
        let again_after = again_after.map(|after| if link.depth == 0 { after } else { after / 2 });
        let is_due = |seen: &Seen, after| {
            !seen.is_waiting && now >= seen.at + after && link.lastmod.is_none_or(|lastmod| lastmod + LASTMOD > seen.at)
        };
        match self.seen.get(key) {
            Some(seen) if !again_after.is_some_and(|after| is_due(seen, after)) => return Verdict::Seen,
            None if self.seen.len() >= most => return Verdict::Refused(Refusal::TooManySitemaps),
            _ => {}
        }
        let of = link
            .sitemap_of
            .clone()
            .filter(|_| again_after.is_some() && link.depth == 0);
        let root = of.map(|of| {
            let (url, referrer) = (link.url.clone(), link.referrer.clone());
            Box::new(Root { url, of, referrer })
        });
        let earlier = self.seen.remove(key).and_then(|seen| seen.root);
        let seen = Seen {
            at: now,
            is_waiting: true,
            root: root.or(earlier),
        };
        self.seen.insert(key.into(), seen);
        Verdict::Queued
    }

    /// Those that no sitemap lists and that ended so long ago.
    pub(crate) fn due(&self, after: Duration, now: Time) -> Vec<Link> {
        let due = self
            .seen
            .values()
            .filter(|seen| !seen.is_waiting && now >= seen.at + after);
        let roots = due.filter_map(|seen| seen.root.as_ref());
        let link = |root: &Root| Link::sitemap(root.url.clone(), root.of.clone(), 0, root.referrer.clone());
        let mut due: Vec<_> = roots.map(|root| link(root)).collect();
        due.sort_unstable_by(|one, other| one.url.key().cmp(other.url.key()));
        due
    }

    /// Forgets those that ended before a time.
    pub(crate) fn forget(&mut self, before: Time) {
        self.seen.retain(|_, seen| seen.is_waiting || seen.at >= before);
        self.read.retain(|key| self.seen.contains_key(key));
    }
}
