//! A file in memory that outlives the crawl.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;

#[derive(Clone, Default)]
pub(crate) struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MemoryFile {
    /// Its lines, each a JSON value.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines(&self.text())
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// The lines of a text, each a JSON value.
#[track_caller]
pub(crate) fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
