//! Hashes that no site can foresee, under a key that can be written down.

use std::hash::{BuildHasher, Hash, Hasher as _, RandomState};

use sieve::Hashing;
use siphasher::sip::SipHasher13;

/// SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, 2012) under a secret key. What is counted by such hashes means the same after a
/// restart, if the key is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyedHash {
    key: [u8; 16],
}

impl std::fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHash")
    }
}

impl KeyedHash {
    /// Takes the secret of the seen-set's hash, so that one secret is all there is to keep.
    pub(crate) fn with_secret_of(hashing: &Hashing) -> Self {
        match hashing {
            Hashing::Murmur3 { seed } | Hashing::Xxh3 { seed } => {
                let [first, second] = [seed.to_le_bytes(), (!seed).to_le_bytes()];
                let mut key = [0; 16];
                key[..8].copy_from_slice(&first);
                key[8..].copy_from_slice(&second);
                Self { key }
            }
            Hashing::Hardened { key } => Self { key: *key },
            _ => Self::random(),
        }
    }

    /// Draws a key from the random numbers by which the standard library keys its maps.
    fn random() -> Self {
        let drawn = RandomState::new();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&drawn.hash_one(0_u8).to_le_bytes());
        key[8..].copy_from_slice(&drawn.hash_one(1_u8).to_le_bytes());
        Self { key }
    }

    /// Hashes a value.
    pub(crate) fn of(self, value: impl Hash) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        value.hash(&mut hasher);
        hasher.finish()
    }
}
