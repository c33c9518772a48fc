//! JSON objects, one per line, handed on in whole lines.

use std::io::{self, Write};

use serde::Serialize;

/// Lines are handed on when so many bytes have come together, or when somebody flushes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes JSON lines (<https://jsonlines.org>). Each `write` to what is behind it gets whole lines.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    to: W,
    waiting: Vec<u8>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            waiting: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, object: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, object)?;
        self.waiting.push(b'\n');
        if self.waiting.len() >= BUFFER_BYTES {
            self.hand_on()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.hand_on()?;
        self.to.flush()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        // What cannot be written is not tried again: half of it may be out.
        let waiting = std::mem::take(&mut self.waiting);
        self.to.write_all(&waiting)?;
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }
}

impl<W: Write> Drop for Lines<W> {
    /// For a crawl that ends by an error of another's: there is nobody left to tell of this one.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
