//! Content codings: what was received → the body, under a cap.
//!
//! RFC 9110, section 8.4.1; RFC 1952 (gzip), 1950 and 1951 (deflate), 7932 (br), 8878 (zstd). Where these leave a choice, it
//! is that of browsers: `deflate` is zlib or bare deflate, bytes after the end of a gzip, zlib or brotli stream are ignored,
//! a name that nobody knows leaves the body as it is, and a stream that is damaged or ends too early gives what came before.
//! Streams are decoded as they arrive, straight into the body, so that a bomb costs no more memory than the cap allows.
//! Short gzip streams, most pages of the web, are held back until they are whole: decoding one at once takes little more
//! than half of the time.

mod codecs;

use codecs::Codec;

/// What is sent as `Accept-Encoding`, as browsers send it.
pub(super) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// The most codings that one body may have been through.
///
/// One is the rule; two come from a proxy that compresses what was compressed before. Each layer more multiplies what a bomb
/// costs by a thousand in time and adds a window in memory, and no honest server has a use for it.
const MAX_LAYERS: usize = 2;

/// The least that is set aside for a body that needs anything at all, in bytes.
const FIRST_ROOM: usize = 16 * 1024;
/// A body that is longer than this is large, and is given room for so much.
const LARGE: usize = 1024 * 1024;
const LARGE_ROOM: usize = 16 * 1024 * 1024;
/// Bytes that go from one layer to the next at a time.
const BETWEEN_LAYERS: usize = 16 * 1024;
/// The longest gzip stream that is held back, and the longest body that is made of one at once, in bytes.
const MOST_HELD: usize = 1024 * 1024;
const MOST_AT_ONCE: usize = 4 * 1024 * 1024;
/// How a gzip stream begins (RFC 1952, section 2.3.1): what does not is not held back.
const GZIP_HEAD: [u8; 3] = [0x1F, 0x8B, 8];
/// The flags of a gzip stream that decoders pass over: text, further fields, name, comment; not the checksum of its head.
const PLAIN_FLAGS: u8 = 0b0001_1101;

/// Why decoding has ended before the last byte was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The body would become longer than it may.
    Full,
    /// What was received is not what its codings should give.
    Damaged,
}

/// Bytes that are given a value ahead of what is written over them: they are in the cache then.
const ZEROED_AHEAD: usize = 16 * 1024;

/// A body that grows up to a cap.
#[derive(Debug)]
pub(super) struct Room {
    /// The body, and behind it zeros that are to be overwritten.
    bytes: Vec<u8>,
    filled: usize,
    cap: usize,
}

impl Room {
    /// Makes room for `expected` bytes at once, at most for `cap` of them ever.
    pub(super) fn new(expected: usize, cap: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(expected.min(cap)),
            filled: 0,
            cap,
        }
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.filled);
        self.bytes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let left = self.cap - self.filled;
        let fitting = bytes.get(..left).unwrap_or(bytes);
        self.bytes.truncate(self.filled);
        self.grow(fitting.len());
        self.bytes.extend_from_slice(fitting);
        self.filled = self.bytes.len();
        if fitting.len() < bytes.len() {
            Err(Stop::Full)
        } else {
            Ok(())
        }
    }

    /// Gives room for more, of one byte beyond the cap in the end: whoever fills that has too much.
    fn spare(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.grow(1);
            let ahead = self.filled.saturating_add(ZEROED_AHEAD);
            self.bytes.resize(self.bytes.capacity().min(ahead), 0);
        }
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// Gives room for a body of this length, if nothing was written yet and it may be as long.
    fn whole(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.filled > 0 || length > self.cap {
            return None;
        }
        self.grow_to(length);
        self.bytes.resize(length.max(self.bytes.len()), 0);
        self.bytes.get_mut(..length)
    }

    /// Takes note of what was written to the room that was given.
    fn fill(&mut self, written: usize) -> Result<(), Stop> {
        self.filled += written;
        if self.filled > self.cap {
            self.filled = self.cap;
            return Err(Stop::Full);
        }
        Ok(())
    }

    /// Doubles, as a vector does, but never beyond the cap and its one byte. A large body is given room once: to copy it takes half
    /// as much memory again, and room that is not written to takes none.
    fn grow(&mut self, more: usize) {
        let len = self.bytes.len();
        if self.bytes.capacity() - len < more {
            let doubled = self.bytes.capacity().saturating_mul(2).max(FIRST_ROOM);
            let wanted = if doubled > LARGE {
                doubled.max(LARGE_ROOM)
            } else {
                doubled
            };
            self.grow_to(wanted.min(self.cap.saturating_add(1)).max(len + more));
        }
    }

    fn grow_to(&mut self, length: usize) {
        self.bytes.reserve_exact(length.saturating_sub(self.bytes.len()));
    }
}

