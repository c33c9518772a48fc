//! The links of one page: each once, and within limits.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1 as _, RawEntryMut};
use siphasher::sip::SipHasher13;
use url::Url;

use super::seen_cache::random_hasher;
use super::{FoundLink, LeftOut, LinkKey, LinkOptions, LinkSource, SeenLinkCache};

/// Maximum average length of the links, in bytes, for a page with `max_links` links.
///
/// Without it, a base of 16 kB and ten thousand short links would turn a page of 150 kB into 160 MB of links.
pub(super) const MEAN_LINK_BYTES: usize = 1024;

/// Room that is set aside for the places of links.
const USUAL_LINKS: usize = 56;

type Places = IndexMap<u64, Option<usize>>;

pub(super) struct LinkList {
    max_links: usize,
    /// In document order, without those that the cache of seen links has.
    links: Vec<FoundLink>,
    /// Of all links, by keyed hashes of their URLs: those of the cache, if there is one. `None` for those that the cache has.
    places: Places,
    hasher: SipHasher13,
    /// Links that cannot be crawled.
    uncrawlable: HashSet<String>,
    /// How many bytes further links may take.
    bytes_left: usize,
    pub(super) left_out: LeftOut,
}

/// The keys are hashes already.
fn place_of(places: &mut Places, target: u64) -> RawEntryMut<'_, u64, Option<usize>, RandomState> {
    places.raw_entry_mut_v1().from_hash(target, |known| *known == target)
}

impl LinkList {
    pub(super) fn new(options: &LinkOptions) -> Self {
        let cache = options.known.as_deref();
        Self {
            max_links: options.max_links,
            links: Vec::new(),
            places: IndexMap::with_capacity(USUAL_LINKS.min(options.max_links)),
            hasher: cache.map_or_else(random_hasher, SeenLinkCache::hasher),
            uncrawlable: HashSet::new(),
            bytes_left: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            left_out: LeftOut::default(),
        }
    }

    pub(super) fn finish(self) -> (Vec<FoundLink>, LeftOut) {
        let left_out = LeftOut {
            known: self.places.len() - self.links.len(),
            ..self.left_out
        };
        (self.links, left_out)
    }

    /// Counts a link as dropped. False, as each method here returns for such a link.
    pub(super) fn drop_one(&mut self) -> bool {
        self.left_out.dropped += 1;
        false
    }

    /// Leaves out a link that the cache has, which is asked for links that are followed.
    pub(super) fn add_known(&mut self, target: u64) -> bool {
        let is_full = self.places.len() >= self.max_links;
        match place_of(&mut self.places, target) {
            RawEntryMut::Occupied(place) => {
                // It may be there with another spelling.
                if let Some(link) = place.get().and_then(|at| self.links.get_mut(at)) {
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
        let target = self.hasher.hash(url.as_str().as_bytes());
        let has_room = self.places.len() < self.max_links && self.bytes_left >= url.as_str().len();
        match place_of(&mut self.places, target) {
            RawEntryMut::Occupied(place) => {
                // The cache may have it with another spelling.
                if let Some(link) = place.get().and_then(|at| self.links.get_mut(at)) {
                    link.nofollow &= nofollow;
                    link.embedded |= source.is_asset();
                }
            }
            RawEntryMut::Vacant(new) if has_room => {
                self.bytes_left -= url.as_str().len();
                new.insert_hashed_nocheck(target, target, Some(self.links.len()));
                self.links.push(FoundLink {
                    url,
                    source,
                    nofollow,
                    embedded: source.is_asset(),
                    key: spelling.map(|spelling| LinkKey { spelling, target }),
                });
            }
            RawEntryMut::Vacant(_) => return self.drop_one(),
        }
        true
    }
}
