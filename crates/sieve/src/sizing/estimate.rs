//! The number of keys estimated from the number of bits set, and the inverse.

use super::{Layout, Sizing};
use crate::filter::Load;

/// The noise of the estimate in blocks divided by that in the classic layout, at most. Keys are spread unevenly over blocks.
const BLOCK_NOISE: f64 = 1.2;

impl Sizing {
    pub(crate) fn keys_at(&self, ones: u64) -> f64 {
        let (bits, hashes) = (self.bits as f64, f64::from(self.hashes));
        let zeros = (bits - ones as f64).max(0.5);
        bits / hashes * (bits / zeros).ln()
    }

    /// `None` if it never does.
    pub(crate) fn ones_above(&self, keys: f64) -> Option<u64> {
        let near = self.bits as f64 * -(-keys * f64::from(self.hashes) / self.bits as f64).exp_m1();
        // The inverse is rounded; the formula itself decides between its neighbours.
        let from = (near as u64).saturating_sub(2);
        (from..=self.bits.min(from + 4)).find(|&ones| self.keys_at(ones) > keys)
    }

    pub(crate) fn load(&self, ones: u64, rate: f64) -> Load {
        let estimated = self.keys_at(ones);
        Load {
            capacity: Some(self.capacity),
            estimated,
            estimate_noise: self.estimate_noise(estimated),
            rate,
            bits: self.bits,
            ones,
            hashes: self.hashes,
            memory_bytes: self.memory_bytes(),
            ..Load::default()
        }
    }

    /// Returns the standard deviation of the estimate, √(m(eᵗ − t − 1)) / k with t = ks/m.
    ///
    /// K.-Y. Whang et al., "A linear-time probabilistic counting algorithm", ACM TODS 15(2), 1990, section 4, for k = 1;
    /// k probes per key see k times the draws, and the estimate divides by k.
    fn estimate_noise(&self, keys: f64) -> f64 {
        let (bits, hashes) = (self.bits as f64, f64::from(self.hashes));
        let load = hashes * keys / bits;
        let classic = (bits * (load.exp_m1() - load).max(0.0)).sqrt() / hashes;
        match self.layout {
            Layout::Blocks => classic * BLOCK_NOISE,
            Layout::Classic => classic,
        }
    }
}
