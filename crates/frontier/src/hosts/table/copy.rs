//! A copy of all hosts as they were when it began, made in slices. A host is copied just before it changes or moves, and the others one
//! after the other. Of an evicted host a copy has its place only: groups that a copy names are kept.

mod reader;
mod tests;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::groups::Evicted;
use super::{HostTable, Slot};
use crate::appended::append;
use crate::hosts::host::Host;
use crate::url::HostKey;
pub(crate) use reader::{HostReader, HostsError};

/// One piece of a copy.
#[derive(Debug, Serialize)]
enum PieceRef<'a> {
    Resident(&'a HostKey, &'a Host),
    Evicted(&'a HostKey, &'a Evicted),
    Group(u64, u32),
}

#[derive(Debug, Deserialize)]
enum Piece {
    Resident(HostKey, Box<Host>),
    Evicted(HostKey, Box<Evicted>),
    /// A group, and the number of hosts that it ever had.
    Group(u64, u32),
}

/// A copy that is made.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    number: u16,
    is_made: bool,
    /// All before this place in the table are copied.
    next: usize,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    error: Option<postcard::Error>,
}

impl HostCopy {
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Copies a host as it is, unless it is copied already, or no copy is made.
    pub(super) fn before_change(&mut self, key: &HostKey, slot: &mut Slot) {
        if !self.is_made || *slot.copied_in() == self.number {
            return;
        }
        *slot.copied_in() = self.number;
        self.add(&match slot {
            Slot::Evicted(evicted) => PieceRef::Evicted(key, evicted),
            Slot::Resident(resident) => PieceRef::Resident(key, &resident.host),
        });
    }

    /// Copies what the removal of a host would remove, or move to where all are copied.
    pub(super) fn before_removal(&mut self, slots: &mut IndexMap<HostKey, Slot>, index: usize) {
        for at in [index, slots.len().saturating_sub(1)] {
            if let Some((key, slot)) = slots.get_index_mut(at) {
                self.before_change(key, slot);
            }
        }
    }

    fn add(&mut self, piece: &PieceRef<'_>) {
        if let Err(error) = append(piece, &mut self.copied) {
            self.error = Some(error);
        }
    }
}

/// A slice of a copy.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) hosts: Vec<u8>,
    /// Whether it is the last slice.
    pub(crate) is_all: bool,
}

impl HostTable {
    /// Begins a copy of all hosts as they are now. One that was not finished is dropped.
    ///
    /// Cost: O(groups).
    pub(crate) fn begin_copy(&mut self) {
        let copy = &mut self.copy;
        copy.number = copy.number.wrapping_add(1);
        copy.is_made = true;
        copy.next = 0;
        copy.copied.clear();
        for (group, total) in self.groups.totals() {
            copy.add(&PieceRef::Group(group, total));
        }
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call.
    ///
    /// # Errors
    ///
    /// A host that cannot be written as bytes.
    pub(crate) fn copy_more(&mut self, bytes: usize) -> Result<Copied, postcard::Error> {
        let copy = &mut self.copy;
        while copy.copied.len() < bytes {
            let Some((key, slot)) = self.slots.get_index_mut(copy.next) else {
                break;
            };
            copy.before_change(key, slot);
            copy.next += 1;
        }
        let is_all = copy.next >= self.slots.len();
        copy.is_made &= !is_all;
        match copy.error.take() {
            Some(error) => Err(error),
            None => Ok(Copied {
                hosts: std::mem::take(&mut copy.copied),
                is_all,
            }),
        }
    }
}
