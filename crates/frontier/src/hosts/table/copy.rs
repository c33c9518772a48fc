//! Copies of all hosts as they were when each began, made in slices. A host is copied just before it changes or moves, and the others one
//! after the other. Of an evicted host a copy has its place only: rows that a copy names are kept.
//!
//! A copy is **whole**, or **continues** the one before: then it lacks the hosts that have not changed since that one began. Of a host that
//! has, it lacks the first bytes of the open segments of its queues, if an earlier copy has them: most queues only grow. It names the hosts
//! that are gone.

mod reader;
mod tests;

use std::collections::HashSet;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::mark::{CopyMark, Has};
use super::rows::Evicted;
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
    Row(u64, u32),
    Gone(&'a HostKey),
    Grown(&'a HostKey, u32, &'a [u32], &'a Host),
}

#[derive(Debug, Deserialize)]
pub(super) enum Piece {
    Resident(HostKey, Box<Host>),
    Evicted(HostKey, Evicted),
    /// A row, and the number of hosts that it ever had.
    Row(u64, u32),
    /// A host of the copy before that was removed. It may have come again since.
    Gone(HostKey),
    /// A host without the first bytes of the open segments of its queues. They are in an earlier copy of it, counted from 1, the whole
    /// one; of each queue, as many as follow.
    Grown(HostKey, u32, Vec<u32>, Box<Host>),
}

/// A copy that is made.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    number: u32,
    is_made: bool,
    /// Whether the last copy was made to its end, so that the next one can continue it.
    is_complete: bool,
    /// The number of the last whole copy.
    whole: u32,
    /// All before this place in the table are copied.
    next: usize,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    /// The hosts of the last copy that were removed since it began.
    gone: Vec<HostKey>,
    /// Those that were removed before it began, and are not copied yet.
    gone_before: Vec<HostKey>,
    /// The names of the hosts that are copied, or gone, if the copy continues another.
    names: Vec<u8>,
    error: Option<postcard::Error>,
}

impl HostCopy {
    /// Returns the mark of a new host, which is in no copy.
    pub(super) fn mark_of_new(&self) -> CopyMark {
        CopyMark {
            number: self.number,
            has: Has::Nothing,
        }
    }

    /// Sets the number of the copy that all hosts were read from, at most. The next one is whole.
    pub(super) fn set_number(&mut self, number: u32) {
        self.number = number;
    }

    /// Copies a host as it is, if it is not copied yet, and records that it changes.
    pub(super) fn before_change(&mut self, key: &HostKey, slot: &mut Slot) {
        self.copy_once(key, slot);
        let mark = slot.mark_mut();
        if mark.has == Has::Same {
            mark.has = Has::Older;
        }
    }

    /// Copies what the removal of a host would remove, or move to where all are copied.
    pub(super) fn before_removal(&mut self, slots: &mut IndexMap<HostKey, Slot>, index: usize) {
        for at in [index, slots.len().saturating_sub(1)] {
            if let Some((key, slot)) = slots.get_index_mut(at) {
                self.copy_once(key, slot);
            }
        }
        if let Some((key, slot)) = slots.get_index(index)
            && slot.mark().has != Has::Nothing
        {
            self.gone.push(key.clone());
        }
    }

    fn copy_once(&mut self, key: &HostKey, slot: &mut Slot) {
        let mark = slot.mark();
        if !self.is_made || mark.is_of(self.number) {
            return;
        }
        if self.is_whole() || mark.has != Has::Same {
            self.copy(key, slot);
        }
        *slot.mark_mut() = CopyMark {
            number: self.number,
            has: Has::Same,
        };
    }

    fn is_whole(&self) -> bool {
        self.whole == self.number
    }

    fn copy(&mut self, key: &HostKey, slot: &mut Slot) {
        self.add_name(key);
        let resident = match slot {
            Slot::Evicted(evicted) => return self.add(&PieceRef::Evicted(key, evicted)),
            Slot::Resident(resident) => resident,
        };
        let lengths = if self.is_whole() {
            Vec::new()
        } else {
            resident.host.copied()
        };
        if lengths.iter().all(|length| *length == 0) {
            self.add(&PieceRef::Resident(key, &resident.host));
        } else {
            let earlier = resident.written_in - self.whole + 1;
            let add = |host: &Host| self.add(&PieceRef::Grown(key, earlier, &lengths, host));
            resident.host.with_rest(add);
        }
        resident.host.is_copied();
        resident.written_in = self.number;
    }

    fn add(&mut self, piece: &PieceRef<'_>) {
        if let Err(error) = append(piece, &mut self.copied) {
            self.error = Some(error);
        }
    }

    fn add_name(&mut self, key: &HostKey) {
        if self.is_whole() {
            return;
        }
        if let Err(error) = append(key, &mut self.names) {
            self.error = Some(error);
        }
    }
}

/// A slice of a copy.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) hosts: Vec<u8>,
    /// The names of these hosts, and of those that are gone, if the copy continues another: without them, nobody could say what a part
    /// had that is lost. [`names_of`] reads them.
    pub(crate) names: Vec<u8>,
    /// Whether it is the last slice.
    pub(crate) is_all: bool,
}

impl HostTable {
    /// Begins a copy of all hosts as they are now. It continues the one before, unless that was not finished, or this one is to be whole.
    /// Returns whether it is whole.
    ///
    /// Cost: O(rows).
    pub(crate) fn begin_copy(&mut self, is_whole: bool) -> bool {
        let copy = &mut self.copy;
        let is_whole = is_whole || !copy.is_complete;
        copy.number = copy.number.wrapping_add(1);
        if is_whole {
            copy.whole = copy.number;
        }
        copy.is_made = true;
        copy.is_complete = false;
        copy.next = 0;
        copy.copied.clear();
        copy.names.clear();
        for (row, total) in self.rows.totals() {
            copy.add(&PieceRef::Row(row, total));
        }
        copy.gone_before = std::mem::take(&mut copy.gone);
        if is_whole {
            copy.gone_before = Vec::new();
        }
        is_whole
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call.
    ///
    /// # Errors
    ///
    /// A host that cannot be written as bytes.
    pub(crate) fn copy_more(&mut self, bytes: usize) -> Result<Copied, postcard::Error> {
        let copy = &mut self.copy;
        while copy.copied.len() < bytes
            && let Some(key) = copy.gone_before.pop()
        {
            copy.add(&PieceRef::Gone(&key));
            copy.add_name(&key);
        }
        while copy.copied.len() < bytes {
            let Some((key, slot)) = self.slots.get_index_mut(copy.next) else {
                break;
            };
            copy.copy_once(key, slot);
            copy.next += 1;
        }
        let is_all = copy.gone_before.is_empty() && copy.next >= self.slots.len();
        if is_all && copy.is_made {
            (copy.is_made, copy.is_complete) = (false, true);
        }
        match copy.error.take() {
            Some(error) => Err(error),
            None => Ok(Copied {
                hosts: std::mem::take(&mut copy.copied),
                names: std::mem::take(&mut copy.names),
                is_all,
            }),
        }
    }
}

/// Returns the names of hosts of a copy; `None` if these are no such bytes.
pub(crate) fn names_of(mut bytes: &[u8]) -> Option<HashSet<HostKey>> {
    let mut names = HashSet::new();
    while !bytes.is_empty() {
        let (name, rest) = postcard::take_from_bytes(bytes).ok()?;
        names.insert(name);
        bytes = rest;
    }
    Some(names)
}
