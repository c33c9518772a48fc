//! Reads copies: a whole one, and those that continue it.

use super::super::mark::CopyMark;
use super::super::{HostTable, Resident, Slot};
use super::Piece;
use crate::hosts::host::Host;
use crate::rules::ParseRules;
use crate::url::HostKey;

/// Why a copy cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error("its hosts cannot be read: {0}")]
    Piece(#[from] postcard::Error),
    #[error("its hosts do not fit together")]
    Disagree,
}

/// Reads copies, part by part.
pub(crate) struct HostReader<'p> {
    pub(in super::super) hosts: HostTable,
    parse: &'p ParseRules,
    /// The beginning of a piece whose end is in the next part.
    rest: Vec<u8>,
    /// The number of the copy that is read; the whole one is the first.
    pub(in super::super) number: u32,
}

impl<'p> HostReader<'p> {
    pub(crate) fn new(parse: &'p ParseRules) -> Self {
        Self {
            hosts: HostTable::default(),
            parse,
            rest: Vec::new(),
            number: 1,
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

    /// Begins the next copy, which continues those before.
    ///
    /// # Errors
    ///
    /// The copy before is not complete.
    pub(crate) fn next_copy(&mut self) -> Result<(), HostsError> {
        if !self.rest.is_empty() {
            return Err(postcard::Error::DeserializeUnexpectedEnd.into());
        }
        self.begin_next();
        Ok(())
    }

    pub(in super::super) fn begin_next(&mut self) {
        self.number += 1;
        // Each copy has all rows.
        self.hosts.rows.clear();
    }

    fn add(&mut self, piece: Piece) -> Result<(), HostsError> {
        let fits = match piece {
            Piece::Row(row, total) => self.hosts.rows.add(row, total),
            Piece::Gone(key) => {
                self.remove(&key);
                true
            }
            Piece::Evicted(key, evicted) => self.put(key, Slot::Evicted(evicted)),
            Piece::Resident(key, host) => self.put_host(key, *host),
            Piece::Grown(key, earlier, lengths, mut host) => {
                self.put_earlier_in_front(&key, earlier, &lengths, &mut host) && self.put_host(key, *host)
            }
        };
        if fits { Ok(()) } else { Err(HostsError::Disagree) }
    }

    /// Completes a host by what the copy with the number `earlier` has of its queues. Returns false if that is not there.
    pub(in super::super) fn put_earlier_in_front(
        &mut self,
        key: &HostKey,
        earlier: u32,
        lengths: &[u32],
        host: &mut Host,
    ) -> bool {
        match self.hosts.slots.get_mut(key) {
            Some(Slot::Resident(before)) if before.mark.is_of(earlier) && earlier < self.number => {
                host.continue_from(&mut before.host, lengths)
            }
            _ => false,
        }
    }

    /// Removes a host of an earlier copy. This one may have it again.
    pub(in super::super) fn remove(&mut self, key: &HostKey) {
        let slots = &mut self.hosts.slots;
        if slots.get(key).is_some_and(|slot| !slot.mark().is_of(self.number)) {
            slots.swap_remove(key);
        }
    }

    pub(in super::super) fn put_host(&mut self, key: HostKey, mut host: Host) -> bool {
        host.parse_rules(self.parse);
        self.put(key, Slot::Resident(Box::new(Resident::new(host, CopyMark::default()))))
    }

    /// Returns false if this copy has the host already.
    pub(in super::super) fn put(&mut self, key: HostKey, mut slot: Slot) -> bool {
        *slot.mark_mut() = CopyMark::of(self.number);
        let before = self.hosts.slots.insert(key, slot);
        before.is_none_or(|before| !before.mark().is_of(self.number))
    }

    /// Returns the hosts.
    ///
    /// # Errors
    ///
    /// A copy that is not complete.
    pub(crate) fn finish(mut self) -> Result<HostTable, HostsError> {
        if !self.rest.is_empty() {
            return Err(postcard::Error::DeserializeUnexpectedEnd.into());
        }
        let HostTable { slots, rows, copy, .. } = &mut self.hosts;
        let mut evicted = slots.values().filter_map(Slot::evicted);
        let fits = evicted.all(|evicted| rows.count(evicted)) && rows.are_whole();
        copy.set_number(self.number);
        if fits {
            Ok(self.hosts)
        } else {
            Err(HostsError::Disagree)
        }
    }

    /// Returns the hosts that were read, of a copy that is not complete.
    pub(crate) fn finish_anyway(mut self) -> HostTable {
        let HostTable { slots, rows, .. } = &mut self.hosts;
        slots.retain(|_, slot| slot.evicted().is_none_or(|evicted| rows.count(evicted)));
        self.hosts
    }
}
