//! Content codings: what was received → the body, under a cap. Alone in naming brotli-decompressor, libdeflater and zstd-safe.
//!
//! RFC 9110, section 8.4.1; RFC 1952 (gzip), 1950 and 1951 (deflate), 7932 (br), 8878 (zstd). Where these leave a choice, it is that of
//! browsers: `deflate` is zlib or bare deflate, bytes after the end of a gzip, zlib or brotli stream are ignored, a name that nobody knows
//! leaves the body as it is, and a stream that is damaged or ends too early gives what came before.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// What is sent as `Accept-Encoding`, as browsers send it.
pub(crate) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// The most codings that one body may have been through: each one more multiplies what a bomb costs by a thousand.
const MAX_LAYERS: usize = 2;
/// Bytes that go from one layer to the next at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// The longest body that is made of a gzip stream at once.
const MOST_AT_ONCE: usize = 4 * 1024 * 1024;
/// The most that is set aside for a body before it is decoded.
const MOST_SET_ASIDE: usize = 1024 * 1024;
/// How much longer HTML is than its compressed form, at most as a rule.
const USUAL_RATIO: usize = 8;
/// gzip and deflate have windows of up to 2¹⁵ bytes.
const ZLIB_WINDOW: u8 = 15;
/// The window that RFC 9659 allows in HTTP is of 2²³ bytes.
const ZSTD_WINDOW: u32 = 23;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// RFC 9110, section 8.4.1: names are compared without case, and `x-gzip` is another name of `gzip`.
    fn named(name: &[u8]) -> Option<Self> {
        match name.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Some(Self::Gzip),
            b"deflate" => Some(Self::Deflate),
            b"br" => Some(Self::Brotli),
            b"zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Reads the values of all `Content-Encoding` headers. Returns the codings in the order in which they are to be undone; `None` if there are more
/// than two.
pub(crate) fn codings<'h>(headers: impl Iterator<Item = &'h [u8]>) -> Option<Vec<Coding>> {
    let mut codings = Vec::new();
    let names = headers.flat_map(|value| value.split(|&byte| byte == b','));
    for name in names.map(<[u8]>::trim_ascii) {
        if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
            continue;
        }
        match Coding::named(name) {
            None => return Some(Vec::new()),
            Some(_) if codings.len() == MAX_LAYERS => return None,
            Some(coding) => codings.push(coding),
        }
    }
    codings.reverse();
    Some(codings)
}

/// How a body came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// It is longer than it may be.
    Full,
    /// The end of a stream is missing.
    Missing,
    Damaged,
}

/// Undoes codings, and returns at most `cap` bytes of the body.
pub(crate) fn decode(codings: &[Coding], received: &[u8], cap: usize) -> (Vec<u8>, End) {
    let Some((last, others)) = codings.split_last().filter(|_| !received.is_empty()) else {
        return (received.to_vec(), End::Whole);
    };
    if let [Coding::Gzip] = codings
        && let Some(body) = gunzip_at_once(received, cap)
    {
        return (body, End::Whole);
    }
    let mut coded: Box<dyn BufRead> = Box::new(received);
    for coding in others {
        // What is compressed has no reason to be longer than what it stands for.
        let piece = Layer::of(*coding, coded).take(cap.max(PIECE_BYTES) as u64);
        coded = Box::new(BufReader::with_capacity(PIECE_BYTES, piece));
    }
    let expected = received.len().saturating_mul(USUAL_RATIO).min(MOST_SET_ASIDE);
    let mut body = Vec::with_capacity(expected.min(cap));
    let read = Layer::of(*last, coded)
        .take((cap as u64).saturating_add(1))
        .read_to_end(&mut body);
    let end = match read {
        _ if body.len() > cap => End::Full,
        Ok(_) => End::Whole,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => End::Missing,
        Err(_) => End::Damaged,
    };
    body.truncate(cap);
    (body, end)
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
}

