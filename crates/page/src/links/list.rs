//! The links of one page: each once, and within limits.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1 as _, RawEntryMut};
use url::Url;

use super::{FoundLink, LeftOut, LinkKey, LinkOptions, LinkSource, SeenLinkCache};

/// Maximum average length of the links, in bytes, for a page with `max_links` links.
///
/// Without it, a base of 16 kB and ten thousand short links would turn a page of 150 kB into 160 MB of links.
pub(super) const MEAN_LINK_BYTES: usize = 1024;

type Links = IndexMap<u64, Option<FoundLink>>;

pub(super) struct LinkList {
    max_links: usize,
    /// In document order, by keyed hashes of their URLs: those of the cache of seen links, if there is one. `None` for those that the
    /// cache has.
    links: Links,
    hasher: RandomState,
    /// Links that cannot be crawled.
    uncrawlable: HashSet<String>,
    /// How many bytes further links may take.
    bytes_left: usize,
    pub(super) left_out: LeftOut,
}

/// The keys are hashes already.
fn place_of(links: &mut Links, target: u64) -> RawEntryMut<'_, u64, Option<FoundLink>, RandomState> {
    links.raw_entry_mut_v1().from_hash(target, |known| *known == target)
}

impl LinkList {
    pub(super) fn new(options: &LinkOptions) -> Self {
        let cache = options.known.as_deref();
        Self {
            max_links: options.max_links,
            links: IndexMap::new(),
            hasher: cache.map_or_else(RandomState::new, SeenLinkCache::hasher),
            uncrawlable: HashSet::new(),
            bytes_left: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            left_out: LeftOut::default(),
        }
    }

    pub(super) fn finish(self) -> (Vec<FoundLink>, LeftOut) {
        let all = self.links.len();
        let links: Vec<_> = self.links.into_values().flatten().collect();
        let left_out = LeftOut {
            known: all - links.len(),
            ..self.left_out
        };
        (links, left_out)
    }

    /// Counts a link as dropped. False, as each method here returns for such a link.
    pub(super) fn drop_one(&mut self) -> bool {
        self.left_out.dropped += 1;
        false
    }

    /// Leaves out a link that the cache has.
    pub(super) fn add_known(&mut self, target: u64) -> bool {
        let is_full = self.links.len() >= self.max_links;
        match place_of(&mut self.links, target) {
            RawEntryMut::Occupied(mut link) => {
                // It may be there with another spelling.
                if let Some(link) = link.get_mut() {
                    link.nofollow = false;
                }
            }
            RawEntryMut::Vacant(_) if is_full => return self.drop_one(),
            RawEntryMut::Vacant(new) => _ = new.insert_hashed_nocheck(target, target, None),
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
        let has_room = self.links.len() < self.max_links && self.bytes_left >= url.as_str().len();
        match place_of(&mut self.links, target) {
            RawEntryMut::Occupied(mut link) => {
                // The cache may have it with another spelling.
                if let Some(link) = link.get_mut() {
                    link.nofollow &= nofollow;
                    link.embedded |= source.is_asset();
                }
            }
            RawEntryMut::Vacant(new) if has_room => {
                self.bytes_left -= url.as_str().len();
                let link = FoundLink {
                    url,
                    source,
                    nofollow,
                    embedded: source.is_asset(),
                    key: spelling.map(|spelling| LinkKey { spelling, target }),
                };
                new.insert_hashed_nocheck(target, target, Some(link));
            }
            RawEntryMut::Vacant(_) => return self.drop_one(),
        }
        true
    }
}
