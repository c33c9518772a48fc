//! What is to be asked for again, by time.

use std::cmp::Ordering;

use crate::entry::Entry;

/// An entry that waits for its time; the earliest is the greatest, as a heap wants it.
#[derive(Debug)]
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