/// The codings of one body, to be undone.
pub(super) struct Decoding {
    /// The coding that was applied last comes first.
    layers: Vec<Layer>,
    /// What was received of a gzip stream that is decoded at once if it stays short.
    held: Option<Vec<u8>>,
}

impl Decoding {
    /// Reads the values of all `Content-Encoding` headers; `announced` is the length of what will be received, if that is known.
    ///
    /// # Errors
    ///
    /// More than [`MAX_LAYERS`].
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a [u8]>, announced: Option<usize>) -> Result<Self, Stop> {
        let mut layers = Vec::new();
        let names = headers.flat_map(|value| value.split(|&byte| byte == b','));
        for name in names.map(<[u8]>::trim_ascii) {
            if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            match Coding::named(name) {
                None => {
                    return Ok(Self {
                        layers: Vec::new(),
                        held: None,
                    });
                }
                Some(_) if layers.len() == MAX_LAYERS => return Err(Stop::Damaged),
                Some(coding) => layers.push(Layer::new(coding)?),
            }
        }
        layers.reverse();
        let is_gzip = matches!(layers.as_slice(), [only] if only.codec.is_gzip());
        let is_short = announced.is_none_or(|length| length <= MOST_HELD);
        Ok(Self {
            layers,
            held: (is_gzip && is_short).then(|| Vec::with_capacity(announced.unwrap_or(0))),
        })
    }

    /// Says whether the body is sent as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.layers.is_empty()
    }

    /// Says whether what is received is held back to the end, when the length of the body is known.
    pub(super) fn holds_back(&self) -> bool {
        self.held.is_some()
    }

    /// Takes what was received next, and adds what it stands for to the body, now or when it is [released](Self::release).
    ///
    /// # Errors
    ///
    /// There is no more to be had: the body holds what could be decoded and what it may hold.
    pub(super) fn feed(&mut self, received: &[u8], body: &mut Room) -> Result<(), Stop> {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(received);
            let is_gzip = held.iter().zip(&GZIP_HEAD).all(|(byte, magic)| byte == magic);
            if is_gzip && held.len() <= MOST_HELD {
                return Ok(());
            }
            let held = self.held.take().unwrap_or_default();
            return pump(&mut self.layers, &held, body);
        }
        pump(&mut self.layers, received, body)
    }

    /// Adds to the body what is held back; nothing more is received.
    ///
    /// # Errors
    ///
    /// Those of [`feed`](Self::feed), which are only known now.
    pub(super) fn release(&mut self, body: &mut Room) -> Result<(), Stop> {
        match self.held.take() {
            Some(held) if decode_at_once(&held, body) => Ok(()),
            Some(held) => pump(&mut self.layers, &held, body),
            None => Ok(()),
        }
    }

    /// Says that all was received, and released.
    ///
    /// # Errors
    ///
    /// A stream has begun and not come to its end.
    pub(super) fn end(&self) -> Result<(), Stop> {
        let is_cut = |layer: &Layer| matches!(layer.state, State::Within | State::Brimming);
        if self.layers.iter().any(is_cut) {
            Err(Stop::Damaged)
        } else {
            Ok(())
        }
    }
}

/// Makes the body of a whole gzip stream; false, and no body, if it is not whole or not sound, or long, or says more of itself than
/// servers do. Of streams made by hand, it takes a few that zlib refuses: with codes that their trees do not have, unused.
fn decode_at_once(stream: &[u8], body: &mut Room) -> bool {
    if stream.get(3).is_none_or(|flags| flags & !PLAIN_FLAGS != 0) {
        return false;
    }
    // RFC 1952, section 2.3.1: it ends with the length of the body modulo 2³², which need not be true.
    let length = stream.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let length = length.and_then(|length| usize::try_from(length).ok());
    let Some(room) = length
        .filter(|length| *length <= MOST_AT_ONCE)
        .and_then(|length| body.whole(length))
    else {
        return false;
    };
    codecs::gunzip(stream, room).is_some_and(|written| body.fill(written).is_ok())
}

