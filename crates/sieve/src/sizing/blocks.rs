//! Cache-line blocks: all probes of a key lie in one block of 512 bits, spread over its eight words of 64.
//!
//! One memory access per key instead of k, at the price of a few more bits: keys fall unevenly on blocks, and the
//! fuller ones are wrong more often (F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters",
//! ACM JEA 14, 2009, who spread the load by a Poisson distribution). A key takes one bit in each of k ≤ 8 words that
//! follow each other, starting anywhere; with k > 8, a second one, never the same, in k − 8 of them. So its probes are
//! always distinct. One bit of the block, the highest of its last word, is never a probe: it is the lock of
//! [`ConcurrentBloomFilter`](crate::ConcurrentBloomFilter), and m counts 511 bits per block.
//!
//! **The estimate** stays −(m/k)·ln(1 − X/m). A block with j keys leaves a bit alone with probability (1 − k/511)ʲ, and j
//! is binomial with mean n/B, which makes exp(−kn/m) in the mean over the blocks.
//!
//! **The rate** does not stay (X/m)ᵏ: it is the mean over the blocks. It has a closed form. Let S be a set of a new
//! key's probes and a(S) the chance that an old key of the same block leaves all of S alone. After n keys in B blocks, S is
//! untouched with probability (1 − (1 − a(S))/B)ⁿ, so by inclusion and exclusion the rate is
//! Σ (−1)^|S| · (1 − (1 − a(S))/B)ⁿ over all S. That is exact, also for one block.

use std::sync::OnceLock;

use super::{ConfigError, Layout, MAX_BITS, Sizing, best_hashes, textbook_bits};

/// The words of a block; a block is one cache line.
pub(crate) const WORDS: usize = 8;
/// The bits of a block that can be probes.
pub(crate) const BLOCK_BITS: u64 = 511;
/// The most probes per key in blocks: two in each word.
pub const MAX_BLOCK_HASHES: u32 = 16;
/// The least rate that blocks are sized for: below it, rounding in the alternating sum would show.
pub const MIN_BLOCK_RATE: f64 = 1e-7;

pub(crate) fn bits_in_word(hashes: u32, start: usize, word: usize) -> u32 {
    let turn = (word + WORDS - start) % WORDS;
    let once = u32::from(turn < hashes.min(8) as usize);
    once + u32::from((turn as u32) < hashes.saturating_sub(8))
}

pub(crate) fn word_bits(word: usize) -> u64 {
    if word == WORDS - 1 { 63 } else { 64 }
}

pub(super) fn for_rate(capacity: u64, rate: f64) -> Result<Sizing, ConfigError> {
    let least = textbook_bits(capacity, rate)?;
    if rate < MIN_BLOCK_RATE {
        return Err(ConfigError::RateTooSmallForBlocks(rate));
    }
    // In blocks the best number lies a little below the textbook's.
    let best = (best_hashes(least, capacity).round() as u32).min(MAX_BLOCK_HASHES - 1);
    (best.saturating_sub(2).max(1)..=best + 1)
        .filter_map(|hashes| {
            let keeps = |blocks| rate_at(blocks, hashes, capacity as f64) <= rate;
            Some((super::least(least.div_ceil(512), MAX_BITS / 512, keeps)?, hashes))
        })
        .min_by(|a, b| price(*a).total_cmp(&price(*b)))
        .map(|(blocks, hashes)| Sizing {
            layout: Layout::Blocks,
            bits: blocks * BLOCK_BITS,
            hashes,
            capacity,
        })
        .ok_or(ConfigError::TooManyBits)
}

/// Blocks, with a discount for eight probes: one in each word is drawn without asking which words have one.
fn price((blocks, hashes): (u64, u32)) -> f64 {
    blocks as f64 * if hashes == 8 { 0.97 } else { 1.0 }
}

/// One or several sets S: how often they count, with their sign, and the chance 1 − a(S) that an old key hits them.
#[derive(Debug, Clone, Copy)]
struct Term {
    weight: f64,
    hit: f64,
}

/// The rate with `hashes` probes, at most [`MAX_BLOCK_HASHES`], by the closed form.
///
/// The terms of a number of probes are made once and kept: a file of a few kilobytes can hold dozens of layers, which must not cost dozens of
/// tables.
pub(super) fn rate_at(blocks: u64, hashes: u32, keys: f64) -> f64 {
    static MADE: [OnceLock<Vec<Term>>; MAX_BLOCK_HASHES as usize + 1] =
        [const { OnceLock::new() }; MAX_BLOCK_HASHES as usize + 1];
    let terms = MADE[hashes as usize].get_or_init(|| terms(hashes)).iter();
    let blocks = blocks as f64;
    let sum: f64 = terms
        .map(|term| term.weight * (keys * (-term.hit / blocks).ln_1p()).exp())
        .sum();
    sum.clamp(0.0, 1.0)
}

/// Sums up all sets of probes, and puts equal terms together. Cost: less than half a millisecond.
fn terms(hashes: u32) -> Vec<Term> {
    let words: [[Choice; 3]; WORDS] =
        std::array::from_fn(|word| [0, 1, 2].map(|chosen| Choice::new(hashes, word, chosen)));
    let mut terms = Vec::new();
    let nothing_chosen = Choice {
        avoided: [1.0; WORDS],
        ways: [1.0 / WORDS as f64; WORDS],
    };
    nothing_chosen.complete(&words, &mut terms);
    terms.sort_unstable_by(|a, b| a.hit.total_cmp(&b.hit));
    terms.dedup_by(|next, kept| {
        let same = next.hit - kept.hit < 1e-13;
        if same {
            kept.weight += next.weight;
        }
        same
    });
    terms.shrink_to_fit();
    terms
}

