//! A small cache of links that a page repeats with the same spelling.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Minimum and maximum number of slots, both powers of two.
const SLOTS: std::ops::RangeInclusive<usize> = 64..=4096;

/// An empty slot. With zeros, an allocator may hand out memory that the system has yet to map, which takes longer than filling it.
const EMPTY: u64 = u64::MAX;

/// Bytes of a page per slot. Even on pages full of links, two links are further apart.
const BYTES_PER_SLOT: usize = 64;

/// Remembers some links of a page by hashes of their texts, so that repeated ones need not be resolved again.
///
/// Every link maps to one slot, which a later link overwrites. So the cache never grows, and a forgotten link costs
/// only time. Whoever makes links collide on purpose hides links of the own page.
pub(super) struct RepeatedLinks {
    slots: Vec<u64>,
}

impl RepeatedLinks {
    pub(super) fn new(length: usize) -> Self {
        let slots = (length / BYTES_PER_SLOT).next_power_of_two();
        Self {
            slots: vec![EMPTY; slots.clamp(*SLOTS.start(), *SLOTS.end())],
        }
    }

    pub(super) fn is_known(&self, hash: u64) -> bool {
        self.slots.get(self.slot(hash)) == Some(&hash)
    }

    /// Stores a link in its slot, and forgets the previous one there.
    pub(super) fn remember(&mut self, hash: u64) {
        let slot = self.slot(hash);
        if let Some(kept) = self.slots.get_mut(slot) {
            *kept = hash;
        }
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    pub(super) fn hash(text: &str, kind: u64) -> u64 {
        xxh3_64_with_seed(text.as_bytes(), kind).min(EMPTY - 1)
    }
}
