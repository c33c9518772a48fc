//! The digests of the last rows, in memory.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The digests of the last rows.
pub(super) type Fresh = HashSet<u128, BuildHasherDefault<LowWord>>;

/// A digest is a hash already, under a secret: its lower word is as good as any.
#[derive(Debug, Default)]
pub(super) struct LowWord(u64);

impl Hasher for LowWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }
}
