//! A table of which parts are missing: in its copy, or among its rows.

use super::copy::{HostReader, Piece};
use super::{HostTable, Resident, Slot};

impl HostReader<'_> {
    /// Reads what is between two gaps of a copy. It begins with a piece; what is left of the last one is dropped.
    pub(crate) fn read_between_gaps(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        while let Ok((piece, after)) = postcard::take_from_bytes(left) {
            self.add_with_gaps(piece);
            left = after;
        }
    }

    fn add_with_gaps(&mut self, piece: Piece) {
        let parse = self.parse;
        let HostTable { slots, rows, .. } = &mut self.hosts;
        match piece {
            Piece::Row(row, total) => rows.add_if_new(row, total),
            Piece::Evicted(key, evicted) if !slots.contains_key(&key) => {
                rows.count_anyway(&evicted);
                slots.insert(key, Slot::Evicted(evicted));
            }
            Piece::Resident(key, mut host) if !slots.contains_key(&key) => {
                host.parse_rules(parse);
                slots.insert(key, Slot::Resident(Box::new(Resident::new(*host, 0))));
            }
            Piece::Evicted(..) | Piece::Resident(..) => {}
        }
    }

    /// Returns the hosts of a copy with gaps.
    pub(crate) fn finish_with_gaps(mut self) -> HostTable {
        self.hosts.rows.remove_empty();
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
