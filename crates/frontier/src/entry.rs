//! What waits in a host's queue.

use std::sync::Arc;

use crate::link::{Link, PreviousFetch};
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey, Origin};

/// What an entry is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A page: it went through the filter and counts against the budgets.
    Page,
    /// The IP address of a host, which is to be looked up before anything else where requests count by address as well. This
    /// is no request to the host: it spends no delay.
    Address,
    /// The robots.txt of an origin: it passes the filter and the budgets by, but not politeness.
    Robots(Origin),
    /// A sitemap of an origin, wherever it lies: it passes the filter and the page budgets by, but neither robots.txt nor
    /// politeness.
    Sitemap(Origin),
}

/// One thing to fetch: all that host queues and stores know of it. It owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The host whose queue it waits in, and whom we owe politeness for it.
    pub queue: HostKey,
    /// What is asked for.
    pub url: Box<str>,
    /// What it is deduplicated on, when that is not the URL itself.
    pub key: Option<Box<str>>,
    /// Not to be handed out before.
    pub due: Time,
    /// The number of links of the first path found from a seed; 0 for a seed. Of a sitemap: how many sitemap indexes lead to it.
    pub depth: u32,
    /// Redirects taken since the link was followed.
    pub hops: u8,
    /// How often it was handed out already; times that were not its fault are not counted.
    pub attempts: u32,
    /// How often it came back without an attempt being counted: throttled, while its origin was away, or for a reason of our own.
    pub deferrals: u32,
    /// Whether it has waited behind everything else of the crawl, because of too many near-duplicates.
    pub postponed: bool,
    /// What it is asked for.
    pub purpose: Purpose,
    /// Where it came from.
    pub metadata: Metadata,
}

/// Where an entry came from. The strings are shared by all links of one page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// The page that linked to it.
    pub referrer: Option<Arc<str>>,
    /// The URL that was linked to, when redirects led from there to here.
    pub redirected_from: Option<Arc<str>>,
    /// The user named it, or it is what a URL of the user's redirects to.
    pub seed: bool,
    /// Steps in a row that load it as a part of what came before; 0 for a page.
    pub embedded: u8,
    /// When it last changed, by the word of the sitemap that named it.
    pub lastmod: Option<Time>,
    /// What is known of it from an earlier crawl.
    pub previous: Option<Arc<PreviousFetch>>,
}

impl Entry {
    /// Makes the entry of a link. The frontier makes its own; this one is for tests of what takes entries.
    pub fn of(link: &Link) -> Self {
        let url: Box<str> = link.url.url().as_str().into();
        let key = link.url.key();
        Self {
            queue: link.url.host(),
            key: (*key != *url).then(|| key.into()),
            url,
            due: Time::EPOCH,
            depth: link.depth,
            hops: link.hops,
            attempts: 0,
            deferrals: 0,
            postponed: false,
            purpose: link.sitemap_of.clone().map_or(Purpose::Page, Purpose::Sitemap),
            metadata: Metadata {
                referrer: link.referrer.clone(),
                redirected_from: link.redirected_from.clone(),
                seed: link.seed,
                embedded: link.embedded,
                lastmod: link.lastmod,
                previous: link.previous.clone(),
            },
        }
    }

    /// Makes the entry for what must be known before anything else of a place can be asked for.
    pub(crate) fn prerequisite(queue: HostKey, url: Box<str>, purpose: Purpose) -> Self {
        Self {
            queue,
            url,
            key: None,
            due: Time::EPOCH,
            depth: 0,
            hops: 0,
            attempts: 0,
            deferrals: 0,
            postponed: false,
            purpose,
            metadata: Metadata::default(),
        }
    }

    /// Says whether it was handed out before.
    pub(crate) fn was_asked_for(&self) -> bool {
        self.attempts > 0 || self.deferrals > 0
    }

    /// Returns what the rules of robots.txt are asked by: path and query.
    pub(crate) fn path(&self) -> &str {
        path_of(&self.url)
    }

    /// Makes the step to a URL found on the page of this entry: one link deeper. `referrer` is the URL of the entry; one copy
    /// serves all links of a page.
    pub fn link(&self, target: CanonicalUrl, referrer: &Arc<str>) -> Link {
        Link::found(target, self.depth.saturating_add(1), Arc::clone(referrer))
    }

    /// Makes the step to where this entry was redirected: at the same depth, one hop further.
    pub fn redirected(&self, target: CanonicalUrl) -> Link {
        let from = self
            .metadata
            .redirected_from
            .clone()
            .unwrap_or_else(|| (*self.url).into());
        Link {
            url: target,
            depth: self.depth,
            hops: self.hops.saturating_add(1),
            referrer: self.metadata.referrer.clone(),
            redirected_from: Some(from),
            seed: self.metadata.seed,
            embedded: self.metadata.embedded,
            lastmod: self.metadata.lastmod,
            // It is of what was at the first place.
            previous: None,
            sitemap_of: match &self.purpose {
                Purpose::Sitemap(origin) => Some(origin.clone()),
                Purpose::Page | Purpose::Robots(_) | Purpose::Address => None,
            },
        }
    }

    /// Returns the one target of a redirect that leads to another spelling of the same key, such as from `/%7Eann` to `/~ann`.
    ///
    /// The server has told the two apart, so the page is at the second; the number of hops bounds how often they alternate.
    pub(crate) fn same_key_target<'l>(&self, targets: &'l [Link]) -> Option<&'l Link> {
        let [target] = targets else { return None };
        let has_same_key = target.url.key() == self.key() && target.url.url().as_str() != &*self.url;
        has_same_key.then_some(target)
    }

    /// Returns what the entry is deduplicated on.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.url)
    }
}

impl AsRef<[u8]> for Entry {
    /// The bytes of the key, which is what the filter sees.
    fn as_ref(&self) -> &[u8] {
        self.key().as_bytes()
    }
}

/// The origin of a URL as the WHATWG serialises it: all before the path.
pub(crate) fn origin_text(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    &url[..end]
}

/// Path and query of a URL.
pub(crate) fn path_of(url: &str) -> &str {
    let path = url.get(origin_text(url).len()..).unwrap_or_default();
    path.split_once('#').map_or(path, |(path, _)| path)
}