fn pump(layers: &mut [Layer], mut input: &[u8], body: &mut Room) -> Result<(), Stop> {
    match layers {
        [] => body.push(input),
        [last] => loop {
            let (written, stepped) = last.step(&mut input, body.spare());
            body.fill(written)?;
            if stepped? == Step::NeedsInput {
                return Ok(());
            }
        },
        [layer, rest @ ..] => {
            let mut piece = vec![0; BETWEEN_LAYERS];
            loop {
                let (written, stepped) = layer.step(&mut input, &mut piece);
                layer.produced += written;
                pump(rest, piece.get(..written).unwrap_or_default(), body)?;
                // What is compressed has no reason to be longer than what it stands for.
                if layer.produced > body.cap.max(FIRST_ROOM) {
                    return Err(Stop::Full);
                }
                if stepped? == Step::NeedsInput {
                    return Ok(());
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// RFC 9110, section 8.4.1: names are compared without case, and `x-gzip` is another name of `gzip`.
    fn named(name: &[u8]) -> Option<Self> {
        let known: [(&[u8], Self); 5] = [
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
        ];
        let found = known.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, coding)| *coding)
    }
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing of it was received.
    Unborn,
    /// It needs input.
    Within,
    /// There is more to come out of what was taken in.
    Brimming,
    /// A frame of zstd is over; another one may follow.
    Between,
    /// What follows is ignored.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    NeedsInput,
    Again,
}

struct Layer {
    codec: Codec,
    state: State,
    /// Bytes that came out of it.
    produced: usize,
}

impl Layer {
    fn new(coding: Coding) -> Result<Self, Stop> {
        Ok(Self {
            codec: Codec::new(coding)?,
            state: State::Unborn,
            produced: 0,
        })
    }

    /// Decodes from the input into `out`, which must not be empty; how many bytes were written, and how it goes on.
    fn step(&mut self, input: &mut &[u8], out: &mut [u8]) -> (usize, Result<Step, Stop>) {
        if !self.can_go_on(input) {
            return (0, Ok(Step::NeedsInput));
        }
        let before = input.len();
        let mut written = 0;
        self.state = match self.codec.step(input, out, &mut written) {
            Ok(state) => state,
            Err(_) if self.state == State::Between => State::Ended,
            Err(stop) => return (written, Err(stop)),
        };
        let has_moved = input.len() < before || written > 0;
        let next = match self.can_go_on(input) {
            false => Ok(Step::NeedsInput),
            true if has_moved => Ok(Step::Again),
            true => Err(Stop::Damaged),
        };
        (written, next)
    }

    fn can_go_on(&self, input: &[u8]) -> bool {
        match self.state {
            State::Ended => false,
            State::Brimming => true,
            State::Unborn | State::Within | State::Between => !input.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};
    use zstd_safe::{InBuffer, OutBuffer};

    const CAP: usize = 1 << 20;

    /// The page below, as Google's encoder writes it.
    const BROTLI_PAGE: [u8; 52] = [
        27, 28, 1, 96, 140, 147, 92, 237, 242, 52, 66, 165, 131, 110, 44, 151, 243, 212, 31, 214, 196, 36, 106, 189,
        80, 193, 6, 28, 56, 133, 18, 71, 147, 232, 177, 232, 135, 229, 130, 130, 228, 81, 139, 48, 31, 173, 52, 63,
        126, 75, 146, 1,
    ];
    /// 64 MiB of one letter.
    const BROTLI_BOMB: [u8; 106] = [
        203, 255, 255, 63, 248, 37, 194, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 75, 0, 196, 97, 17, 128,
        238, 253, 31, 255, 255, 255, 224, 151, 0, 136, 195, 2, 0, 221, 251, 63, 254, 255, 255, 193, 47, 1, 16, 135, 5,
        0, 186, 247, 127, 252, 255, 255, 131, 95, 2, 32, 14, 11, 0, 116, 239, 255, 248, 255, 255, 7, 191, 4, 64, 28,
        22, 0, 232, 222, 255, 241, 255, 255, 15, 126, 9, 128, 56, 44, 0, 208, 189, 255, 203, 255, 255, 63, 252, 18, 0,
        113, 88, 0, 160, 123, 255, 7,
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

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        compressed(Compress::new(Compression::best(), true), bytes)
    }

    fn bare_deflate(bytes: &[u8]) -> Vec<u8> {
        compressed(Compress::new(Compression::best(), false), bytes)
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        zstd_safe::compress(&mut out, bytes, 19).unwrap();
        out
    }

    /// Every coding of the page: its header, and the bytes.
    fn pages() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("identity", page()),
            ("gzip", gzip(&page())),
            ("X-GZip", gzip(&page())),
            ("deflate", zlib(&page())),
            ("deflate", bare_deflate(&page())),
            ("br", BROTLI_PAGE.to_vec()),
            ("zstd", zstd(&page())),
            ("zstd", [zstd(&page()[..100]), zstd(&page()[100..])].concat()),
            ("gzip, zstd", zstd(&gzip(&page()))),
            ("br,gzip", gzip(&BROTLI_PAGE)),
            (", identity, deflate ,identity,deflate", zlib(&bare_deflate(&page()))),
        ]
    }

    /// Decodes what is announced as long, and without an announcement; both must come to the same.
    fn decode(names: &str, pieces: &[&[u8]], cap: usize) -> (Vec<u8>, Result<(), Stop>) {
        let streamed = decode_announced(names, pieces, cap, Some(usize::MAX));
        let held = decode_announced(names, pieces, cap, None);
        assert_eq!(held, streamed, "{names}, held back and streamed");
        streamed
    }

    fn decode_announced(
        names: &str,
        pieces: &[&[u8]],
        cap: usize,
        announced: Option<usize>,
    ) -> (Vec<u8>, Result<(), Stop>) {
        let mut room = Room::new(0, cap);
        let result = Decoding::of([names.as_bytes()].into_iter(), announced).and_then(|mut decoding| {
            pieces.iter().try_for_each(|piece| decoding.feed(piece, &mut room))?;
            decoding.release(&mut room)?;
            decoding.end()
        });
        let reserved = room.bytes.capacity();
        assert!(reserved <= cap + 1, "{reserved} bytes set aside");
        (room.into_bytes(), result)
    }

    #[test]
    fn every_coding_gives_the_page_however_it_is_cut_into_pieces() {
        for (names, bytes) in pages() {
            for length in [1, 2, 3, 7, bytes.len() - 1, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(length).collect();
                let (body, result) = decode(names, &pieces, CAP);
                assert_eq!((body, result), (page(), Ok(())), "{names} by {length} bytes");
            }
        }
    }

    #[test]
    fn a_body_may_be_as_long_as_the_cap_and_is_cut_beyond() {
        let page = page();
        for (names, bytes) in pages() {
            for cap in [0, 1, 2, 100, page.len() - 1] {
                let (body, result) = decode(names, &[&bytes], cap);
                assert_eq!(
                    (body.as_slice(), result),
                    (&page[..cap], Err(Stop::Full)),
                    "{names} up to {cap}"
                );
            }
            assert_eq!(decode(names, &[&bytes], page.len()), (page.clone(), Ok(())), "{names}");
        }
    }

    #[test]
    fn a_stream_that_ends_too_early_gives_what_came_before_and_says_so() {
        let page = page();
        for (names, bytes) in pages().into_iter().filter(|(names, _)| *names != "identity") {
            for length in 1..bytes.len() {
                let (body, result) = decode(names, &[&bytes[..length]], CAP);
                assert!(page.starts_with(&body), "{names}, {length} bytes of {}", bytes.len());
                // Between two frames a stream of zstd is whole.
                assert!(
                    result == Err(Stop::Damaged) || body.len() == 100,
                    "{names}, {length} bytes"
                );
            }
            assert_eq!(
                decode(names, &[], CAP),
                (Vec::new(), Ok(())),
                "{names}: no body at all is whole"
            );
        }
    }

    #[test]
    fn a_stream_that_is_longer_than_what_is_held_back_is_whole_all_the_same() {
        let noise: Vec<u8> = (0..MOST_HELD as u64)
            .flat_map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_le_bytes())
            .collect();
        let stream = gzip(&noise);
        assert!(stream.len() > MOST_HELD);
        let pieces: Vec<&[u8]> = stream.chunks(10_000).collect();
        for announced in [None, Some(MOST_HELD), Some(stream.len())] {
            let decoded = decode_announced("gzip", &pieces, 4 * noise.len(), announced);
            assert!(decoded == (noise.clone(), Ok(())), "announced as {announced:?}");
        }
    }

    #[test]
    fn a_stream_that_lies_about_the_length_of_its_body_is_damaged_and_gives_all_that_came() {
        let page = page();
        for lie in [0, 1, page.len() - 1, page.len() + 1, MOST_AT_ONCE, usize::MAX] {
            let mut stream = gzip(&page);
            let end = stream.len() - 4;
            stream[end..].copy_from_slice(&(lie as u32).to_le_bytes());
            assert_eq!(
                decode("gzip", &[&stream], 2 * MOST_AT_ONCE),
                (page.clone(), Err(Stop::Damaged)),
                "{lie} bytes"
            );
        }
    }

    #[test]
    fn short_streams_of_long_bodies_are_whole() {
        for length in [CAP, MOST_AT_ONCE, MOST_AT_ONCE + 1] {
            let body = page().into_iter().cycle().take(length).collect::<Vec<_>>();
            assert!(
                decode("gzip", &[&gzip(&body)], 2 * MOST_AT_ONCE) == (body, Ok(())),
                "{length}"
            );
        }
    }

    #[test]
    fn what_is_no_gzip_is_told_by_its_first_bytes() {
        for (bytes, cuts) in [(b"<title>plain</title>".as_slice(), 1), (&[0x1F, 0x8B, 9, 0, 0], 3)] {
            let (mut room, names) = (Room::new(0, CAP), [b"gzip".as_slice()]);
            let mut decoding = Decoding::of(names.into_iter(), None).unwrap();
            let fed = bytes.chunks(1).map(|byte| decoding.feed(byte, &mut room));
            let taken = fed.take_while(Result::is_ok).count();
            assert!(taken <= cuts, "{taken} bytes of {bytes:?} were waited for");
        }
    }

    #[test]
    fn a_wrong_checksum_of_the_head_is_damage() {
        let mut stream = gzip(&page());
        stream[3] |= 2;
        stream.splice(10..10, [0xDE, 0xAD]);
        assert_eq!(decode("gzip", &[&stream], CAP), (Vec::new(), Err(Stop::Damaged)));
    }

    #[test]
    fn what_follows_the_end_of_a_stream_is_ignored() {
        for (names, bytes) in pages().into_iter().filter(|(names, _)| *names != "identity") {
            for rest in [b"\0".as_slice(), b"<p>more", &[0xff; 100]] {
                let joined = [bytes.as_slice(), rest].concat();
                assert_eq!(decode(names, &[&joined], CAP), (page(), Ok(())), "{names}");
                assert_eq!(decode(names, &[&bytes, rest], CAP), (page(), Ok(())), "{names}");
            }
        }
    }

    #[test]
    fn plain_bytes_under_a_coding_are_damaged_and_under_an_unknown_name_they_are_the_body() {
        for names in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
            let (_, result) = decode(names, &[&page()], CAP);
            assert_eq!(result, Err(Stop::Damaged), "{names}");
        }
        for names in ["utf-8", "none", "gzip, aws-chunked", "", "identity"] {
            assert_eq!(decode(names, &[&page()], CAP), (page(), Ok(())), "{names}");
        }
    }

    #[test]
    fn damage_anywhere_gives_no_panic_and_no_more_than_the_cap() {
        for (names, bytes) in pages() {
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    let (body, _) = decode(names, &[&damaged], 10_000);
                    assert!(body.len() <= 10_000);
                }
            }
        }
    }

    #[test]
    fn bombs_stop_at_the_cap() {
        let zeros = vec![0; 4 << 20];
        let bombs = [
            ("gzip", gzip(&zeros)),
            ("deflate", bare_deflate(&zeros)),
            ("br", BROTLI_BOMB.to_vec()),
            ("zstd", zstd(&zeros)),
            // The layer between may hold no more than the body.
            ("gzip, gzip", gzip(&gzip(&zeros))),
            ("deflate, br", BROTLI_BOMB.to_vec()),
        ];
        for (names, bomb) in bombs {
            let (body, result) = decode(names, &[&bomb], CAP);
            if names == "deflate, br" {
                assert_eq!(result, Err(Stop::Damaged), "{names}: letters are no deflate");
            } else {
                assert_eq!((body.len(), result), (CAP, Err(Stop::Full)), "{names}");
            }
        }
    }

    #[test]
    fn more_layers_than_two_are_not_undone() {
        let thrice = gzip(&gzip(&gzip(&page())));
        assert_eq!(
            decode("gzip, gzip, gzip", &[&thrice], CAP),
            (Vec::new(), Err(Stop::Damaged))
        );
    }

    #[test]
    fn windows_larger_than_the_standards_allow_are_refused() {
        let (body, result) = decode("br", &[&BROTLI_LARGE_WINDOW], CAP);
        assert_eq!((body.len(), result), (0, Err(Stop::Damaged)));
        let mut stream = zstd_safe::CCtx::create();
        stream.set_parameter(zstd_safe::CParameter::WindowLog(24)).unwrap();
        let mut bytes = Vec::with_capacity(1 << 16);
        // Streamed, so that the frame does not announce its short length in place of a window.
        let mut output = OutBuffer::around(&mut bytes);
        stream
            .compress_stream(&mut output, &mut InBuffer::around(&page()))
            .unwrap();
        stream.end_stream(&mut output).unwrap();
        let (body, result) = decode("zstd", &[&bytes], CAP);
        assert_eq!((body.len(), result), (0, Err(Stop::Damaged)));
    }
}
