//! Hashes that a site cannot predict, with a key that can be stored.

use std::hash::{BuildHasher, Hash, Hasher as _, RandomState};

use sieve::Hashing;
use siphasher::sip::SipHasher13;

/// SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, 2012) with a secret key. Counts by such hashes stay valid after a restart with the
/// same key.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct KeyedHash {
    key: [u8; 16],
}

impl std::fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHash")
    }
}

impl KeyedHash {
    /// Uses the secret of the seen-set's hash, so that there is one secret to store.
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

    /// Draws a key from the random numbers that the standard library uses for its maps.
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
