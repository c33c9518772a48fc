//! The body of one answer, piece by piece, under its caps.

use super::decoding::{Decoding, Room, Stop};
use super::{Answer, Cut, Extent};

/// The most that is set aside for a body because its length was announced, in bytes: an announcement costs the sender nothing.
const MOST_SET_ASIDE: usize = 1024 * 1024;
/// How much longer HTML is than its compressed form, at most as a rule. What is set aside and not written to costs nothing.
const USUAL_RATIO: usize = 8;

/// A body that is being received.
pub(super) struct Receiving {
    decoding: Decoding,
    body: Room,
    /// As it was received, if it is kept and has codings.
    encoded: Option<Vec<u8>>,
    received: usize,
    cap: usize,
}

impl Receiving {
    /// `announced` is the `Content-Length`, `cap` the most bytes of the body, both as received and decoded.
    pub(super) fn new(decoding: Decoding, announced: Option<usize>, cap: u64, keep: bool) -> Self {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX - 1);
        let ratio = match () {
            () if decoding.holds_back() => 0,
            () if decoding.is_identity() => 1,
            () => USUAL_RATIO,
        };
        let expected = announced.unwrap_or(0).saturating_mul(ratio).min(MOST_SET_ASIDE);
        Self {
            encoded: (keep && !decoding.is_identity()).then(Vec::new),
            body: Room::new(expected, cap),
            received: 0,
            decoding,
            cap,
        }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    ///
    /// Why nothing more is wanted.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), Cut> {
        // Bytes that decode to nothing could be sent for ever.
        let left = self.cap.saturating_sub(self.received);
        self.received = self.received.saturating_add(piece.len());
        if let Some(encoded) = &mut self.encoded {
            encoded.extend_from_slice(piece.get(..left).unwrap_or(piece));
        }
        self.decoding.feed(piece, &mut self.body)?;
        if piece.len() > left { Err(Cut::Size) } else { Ok(()) }
    }

    /// Puts what came of it into the answer; `cut` is why it came to its end, if not by itself.
    pub(super) fn finish(mut self, cut: Option<Cut>, answer: &mut Answer) {
        let ended = self.decoding.end(&mut self.body);
        answer.cut = cut.or_else(|| ended.err().map(Cut::from));
        if answer.cut.is_some() {
            answer.extent = Extent::Truncated;
        }
        if let Some(exchange) = &mut answer.exchange {
            exchange.encoded_body = self.encoded;
        }
        answer.body = self.body.into_bytes();
    }
}

impl From<Stop> for Cut {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Full => Self::Size,
            Stop::Damaged => Self::Coding,
        }
    }
}
