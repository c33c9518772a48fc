//! Removal of what a checkpoint replaces, in slices over later commits: to free a page takes about as long as to write it.
//!
//! Opening needs none of it, so a crash in between does no harm: what is left is removed after it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::store::{Batch, Space};

/// Values that are no longer needed, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Removal {
    left: VecDeque<Removed>,
}

/// Values of one space that are no longer needed.
#[derive(Debug, Serialize, Deserialize)]
struct Removed {
    space: Space,
    keys: RangeInclusive<u64>,
    /// About how many bytes each value has. 0 if all are removed with one commit.
    value_bytes: u64,
}

impl Removal {
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// If all are removed with one commit, `value_bytes` is 0.
    pub(super) fn add(&mut self, space: Space, keys: RangeInclusive<u64>, value_bytes: u64) {
        if !keys.is_empty() {
            self.left.push_back(Removed {
                space,
                keys,
                value_bytes,
            });
        }
    }

    /// Adds the removal of some values to a batch, at least of one: about `bytes_at_once` bytes, and what is removed whole. Returns whether any
    /// are left.
    pub(super) fn write(&mut self, batch: &mut Batch, bytes_at_once: u64) -> bool {
        let (mut bytes, mut is_first) = (bytes_at_once, true);
        while let Some(removed) = self.left.front_mut() {
            let (first, last) = (*removed.keys.start(), *removed.keys.end());
            let most = match bytes.checked_div(removed.value_bytes) {
                None => u64::MAX,
                Some(most) => most.max(u64::from(is_first)),
            };
            if most == 0 {
                break;
            }
            let end = last.min(first.saturating_add(most - 1));
            batch.delete(removed.space, first..=end);
            if end < last {
                removed.keys = end + 1..=last;
                break;
            }
            if removed.value_bytes > 0 {
                let values = (end - first).saturating_add(1);
                bytes = bytes.saturating_sub(values.saturating_mul(removed.value_bytes));
                is_first = false;
            }
            self.left.pop_front();
        }
        !self.left.is_empty()
    }
}
