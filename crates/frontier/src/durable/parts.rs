//! Reads the parts of a checkpoint: joined, one after the other, or as a stream.

use std::io::{self, Read};
use std::ops::Range;

use super::error::{OpenError, StateError};
use crate::hosts::HostsError;
use crate::store::{Space, Store};

/// Joins the parts with these keys.
pub(super) fn joined(store: &dyn Store, keys: Range<u64>) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    visit_parts(store, keys, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

/// Visits parts of a checkpoint.
pub(super) fn visit_parts(
    store: &dyn Store,
    keys: Range<u64>,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), HostsError>,
) -> Result<(), OpenError> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut next = keys.start;
    let mut visited = Ok(());
    store.range(Space::Checkpoint, keys.start..=keys.end - 1, &mut |at, part| {
        if at == next && visited.is_ok() {
            visited = visit(&part);
            next += 1;
        }
        Ok(())
    })?;
    visited.map_err(StateError::from)?;
    if next == keys.end {
        Ok(())
    } else {
        Err(OpenError::Damaged("a part of the checkpoint is missing".to_owned()))
    }
}

/// Parts as a stream, of which one at a time is in memory.
pub(super) struct PartsReader<'s> {
    store: &'s dyn Store,
    keys: Range<u64>,
    part: io::Cursor<Vec<u8>>,
    /// Why the stream has ended with an error, which an error of reading has no place for.
    error: Option<OpenError>,
}

impl<'s> PartsReader<'s> {
    pub(super) fn new(store: &'s dyn Store, keys: Range<u64>) -> Self {
        Self {
            store,
            keys,
            part: io::Cursor::default(),
            error: None,
        }
    }

    /// Returns the result of reading, or the error of the store that was in the way.
    pub(super) fn end<T>(self, read: Result<T, StateError>) -> Result<T, OpenError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(read?),
        }
    }
}

impl Read for PartsReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(next) = self.keys.next() else { return Ok(0) };
            match joined(self.store, next..next + 1) {
                Ok(part) => self.part = io::Cursor::new(part),
                Err(error) => {
                    self.keys = 0..0;
                    self.error = Some(error);
                    return Err(io::Error::other("a part cannot be read"));
                }
            }
        }
    }
}
