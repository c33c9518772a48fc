//! Whole bits per key and probes for a rate, as published tables list them.

/// A shape in whole bits per key; see [`best_practice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Practice {
    /// Bits per key, m/n.
    pub bits_per_key: u32,
    /// Probes per key, k.
    pub hashes: u32,
}

/// The most bits per key that [`best_practice`] returns; enough for a rate of 10⁻⁹.
const MAX_BITS_PER_KEY: u32 = 44;

/// Returns the fewest whole bits per key, and for them the fewest probes, that keep `rate` in a large classic filter.
///
/// The rate of a pair is the textbook's (1 − e^(−k·n/m))ᵏ, taken to three significant digits as published tables do: 15 bits and 7 probes, with
/// 0.001003, keep 0.001. `None` when `rate` is not below 1 or is below what 44 bits per key can keep,
/// about 10⁻⁹: a pair that misses the asked rate is never returned.
///
/// ```
/// use sieve::sizing::{Practice, best_practice};
///
/// assert_eq!(best_practice(0.01), Some(Practice { bits_per_key: 10, hashes: 5 }));
/// assert_eq!(best_practice(0.0), None);
/// ```
pub fn best_practice(rate: f64) -> Option<Practice> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    (1..=MAX_BITS_PER_KEY).find_map(|bits_per_key| {
        // More probes than the best number have no use.
        let most = (std::f64::consts::LN_2 * f64::from(bits_per_key)).ceil() as u32;
        (1..=most.max(1))
            .find(|&hashes| textbook_rate(bits_per_key, hashes) <= rate * ROUNDING)
            .map(|hashes| Practice { bits_per_key, hashes })
    })
}

/// Half a unit of the third digit.
const ROUNDING: f64 = 1.005;

fn textbook_rate(bits_per_key: u32, hashes: u32) -> f64 {
    let (bits, hashes) = (f64::from(bits_per_key), f64::from(hashes));
    (-(-hashes / bits).exp_m1()).powf(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_pairs_come_out() {
        for (rate, bits_per_key, hashes) in [
            (0.1, 5, 3),
            (0.05, 7, 3),
            (0.025, 8, 4),
            (0.01, 10, 5),
            (0.005, 12, 5),
            (0.001, 15, 7),
            (5e-4, 16, 10),
            (2e-4, 18, 10),
            (1.1e-4, 19, 13),
        ] {
            assert_eq!(best_practice(rate), Some(Practice { bits_per_key, hashes }), "{rate}");
        }
    }

    #[test]
    fn no_pair_misses_the_asked_rate() {
        for step in 1..4000 {
            let rate = f64::from(step) / 4000.0;
            let Practice { bits_per_key, hashes } = best_practice(rate).unwrap();
            assert!(textbook_rate(bits_per_key, hashes) <= rate * 1.005, "{rate}");
        }
        // Where the published table bottoms out, or gives 0.400.
        assert!(best_practice(1e-6).is_some());
        assert!(best_practice(1e-12).is_none());
        let Practice { bits_per_key, hashes } = best_practice(0.3).unwrap();
        assert!(textbook_rate(bits_per_key, hashes) <= 0.3015);
        for nonsense in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(best_practice(nonsense), None);
        }
    }
}
