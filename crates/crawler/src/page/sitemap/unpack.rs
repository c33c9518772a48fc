//! From bytes to UTF-8 text: decompression, charset and their limits, on demand.

use std::io::{self, BufRead, Chain, Cursor, Read, Take};

use encoding_rs::{CoderResult, Decoder};

use crate::decoding::gunzip_file;
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
    let mut bytes: Box<dyn BufRead + 'b> = Box::new(body);
    let mut is_packed = false;
    for _ in 0..MAX_LAYERS {
        if !bytes.fill_buf().is_ok_and(|start| start.starts_with(&[0x1f, 0x8b])) {
            break;
        }
        is_packed = true;
        bytes = gunzip_file(bytes);
    }
    let mut bytes = bytes.take(max_bytes);
    let mut start = Vec::new();
    // An error returns with the next read.
    let _ = (&mut bytes).take(START_BYTES).read_to_end(&mut start);
    // The headers of a compressed file describe the compressed bytes, not the text.
    let encoding = charset::xml_file_encoding(&start, content_type.filter(|_| !is_packed));
    Text {
        decoder: encoding.new_decoder_with_bom_removal(),
        bytes: Cursor::new(start).chain(bytes),
        piece: vec![0; PIECE_BYTES],
        from: 0,
        until: 0,
        at_end: false,
        room: MAX_PIECE_BYTES,
    }
}

/// The bytes as UTF-8 text. Malformed ones become U+FFFD.
pub(super) struct Text<'b> {
    decoder: Decoder,
    bytes: Chain<Cursor<Vec<u8>>, Take<Box<dyn BufRead + 'b>>>,
    piece: Vec<u8>,
    from: usize,
    until: usize,
    at_end: bool,
    room: usize,
}

impl Text<'_> {
    /// Returns whether there is more beyond the limit.
    pub(super) fn was_cut(&mut self) -> bool {
        let (_, bytes) = self.bytes.get_mut();
        bytes.limit() == 0 && bytes.get_mut().fill_buf().is_ok_and(|rest| !rest.is_empty())
    }

    /// Resets the length allowance for the next tag, text or comment.
    pub(super) fn next_piece(&mut self) {
        self.room = MAX_PIECE_BYTES;
    }

    /// Decodes more bytes.
    fn refill(&mut self) -> io::Result<()> {
        let bytes = self.bytes.fill_buf()?;
        let is_last = bytes.is_empty();
        let (result, read, written, _) = self.decoder.decode_to_utf8(bytes, &mut self.piece, is_last);
        self.bytes.consume(read);
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
