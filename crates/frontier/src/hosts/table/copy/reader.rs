//! Reads a copy.

use super::super::{HostTable, Resident, Slot};
use super::Piece;
use crate::rules::ParseRules;

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
        let hosts = &mut self.hosts;
        let fits = match piece {
            Piece::Group(group, total) => hosts.groups.add(group, total),
            Piece::Evicted(key, evicted) => hosts.slots.insert(key, Slot::Evicted(evicted)).is_none(),
            Piece::Resident(key, mut host) => {
                host.parse_rules(self.parse);
                let resident = Resident::new(*host, hosts.copy.number());
                hosts.slots.insert(key, Slot::Resident(Box::new(resident))).is_none()
            }
        };
        if fits { Ok(()) } else { Err(HostsError::Disagree) }
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
        let HostTable { slots, groups, .. } = &mut self.hosts;
        let mut evicted = slots.values().filter_map(Slot::evicted);
        let fits = evicted.all(|evicted| groups.count(evicted)) && groups.are_whole();
        if fits {
            Ok(self.hosts)
        } else {
            Err(HostsError::Disagree)
        }
    }

    pub(crate) fn finish_anyway(mut self) -> HostTable {
        let HostTable { slots, groups, .. } = &mut self.hosts;
        slots.retain(|_, slot| slot.evicted().is_none_or(|evicted| groups.count(evicted)));
        self.hosts
    }
}
