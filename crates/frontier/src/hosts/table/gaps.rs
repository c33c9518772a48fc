//! A table of which parts are missing: in its copy, or among its rows.

use std::collections::HashSet;

use super::copy::{HostReader, Piece};
use super::{HostTable, Slot};
use crate::url::HostKey;

impl HostReader<'_> {
    /// Reads what is between two gaps of a copy. It begins with a piece; what is left of the last one is dropped. Returns whether nothing is.
    pub(crate) fn read_between_gaps(&mut self, bytes: &[u8]) -> bool {
        let mut left = bytes;
        while let Ok((piece, after)) = postcard::take_from_bytes(left) {
            self.add_with_gaps(piece);
            left = after;
        }
        left.is_empty()
    }

    /// Begins the next copy, which continues those before.
    pub(crate) fn next_copy_with_gaps(&mut self) {
        self.begin_next();
    }

    /// Drops the hosts that the copy has changed, but that were not read from it: they are as they were before. `None` for all that were not
    /// read from it, because nobody knows.
    pub(crate) fn drop_older(&mut self, changed: Option<&HashSet<HostKey>>) {
        let number = self.number;
        let is_older = |key: &HostKey| changed.is_none_or(|changed| changed.contains(key));
        self.hosts
            .slots
            .retain(|key, slot| slot.mark().is_of(number) || !is_older(key));
    }

    fn add_with_gaps(&mut self, piece: Piece) {
        match piece {
            Piece::Row(row, total) => self.hosts.rows.add_if_new(row, total),
            Piece::Gone(key) => self.remove(&key),
            Piece::Evicted(key, evicted) => {
                self.put(key, Slot::Evicted(evicted));
            }
            Piece::Resident(key, host) => {
                self.put_host(key, *host);
            }
            Piece::Grown(key, earlier, lengths, mut host) => {
                if self.put_earlier_in_front(&key, earlier, &lengths, &mut host) {
                    self.put_host(key, *host);
                } else {
                    // A part of its queue is missing, and what an earlier copy has of it may be that of another time.
                    self.hosts.slots.swap_remove(&key);
                }
            }
        }
    }

    /// Returns the hosts of a copy with gaps.
    pub(crate) fn finish_with_gaps(mut self) -> HostTable {
        let HostTable { slots, rows, copy, .. } = &mut self.hosts;
        copy.set_number(self.number);
        let evicted = slots.values().filter_map(Slot::evicted);
        evicted.for_each(|evicted| rows.count_anyway(evicted));
        rows.remove_empty();
        self.hosts
    }
}

impl HostTable {
    /// Visits the numbers of the rows with evicted hosts.
    pub(crate) fn visit_rows(&self, visit: &mut dyn FnMut(u64)) {
        self.rows.totals().for_each(|(row, _)| visit(row));
    }

    /// Drops the hosts whose rows are missing. Returns their number.
    pub(crate) fn drop_rows(&mut self, is_missing: &dyn Fn(u64) -> bool) -> u64 {
        let before = self.slots.len();
        self.slots
            .retain(|_, slot| !matches!(slot, Slot::Evicted(evicted) if is_missing(evicted.row)));
        self.rows.drop_rows(is_missing);
        (before - self.slots.len()) as u64
    }
}
