//! Hashes that a site cannot predict, with a key that can be stored.

use std::hash::{Hash, Hasher as _};

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
        let key = match hashing {
            Hashing::Murmur3 { seed } | Hashing::Xxh3 { seed } => {
                (u128::from(*seed) | u128::from(!seed) << 64).to_le_bytes()
            }
            Hashing::Hardened { key } => *key,
            // A hash of a later version.
            _ => return Self::with_secret_of(&Hashing::random_hardened()),
        };
        Self { key }
    }

    /// Hashes a value.
    pub(crate) fn of(self, value: impl Hash) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        value.hash(&mut hasher);
        hasher.finish()
    }
}
