//! From bytes to text: decompression and charset.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, empty};

use flate2::bufread::GzDecoder;

use super::is_packed as starts_packed;
use crate::charset;

/// How many layers of gzip are removed. Some servers compress a compressed file again without saying so.
const MAX_LAYERS: usize = 2;
/// Bytes that go from one layer to the next at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Removes the compression of `body`. Returns at most `max_bytes` of the rest as text, with U+FFFD for malformed bytes, and why there is no more, if
/// the end is missing. The text of UTF-8 is borrowed.
pub(super) fn text<'b>(body: &'b [u8], content_type: Option<&str>, max_bytes: u64) -> (Cow<'b, str>, Option<String>) {
    let (mut unpacked, mut broken) = (Cow::Borrowed(body), None);
    let mut packed: Box<dyn BufRead + 'b> = Box::new(body);
    let mut is_packed = false;
    for _ in 0..MAX_LAYERS {
        if packed.fill_buf().is_ok_and(starts_packed) {
            is_packed = true;
            // Nor does one layer unpack to more: empty members inside members would take minutes.
            let layer = BufReader::with_capacity(PIECE_BYTES, GzipFile(GzDecoder::new(packed)));
            packed = Box::new(layer.take(max_bytes.saturating_add(1)));
        }
    }
    if is_packed {
        let mut bytes = Vec::new();
        let read = packed.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes);
        broken = read.err().map(|error| error.to_string());
        unpacked = Cow::Owned(bytes);
    }
    let kept = unpacked.len().min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    if kept < unpacked.len() {
        broken = Some(format!("the sitemap is longer than {max_bytes} bytes"));
    }
    // The headers of a compressed file describe the compressed bytes, not the text.
    let encoding = |bytes: &[u8]| charset::xml_file_encoding(bytes, content_type.filter(|_| !is_packed));
    let text = match unpacked {
        Cow::Borrowed(bytes) => {
            let bytes = bytes.get(..kept).unwrap_or_default();
            encoding(bytes).decode_with_bom_removal(bytes).0
        }
        Cow::Owned(mut bytes) => {
            bytes.truncate(kept);
            Cow::Owned(encoding(&bytes).decode_with_bom_removal(&bytes).0.into_owned())
        }
    };
    (text, broken)
}

/// A file that was compressed by gzip, of one stream or several; what follows them is ignored.
struct GzipFile<'f>(GzDecoder<Box<dyn BufRead + 'f>>);

impl Read for GzipFile<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        loop {
            let read = self.0.read(out).map_err(|error| match error.kind() {
                end @ ErrorKind::UnexpectedEof => Error::new(end, "the end of the compressed data is missing"),
                _ => ErrorKind::InvalidData.into(),
            })?;
            let file = self.0.get_mut();
            if read > 0 || out.is_empty() || !file.fill_buf()?.starts_with(&[0x1f]) {
                return Ok(read);
            }
            let next = std::mem::replace(file, Box::new(empty()));
            self.0 = GzDecoder::new(next);
        }
    }
}
