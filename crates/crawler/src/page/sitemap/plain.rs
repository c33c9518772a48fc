//! A text file with one URL per line.

use std::io::BufRead;

use frontier::reference;

use super::unpack::Text;
use super::{EntryCollector, Lists, NotASitemap, Sitemap};

/// A longer line is not a URL.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Reads all lines. A line that is not an absolute URL counts as invalid; empty lines are ignored.
pub(super) fn read(text: &mut Text<'_>, mut found: EntryCollector<'_>) -> Result<Sitemap, NotASitemap> {
    let mut line = Vec::new();
    let broken = loop {
        match next_line(text, &mut line) {
            Ok(true) => {
                let url = String::from_utf8_lossy(&line);
                let url = url.trim();
                if !url.is_empty() {
                    let is_short = line.len() <= MAX_LINE_BYTES;
                    found.push_url(reference::resolve(None, url, None).ok().filter(|_| is_short), "");
                }
            }
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    if found.entries.is_empty() {
        return Err(NotASitemap::NoUrls);
    }
    Ok(found.into_sitemap(Lists::Pages, broken))
}

/// Reads up to the next CR or LF; from a line that is too long only its start. Returns whether there was a line.
///
/// A line that the size limit truncates does not count, because its URL would be a different one.
fn next_line(text: &mut Text<'_>, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    text.next_piece();
    let mut is_any = false;
    loop {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            return Ok(is_any && !text.was_cut());
        }
        is_any = true;
        let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        let room = (MAX_LINE_BYTES + 1).saturating_sub(line.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let used = piece.len() + usize::from(end.is_some());
        text.consume(used);
        text.next_piece();
        if end.is_some() {
            return Ok(true);
        }
    }
}
