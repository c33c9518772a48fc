//! The design of the article this project starts from.

use super::queued::{Seen, queued};
use super::{Contender, RATE};

pub(super) fn build(capacity: u64) -> Box<dyn Contender> {
    queued(Article::new(capacity))
}

/// The textbook's shape, probes h1 + i * h2 modulo m, and a look-up before each insertion, so that a new key is hashed
/// twice and probed twice.
struct Article {
    bits: Vec<u64>,
    len: u64,
    hashes: u64,
}

impl Article {
    fn new(capacity: u64) -> Self {
        let ln2 = std::f64::consts::LN_2;
        let len = (-(capacity as f64) * RATE.ln() / (ln2 * ln2)).ceil().max(64.0) as u64;
        Self {
            bits: vec![0; len.div_ceil(64) as usize],
            len,
            hashes: (-RATE.ln() / ln2).ceil() as u64,
        }
    }

    fn probes(&self, url: &str) -> impl Iterator<Item = u64> + use<> {
        let hash = fastmurmur3::murmur3_x64_128(url.as_bytes(), 0);
        let (first, second, len) = (hash as u64, (hash >> 64) as u64, self.len);
        (0..self.hashes).map(move |i| first.wrapping_add(i.wrapping_mul(second)) % len)
    }
}

impl Seen for Article {
    fn insert(&mut self, url: &str) -> bool {
        if self.contains(url) {
            return false;
        }
        for at in self.probes(url) {
            self.bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        true
    }

    fn contains(&self, url: &str) -> bool {
        self.probes(url)
            .all(|at| self.bits[(at / 64) as usize] >> (at % 64) & 1 == 1)
    }

    fn bits(&self) -> u64 {
        self.len
    }
}
