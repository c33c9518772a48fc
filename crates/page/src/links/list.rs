//! The links of one page: each once, and within limits.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use indexmap::IndexMap;
use indexmap::map::Entry;
use url::Url;

use super::seen_cache::PassThroughHasher;
use super::{FoundLink, LeftOut, LinkKey, LinkOptions, LinkSource, SeenLinkCache};

/// Maximum average length of the links, in bytes, for a page with `max_links` links.
///
/// Without it, a base of 16 kB and ten thousand short links would turn a page of 150 kB into 160 MB of links.
pub(super) const MEAN_LINK_BYTES: usize = 1024;

pub(super) struct LinkList {
    max_links: usize,
    /// The links in document order, by keyed hashes of their URLs: those of the cache of seen links, if there is one.
    links: IndexMap<u64, FoundLink, PassThroughHasher>,
    hasher: RandomState,
    /// The URL hashes of this page's links that the cache has. None of these is in `links`.
    known: HashSet<u64, PassThroughHasher>,
    /// Links that cannot be crawled.
    uncrawlable: HashSet<String>,
    /// How many bytes further links may take.
    bytes_left: usize,
    pub(super) left_out: LeftOut,
}

impl LinkList {
    pub(super) fn new(options: &LinkOptions) -> Self {
        let cache = options.known.as_deref();
        Self {
            max_links: options.max_links,
            links: IndexMap::default(),
            hasher: cache.map_or_else(RandomState::new, SeenLinkCache::hasher),
            known: HashSet::default(),
            uncrawlable: HashSet::new(),
            bytes_left: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            left_out: LeftOut::default(),
        }
    }

    pub(super) fn finish(self) -> (Vec<FoundLink>, LeftOut) {
        let left_out = LeftOut {
            known: self.known.len(),
            ..self.left_out
        };
        (self.links.into_values().collect(), left_out)
    }

    fn is_full(&self) -> bool {
        self.links.len() + self.known.len() >= self.max_links
    }

    /// Counts a link as dropped. False, as each method here returns for such a link.
    pub(super) fn drop_one(&mut self) -> bool {
        self.left_out.dropped += 1;
        false
    }

    /// Leaves out a link that the cache has.
    pub(super) fn add_known(&mut self, target: u64) -> bool {
        if let Some(link) = self.links.get_mut(&target) {
            // It is there with another spelling.
            link.nofollow = false;
        } else if !self.known.contains(&target) {
            if self.is_full() {
                return self.drop_one();
            }
            self.known.insert(target);
        }
        true
    }

    pub(super) fn add_uncrawlable(&mut self, link: &str, kind: impl FnOnce(&mut LeftOut) -> &mut usize) -> bool {
        if self.uncrawlable.contains(link) {
            return true;
        }
        if self.uncrawlable.len() == self.max_links || self.bytes_left < link.len() {
            return self.drop_one();
        }
        self.bytes_left -= link.len();
        self.uncrawlable.insert(link.to_owned());
        *kind(&mut self.left_out) += 1;
        true
    }

    pub(super) fn add(&mut self, mut url: Url, source: LinkSource, nofollow: bool, spelling: Option<u64>) -> bool {
        if !matches!(url.scheme(), "http" | "https") {
            return self.add_uncrawlable(url.as_str(), |count| &mut count.other_scheme);
        }
        url.set_fragment(None);
        let target = self.hasher.hash_one(url.as_str());
        if self.known.contains(&target) {
            // The cache has it with another spelling.
            return true;
        }
        let has_room = !self.is_full() && self.bytes_left >= url.as_str().len();
        match self.links.entry(target) {
            Entry::Occupied(mut link) => {
                link.get_mut().nofollow &= nofollow;
                link.get_mut().embedded |= source.is_asset();
            }
            Entry::Vacant(new) if has_room => {
                self.bytes_left -= url.as_str().len();
                new.insert(FoundLink {
                    url,
                    source,
                    nofollow,
                    embedded: source.is_asset(),
                    key: spelling.map(|spelling| LinkKey { spelling, target }),
                });
            }
            Entry::Vacant(_) => return self.drop_one(),
        }
        true
    }
}
