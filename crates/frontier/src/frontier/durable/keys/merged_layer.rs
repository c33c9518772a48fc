//! One layer of a growing filter for all keys, built from their digests in slices.

use sieve::{BloomFilter, Filter as _};

use super::Keys;
use super::run::{digests, read_part};
use crate::store::StoreError;

/// A layer that has some of the keys. What is accepted meanwhile goes into it, too.
#[derive(Debug)]
pub(super) struct LayerBuilder {
    layer: BloomFilter,
    /// The runs that are left, each with its number of parts, and the next part of the last one.
    left: Vec<(u64, u64)>,
    next_part: u64,
}

impl LayerBuilder {
    pub(super) fn add(&mut self, digest: u128) {
        mark(&mut self.layer, digest);
    }
}

/// Sets the bits of a digest: the key itself is not needed.
fn mark(layer: &mut BloomFilter, digest: u128) {
    layer.insert_digest(&[], digest.into());
}

impl Keys {
    /// Returns whether a layer is being built, or waits to be taken.
    pub(in crate::frontier::durable) fn is_building(&self) -> bool {
        self.layer.is_some()
    }

    /// Begins to fill a layer with all digests. Returns whether it could: those in memory must be few.
    pub(in crate::frontier::durable) fn can_build(&mut self, last_row: u64) -> bool {
        let few = self.of_row.max(self.sizes.fresh_digests / 8);
        if self.frozen.is_empty() && self.fresh.len() > few {
            self.freeze(last_row);
        }
        self.frozen.is_empty()
    }

    /// Begins to fill an empty layer with all digests.
    pub(in crate::frontier::durable) fn begin_layer(&mut self, mut layer: BloomFilter) {
        self.fresh.iter().for_each(|digest| mark(&mut layer, digest));
        for frozen in &self.frozen {
            frozen.digests.iter().for_each(|digest| mark(&mut layer, *digest));
        }
        self.layer = Some(LayerBuilder {
            layer,
            left: self.runs.iter().map(|run| (run.number, run.parts())).collect(),
            next_part: 0,
        });
    }

    /// Fills the layer with the digests of more parts.
    pub(super) fn build_layer(&mut self, parts: usize) -> Result<(), StoreError> {
        let Some(builder) = &mut self.layer else { return Ok(()) };
        for _ in 0..parts {
            while builder.left.pop_if(|(_, parts)| *parts == builder.next_part).is_some() {
                builder.next_part = 0;
            }
            let Some((run, _)) = builder.left.last() else { break };
            let part = read_part(*run, builder.next_part, &self.store)?;
            digests(&part).for_each(|digest| mark(&mut builder.layer, digest));
            builder.next_part += 1;
        }
        Ok(())
    }

    /// Returns the layer once it has all digests.
    pub(in crate::frontier::durable) fn take_layer(&mut self) -> Option<BloomFilter> {
        self.layer
            .take_if(|builder| builder.left.is_empty())
            .map(|builder| builder.layer)
    }

    /// Fills an empty layer with all digests at once, as when the journal is replayed.
    pub(in crate::frontier::durable) fn fill_layer(&mut self, layer: BloomFilter) -> Result<BloomFilter, StoreError> {
        self.begin_layer(layer);
        loop {
            if let Some(layer) = self.take_layer() {
                return Ok(layer);
            }
            self.build_layer(1024)?;
        }
    }
}
