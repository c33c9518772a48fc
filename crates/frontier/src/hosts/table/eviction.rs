//! Eviction: when the workbench is full, some hosts go to rows on the shelf.

use std::sync::Arc;

use super::rows::{NewRow, RowSizes};
use super::workbench::{HostMemory, Seat};
use super::{HostTable, Resident, Slot};
use crate::hosts::{HostRules, Shelf};
use crate::rules::ParseRules;
use crate::url::HostKey;

/// The hosts that are looked at for one access, of which some stay.
const LOOKS: usize = 512;

/// The most rows whose last hosts are moved when hosts are evicted.
const ROWS_CLEANED: usize = 16;

impl HostTable {
    /// Sets where rows lie, after the hosts were read from a store. Nothing is evicted before there is a bound.
    pub(crate) fn configure(&mut self, rules: HostRules, shelf: Arc<dyn Shelf>, parse: ParseRules, sizes: RowSizes) {
        self.rules = rules;
        if !self.rows.are_used() {
            for (key, slot) in &mut self.slots {
                if let Slot::Resident(resident) = slot {
                    self.workbench.add(key, resident);
                }
            }
        }
        self.rows.configure(shelf, parse, sizes);
    }

    /// Returns whether there are rows to put hosts in.
    pub(crate) fn may_be_on_disk(&self) -> bool {
        self.rows.are_used()
    }

    /// Returns what the hosts take.
    pub(crate) fn memory(&self) -> HostMemory {
        self.workbench.memory(self.slots.len(), self.rows.live())
    }

    /// Sets the bytes that resident hosts may take.
    pub(crate) fn set_most_resident(&mut self, bytes: u64) {
        self.workbench.set_most(bytes);
    }

    /// Evicts hosts if the workbench is full. Cost: O(hosts that are evicted), and a look at some others.
    pub(super) fn make_room(&mut self) {
        if !self.workbench.is_full() {
            return;
        }
        let at_once = 2 * self.rows.sizes.row_bytes as u64;
        let target = self.workbench.most().saturating_sub(at_once);
        let mut row = NewRow::default();
        let mut looks = LOOKS.min(2 * self.workbench.seats());
        while looks > 0 && (self.workbench.bytes() > target || !row.is_empty()) {
            looks -= 1;
            let Some(seat) = self.workbench.next(self.slots.len()) else {
                break;
            };
            let Some((index, key, slot)) = self.slots.get_full_mut(&seat.host) else {
                continue;
            };
            let Slot::Resident(resident) = slot else { continue };
            if !self.workbench.may_go(seat, resident) {
                continue;
            }
            self.copy.before_change(key, slot);
            if let Slot::Resident(resident) = slot
                && row.add(index, key, &resident.host)
                && row.len() >= self.rows.sizes.row_bytes
            {
                self.close(std::mem::take(&mut row));
            }
        }
        self.close(row);
        self.clean();
        self.workbench.set_full(at_once);
        let slots = &self.slots;
        let is_taken = |slot: Option<&Slot>, seat: &Seat| matches!(slot, Some(Slot::Resident(resident)) if resident.has_seat(seat));
        self.workbench.sweep(|seat| is_taken(slots.get(&seat.host), seat));
    }

    /// Puts a row on the shelf.
    fn close(&mut self, row: NewRow) {
        if row.is_empty() {
            return;
        }
        let workbench = &mut self.workbench;
        let gone = |resident: &Resident| workbench.remove(resident);
        self.rows.put(row, &mut self.slots, &self.rules, gone);
    }

    /// Moves the hosts of the oldest rows to a new one, once most of all rows are holes.
    fn clean(&mut self) {
        if self.rows.holes() <= self.rows.live() + self.rows.sizes.holes {
            return;
        }
        let mut row = NewRow::default();
        for oldest in self.rows.oldest(ROWS_CLEANED) {
            let copy = &mut self.copy;
            let before = |key: &HostKey, slot: &mut Slot| copy.before_change(key, slot);
            let is_read = self.rows.move_to(&mut row, oldest, &mut self.slots, before);
            if !is_read || row.len() >= self.rows.sizes.row_bytes {
                break;
            }
        }
        self.close(row);
    }
}
