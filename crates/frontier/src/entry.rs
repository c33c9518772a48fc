//! What waits in a host's queue.

use std::sync::Arc;

use crate::link::{Earlier, Link};
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
pub struct Entry {
    /// The host whose queue it waits in, and whom we owe politeness for it.
    pub queue: HostKey,
    /// What is asked for.
    pub url: Box<str>,
    /// What it is deduplicated on, when that is not the URL itself.
    pub key: Option<Box<str>>,
    /// Not to be handed out before.
    pub due: Time,
    /// The length of the first path that was found to it, in links; 0 for a seed. Of a sitemap: how many sitemap indexes lead
    /// to it.
    pub depth: u32,
    /// Redirects taken since the link was followed.
    pub hops: u8,
    /// How often it was handed out already.
    pub attempts: u32,
    /// How often it came back without an attempt being counted: throttled, or for a reason of our own.
    pub put_off: u32,
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
    pub earlier: Option<Arc<Earlier>>,
}

impl Entry {
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
            earlier: None,
            sitemap_of: match &self.purpose {
                Purpose::Sitemap(origin) => Some(origin.clone()),
                Purpose::Page | Purpose::Robots(_) | Purpose::Address => None,
            },
        }
    }

    /// Returns the one target of a redirect that leads to another spelling of the same key, such as from `/%7Eann` to `/~ann`.
    ///
    /// The server has told the two apart, so the page is at the second; the number of hops bounds how often they alternate.
    pub(crate) fn respelled_by<'l>(&self, targets: &'l [Link]) -> Option<&'l Link> {
        let [target] = targets else { return None };
        let is_respelled = target.url.key() == self.key() && target.url.url().as_str() != &*self.url;
        is_respelled.then_some(target)
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
