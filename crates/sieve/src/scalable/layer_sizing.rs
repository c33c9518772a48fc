//! The size of a layer: its share of the rate, and at least a page.

use super::TIGHTENING;
use crate::sizing::{ConfigError, Layout, Sizing};

/// The minimum size of a layer: one page of memory, the smallest unit of the system.
pub(super) const MIN_LAYER_BYTES: u64 = 4096;

pub(super) fn layer_sizing(capacity: u64, total_rate: f64, number: i32) -> Result<Sizing, ConfigError> {
    let rate = total_rate * (1.0 - TIGHTENING) * TIGHTENING.powi(number);
    let sizing = Sizing::for_rate(capacity, rate)?;
    if sizing.memory_bytes() < MIN_LAYER_BYTES {
        return page_sized_layer(&sizing, rate);
    }
    Ok(sizing)
}

/// Returns the shape of a layer of one page, instead of a smaller one. It has eight probes, which are the fastest, if they keep the rate.
fn page_sized_layer(needed: &Sizing, rate: f64) -> Result<Sizing, ConfigError> {
    let hashes = match needed.layout() {
        // In blocks, no number of probes may keep such a rate.
        Layout::Classic => return Ok(*needed),
        Layout::Blocks => needed.hashes(),
    };
    let of = |hashes| Sizing::explicit_blocks(MIN_LAYER_BYTES / 64, hashes)?.with_capacity(needed.capacity());
    let fast = of(8)?;
    // More blocks with the same number of probes have a lower rate.
    if fast.expected_rate() <= rate {
        Ok(fast)
    } else {
        of(hashes)
    }
}
