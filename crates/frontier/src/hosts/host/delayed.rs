//! Retries that are not due yet, ordered by time.

use std::cmp::Ordering;

use crate::entry::Entry;

/// An entry that is not due yet. The earliest is the greatest, for a max-heap.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Delayed {
    pub(super) arrival: u64,
    pub(super) entry: Entry,
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.entry.due, other.arrival).cmp(&(self.entry.due, self.arrival))
    }
}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Delayed {}
