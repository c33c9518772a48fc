//! The block layout: one cache line per key, with one or two bits in each of its words.
//!
//! The high bits of the digest's first half choose the block, and its lowest three bits the starting word. Both halves, mixed, choose
//! the positions: six bits for each of the first seven words, the rest for the last word, which has 63 positions. They are mixed
//! because they may depend on each other: for a short key whose length equals the seed, the halves of MurmurHash3 are 2x and 3x. With
//! the second half alone, the rate of such a filter was off by a seventh. [`crate::sizing`] derives the rate.

use crate::hash::{Digest, below, words as random_words};
use crate::memory::Block;
use crate::sizing::WORDS;

const fn window(hashes: u32) -> u32 {
    (1 << if hashes < 8 { hashes } else { 8 }) - 1
}

/// Returns the block of a key.
#[inline]
pub(crate) fn index(digest: Digest, blocks: u64) -> usize {
    below(digest.first, blocks) as usize
}

/// Returns the bits of a key in its block: `hashes` distinct ones.
#[inline]
pub(crate) fn masks(digest: Digest, hashes: u32) -> Block {
    let mut masks = one_in_each(mixed(digest));
    if hashes == 8 {
        return masks;
    }
    let start = (digest.first & 7) as u32;
    let words = turned(window(hashes), start);
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask *= u64::from(words >> word & 1);
    }
    if hashes > 8 {
        add_second_bits(&mut masks, digest, turned(window(hashes - 8), start));
    }
    masks
}

/// Mixes both halves: a multiplication by 2⁶⁴ divided by the golden ratio, with the high half folded into the low one.
#[inline]
pub(super) fn mixed(digest: Digest) -> u64 {
    let product = (digest.second ^ digest.first.rotate_left(41)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[inline]
fn one_in_each(random: u64) -> Block {
    let mut masks = [0; WORDS];
    for (word, mask) in masks.iter_mut().enumerate().take(WORDS - 1) {
        *mask = 1 << (random >> (6 * word) & 63);
    }
    masks[WORDS - 1] = 1 << in_last_word(random);
    masks
}

/// Returns the position in the last word, which has 63.
#[inline]
pub(super) fn in_last_word(random: u64) -> u64 {
    ((random >> 42) * 63) >> 22
}

/// Rotates a window of words so that it starts at `start`.
#[inline]
fn turned(window: u32, start: u32) -> u32 {
    let turned = window << start;
    turned | turned >> WORDS
}

fn add_second_bits(masks: &mut Block, digest: Digest, words: u32) {
    let mut next = random_words(digest);
    let more = [next(), next()];
    for (word, mask) in masks.iter_mut().enumerate() {
        if words >> word & 1 == 0 {
            continue;
        }
        let random = more[word / 4] >> (16 * (word % 4)) & 0xffff;
        let size = if word == WORDS - 1 { 63 } else { 64 };
        let step = 1 + ((random * (size - 1)) >> 16);
        let first = u64::from(mask.trailing_zeros());
        *mask |= 1 << ((first + step) % size);
    }
}

/// Sets the bits of a key, and returns the number of those that were not set before.
#[inline]
pub(crate) fn mark(block: &mut Block, digest: Digest, hashes: u32) -> u64 {
    let masks = masks(digest, hashes);
    let mut fresh = 0;
    for (word, mask) in block.iter_mut().zip(masks) {
        let unset = !*word & mask;
        // Counting bits takes a dozen instructions on the oldest x86-64, and with up to eight probes there is at most one.
        fresh += if hashes <= 8 {
            u64::from(unset != 0)
        } else {
            u64::from(unset.count_ones())
        };
        *word |= mask;
    }
    fresh
}

#[inline]
pub(crate) fn marked(block: &Block, digest: Digest, hashes: u32) -> bool {
    let masks = masks(digest, hashes);
    let missing = block
        .iter()
        .zip(masks)
        .fold(0, |missing, (word, mask)| missing | !word & mask);
    missing == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::sizing::{MAX_BLOCK_HASHES, bits_in_word};

    #[test]
    fn every_key_has_as_many_distinct_bits_as_probes_whatever_its_digest() {
        let extremes = [0, 1, 2, 7, u64::MAX, 1 << 63, 0x5555_5555_5555_5555];
        for hashes in 1..=MAX_BLOCK_HASHES {
            for first in extremes {
                for second in extremes {
                    let digest = Digest { first, second };
                    let masks = masks(digest, hashes);
                    let start = (first & 7) as usize;
                    for (word, mask) in masks.iter().enumerate() {
                        let expected = if hashes == 8 {
                            1
                        } else {
                            bits_in_word(hashes, start, word)
                        };
                        assert_eq!(mask.count_ones(), expected, "k={hashes} {digest:x?} word {word}");
                    }
                    assert_eq!(masks[7] >> 63, 0, "the highest bit of a block is never a probe");
                }
            }
        }
    }

    #[test]
    fn every_bit_of_a_block_is_drawn_equally_often() {
        for hashes in [3, 7, 8, 11, 16] {
            let keys = 200_000_u64;
            let mut drawn = [[0_u64; 64]; WORDS];
            for key in 0..keys {
                let digest = Hashing::default().digest(&key.to_le_bytes());
                for (word, mask) in masks(digest, hashes).into_iter().enumerate() {
                    for (bit, count) in drawn[word].iter_mut().enumerate() {
                        *count += mask >> bit & 1;
                    }
                }
            }
            let mut chi_square = 0.0;
            for (word, counts) in drawn.iter().enumerate() {
                let size = if word == 7 { 63 } else { 64 };
                let expected = keys as f64 * f64::from(hashes) / 8.0 / size as f64;
                for count in &counts[..size] {
                    chi_square += (*count as f64 - expected).powi(2) / expected;
                }
            }
            // About 503 degrees of freedom, the standard deviation of which is 32.
            assert!((350.0..660.0).contains(&chi_square), "k={hashes}: {chi_square}");
        }
    }
}
