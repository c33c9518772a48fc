//! One hash per key, and the probe positions drawn from it.
//!
//! This is the only file that names a hash crate. A key is hashed once to 128 bits with MurmurHash3 (x64, 128 bit;
//! A. Appleby, 2011) from a 64-bit seed. The probes of a key are a **set of k distinct positions**: Robert Floyd's sampling
//! ("A sample of brilliance", CACM 30(9), 1987) draws it without a retry loop, fed by a generator that mixes the two halves.
//! The well-known scheme h₁ + i·h₂ (A. Kirsch, M. Mitzenmacher, 2006) lets all probes of a key fall together when h₂ is 0
//! or shares a factor with m, which triples the false-positive rate of small filters.

use crate::sizing::MAX_HASHES;

/// The 128-bit hash of one key under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    first: u64,
    second: u64,
}

impl Digest {
    /// Hashes a key.
    #[inline]
    pub(crate) fn of(key: &[u8], seed: u64) -> Self {
        // The crate lays its two words out in the platform's order; taking them apart in the same order gives the
        // same words on every platform.
        let bytes = fastmurmur3::murmur3_x64_128(key, seed).to_ne_bytes();
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self {
            first: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            second: u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        }
    }
}

/// The distinct positions at which one key is marked.
pub(crate) struct Probes {
    at: [u64; MAX_HASHES as usize],
    count: usize,
}

impl Probes {
    /// Draws `hashes` distinct positions below `bits`, which must be at least `hashes`.
    #[inline]
    pub(crate) fn draw(digest: Digest, bits: u64, hashes: u32) -> Self {
        debug_assert!((1..=MAX_HASHES).contains(&hashes) && bits >= u64::from(hashes));
        let mut probes = Self {
            at: [0; MAX_HASHES as usize],
            count: 0,
        };
        let mut words = Words::from(digest);
        let first = bits - u64::from(hashes);
        for last in first..bits {
            let drawn = below(words.next(), last + 1);
            let taken = probes.as_slice().contains(&drawn);
            // `last` cannot be taken yet: every earlier draw lies below it.
            probes.at[probes.count] = if taken { last } else { drawn };
            probes.count += 1;
        }
        probes
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.at[..self.count]
    }
}

/// Scales a random word to `0..bound` by the high half of the product (D. Lemire, ACM TOMACS 29(1), 2019).
#[inline]
fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// Random words from a digest: a Weyl sequence through one round of mixing.
struct Words {
    state: u64,
    step: u64,
}

impl From<Digest> for Words {
    #[inline]
    fn from(digest: Digest) -> Self {
        // An odd step visits all 2^64 states, whatever the second half is.
        Self {
            state: digest.first,
            step: digest.second | 1,
        }
    }
}

impl Words {
    #[inline]
    fn next(&mut self) -> u64 {
        // The constants are those of D. Stafford's "Mix13" finaliser, with its last shift left out: only high bits are used.
        self.state = self.state.wrapping_add(self.step);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one_on_every_platform() {
        // Appleby's reference implementation, MurmurHash3_x64_128 with seed 0.
        let digest = Digest::of(b"The quick brown fox jumps over the lazy dog", 0);
        assert_eq!(
            digest,
            Digest {
                first: 0xe34b_bc7b_bc07_1b6c,
                second: 0x7a43_3ca9_c49a_9347
            }
        );
        assert_eq!(Digest::of(b"", 0), Digest { first: 0, second: 0 });
        assert_ne!(Digest::of(b"a", 0), Digest::of(b"a", 1));
    }

    #[test]
    fn probes_are_distinct_and_in_range_for_degenerate_halves() {
        for second in [0, 1, 2, 96, u64::MAX, 1 << 63] {
            for first in [0, 1, u64::MAX, 0x1234_5678] {
                for (bits, hashes) in [(7, 7), (8, 7), (96, 7), (32, 32), (1 << 40, 20), (64, 1)] {
                    let probes = Probes::draw(Digest { first, second }, bits, hashes);
                    let mut sorted = probes.as_slice().to_vec();
                    sorted.sort_unstable();
                    sorted.dedup();
                    assert_eq!(
                        sorted.len(),
                        hashes as usize,
                        "first={first:x} second={second:x} m={bits}"
                    );
                    assert!(sorted.iter().all(|&at| at < bits));
                }
            }
        }
    }

    #[test]
    fn every_position_is_drawn_equally_often() {
        let (bits, hashes, keys) = (96_u64, 7, 200_000_u64);
        let mut drawn = vec![0_u64; bits as usize];
        for key in 0..keys {
            let digest = Digest::of(&key.to_le_bytes(), 0);
            for &at in Probes::draw(digest, bits, hashes).as_slice() {
                drawn[at as usize] += 1;
            }
        }
        // 95 degrees of freedom; each count varies a little less than a Poisson count, as the probes are distinct.
        let expected = (keys * u64::from(hashes)) as f64 / bits as f64;
        let chi_square: f64 = drawn.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        assert!((50.0..145.0).contains(&chi_square), "{chi_square}");
    }
}
