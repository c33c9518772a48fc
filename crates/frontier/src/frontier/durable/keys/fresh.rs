//! The digests of the last rows, in memory.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The digests of the last rows.
#[derive(Debug)]
pub(super) enum Fresh {
    /// In the order of their arrival; nothing is looked up but by people.
    List(Vec<u128>),
    Set(HashSet<u128, BuildHasherDefault<LowWord>>),
}

impl Fresh {
    /// Makes an empty one.
    pub(super) fn new(is_looked_up: bool) -> Self {
        if is_looked_up {
            Self::Set(HashSet::default())
        } else {
            Self::List(Vec::new())
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
        }
    }

    pub(super) fn add(&mut self, digest: u128) {
        match self {
            Self::List(list) => list.push(digest),
            Self::Set(set) => {
                set.insert(digest);
            }
        }
    }

    pub(super) fn contains(&self, digest: u128) -> bool {
        match self {
            Self::List(list) => list.contains(&digest),
            Self::Set(set) => set.contains(&digest),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::List(list) => list.clear(),
            Self::Set(set) => set.clear(),
        }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = u128> + '_> {
        match self {
            Self::List(list) => Box::new(list.iter().copied()),
            Self::Set(set) => Box::new(set.iter().copied()),
        }
    }

    pub(super) fn take_sorted(&mut self) -> Vec<u128> {
        let mut digests = match self {
            Self::List(list) => std::mem::take(list),
            Self::Set(set) => set.drain().collect(),
        };
        digests.sort_unstable();
        digests
    }
}

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
