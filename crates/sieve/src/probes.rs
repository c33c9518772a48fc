//! From a digest to the bits of a key, with one module per layout.

pub(crate) mod blocks;
pub(crate) mod classic;
pub(crate) mod eight;

use crate::hash::Digest;
use crate::sizing::{BLOCK_BITS, Layout, MAX_HASHES, Sizing};

/// The distinct bit positions of one key, each below m.
pub(crate) struct Probes {
    at: [u64; MAX_HASHES as usize],
    count: usize,
}

impl Probes {
    /// Draws the positions of a key in a filter of this shape.
    #[inline]
    pub(crate) fn draw(digest: Digest, sizing: &Sizing) -> Self {
        match sizing.layout() {
            Layout::Classic => classic::draw(digest, sizing.bits(), sizing.hashes()),
            Layout::Blocks => {
                let mut probes = Self::none();
                let base = blocks::index(digest, sizing.blocks()) as u64 * BLOCK_BITS;
                for (word, mut mask) in blocks::masks(digest, sizing.hashes()).into_iter().enumerate() {
                    while mask != 0 {
                        probes.add(base + word as u64 * 64 + u64::from(mask.trailing_zeros()));
                        mask &= mask - 1;
                    }
                }
                probes
            }
        }
    }

    fn none() -> Self {
        Self {
            at: [0; MAX_HASHES as usize],
            count: 0,
        }
    }

    #[inline]
    fn add(&mut self, at: u64) {
        self.at[self.count] = at;
        self.count += 1;
    }

    #[cfg(test)]
    pub(crate) fn at(positions: &[u64]) -> Self {
        let mut probes = Self::none();
        positions.iter().for_each(|&at| probes.add(at));
        probes
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.at[..self.count]
    }
}
