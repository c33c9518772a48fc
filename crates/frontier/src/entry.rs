//! The entries of a host's queue.

use std::sync::Arc;

use crate::class::Class;
use crate::link::{Link, OwnData, PreviousFetch};
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey, Origin};

/// What an entry is fetched for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Purpose {
    /// A page. It passed the seen-set and counts against the budgets.
    Page,
    /// The IP address of a host. With [`per_address`](crate::PolitenessConfig::per_address) it is looked up before any request to the
    /// host. A look-up is no request to the host and spends no delay.
    Address,
    /// The robots.txt of an origin. It bypasses the seen-set and the budgets, but not politeness.
    Robots(Origin),
    /// A sitemap of an origin, which may be on another host. It bypasses the seen-set and the page budgets, but neither robots.txt
    /// nor politeness.
    Sitemap(Origin),
}

/// One thing to fetch, with everything that the queues know about it. It owns its strings.
// A new field is packed in `hosts/packed_entries/record.rs` (its flags, writer and reader), unless it changes while it waits. One that comes from a
// link is in `StoredLink` of `state/call.rs`, too; one that a later fetch needs in `stored_page.rs`. Then the version in
// `sqlite/format.rs` goes up.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The host in whose queue it waits. Politeness counts for this host.
    pub queue: HostKey,
    /// The URL to request.
    pub url: Box<str>,
    /// The key that it is deduplicated on; `None` if that is the URL itself.
    pub key: Option<Box<str>>,
    /// The earliest time at which it may be leased.
    pub due: Time,
    /// The number of links on the first path found from a seed; 0 for a seed. For a sitemap, the number of sitemap indexes above it.
    pub depth: u32,
    /// Redirects followed since the link.
    pub hops: u8,
    /// Attempts so far. Failures that were not its fault are not counted.
    pub attempts: u32,
    /// How often it was queued again without counting an attempt: throttled, its origin was away, or a limit of this machine. It is given up
    /// at [`max_throttles`](crate::RetryPolicy::max_throttles).
    pub deferrals: u32,
    /// Whether it was postponed, that is, waited behind everything else of the crawl, because of too many near-duplicates.
    pub postponed: bool,
    /// What comes first.
    pub class: Class,
    /// What it is fetched for.
    pub purpose: Purpose,
    /// The number of its row in the table of pages; 0 before its first end.
    pub(crate) page: u64,
    /// Where it was found.
    pub metadata: Metadata,
}

/// Where an entry was found. All links of one page share the strings.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Metadata {
    /// The page that links to it.
    pub referrer: Option<Arc<str>>,
    /// The URL that was linked to, if redirects led from there to this one.
    pub redirected_from: Option<Arc<str>>,
    /// Whether it is a seed, or the target of a redirected seed.
    pub seed: bool,
    /// Steps in a row that load it as a part of another resource; 0 for a page.
    pub embedded: u8,
    /// When it last changed, according to the sitemap that lists it.
    pub lastmod: Option<Time>,
    /// What a previous crawl stored about it.
    pub previous: Option<Arc<PreviousFetch>>,
    /// The [data](Link::data) of its link.
    pub data: Option<OwnData>,
}

impl Entry {
    /// About how many bytes its strings take in memory, with those that it shares with few others.
    pub(crate) const BYTES_OF_TEXTS: usize = 200;

    /// Creates the entry of a link. The frontier creates its own; this one is for tests of code that takes entries.
    pub fn of(link: &Link) -> Self {
        let url: Box<str> = link.url.url().as_str().into();
        let purpose = link.sitemap_of.clone().map_or(Purpose::Page, Purpose::Sitemap);
        let key = link.url.key();
        Self {
            key: (*key != *url).then(|| key.into()),
            depth: link.depth,
            hops: link.hops,
            class: link.class.unwrap_or_default(),
            metadata: Metadata {
                referrer: link.referrer.clone(),
                redirected_from: link.redirected_from.clone(),
                seed: link.seed,
                embedded: link.embedded,
                lastmod: link.lastmod,
                previous: link.previous.clone(),
                data: link.data.clone(),
            },
            ..Self::new(link.url.host(), url, purpose)
        }
    }

