//! Links that need not be offered again, known by how they are written.
//!
//! Most links of a site lead to what was met before (half of them in the Python manual, nine of ten in Rust's), mostly in the
//! same words on every page of a directory. Once the frontier has such a link among what it has seen, there is nothing
//! more that it could say, so that the link need not even be made a URL.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use encoding_rs::Encoding;
use url::{Position, Url};

/// How many are remembered at first, and at the most: 64 KiB and 1 MiB.
const FIRST_PLACES: usize = 1 << 12;
const MOST_PLACES: usize = 1 << 16;

/// How a link is written on the pages of one directory, and what it leads to, as keyed hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkKey {
    /// 0 for a link that is not remembered.
    pub(super) words: u64,
    pub(super) target: u64,
}

impl LinkKey {
    /// That of a link which is not remembered.
    pub(crate) const NONE: Self = Self { words: 0, target: 0 };
}

/// Where relative links start from: nothing else of a page's URL counts for those that are remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directory(u64);

/// For tables of what is a keyed hash already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hashed(u64);

impl BuildHasher for Hashed {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self::default()
    }
}

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The links of a crawl that the frontier has seen.
///
/// Every link has one place, which it shares with others: the last one stays. So it has a bound, and what it forgets
/// costs time only. Its hashes are those of the standard library's SipHash under a random key: no page can make up a
/// link that is taken for another.
///
/// Any thread reads; only one writes, or a target might be told of another link, and a page's links counted wrongly.
#[derive(Debug)]
pub(crate) struct SeenLinkCache {
    key: RandomState,
    places: Box<[Place]>,
    /// How many of them hold a link.
    taken: AtomicUsize,
}

#[derive(Debug, Default)]
struct Place {
    words: AtomicU64,
    target: AtomicU64,
}

impl Default for SeenLinkCache {
    fn default() -> Self {
        Self::with_places(FIRST_PLACES, RandomState::new())
    }
}

impl SeenLinkCache {
    fn with_places(count: usize, key: RandomState) -> Self {
        Self {
            key,
            // Written, not just set aside as zeros: what is read before it is written is mapped twice.
            places: (0..count).map(|_| black_box(Place::default())).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// The same links with more places, once half of the places are taken and there may be more. Its keys are the same, so that
    /// whoever still reads the old ones gives link_keys that it understands.
    pub(crate) fn grown(&self) -> Option<Self> {
        let count = self.places.len();
        if count == MOST_PLACES || self.taken.load(Ordering::Relaxed) <= count / 2 {
            return None;
        }
        let grown = Self::with_places(4 * count, self.key.clone());
        for place in &self.places {
            let words = place.words.load(Ordering::Acquire);
            if words != 0 {
                let target = place.target.load(Ordering::Acquire);
                grown.remember(LinkKey { words, target });
            }
        }
        Some(grown)
    }

    /// The directory that links on this base start from; none for a base that has none.
    pub(super) fn directory(&self, base: &Url, encoding: &'static Encoding) -> Option<Directory> {
        let (directory, _) = base[..Position::AfterPath].rsplit_once('/')?;
        (!base.cannot_be_a_base()).then(|| Directory(self.key.hash_one((directory, encoding.name()))))
    }

    /// The words of a link, if it starts with a path or with a whole URL: others depend on more than the directory.
    pub(super) fn words(&self, directory: Directory, href: &str) -> Option<u64> {
        let first = href.bytes().next()?;
        let starts_path = first.is_ascii_alphanumeric() || matches!(first, b'/' | b'.' | b'_' | b'-' | b'~' | b'%');
        // `http:?q` is the page itself with that query, though it starts like a URL of its own.
        let (_, behind) = href.split_at(href.find([':', '/', '?']).unwrap_or(href.len()));
        let is_whole = !behind.starts_with(':') || behind.starts_with("://");
        (starts_path && is_whole).then(|| self.key.hash_one((directory.0, href)).max(1))
    }

    /// What a link in these words leads to, if it is known.
    pub(super) fn target(&self, words: u64) -> Option<u64> {
        let place = self.place(words);
        let is_there = || place.words.load(Ordering::Acquire) == words;
        // While a place is written it holds no words: those before and behind belong to the target between them.
        let target = is_there().then(|| place.target.load(Ordering::Acquire))?;
        is_there().then_some(target)
    }

    /// The URL as it is remembered.
    pub(super) fn target_of(&self, url: &Url) -> u64 {
        self.key.hash_one(url.as_str())
    }

    /// Remembers a link that the frontier has seen, and forgets what was at its place.
    pub(crate) fn remember(&self, link: LinkKey) {
        if link == LinkKey::NONE {
            return;
        }
        let place = self.place(link.words);
        if place.words.swap(0, Ordering::Release) == 0 {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        place.target.store(link.target, Ordering::Release);
        place.words.store(link.words, Ordering::Release);
    }

    fn place(&self, words: u64) -> &Place {
        // The low bits are as good as any others.
        &self.places[words as usize & (self.places.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_stays_known_when_there_are_more_places_for_it() {
        let base = Url::parse("http://site.example/a/").unwrap();
        let mut known = SeenLinkCache::default();
        let directory = known.directory(&base, encoding_rs::UTF_8).unwrap();
        let hrefs: Vec<String> = (0..13_000).map(|n| format!("page-{n}")).collect();
        let mut sizes = vec![known.places.len()];
        for href in &hrefs {
            let url = base.join(href).unwrap();
            let words = known.words(directory, href).unwrap();
            let target = known.target_of(&url);
            known.remember(LinkKey { words, target });
            if let Some(grown) = known.grown() {
                sizes.push(grown.places.len());
                known = grown;
            }
        }
        assert_eq!(sizes, [FIRST_PLACES, 4 * FIRST_PLACES, MOST_PLACES]);
        let is_known = |href: &&String| {
            let target = known.target_of(&base.join(href).unwrap());
            known.words(directory, href).and_then(|words| known.target(words)) == Some(target)
        };
        let found = hrefs.iter().filter(is_known).count();
        // A table is left when half of its places are taken, so that 8192 links come from the one before: after 12 150 pages, as
        // 1 - exp(-n/m) of m places are taken by n links. Of the 850 that follow, a hundred take the place of another.
        assert!((8_500..9_400).contains(&found), "{found} are still known");
        assert_eq!(known.grown().map(|grown| grown.places.len()), None);
    }
}
