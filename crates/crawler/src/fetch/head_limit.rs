//! Bounds what a server may send before the head of its answer.
//!
//! Neither hyper nor h2 limits how many interim heads (`100 Continue`, `103 Early Hints`; RFC 9110, section 15.2) come before the
//! final one. So each connection counts the bytes that it has received since the last final head:
//!
//! * HTTP/1: all bytes. A piece of a body starts the count anew, too.
//! * HTTP/2: all frames except `DATA`, because one connection carries several answers. Bodies may then be of any size, and floods of
//!   interim heads, pings, settings or unknown frames all meet the limit. The count starts anew with each final head on the connection.
//!
//! At the limit the connection fails, and all its requests with it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::tls_end::UnannouncedEnd;

/// How many bytes may come before a final head, besides the longest head that is allowed.
const MAX_BYTES_BEFORE_HEAD: usize = 1024 * 1024;

/// The count of one connection, shared with those who read its answers.
#[derive(Debug, Clone)]
pub(super) struct HeadLimit {
    received: Arc<AtomicUsize>,
    max: usize,
}

impl HeadLimit {
    /// `max_header_bytes` is the maximum size of a final head.
    pub(super) fn new(max_header_bytes: usize) -> Self {
        Self {
            received: Arc::default(),
            max: MAX_BYTES_BEFORE_HEAD.saturating_add(max_header_bytes),
        }
    }

    /// Starts the count anew: a final head was received, or over HTTP/1 a piece of a body.
    pub(super) fn restart(&self) {
        // A connection that has failed stays so.
        let restarted = |received| (received <= self.max).then_some(0);
        let _ = self
            .received
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, restarted);
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.received.load(Ordering::Relaxed) > self.max
    }

    /// The limit, in bytes.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    fn add(&self, bytes: usize) -> io::Result<()> {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        if self.is_exceeded() {
            return Err(io::Error::other("too much came before the head of the answer"));
        }
        Ok(())
    }
}

/// A connection that fails at its limit.
#[derive(Debug)]
pub(super) struct Limited<S> {
    stream: S,
    is_forwarded: bool,
    limit: HeadLimit,
    end: UnannouncedEnd,
    /// For HTTP/2.
    frames: Option<Frames>,
}

impl<S: Connection> Limited<S> {
    /// `is_forwarded` says whether the connection leads to a proxy that forwards requests for `http`.
    pub(super) fn new(stream: S, is_forwarded: bool, limit: HeadLimit) -> Self {
        Self {
            frames: stream.connected().is_negotiated_h2().then(Frames::default),
            stream,
            is_forwarded,
            limit,
            end: UnannouncedEnd::default(),
        }
    }
}

impl<S: Connection> Connection for Limited<S> {
    fn connected(&self) -> Connected {
        let info = self.stream.connected().proxy(self.is_forwarded);
        info.extra(self.limit.clone()).extra(self.end.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        match self.frames {
            Some(_) => read?,
            None => self.end.or_end(read)?,
        }
        let received = buf.filled().get(before..).unwrap_or_default();
        let counted = match &mut self.frames {
            Some(frames) => frames.bytes_besides_data(received),
            None => received.len(),
        };
        Poll::Ready(self.limit.add(counted))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The length of a frame's header (RFC 9113, section 4.1).
const FRAME_HEADER_BYTES: usize = 9;
/// The type of a `DATA` frame (RFC 9113, section 6.1).
const DATA: u8 = 0;

/// Where one frame of HTTP/2 ends and the next begins.
#[derive(Debug, Default)]
struct Frames {
    /// The header of the current frame, as far as it was received.
    header: [u8; FRAME_HEADER_BYTES],
    header_bytes: usize,
    /// Bytes of the current frame's payload that are still to come.
    payload_left: usize,
}

impl Frames {
    /// Returns how many of the bytes belong to frames that are not `DATA`.
    fn bytes_besides_data(&mut self, mut received: &[u8]) -> usize {
        let mut counted = 0;
        while let Some((&byte, rest)) = received.split_first() {
            if let Some(place) = self.header.get_mut(self.header_bytes) {
                *place = byte;
                self.header_bytes += 1;
                received = rest;
                if self.header_bytes == FRAME_HEADER_BYTES {
                    let [high, middle, low, kind, ..] = self.header;
                    self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                    if kind != DATA {
                        counted += FRAME_HEADER_BYTES;
                    }
                }
            } else {
                let payload = received.len().min(self.payload_left);
                self.payload_left -= payload;
                if self.header[3] != DATA {
                    counted += payload;
                }
                received = received.get(payload..).unwrap_or_default();
            }
            if self.header_bytes == FRAME_HEADER_BYTES && self.payload_left == 0 {
                self.header_bytes = 0;
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 1], &vec![7; payload]].concat()
    }

    #[test]
    fn frames_are_counted_except_data_however_they_are_cut() {
        let sent = [frame(4, 0), frame(DATA, 300), frame(1, 40), frame(DATA, 0), frame(6, 8)].concat();
        for size in 1..=sent.len() {
            let mut frames = Frames::default();
            let counted: usize = sent.chunks(size).map(|piece| frames.bytes_besides_data(piece)).sum();
            assert_eq!(counted, 9 + 49 + 17, "in pieces of {size} bytes");
        }
    }

    #[test]
    fn a_head_starts_the_count_anew_unless_the_limit_was_met() {
        let limit = HeadLimit::new(0);
        limit.add(MAX_BYTES_BEFORE_HEAD).unwrap();
        limit.restart();
        limit.add(MAX_BYTES_BEFORE_HEAD).unwrap();
        limit.add(1).unwrap_err();
        limit.restart();
        assert!(limit.is_exceeded());
    }
}
