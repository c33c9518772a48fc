//! The classic layout: the k probes of a key are any k distinct ones of all m bits.

use super::{ConfigError, MAX_BITS, MAX_HASHES, Sizing, best_hashes, textbook_bits};
use crate::sizing::Layout;

/// The most probes for which the alternating sum of the exact rate keeps enough digits of a 64-bit float.
const MAX_EXACT_HASHES: u32 = 20;

/// Times 2ᵏ, which the terms of that sum add up to without their signs: the least sum of which three digits are right.
const LEAST_EXACT_SHARE: f64 = 1e-13;

pub(super) fn for_rate(capacity: u64, rate: f64) -> Result<Sizing, ConfigError> {
    let least = textbook_bits(capacity, rate)?;
    let best = best_hashes(least, capacity);
    let around = [best.floor(), best.ceil()].map(|k| (k as u32).clamp(1, MAX_HASHES));
    around
        .into_iter()
        .filter_map(|hashes| Some((least_bits(least, hashes, capacity, rate)?, hashes)))
        .min()
        .map(|(bits, hashes)| Sizing {
            layout: Layout::Classic,
            bits,
            hashes,
            capacity,
        })
        .ok_or(ConfigError::TooManyBits)
}

/// Returns the expected false-positive rate of a filter of `bits` with `hashes` distinct probes per key after `keys`.
///
/// A key is taken for seen when none of its k bits is zero. j given bits are all left alone by one key with probability
/// C(m−j, k) / C(m, k) = ∏ᵢ (m−k−i) / (m−i) over i < j, so by inclusion and exclusion over the k bits the rate is
/// Σⱼ (−1)ʲ · C(k, j) · ∏ᵢ ((m−k−i) / (m−i))ⁿ. That is exact for every m. Above 20 probes, and for rates below
/// 2ᵏ · 10⁻¹³, its alternating terms eat the digits of a float, and the second-order expansion around the expected fill takes its place: good
/// to two hundredths for a few keys, and to all digits for many.
///
/// Cost: O(k²). More probes than bits count as all bits set.
pub fn false_positive_rate(bits: u64, hashes: u32, keys: u64) -> f64 {
    rate_at(bits, hashes, keys as f64)
}

pub(super) fn rate_at(bits: u64, hashes: u32, keys: f64) -> f64 {
    if keys <= 0.0 {
        return 0.0;
    }
    if u64::from(hashes) >= bits {
        return 1.0;
    }
    if hashes <= MAX_EXACT_HASHES {
        let rate = exact_rate(bits as f64, hashes, keys);
        if rate >= LEAST_EXACT_SHARE * f64::from(1_u32 << hashes) {
            return rate;
        }
    }
    expanded_rate(bits as f64, hashes, keys)
}

fn exact_rate(bits: f64, hashes: u32, keys: f64) -> f64 {
    let k = f64::from(hashes);
    let (mut sum, mut sign, mut choose, mut log_untouched) = (1.0, 1.0, 1.0, 0.0);
    for j in 1..=hashes {
        let i = f64::from(j - 1);
        // 1 − k/(m − i) as such would round away what a filter of terabytes is made of.
        log_untouched += (-(k / (bits - i)).min(1.0)).ln_1p();
        choose *= (k - i) / f64::from(j);
        sign = -sign;
        sum += sign * choose * (keys * log_untouched).exp();
    }
    sum.clamp(0.0, 1.0)
}

/// The chance ∏ᵢ (X − i) / (m − i) at the expected X, with the second term of its Taylor series and the variance of X.
fn expanded_rate(bits: f64, hashes: u32, keys: f64) -> f64 {
    let k = f64::from(hashes);
    let one_zero = (-k / bits).ln_1p() * keys;
    let two_zeros = (one_zero + (-k / (bits - 1.0)).ln_1p() * keys).exp();
    let zeros = bits * one_zero.exp();
    let variance = (zeros + bits * (bits - 1.0) * two_zeros - zeros * zeros).max(0.0);
    let ones = bits - zeros;
    let (mut rate, mut slope, mut bend) = (1.0, 0.0, 0.0);
    for i in (0..hashes).map(f64::from) {
        let left = (ones - i).max(0.5);
        rate *= left / (bits - i);
        slope += 1.0 / left;
        bend += 1.0 / (left * left);
    }
    (rate * (1.0 + variance / 2.0 * (slope * slope - bend))).clamp(0.0, 1.0)
}

fn least_bits(least: u64, hashes: u32, capacity: u64, rate: f64) -> Option<u64> {
    super::least(least.max(u64::from(hashes)), MAX_BITS, |bits| {
        false_positive_rate(bits, hashes, capacity) <= rate
    })
}
