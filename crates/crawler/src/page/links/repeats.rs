//! A small cache of links that a page repeats with the same spelling.

/// Minimum and maximum number of slots, both powers of two.
const SLOTS: std::ops::RangeInclusive<usize> = 64..=4096;

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
    /// Makes an empty cache for a page of this length.
    pub(super) fn new(length: usize) -> Self {
        let slots = (length / BYTES_PER_SLOT).next_power_of_two();
        Self {
            slots: vec![0; slots.clamp(*SLOTS.start(), *SLOTS.end())],
        }
    }

    /// Returns whether this link is the last one in its slot.
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
        // In a product, the highest bits are mixed best.
        (hash >> (u64::BITS - self.slots.len().ilog2())) as usize
    }

    /// Returns a fast hash of a text and its kind.
    pub(super) fn hash(text: &str, kind: u64) -> u64 {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let bytes = text.as_bytes();
        // The last eight bytes, some of them a second time: without a loop, whose length the processor could not predict.
        let last = match bytes.last_chunk() {
            Some(last) => word(last),
            None => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        let (chunks, _) = bytes.as_chunks();
        // No text has the zero of an empty slot.
        let start = mix(kind + 1, bytes.len() as u64);
        chunks.iter().map(word).fold(mix(start, last), mix)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn links_that_differ_in_one_byte_are_spread_over_the_slots() {
        for slots in [64, 4096] {
            let repeats = RepeatedLinks::new(slots * BYTES_PER_SLOT);
            assert_eq!(repeats.slots.len(), slots);
            for length in 1..40 {
                for place in 0..length {
                    let of = |letter| format!("{}{letter}{}", "x".repeat(place), "y".repeat(length - place - 1));
                    let hashes = ('a'..='z').map(|letter| RepeatedLinks::hash(&of(letter), 0));
                    let places: HashSet<usize> = hashes.map(|hash| repeats.slot(hash)).collect();
                    // At random, 26 links have 21 of 64 slots.
                    assert!(places.len() > 7, "{} of {slots}, {place} of {length}", places.len());
                }
            }
        }
    }
}
