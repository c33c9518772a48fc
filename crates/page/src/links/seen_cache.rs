//! A cache of links that the frontier has seen, by their spelling.
//!
//! Most links of a site were seen before: half of those in the Python manual, nine of ten in Rust's. Mostly they have
//! the same spelling on every page of a directory. Offering such a link again changes nothing, so it is left out before
//! it is even resolved.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::Encoding;
use siphasher::sip::SipHasher13;
use url::{Position, Url};

/// Number of slots, which take 1 MiB.
const SLOTS: usize = 1 << 16;

/// The key of a link: keyed hashes of its spelling and of its URL. The spelling is the text of the link together with
/// the directory of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkKey {
    pub(super) spelling: u64,
    pub(super) target: u64,
}

/// The directory that relative links start from, and the encoding of the page: cached links depend on nothing else of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directory<'c> {
    cache: &'c SeenLinkCache,
    /// Has taken in both, as whole words: so it hashes a text at once.
    hasher: SipHasher13,
}

/// The links of a crawl that the frontier has seen.
///
/// Every link maps to one slot, which a later link overwrites. So memory is bounded, and a forgotten link costs only
/// time. Hashes have random keys, so that no page can make up links that collide.
///
/// Many threads may read, but only one may write. With two writers a slot could hold the spelling of one link and the
/// target of another.
#[derive(Debug)]
pub struct SeenLinkCache {
    hasher: SipHasher13,
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    spelling: AtomicU64,
    target: AtomicU64,
}

/// Hashes a text at once, in two thirds of the time of the standard library's.
pub(super) fn random_hasher() -> SipHasher13 {
    let random = RandomState::new();
    SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1))
}

impl Default for SeenLinkCache {
    fn default() -> Self {
        Self {
            hasher: random_hasher(),
            // Writing the slots now maps their memory once. Zeroed memory that is read before it is written is mapped
            // twice.
            slots: (0..SLOTS).map(|_| black_box(Slot::default())).collect(),
        }
    }
}

impl SeenLinkCache {
    /// `None` for a base such as `mailto:`.
    pub(super) fn directory(&self, base: &Url, encoding: &'static Encoding) -> Option<Directory<'_>> {
        let (directory, _) = base[..Position::AfterPath].rsplit_once('/')?;
        if base.cannot_be_a_base() {
            return None;
        }
        let mut hasher = self.hasher;
        for part in [directory, encoding.name()] {
            hasher.write_u64(self.hasher.hash(part.as_bytes()));
        }
        Some(Directory { cache: self, hasher })
    }

    /// So that a page hashes its URLs as the cache does.
    pub(super) fn hasher(&self) -> SipHasher13 {
        self.hasher
    }

    /// Stores a link that the frontier has seen. It overwrites the previous link in its slot.
    pub fn remember(&self, link: LinkKey) {
        let slot = self.slot(link.spelling);
        slot.spelling.store(0, Ordering::Release);
        slot.target.store(link.target, Ordering::Release);
        slot.spelling.store(link.spelling, Ordering::Release);
    }

    fn slot(&self, spelling: u64) -> &Slot {
        // All bits are equally random, so the low ones will do.
        &self.slots[spelling as usize & (self.slots.len() - 1)]
    }
}

impl Directory<'_> {
    /// Returns the spelling hash of a link, which is never 0, if it starts with a path or is an absolute URL. Other links depend on more
    /// than the directory.
    pub(super) fn spelling(&self, href: &str) -> Option<u64> {
        let first = href.bytes().next()?;
        let starts_path = first.is_ascii_alphanumeric() || matches!(first, b'/' | b'.' | b'_' | b'-' | b'~' | b'%');
        // `http:?q` means the page itself with that query, though it looks absolute.
        let marker = href.bytes().position(|byte| matches!(byte, b':' | b'/' | b'?'));
        let after_marker = marker.and_then(|at| href.get(at..)).unwrap_or_default();
        let is_whole = !after_marker.starts_with(':') || after_marker.starts_with("://");
        (starts_path && is_whole).then(|| self.hasher.hash(href.as_bytes()).max(1))
    }

    pub(super) fn find(&self, spelling: u64) -> Option<u64> {
        let slot = self.cache.slot(spelling);
        let is_stored = || slot.spelling.load(Ordering::Acquire) == spelling;
        // The spelling is zero while the slot is written. If it is the same before and after, the target belongs to it.
        let target = is_stored().then(|| slot.target.load(Ordering::Acquire))?;
        is_stored().then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spelling_depends_on_a_random_key_the_directory_and_the_encoding() {
        let [one, other] = [SeenLinkCache::default(), SeenLinkCache::default()];
        let spelling = |known: &SeenLinkCache, base: &str, encoding| {
            let directory = known.directory(&Url::parse(base).unwrap(), encoding).unwrap();
            directory.spelling("page?ä").unwrap()
        };
        let base = "http://site.example/a/b";
        let first = spelling(&one, base, encoding_rs::UTF_8);
        assert_eq!(spelling(&one, "http://site.example/a/c", encoding_rs::UTF_8), first);
        assert_ne!(spelling(&other, base, encoding_rs::UTF_8), first);
        assert_ne!(spelling(&one, "http://site.example/b/b", encoding_rs::UTF_8), first);
        assert_ne!(spelling(&one, base, encoding_rs::WINDOWS_1252), first);
    }
}