/// `None` if it is not whole or not sound, or long.
fn gunzip_at_once(stream: &[u8], cap: usize) -> Option<Vec<u8>> {
    // RFC 1952, section 2.3.1: the fourth byte has flags, of which one says that the head has a checksum, which libdeflate does not verify.
    // The stream ends with the length of the body modulo 2³², which need not be true.
    let has_checksum = stream.get(3)? & 2 != 0;
    let length = usize::try_from(u32::from_le_bytes(*stream.last_chunk()?)).ok()?;
    if has_checksum || length > cap.min(MOST_AT_ONCE) {
        return None;
    }
    // Zeros would come from memory that the system has yet to map, page by page: that takes longer than filling it.
    let mut body = vec![b' '; length];
    let written = DECOMPRESSOR.with_borrow_mut(|gunzip| gunzip.gzip_decompress(stream, &mut body));
    written.is_ok_and(|written| written == length).then_some(body)
}

enum Codec {
    Zlib(Decompress),
    // Boxed, for its state takes kilobytes.
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(DCtx<'static>),
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Within,
    /// It is whole; another one may follow.
    Between,
    /// What follows is ignored.
    Ended,
    Damaged,
}

impl Codec {
    /// Decodes from the input into `out`. Returns how much was read, how much was written, and how far the stream is.
    fn step(&mut self, coded: &[u8], out: &mut [u8], state: State) -> (usize, usize, State) {
        match self {
            Self::Zlib(stream) => {
                let before = (stream.total_in(), stream.total_out());
                let state = match stream.decompress(coded, out, FlushDecompress::None) {
                    Ok(Status::StreamEnd) => State::Ended,
                    Ok(_) => State::Within,
                    Err(_) => State::Damaged,
                };
                let moved = |after: u64, before: u64| usize::try_from(after - before).unwrap_or(usize::MAX);
                (
                    moved(stream.total_in(), before.0),
                    moved(stream.total_out(), before.1),
                    state,
                )
            }
            Self::Brotli(stream) => {
                let (mut read, mut written) = (0, 0);
                let (mut left, mut room, mut all) = (coded.len(), out.len(), 0);
                let result = BrotliDecompressStream(
                    &mut left,
                    &mut read,
                    coded,
                    &mut room,
                    &mut written,
                    out,
                    &mut all,
                    stream,
                );
                let state = match result {
                    BrotliResult::ResultSuccess => State::Ended,
                    BrotliResult::ResultFailure => State::Damaged,
                    BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => State::Within,
                };
                (read, written, state)
            }
            Self::Zstd(stream) => {
                let mut from = InBuffer::around(coded);
                let mut to = OutBuffer::around(out);
                let state = match stream.decompress_stream(&mut to, &mut from) {
                    Ok(0) => State::Between,
                    Ok(_) => State::Within,
                    // What follows a whole frame and is none is ignored.
                    Err(_) if state == State::Between => State::Ended,
                    Err(_) => State::Damaged,
                };
                (from.pos(), to.pos(), state)
            }
        }
    }
}

/// Undoes one coding.
struct Layer<R> {
    coded: R,
    codec: Codec,
    state: State,
}

impl<R: BufRead> Layer<R> {
    fn of(coding: Coding, mut coded: R) -> Self {
        let codec = match coding {
            Coding::Gzip => Codec::Zlib(Decompress::new_gzip(ZLIB_WINDOW)),
            Coding::Deflate => {
                // An error comes again with the next read.
                let is_zlib = is_zlib(coded.fill_buf().unwrap_or_default());
                Codec::Zlib(Decompress::new(is_zlib))
            }
            Coding::Brotli => {
                let alloc = StandardAlloc::default;
                // Strict: without the large windows, which RFC 7932 does not know.
                Codec::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
            }
            Coding::Zstd => {
                let mut stream = DCtx::create();
                // A window that can be set.
                let _ = stream.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW));
                Codec::Zstd(stream)
            }
        };
        Self {
            coded,
            codec,
            state: State::Within,
        }
    }
}

