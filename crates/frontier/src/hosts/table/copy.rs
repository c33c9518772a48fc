//! A copy of all hosts as they were when it began, made in slices. A host is copied just before it changes or moves, and the others one
//! after the other. Of an evicted host the copy has its place only: rows that a copy names are kept.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::rows::{Evicted, Rows};
use super::{HostTable, Resident, Slot};
use crate::hosts::host::Host;
use crate::rules::ParseRules;
use crate::url::HostKey;

/// One piece of a copy.
#[derive(Debug, Serialize)]
enum PieceRef<'a> {
    Resident(&'a HostKey, &'a Host),
    Evicted(&'a HostKey, &'a Evicted),
    /// A row, and the number of hosts that it ever had.
    Row(u64, u32),
}

#[derive(Debug, Deserialize)]
enum Piece {
    Resident(HostKey, Box<Host>),
    Evicted(HostKey, Evicted),
    Row(u64, u32),
}

/// A copy that is made.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    number: u32,
    is_made: bool,
    /// All before this place in the table are copied.
    next: usize,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    error: Option<postcard::Error>,
}

impl HostCopy {
    /// Returns the number that a new host has, which is in no copy that is made.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Copies a host as it is, if it is not copied yet.
    pub(super) fn before_change(&mut self, key: &HostKey, slot: &mut Slot) {
        if !self.is_made || slot.copied_in() == self.number {
            return;
        }
        match slot {
            Slot::Resident(resident) => {
                resident.copied_in = self.number;
                self.add(&PieceRef::Resident(key, &resident.host));
            }
            Slot::Evicted(evicted) => {
                evicted.copied_in = self.number;
                self.add(&PieceRef::Evicted(key, evicted));
            }
        }
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
        match postcard::to_extend(piece, std::mem::take(&mut self.copied)) {
            Ok(copied) => self.copied = copied,
            Err(error) => self.error = Some(error),
        }
    }
}

impl HostTable {
    /// Begins a copy of all hosts as they are now. A copy that was not finished is dropped.
    ///
    /// Cost: O(rows).
    pub(crate) fn begin_copy(&mut self) {
        let copy = &mut self.copy;
        copy.number = copy.number.wrapping_add(1);
        copy.is_made = true;
        copy.next = 0;
        copy.copied.clear();
        for (row, total) in self.rows.totals() {
            copy.add(&PieceRef::Row(row, total));
        }
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call, and whether
    /// that was the rest.
    ///
    /// # Errors
    ///
    /// A host that cannot be written as bytes.
    pub(crate) fn copy_more(&mut self, bytes: usize) -> Result<(Vec<u8>, bool), postcard::Error> {
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
            None => Ok((std::mem::take(&mut copy.copied), is_all)),
        }
    }
}

/// Why a copy cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error("its hosts cannot be read: {0}")]
    Piece(#[from] postcard::Error),
    #[error("its hosts do not fit together")]
    Disagree,
}

/// Reads a copy, part by part.
pub(crate) struct HostReader<'p> {
    hosts: HostTable,
    parse: &'p ParseRules,
    /// The beginning of a piece whose end is in the next part.
    rest: Vec<u8>,
}

impl<'p> HostReader<'p> {
    pub(crate) fn new(parse: &'p ParseRules) -> Self {
        Self {
            hosts: HostTable::default(),
            parse,
            rest: Vec::new(),
        }
    }

    /// Reads a part.
    ///
    /// # Errors
    ///
    /// Bytes that are no part of a copy.
    pub(crate) fn read(&mut self, part: &[u8]) -> Result<(), HostsError> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(part);
        let mut left = &bytes[..];
        while !left.is_empty() {
            match postcard::take_from_bytes(left) {
                Ok((piece, after)) => {
                    self.add(piece)?;
                    left = after;
                }
                Err(postcard::Error::DeserializeUnexpectedEnd) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.rest = left.to_vec();
        Ok(())
    }

    fn add(&mut self, piece: Piece) -> Result<(), HostsError> {
        let HostTable { slots, rows, .. } = &mut self.hosts;
        let (is_new, fits) = match piece {
            Piece::Row(row, total) => (true, rows.add(row, total)),
            Piece::Evicted(key, evicted) => {
                let fits = rows.count(&evicted);
                (slots.insert(key, Slot::Evicted(evicted)).is_none(), fits)
            }
            Piece::Resident(key, mut host) => {
                host.parse_rules(self.parse);
                let resident = Slot::Resident(Box::new(Resident::new(*host, 0)));
                (slots.insert(key, resident).is_none(), true)
            }
        };
        if is_new && fits {
            Ok(())
        } else {
            Err(HostsError::Disagree)
        }
    }

    /// Returns the hosts.
    ///
    /// # Errors
    ///
    /// A copy that is not complete.
    pub(crate) fn finish(self) -> Result<HostTable, HostsError> {
        let rows: &Rows = &self.hosts.rows;
        if !self.rest.is_empty() {
            return Err(postcard::Error::DeserializeUnexpectedEnd.into());
        }
        if rows.are_whole() {
            Ok(self.hosts)
        } else {
            Err(HostsError::Disagree)
        }
    }
}