/// Some bits of a word or of several as part of a set S, for each word in which a key may start.
#[derive(Clone, Copy)]
struct Choice {
    /// The chance that an old key avoids them.
    avoided: [f64; WORDS],
    /// In how many ways they can be chosen from the probes of a new key, with the sign of the number of bits.
    ways: [f64; WORDS],
}

impl Choice {
    fn new(hashes: u32, word: usize, chosen: u32) -> Self {
        let bits = |start| bits_in_word(hashes, start, word);
        Self {
            avoided: std::array::from_fn(|start| avoids(word, bits(start), chosen)),
            ways: std::array::from_fn(|start| match (bits(start), chosen) {
                (_, 0) | (2, 2) => 1.0,
                (bits, 1) => -f64::from(bits),
                _ => 0.0,
            }),
        }
    }

    /// Puts sets together with each choice in the remaining words.
    fn complete(self, remaining: &[[Self; 3]], terms: &mut Vec<Term>) {
        let Some((word, remaining)) = remaining.split_first() else {
            let avoided = self.avoided.iter().sum::<f64>() / WORDS as f64;
            terms.push(Term {
                weight: self.ways.iter().sum(),
                hit: 1.0 - avoided,
            });
            return;
        };
        for choice in word {
            let mut next = self;
            for start in 0..WORDS {
                next.avoided[start] *= choice.avoided[start];
                next.ways[start] *= choice.ways[start];
            }
            // Otherwise no key has that many bits in these words.
            if next.ways.iter().any(|&ways| ways != 0.0) {
                next.complete(remaining, terms);
            }
        }
    }
}

/// The chance that `drawn` distinct bits of a word miss `chosen` given ones.
fn avoids(word: usize, drawn: u32, chosen: u32) -> f64 {
    let (size, chosen) = (word_bits(word) as f64, f64::from(chosen));
    (0..drawn).map(f64::from).map(|i| 1.0 - chosen / (size - i)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate by summing over the binomial load of a block and, in it, over the fill of each word: eight probes only.
    fn rate_by_load(blocks: u64, keys: u64) -> f64 {
        let (n, chance) = (keys as f64, 1.0 / blocks as f64);
        let mut probability = (n * (-chance).ln_1p()).exp();
        let mut rate = 0.0;
        for load in 0..=keys {
            let filled = |size: f64| 1.0 - ((load as f64) * (-1.0 / size).ln_1p()).exp();
            rate += probability * filled(64.0).powi(7) * filled(63.0);
            let left = n - load as f64;
            probability *= left / (load as f64 + 1.0) * chance / (1.0 - chance);
        }
        rate
    }

    #[test]
    fn the_closed_form_is_the_mean_over_the_loads_of_blocks() {
        for (blocks, keys) in [(2, 90), (20, 1000), (200, 8_000), (200, 20_000), (500, 5_000)] {
            let (oracle, rate) = (rate_by_load(blocks, keys), rate_at(blocks, 8, keys as f64));
            assert!(
                (rate / oracle - 1.0).abs() < 1e-6,
                "B={blocks} n={keys}: {rate} is not {oracle}"
            );
        }
    }

    #[test]
    fn the_word_that_is_a_bit_shorter_counts_with_every_number_of_probes() {
        // One probe, one key: the same word, one time in eight, and the same bit of it.
        let one = rate_at(1, 1, 1.0);
        assert!((one - (7.0 / 64.0 + 1.0 / 63.0) / 64.0).abs() < 1e-12, "{one}");
        // Sixteen probes, one key: the same two bits in each word.
        let sixteen = rate_at(1, 16, 1.0);
        assert!(sixteen < 1e-11, "{sixteen}");
    }

    #[test]
    fn no_number_of_probes_would_need_fewer_bits_but_for_what_eight_may_cost_more() {
        for rate in [0.4, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4, 1e-5, 1e-6, 2e-7] {
            let chosen = for_rate(100_000, rate).unwrap();
            let least = (1..=MAX_BLOCK_HASHES)
                .filter_map(|hashes| {
                    crate::sizing::least(100, MAX_BITS / 512, |blocks| rate_at(blocks, hashes, 100_000.0) <= rate)
                })
                .min()
                .unwrap();
            let more = chosen.blocks() as f64 / least as f64;
            assert!(
                more < 1.032,
                "p={rate}: {more} times the bits with {} probes",
                chosen.hashes()
            );
            assert!(
                chosen.hashes() == 8 || more < 1.0001,
                "p={rate}: {more} with {} probes",
                chosen.hashes()
            );
        }
    }

    #[test]
    fn one_percent_costs_a_twentieth_more_bits_than_the_textbook() {
        for (rate, most) in [(0.1, 1.10), (0.01, 1.07), (0.001, 1.14), (0.0001, 1.25), (1e-6, 1.6)] {
            let sizing = for_rate(10_000_000, rate).unwrap();
            let more = (sizing.bits() as f64) / textbook_bits(10_000_000, rate).unwrap() as f64;
            println!(
                "{rate}: {} hashes, {:.2} bits per key, {more}",
                sizing.hashes(),
                sizing.bits() as f64 / 1e7
            );
            assert!(more < most && more > 1.0, "p={rate}: {more}");
        }
    }
}
