//! The body of one answer, piece by piece, under its caps.

use super::decoding::{Decoding, Room, Stop};
use super::{BodyExtent, Response, TruncationReason};

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
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), TruncationReason> {
        // Bytes that decode to nothing could be sent for ever.
        let left = self.cap.saturating_sub(self.received);
        self.received = self.received.saturating_add(piece.len());
        if let Some(encoded) = &mut self.encoded {
            encoded.extend_from_slice(piece.get(..left).unwrap_or(piece));
        }
        self.decoding.feed(piece, &mut self.body)?;
        if piece.len() > left {
            Err(TruncationReason::Size)
        } else {
            Ok(())
        }
    }

    /// Puts what came of it into the answer; `cut` is why it came to its end, if not by itself. `unended` is the reason if it did, and its
    /// codings lack their end.
    pub(super) fn finish(mut self, cut: Option<TruncationReason>, unended: TruncationReason, answer: &mut Response) {
        // What was received was wrong before it came to an end, though nobody has looked at it.
        let released = self.decoding.release(&mut self.body).err().map(TruncationReason::from);
        answer.truncation = released.or(cut).or_else(|| self.decoding.end().err().map(|_| unended));
        if answer.truncation.is_some() {
            answer.extent = BodyExtent::Truncated;
        }
        if let Some(exchange) = &mut answer.exchange {
            exchange.encoded_body = self.encoded;
        }
        answer.body = self.body.into_bytes();
    }
}

impl From<Stop> for TruncationReason {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Full => Self::Size,
            Stop::Damaged => Self::Coding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    const CAP: u64 = 10_000;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 1024);
        let mut stream = Compress::new_gzip(Compression::best(), 15);
        stream.compress_vec(bytes, &mut out, FlushCompress::Finish).unwrap();
        out
    }

    /// What comes of a gzip body of which these bytes arrive before `cut` ends it, announced as short and as long.
    fn received(bytes: &[u8], cut: Option<TruncationReason>) -> (Option<TruncationReason>, Vec<u8>) {
        let [short, long] = [None, Some(usize::MAX)].map(|announced| {
            let decoding = Decoding::of([b"gzip".as_slice()].into_iter(), announced).unwrap();
            let mut receiving = Receiving::new(decoding, None, CAP, false);
            let stopped = bytes.chunks(100).find_map(|piece| receiving.take(piece).err());
            let mut answer = Response::default();
            receiving.finish(stopped.or(cut), TruncationReason::Coding, &mut answer);
            (answer.truncation, answer.body)
        });
        assert!(short == long, "held back {:?}, streamed {:?}", short.0, long.0);
        short
    }

    #[test]
    fn why_a_body_is_cut_does_not_depend_on_when_it_is_looked_at() {
        let page: Vec<u8> = (0..9_000_u32)
            .map(|n| b'a' + (n.pow(2).wrapping_mul(0x9E37_79B9) >> 28) as u8)
            .collect();
        let whole = gzip(&page);
        let half = &whole[..whole.len() / 2];
        let mut damaged = whole.clone();
        damaged[whole.len() / 4..][..64].fill(0xFF);
        for cut in [None, Some(TruncationReason::Time), Some(TruncationReason::Connection)] {
            assert!(received(&whole, cut) == (cut, page.clone()), "{cut:?}");
            let (why, body) = received(half, cut);
            assert_eq!(why, cut.or(Some(TruncationReason::Coding)), "the end is missing");
            assert!(page.starts_with(&body) && body.len() > 1_000);
            let bomb = gzip(&vec![b'a'; 20 * page.len()]);
            let (why, body) = received(&bomb[..bomb.len() - 20], cut);
            assert_eq!((why, body.len() as u64), (Some(TruncationReason::Size), CAP), "{cut:?}");
            assert_eq!(received(&damaged, cut).0, Some(TruncationReason::Coding), "{cut:?}");
            assert_eq!(
                received(b"<title>plain</title>", cut).0,
                Some(TruncationReason::Coding),
                "{cut:?}"
            );
        }
    }
}
