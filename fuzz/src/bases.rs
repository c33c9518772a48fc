//! The filters that deltas are applied to: small ones of each layout and hash.

use sieve::{BloomFilter, Hashing, Sizing};

use crate::seal::{self, SECRET};

/// A filter with all that a target wants to know of it, computed once.
pub struct Base {
    /// The filter.
    pub filter: BloomFilter,
    /// Its file.
    pub file: Vec<u8>,
    /// The number by which a delta recognises its state.
    pub fingerprint: u64,
    /// What was inserted.
    pub keys: Vec<Vec<u8>>,
}

impl Base {
    fn new(sizing: Sizing, hashing: Hashing, keys: u32) -> Self {
        let mut filter = BloomFilter::with_hashing(sizing, hashing).unwrap();
        let keys: Vec<_> = (0..keys).map(|key| key.to_le_bytes().to_vec()).collect();
        keys.iter().for_each(|key| {
            filter.insert(key);
        });
        let file = seal::file_of(&filter);
        let fingerprint = seal::fingerprint(&file);
        Self {
            filter,
            file,
            fingerprint,
            keys,
        }
    }

    /// Gives the file of a delta the shape and the hash of this filter: without them it is refused at once.
    pub fn give_shape(&self, delta: &mut [u8]) {
        // Layout, rule and hash; probes; bits; seed. The kind, the layers and the capacity are left as they are.
        for field in [11..16, 16..20, 24..32, 40..48] {
            if delta.len() >= field.end {
                delta[field.clone()].copy_from_slice(&self.file[field]);
            }
        }
    }
}

/// Returns the filters, always the same in the same order.
pub fn bases() -> Vec<Base> {
    let murmur3 = Hashing::Murmur3 { seed: 7 };
    vec![
        Base::new(Sizing::explicit_blocks(2, 8).unwrap(), murmur3, 20),
        Base::new(
            Sizing::explicit_blocks(1, 11).unwrap(),
            Hashing::Hardened { key: SECRET },
            0,
        ),
        Base::new(Sizing::explicit(1000, 7).unwrap(), murmur3, 40),
        Base::new(Sizing::explicit(64, 3).unwrap(), Hashing::Xxh3 { seed: 7 }, 5),
        Base::new(Sizing::explicit(129, 1).unwrap(), murmur3, 300),
    ]
}
