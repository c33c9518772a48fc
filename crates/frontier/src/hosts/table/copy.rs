//! A copy of all hosts as they were when it began, made in slices while they change: a checkpoint.
//!
//! ```text
//! slots  │ copied by an earlier slice │ next ▶ ... │ a host that changes or moves is copied just before
//! ```
//!
//! The number of the copy in each slot says whether it is in this one. A copy has names, each with a host or with the place of an evicted
//! one. The store keeps groups that a copy names until the next copy is whole, although a host that is used takes them from the table.

use indexmap::IndexMap;

use super::{HostTable, Slot};
use crate::appended::append;
use crate::error::OpenError;
use crate::rules::ParseRules;
use crate::url::HostKey;

/// A copy that is made.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    pub(super) number: u16,
    is_made: bool,
    /// All before this place in the table are copied.
    next: usize,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    error: Option<postcard::Error>,
}

impl HostCopy {
    /// Copies a host as it is, unless it is copied already, or no copy is made.
    pub(super) fn before_change(&mut self, key: &HostKey, slot: &mut Slot) {
        if !self.is_made || *slot.copied_in() == self.number {
            return;
        }
        *slot.copied_in() = self.number;
        if let Err(error) = append(&(key, &*slot), &mut self.copied) {
            self.error = Some(error);
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
}

impl HostTable {
    /// Begins a copy of all hosts as they are now. One that was not finished is dropped.
    pub(crate) fn begin_copy(&mut self) {
        let copy = &mut self.copy;
        copy.number = copy.number.wrapping_add(1);
        copy.is_made = true;
        copy.next = 0;
        copy.copied.clear();
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call, and whether
    /// that is all.
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

fn unreadable(error: postcard::Error) -> OpenError {
    OpenError::damaged(format_args!("its hosts cannot be read: {error}"))
}

/// Reads a copy, part by part.
pub(crate) struct HostReader<'p> {
    hosts: HostTable,
    parse: &'p ParseRules,
    /// The beginning of a host whose end is in the next part.
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
    pub(crate) fn read(&mut self, part: &[u8]) -> Result<(), OpenError> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(part);
        let mut left = &bytes[..];
        while !left.is_empty() {
            let ((key, mut slot), after): ((HostKey, Slot), _) = match postcard::take_from_bytes(left) {
                Ok(read) => read,
                Err(postcard::Error::DeserializeUnexpectedEnd) => break,
                Err(error) => return Err(unreadable(error)),
            };
            if let Slot::Resident(resident) = &mut slot {
                resident.host.parse_rules(self.parse);
            }
            if self.hosts.slots.insert(key, slot).is_some() {
                return Err(OpenError::damaged("its hosts do not fit together"));
            }
            left = after;
        }
        self.rest = left.to_vec();
        Ok(())
    }

    /// Returns the hosts.
    ///
    /// # Errors
    ///
    /// A copy that is not complete.
    pub(crate) fn finish(self) -> Result<HostTable, OpenError> {
        if self.rest.is_empty() {
            Ok(self.hosts)
        } else {
            Err(unreadable(postcard::Error::DeserializeUnexpectedEnd))
        }
    }

    /// The hosts of a copy that may not be complete.
    pub(crate) fn finish_anyway(self) -> HostTable {
        self.hosts
    }
}