    pub(crate) fn new(queue: HostKey, url: Box<str>, purpose: Purpose) -> Self {
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
            class: Class::default(),
            purpose,
            page: 0,
            metadata: Metadata::default(),
        }
    }

    pub(crate) fn was_asked_for(&self) -> bool {
        self.attempts > 0 || self.deferrals > 0
    }

    /// Returns whether it is a page that was fetched in this crawl before, and is fetched again.
    pub fn is_refresh(&self) -> bool {
        self.metadata
            .previous
            .as_ref()
            .is_some_and(|previous| previous.is_of_this_crawl)
    }

    /// Whether it is a page that has ended before, and whose time has come, or will.
    pub(crate) fn is_revisit(&self) -> bool {
        self.due > Time::EPOCH && self.page > 0
    }

    /// Whether it is a robots.txt that a redirect has led to another origin than the one that waits for it.
    pub(crate) fn is_robots_elsewhere(&self) -> bool {
        matches!(&self.purpose, Purpose::Robots(origin) if origin_text(&self.url) != origin.as_str())
    }

    pub(crate) fn has_validators(&self) -> bool {
        let previous = self.metadata.previous.as_ref();
        previous.is_some_and(|previous| !previous.validators.is_empty())
    }

    /// Returns path and query, which the rules of robots.txt match.
    pub(crate) fn path(&self) -> &str {
        path_of(&self.url)
    }

    /// Creates the links to URLs found on the page of this entry, one level deeper. They share one copy of its URL.
    pub fn links(&self, targets: impl IntoIterator<Item = CanonicalUrl>) -> Vec<Link> {
        let referrer = (*self.url).into();
        targets.into_iter().map(|target| self.link(target, &referrer)).collect()
    }

    /// As [`links`](Self::links), each with the data of this entry.
    pub fn links_with_data(&self, targets: impl IntoIterator<Item = CanonicalUrl>) -> Vec<Link> {
        let mut links = self.links(targets);
        for link in &mut links {
            link.data.clone_from(&self.metadata.data);
        }
        links
    }

    /// Creates the link to a URL found on the page of this entry, one level deeper. `referrer` is the URL of the entry; all links
    /// of a page can share one copy, as those of [`links`](Self::links) do.
    pub fn link(&self, target: CanonicalUrl, referrer: &Arc<str>) -> Link {
        Link::found(target, self.depth.saturating_add(1), Arc::clone(referrer))
    }

    /// Creates the link to the target of a redirect of this entry: the same depth, one more hop.
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
            has_new_cookies: false,
            referrer: self.metadata.referrer.clone(),
            redirected_from: Some(from),
            seed: self.metadata.seed,
            embedded: self.metadata.embedded,
            lastmod: self.metadata.lastmod,
            // The validators belong to the first URL.
            previous: None,
            sitemap_of: match &self.purpose {
                Purpose::Sitemap(origin) => Some(origin.clone()),
                Purpose::Page | Purpose::Robots(_) | Purpose::Address => None,
            },
            data: self.metadata.data.clone(),
            class: Some(self.class).filter(|class| *class != Class::default()),
        }
    }

    /// Returns the target of a redirect that is fetched even if it was seen: it gets new cookies, or is another spelling of the same key,
    /// such as from `/%7Eann` to `/~ann`. The server distinguishes the two, so the page is at the second.
    ///
    /// The limit of hops bounds how often they alternate.
    pub(crate) fn target_past_seen<'l>(&self, targets: &'l [Link]) -> Option<&'l Link> {
        let [target] = targets else { return None };
        let is_other_spelling = || target.url.key() == self.key() && target.url.url().as_str() != &*self.url;
        (target.has_new_cookies || is_other_spelling()).then_some(target)
    }

    /// Returns the URL with its key, parsed, as [`Frontier::why`](crate::Frontier::why) and readers of pages take it; `None` if the entry was changed, and its URL is
    /// none. Cost: the URL is parsed.
    pub fn canonical_url(&self) -> Option<CanonicalUrl> {
        Some(CanonicalUrl::new(url::Url::parse(&self.url).ok()?, self.key.clone()))
    }

    /// Returns the key that the entry is deduplicated on.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.url)
    }
}

impl AsRef<[u8]> for Entry {
    fn as_ref(&self) -> &[u8] {
        self.key().as_bytes()
    }
}

/// Everything before the path.
pub(crate) fn origin_text(url: &str) -> &str {
    let (scheme, rest) = split_scheme(url);
    let authority = rest.bytes().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = authority.unwrap_or(rest.len());
    &url[..scheme.len() + authority]
}

/// Splits a URL behind `://`. Each page needs its origin several times, and a search for a text takes longer than all the rest of that.
pub(crate) fn split_scheme(url: &str) -> (&str, &str) {
    let known = ["http://", "https://"]
        .into_iter()
        .find(|scheme| url.starts_with(scheme));
    let length = known.map_or_else(|| url.find("://").map_or(0, |at| at + 3), str::len);
    url.split_at(length)
}

pub(crate) fn path_of(url: &str) -> &str {
    let path = url.get(origin_text(url).len()..).unwrap_or_default();
    path.split_once('#').map_or(path, |(path, _)| path)
}
