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
pub(super) struct PartsReader<P> {
    parts: P,
    part: io::Cursor<Vec<u8>>,
}

impl<P> PartsReader<P> {
    pub(super) fn new(parts: P) -> Self {
        let part = io::Cursor::default();
        Self { parts, part }
    }
}

impl<P: Iterator<Item = Result<Vec<u8>, OpenError>>> Read for PartsReader<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(part) = self.parts.next() else { return Ok(0) };
            self.part = io::Cursor::new(part.map_err(io::Error::other)?);
        }
    }
}
