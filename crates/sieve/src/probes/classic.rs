//! The classic layout: k distinct positions anywhere.
//!
//! Robert Floyd's sampling ("A sample of brilliance", CACM 30(9), 1987) draws them without a retry loop. In the well-known scheme
//! h₁ + i·h₂ (A. Kirsch, M. Mitzenmacher, 2006), probes of a key coincide if h₂ is 0 or shares a factor with m. A filter for ten keys
//! at 1 % then has a rate of 1.56 %.

use super::Probes;
use crate::hash::{Digest, below, words};

/// Draws `hashes` distinct positions below `bits`, which must be at least `hashes`.
#[inline]
pub(crate) fn draw(digest: Digest, bits: u64, hashes: u32) -> Probes {
    debug_assert!(bits >= u64::from(hashes));
    let mut probes = Probes::none();
    let mut next_word = words(digest);
    let first = bits - u64::from(hashes);
    for last in first..bits {
        let drawn = below(next_word(), last + 1);
        let taken = probes.as_slice().contains(&drawn);
        // `last` is free: every earlier draw is below it.
        probes.add(if taken { last } else { drawn });
    }
    probes
}

/// Sets the bits of a key, and returns the number of those that were not set before.
#[inline]
pub(crate) fn mark(words: &mut [u64], probes: &Probes) -> u64 {
    let mut fresh = 0;
    for &at in probes.as_slice() {
        let word = &mut words[(at / 64) as usize];
        fresh += u64::from(*word & mask(at) == 0);
        *word |= mask(at);
    }
    fresh
}

#[inline]
pub(crate) fn marked(words: &[u64], probes: &Probes) -> bool {
    probes
        .as_slice()
        .iter()
        .all(|&at| words[(at / 64) as usize] & mask(at) != 0)
}

#[inline]
fn mask(at: u64) -> u64 {
    1 << (at % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;

    #[test]
    fn probes_are_distinct_and_in_range_for_degenerate_halves() {
        for second in [0, 1, 2, 96, u64::MAX, 1 << 63] {
            for first in [0, 1, u64::MAX, 0x1234_5678] {
                for (bits, hashes) in [(7, 7), (8, 7), (96, 7), (32, 32), (1 << 40, 20), (64, 1)] {
                    let probes = draw(Digest { first, second }, bits, hashes);
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
            let digest = Hashing::default().digest(&key.to_le_bytes());
            for &at in draw(digest, bits, hashes).as_slice() {
                drawn[at as usize] += 1;
            }
        }
        // 95 degrees of freedom; each count varies a little less than a Poisson count, as the probes are distinct.
        let expected = (keys * u64::from(hashes)) as f64 / bits as f64;
        let chi_square: f64 = drawn.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        assert!((50.0..145.0).contains(&chi_square), "{chi_square}");
    }

    /// The example with 16 bits and three probes per key of the article on counting filters.
    #[test]
    fn the_worked_example_of_sixteen_bits_comes_out() {
        let at = |positions: [u64; 3]| Probes::at(&positions);
        let mut words = [0_u64];
        assert_eq!(mark(&mut words, &at([2, 6, 13])), 3); // a
        assert_eq!(mark(&mut words, &at([4, 10, 11])), 3); // b
        assert_eq!(mark(&mut words, &at([6, 11, 12])), 1, "c shares 6 with a and 11 with b");
        assert_eq!(words, [0b0011_1100_0101_0100]);
        assert!(marked(&words, &at([2, 6, 13])));
        assert!(!marked(&words, &at([1, 6, 13])), "one zero bit: certainly new");
        assert!(
            marked(&words, &at([4, 6, 13])),
            "bits of several keys: a false positive"
        );
        assert!(
            marked(&words, &at([6, 11, 12])),
            "which cannot be distinguished from c itself"
        );
    }

    /// The session of the article on the classic filter.
    #[test]
    fn bits_that_two_keys_share_are_counted_once() {
        let mut words = [0_u64];
        assert_eq!(mark(&mut words, &Probes::at(&[4, 6, 11, 16])), 4);
        assert_eq!(
            mark(&mut words, &Probes::at(&[4, 5, 11, 12])),
            2,
            "it shares 4 and 11 with the first"
        );
        assert_eq!(words[0].count_ones(), 6);
    }

    /// The article on counting filters divides one digest again and again. Its probes may coincide; ours are distinct.
    #[test]
    fn one_digest_divided_again_and_again_gives_the_probes_of_the_article() {
        let divided = |digest: u64, bits: u64| [digest % bits, digest / bits % bits, digest / bits / bits % bits];
        assert_eq!(divided(654_321, 16), [1, 15, 11]);
        assert_eq!(divided(0x111, 16), [1, 1, 1], "one bit instead of three");
        let ours = draw(
            Digest {
                first: 0x111,
                second: 0,
            },
            16,
            3,
        );
        let distinct: std::collections::BTreeSet<_> = ours.as_slice().iter().collect();
        assert_eq!(distinct.len(), 3);
    }
}
