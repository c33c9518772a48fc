//! The pages of a file, line by line.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{PreviousPage, RecrawlError};
use crate::page::fingerprint::content_hash;

/// The maximum length of a line. The record of a page is always shorter, even with all its selected fields.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// An odd number, so that a product has as many values as its other factor.
const ODD: u64 = 0x0000_0100_0000_01B3;

/// An iterator over the pages of a file, from its current position.
pub(super) struct Pages<R> {
    path: PathBuf,
    reader: BufReader<R>,
    text: Vec<u8>,
    line: u64,
    has_pages: bool,
    hash: u64,
}

impl<R: Read> Pages<R> {
    pub(super) fn new(path: &Path, file: R) -> Self {
        Self {
            path: path.to_owned(),
            reader: BufReader::new(file),
            text: Vec::new(),
            line: 0,
            has_pages: false,
            hash: 0,
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Reads a line; false at the end.
    fn read_line(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.line += 1;
        let read = self
            .reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut self.text)?;
        let of_line = content_hash(&self.text).map_or(0, |hash| hash.value() as u64);
        self.hash = (self.hash ^ of_line).wrapping_mul(ODD);
        if read as u64 == MAX_LINE_BYTES && !self.text.ends_with(b"\n") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a line is longer than 64 MiB",
            ));
        }
        Ok(read > 0)
    }
}

impl<R: Read> Iterator for Pages<R> {
    type Item = Result<PreviousPage, RecrawlError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read_line() {
                Ok(false) => return None,
                Ok(true) if self.text.trim_ascii().is_empty() => {}
                Ok(true) => break,
                Err(source) => {
                    return Some(Err(RecrawlError::Read {
                        path: self.path.clone(),
                        source,
                    }));
                }
            }
        }
        let text = self.text.trim_ascii_start();
        match serde_json::from_slice(text) {
            Ok(page) => {
                self.has_pages = true;
                Some(Ok(page))
            }
            // A file that is one line of something else is no output of a crawl.
            Err(why) if !text.ends_with(b"\n") && (self.has_pages || why.is_eof() && text.starts_with(b"{")) => {
                log::warn!(
                    target: "crawler::recrawl",
                    path:% = self.path.display();
                    "the last line of {} is incomplete and was skipped",
                    self.path.display()
                );
                None
            }
            Err(why) => Some(Err(RecrawlError::Line {
                path: self.path.clone(),
                line: self.line,
                hint: other_format(&self.path, text),
                why,
            })),
        }
    }
}

fn other_format(path: &Path, line: &[u8]) -> &'static str {
    match (line, path.extension()) {
        ([0x1f, 0x8b, ..], _) => ", not compressed: unpack it with gunzip",
        ([0x28, 0xb5, 0x2f, 0xfd, ..] | [b'P', b'K', ..], _) => ", not compressed: unpack it",
        ([0xff, 0xfe, ..] | [0xfe, 0xff, ..], _) => ", not UTF-16",
        ([b'[', ..], _) => ", not a JSON array: jq -c '.[]' makes lines of it",
        (_, Some(end)) if end.eq_ignore_ascii_case("csv") => ", not CSV",
        _ => "",
    }
}