/// Returns whether a stream is zlib and not bare deflate, by its header (RFC 1950, section 2.2): a stored block of bare deflate that looked like one would have
/// padding other than zeros.
fn is_zlib(start: &[u8]) -> bool {
    match *start {
        [method, flags, ..] => method & 0x0F == 8 && u16::from_be_bytes([method, flags]) % 31 == 0,
        [method] => method & 0x0F == 8,
        [] => false,
    }
}

impl<R: BufRead> Read for Layer<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        loop {
            match self.state {
                State::Ended => return Ok(0),
                State::Damaged => return Err(ErrorKind::InvalidData.into()),
                State::Within | State::Between => {}
            }
            let coded = self.coded.fill_buf()?;
            let at_end = coded.is_empty();
            if at_end && self.state == State::Between {
                return Ok(0);
            }
            let (read, written, state) = self.codec.step(coded, out, self.state);
            self.coded.consume(read);
            self.state = state;
            if written > 0 || out.is_empty() {
                return Ok(written);
            }
            if state == State::Within && at_end {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if state == State::Within && read == 0 {
                self.state = State::Damaged;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    const CAP: usize = 1 << 20;

    /// The page below, as Google's encoder writes it.
    const BROTLI_PAGE: [u8; 52] = [
        27, 28, 1, 96, 140, 147, 92, 237, 242, 52, 66, 165, 131, 110, 44, 151, 243, 212, 31, 214, 196, 36, 106, 189,
        80, 193, 6, 28, 56, 133, 18, 71, 147, 232, 177, 232, 135, 229, 130, 130, 228, 81, 139, 48, 31, 173, 52, 63,
        126, 75, 146, 1,
    ];
    /// A kilobyte with a window of 2³⁰ bytes, which only an extension of brotli has.
    const BROTLI_LARGE_WINDOW: [u8; 13] = [17, 94, 252, 15, 224, 151, 8, 139, 198, 2, 1, 185, 1];

    fn page() -> Vec<u8> {
        format!("<title>Twelve</title>{}", "<a href=/next>next</a>".repeat(12)).into_bytes()
    }

    fn compressed(mut stream: Compress, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 1024);
        stream.compress_vec(bytes, &mut out, FlushCompress::Finish).unwrap();
        out
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        compressed(Compress::new_gzip(Compression::best(), 15), bytes)
    }

    fn deflate(bytes: &[u8], is_zlib: bool) -> Vec<u8> {
        compressed(Compress::new(Compression::best(), is_zlib), bytes)
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        zstd_safe::compress(&mut out, bytes, 19).unwrap();
        out
    }

    /// The page in every coding: its header, and the bytes.
    fn pages() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("gzip", gzip(&page())),
            ("X-GZip", gzip(&page())),
            ("deflate", deflate(&page(), true)),
            ("deflate", deflate(&page(), false)),
            ("br", BROTLI_PAGE.to_vec()),
            ("zstd", zstd(&page())),
            ("zstd", [zstd(&page()[..100]), zstd(&page()[100..])].concat()),
            ("gzip, zstd", zstd(&gzip(&page()))),
            ("br,gzip", gzip(&BROTLI_PAGE)),
            (
                ", identity, deflate ,identity,deflate",
                deflate(&deflate(&page(), false), true),
            ),
        ]
    }

    fn decoded(names: &str, received: &[u8], cap: usize) -> (Vec<u8>, End) {
        decode(&codings([names.as_bytes()].into_iter()).unwrap(), received, cap)
    }

    #[test]
    fn every_coding_gives_the_page_and_ignores_what_follows() {
        for (names, bytes) in pages() {
            for rest in [b"".as_slice(), b"\0", b"<p>more", &[0xFF; 100]] {
                let received = [bytes.as_slice(), rest].concat();
                assert_eq!(decoded(names, &received, CAP), (page(), End::Whole), "{names} {rest:?}");
            }
        }
        for names in ["utf-8", "none", "gzip, aws-chunked", "", "identity"] {
            assert_eq!(decoded(names, &page(), CAP), (page(), End::Whole), "{names}");
        }
        assert_eq!(codings([b"gzip, br, gzip".as_slice()].into_iter()), None);
    }

    #[test]
    fn a_body_may_be_as_long_as_the_cap_and_is_cut_beyond() {
        for (names, bytes) in pages() {
            for cap in [0, 1, 2, 100, page().len() - 1] {
                let cut = (page()[..cap].to_vec(), End::Full);
                assert_eq!(decoded(names, &bytes, cap), cut, "{names} up to {cap}");
            }
            assert_eq!(decoded(names, &bytes, page().len()), (page(), End::Whole), "{names}");
        }
        let zeros = vec![0; MOST_AT_ONCE + 1];
        assert!(decoded("gzip", &gzip(&zeros), zeros.len()) == (zeros.clone(), End::Whole));
        for (names, bomb) in [
            ("gzip", gzip(&zeros)),
            ("deflate", deflate(&zeros, false)),
            ("zstd", zstd(&zeros)),
            ("gzip, gzip", gzip(&gzip(&zeros))),
        ] {
            let (body, end) = decoded(names, &bomb, CAP);
            assert_eq!((body.len(), end), (CAP, End::Full), "{names}");
        }
    }

    #[test]
    fn a_stream_that_ends_too_early_gives_what_came_before_and_says_so() {
        for (names, bytes) in pages() {
            for length in 1..bytes.len() {
                let (body, end) = decoded(names, &bytes[..length], CAP);
                assert!(page().starts_with(&body), "{names}, {length} bytes of {}", bytes.len());
                // Between two frames a stream of zstd is whole. Of two layers, the inner one needs no more than its own end.
                let is_whole = body.len() == 100 || names.contains(',') && body == page();
                assert!(end == End::Missing || is_whole, "{names}, {length}: {end:?}");
            }
            assert_eq!(decoded(names, &[], CAP), (Vec::new(), End::Whole), "{names}: no body");
        }
    }

    #[test]
    fn damage_gives_what_came_before_and_no_more_than_the_cap() {
        for (names, bytes) in pages() {
            assert_eq!(decoded(names, &page(), CAP).1, End::Damaged, "{names}: plain text");
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    assert!(decoded(names, &damaged, 10_000).0.len() <= 10_000);
                }
            }
        }
        for lie in [0, 1, page().len() - 1, page().len() + 1, MOST_AT_ONCE, usize::MAX] {
            let mut stream = gzip(&page());
            let end = stream.len() - 4;
            stream[end..].copy_from_slice(&(lie as u32).to_le_bytes());
            assert_eq!(
                decoded("gzip", &stream, 2 * MOST_AT_ONCE),
                (page(), End::Damaged),
                "{lie}"
            );
        }
        let mut stream = gzip(&page());
        stream[3] |= 2;
        stream.splice(10..10, [0xDE, 0xAD]);
        assert_eq!(
            decoded("gzip", &stream, CAP),
            (Vec::new(), End::Damaged),
            "a wrong checksum"
        );
    }

    #[test]
    fn windows_larger_than_the_standards_allow_are_refused() {
        assert_eq!(decoded("br", &BROTLI_LARGE_WINDOW, CAP), (Vec::new(), End::Damaged));
        let mut stream = zstd_safe::CCtx::create();
        stream.set_parameter(zstd_safe::CParameter::WindowLog(24)).unwrap();
        let mut bytes = Vec::with_capacity(1 << 16);
        // Streamed, so that the frame does not announce its short length in place of a window.
        let mut output = OutBuffer::around(&mut bytes);
        stream
            .compress_stream(&mut output, &mut InBuffer::around(&page()))
            .unwrap();
        stream.end_stream(&mut output).unwrap();
        assert_eq!(decoded("zstd", &bytes, CAP), (Vec::new(), End::Damaged));
    }
}
