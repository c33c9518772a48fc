//! From bytes to UTF-8 text: decompression, charset and their limits, on demand.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use encoding_rs::{CoderResult, Decoder};
use flate2::bufread::MultiGzDecoder;

use crate::page::charset;

/// How many layers of gzip are removed. Some servers compress a compressed file again without saying so.
const MAX_LAYERS: usize = 2;
/// How many bytes are searched for a declaration of the charset.
const START_BYTES: u64 = 1024;
/// Text is decoded in pieces of this size, in bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// Maximum length in bytes of one tag, text or comment, because it is in memory as a whole.
const MAX_PIECE_BYTES: usize = 1024 * 1024;

/// Removes the compression of `body`, and returns at most `max_bytes` of the rest as text.
pub(super) fn text<'b>(body: &'b [u8], content_type: Option<&str>, max_bytes: u64) -> Text<'b> {
    let (is_packed, mut bytes) = unpacked(body, max_bytes);
    let mut start = Vec::new();
    // An error returns with the next read.
    let _ = (&mut bytes).take(START_BYTES).read_to_end(&mut start);
    // The headers of a compressed file describe the compressed bytes, not the text.
    let encoding = charset::xml_file_encoding(&start, content_type.filter(|_| !is_packed));
    Text {
        decoder: encoding.new_decoder_with_bom_removal(),
        start: Cursor::new(start),
        bytes,
        piece: vec![0; PIECE_BYTES],
        from: 0,
        until: 0,
        at_end: false,
        room: MAX_PIECE_BYTES,
    }
}

fn unpacked(body: &[u8], max_bytes: u64) -> (bool, Capped<'_>) {
    let mut bytes: Box<dyn BufRead + '_> = Box::new(body);
    let mut is_packed = false;
    for _ in 0..MAX_LAYERS {
        if !bytes.fill_buf().is_ok_and(|start| start.starts_with(&[0x1f, 0x8b])) {
            break;
        }
        is_packed = true;
        bytes = Box::new(BufReader::with_capacity(PIECE_BYTES, MultiGzDecoder::new(bytes)));
    }
    let capped = Capped {
        bytes,
        left: max_bytes,
        was_cut: false,
    };
    (is_packed, capped)
}

/// Bytes up to a limit.
struct Capped<'b> {
    bytes: Box<dyn BufRead + 'b>,
    left: u64,
    was_cut: bool,
}

impl Read for Capped<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let count = from.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..count), from.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Capped<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.bytes.fill_buf()?;
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.was_cut |= left == 0 && !bytes.is_empty();
        Ok(bytes.get(..left).unwrap_or(bytes))
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.bytes.consume(count);
    }
}

/// The bytes as UTF-8 text. Malformed ones become U+FFFD.
pub(super) struct Text<'b> {
    decoder: Decoder,
    start: Cursor<Vec<u8>>,
    bytes: Capped<'b>,
    piece: Vec<u8>,
    from: usize,
    until: usize,
    at_end: bool,
    room: usize,
}

impl Text<'_> {
    /// Returns whether the limit was reached.
    pub(super) fn was_cut(&self) -> bool {
        self.bytes.was_cut
    }

    /// Resets the length allowance for the next tag, text or comment.
    pub(super) fn next_piece(&mut self) {
        self.room = MAX_PIECE_BYTES;
    }

    /// Decodes more bytes.
    fn refill(&mut self) -> io::Result<()> {
        let from_start = !self.start.fill_buf()?.is_empty();
        let bytes = if from_start {
            self.start.fill_buf()?
        } else {
            self.bytes.fill_buf()?
        };
        let is_last = bytes.is_empty();
        let (result, read, written, _) = self.decoder.decode_to_utf8(bytes, &mut self.piece, is_last);
        if from_start {
            self.start.consume(read);
        } else {
            self.bytes.consume(read);
        }
        (self.from, self.until) = (0, written);
        self.at_end = is_last && result == CoderResult::InputEmpty;
        Ok(())
    }
}

impl Read for Text<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Text<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.room == 0 {
            let why = format!("one tag or text is longer than {MAX_PIECE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        while self.from == self.until && !self.at_end {
            self.refill()?;
        }
        Ok(self.piece.get(self.from..self.until).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.from = self.until.min(self.from + count);
        self.room = self.room.saturating_sub(count);
    }
}
