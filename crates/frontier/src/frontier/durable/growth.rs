//! The growth of the seen-set: its layers are merged into one, which is built in the background from the stored digests.

use sieve::{BloomFilter, Filter as _};

use super::super::{Frontier, FrontierError};
use super::Durable;
use super::calls::Call;

/// The layers that are merged, the newest included.
const MERGED_LAYERS: u32 = 3;

impl Frontier {
    /// Takes the layer that was built in the place of all others; or begins to build one, if there are several.
    ///
    /// The layer has room for as many keys as all others together. So the next one follows when as many have come again.
    pub(super) fn tend_layers(&mut self, durable: &mut Durable) -> Result<(), FrontierError> {
        let Some(keys) = self.sieve.filter().keys().cloned() else {
            return Ok(());
        };
        // A checkpoint that is being written may still need the layers as they are.
        if durable.checkpointer.is_writing() {
            return Ok(());
        }
        let built = keys.lock().take_layer();
        // If more keys have come meanwhile than it has room for, a larger one is built.
        let has_room = |layer: &BloomFilter| layer.sizing().capacity() >= keys.lock().len();
        if let Some(layer) = built.filter(has_room) {
            let capacity = layer.sizing().capacity();
            self.replace_layers(layer);
            return durable.add(&Call::MergeLayers { capacity }, true);
        }
        let seen = self.sieve.filter();
        if seen.filter().layers() < MERGED_LAYERS || keys.lock().is_building() {
            return Ok(());
        }
        let Some(growing) = seen.growing() else { return Ok(()) };
        let sizing = growing.merged_sizing(growing.capacity());
        let Some(sizing) = sizing.ok().filter(|sizing| growing.has_room_for(sizing)) else {
            return Ok(());
        };
        let mut keys = keys.lock();
        // The digests in memory are those of the calls of the next row, too, if there are any.
        let last_row = durable.next_row - u64::from(durable.calls.is_empty());
        if keys.can_build(last_row)
            && let Ok(layer) = BloomFilter::with_hashing(sizing, growing.hashing())
        {
            keys.begin_layer(layer);
        }
        Ok(())
    }

    /// Merges the layers again, as a journal says. Returns whether it could.
    pub(super) fn merge_layers_again(&mut self, capacity: u64) -> bool {
        let seen = self.sieve.filter();
        let (Some(keys), Some(growing)) = (seen.keys().cloned(), seen.growing()) else {
            return false;
        };
        // A layer has room for as many keys as those that it replaced.
        if capacity / 2 > growing.capacity() {
            return false;
        }
        let sizing = growing.merged_sizing(capacity);
        let layer = sizing.and_then(|sizing| BloomFilter::with_hashing(sizing, growing.hashing()));
        let Ok(layer) = layer else { return false };
        let mut keys = keys.lock();
        match keys.fill_layer(layer) {
            Ok(layer) => {
                drop(keys);
                self.replace_layers(layer);
                true
            }
            Err(error) => {
                keys.set_error(error);
                false
            }
        }
    }

    /// Returns the chance that the seen-set knows a key that it never met; 0 for a key whose digest is stored.
    pub(in crate::frontier) fn chance_of_mistake(&self, key: &str) -> f64 {
        if self.sieve.filter().has_surely_seen(key.as_bytes()) {
            0.0
        } else {
            self.sieve.saturation().rate
        }
    }

    fn replace_layers(&mut self, layer: BloomFilter) {
        self.sieve.reshape_filter(|seen, lost| {
            if let Some(growing) = seen.growing_mut() {
                growing.replace_layers(layer, lost);
            }
        });
    }
}
