//! Removal of what a checkpoint replaces, in slices over later commits: to free a page takes about as long as to write it.
//!
//! Opening needs none of it, so a crash in between does no harm: what is left is removed with the first commit after it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::store::{Batch, Space};

/// Values that are no longer needed, oldest first.
#[derive(Debug, Default)]
pub(super) struct Removal {
    left: VecDeque<Removed>,
}

/// Values of one space that are no longer needed.
#[derive(Debug)]
struct Removed {
    space: Space,
    keys: RangeInclusive<u64>,
    /// How many keys are removed with one commit.
    at_once: u64,
}

impl Removal {
    /// Adds values of about this size each, in bytes, of which each commit removes about `bytes_at_once`.
    pub(super) fn add(&mut self, space: Space, keys: RangeInclusive<u64>, value_bytes: u64, bytes_at_once: u64) {
        let at_once = (bytes_at_once / value_bytes.max(1)).max(1);
        self.left.push_back(Removed { space, keys, at_once });
    }

    /// Adds values that are removed with one commit.
    pub(super) fn add_whole(&mut self, space: Space, keys: RangeInclusive<u64>) {
        self.left.push_back(Removed {
            space,
            keys,
            at_once: u64::MAX,
        });
    }

    /// Adds the removal of some values to a batch. Returns whether any are left.
    pub(super) fn write(&mut self, batch: &mut Batch) -> bool {
        while let Some(removed) = self.left.front_mut() {
            let (first, last) = (*removed.keys.start(), *removed.keys.end());
            let end = last.min(first.saturating_add(removed.at_once - 1));
            batch.delete(removed.space, first..=end);
            let is_whole = removed.at_once == u64::MAX;
            if end < last {
                removed.keys = end + 1..=last;
                return true;
            }
            self.left.pop_front();
            if !is_whole {
                break;
            }
        }
        !self.left.is_empty()
    }
}
