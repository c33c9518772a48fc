//! Reads the parts of a checkpoint: one after the other, or as a stream.

use std::io::{self, Read};
use std::ops::Range;

use crate::error::OpenError;
use crate::store::{Space, Store};

/// Reads the parts with these keys. Each must be there.
pub(super) fn parts(store: &dyn Store, keys: Range<u64>) -> impl Iterator<Item = Result<Vec<u8>, OpenError>> {
    keys.map(|key| {
        let part = store.get(Space::Checkpoint, key)?;
        part.ok_or_else(|| OpenError::damaged("a part of the checkpoint is missing"))
    })
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

    pub(super) fn end<T>(self, read: Result<T, OpenError>) -> Result<T, OpenError> {
        self.error.map_or(read, Err)
    }
}

impl Read for PartsReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match parts(self.store, self.keys.clone()).next() {
                None => return Ok(0),
                Some(Ok(part)) => self.part = io::Cursor::new(part),
                Some(Err(error)) => {
                    self.error = Some(error);
                    return Err(io::Error::other("a part cannot be read"));
                }
            }
            self.keys.start += 1;
        }
    }
}
