//! The body of one answer: received under its cap, then decoded.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use frontier::Origin;
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Response as Answer, Version};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::classify::{Remedy, is_timeout, is_unexpected_end, remedy};
use super::decoding::{self, Coding, End};
use super::{BodyExtent, Response, TruncationReason};

/// The most that is set aside for a body because its length was announced, in bytes: an announcement costs the sender nothing.
const MOST_SET_ASIDE: u64 = 1024 * 1024;

/// How receiving a body came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Whole,
    /// The connection ended without `close_notify`, the alert that announces the end of TLS, and the body has no other end.
    ///
    /// RFC 9112, section 9.8, calls a body complete only if the alert came. But some servers never send it: all of their bodies would be
    /// incomplete, robots.txt included. So such an end is taken for the end of the body, as Chromium does, and as over plain http, where
    /// nothing announces the end either. The price is that a body that was cut there counts as whole. The first one that may be is logged.
    Unannounced,
    Cut(TruncationReason),
    /// What HTTP/2 does not bring, but HTTP/1.1 may.
    CutByHttp2,
}

/// Reads the body as far as it comes and may be read, and puts it into `answer`: whatever goes wrong, what was read by then is worth having.
/// `time` is from the start of the request to its deadline. `has_logged` says whether an unannounced end was logged. Returns whether HTTP/1.1
/// may bring what HTTP/2 did not.
pub(super) async fn read(
    mut from: Answer,
    cap: u64,
    time: Range<Instant>,
    answer: &mut Response,
    has_logged: &AtomicBool,
) -> bool {
    let encodings = from.headers().get_all(CONTENT_ENCODING).iter();
    let codings = decoding::codings(encodings.map(HeaderValue::as_bytes));
    let Some(codings) = codings else {
        (answer.extent, answer.truncation) = (BodyExtent::Truncated, Some(TruncationReason::Coding));
        return false;
    };
    let (received, end) = receive(&mut from, cap, time.end).await;
    answer.elapsed = time.start.elapsed();
    let unannounced = (end == Received::Unannounced).then(|| Origin::of(from.url()));
    let range = from.headers().get(CONTENT_RANGE);
    let is_part = answer.status == 206 && !range.is_some_and(|range| is_whole(range, received.len()));
    drop(from);
    // Decoding and parsing run through other code than receiving. So other tasks of this thread, which may receive, go on first, and the
    // processor loads that code less often.
    yield_now().await;
    let cut = finish(received, end, &codings, cap, answer);
    answer.truncation = cut.or(is_part.then_some(TruncationReason::Part));
    if answer.truncation.is_some() {
        answer.extent = BodyExtent::Truncated;
    } else if let Some(Some(origin)) = unannounced
        && !has_logged.swap(true, Ordering::Relaxed)
    {
        log::warn!(
            target: "crawler::fetch",
            "{origin} ends bodies without a length by closing the connection, and does not announce that (TLS close_notify). They count as \
             whole; if one was cut on its way, nothing shows it. Other origins that do so are not logged"
        );
    }
    end == Received::CutByHttp2
}

/// Returns whether a `Content-Range` such as `bytes 0-99/100` says that these bytes are all of the body (RFC 9110, section 14.4).
fn is_whole(range: &HeaderValue, bytes: usize) -> bool {
    let whole = format!("bytes 0-{}/{bytes}", bytes.saturating_sub(1));
    range.as_bytes().trim_ascii() == whole.as_bytes()
}

/// What was received, of at most `cap` bytes.
async fn receive(from: &mut Answer, cap: u64, deadline: Instant) -> (Vec<u8>, Received) {
    let announced = from.content_length();
    let ends_with_connection =
        announced.is_none() && !from.headers().contains_key(TRANSFER_ENCODING) && from.version() < Version::HTTP_2;
    let expected = announced.unwrap_or(0).min(cap).min(MOST_SET_ASIDE);
    let mut received = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    let end = loop {
        match timeout_at(deadline, from.chunk()).await {
            Ok(Ok(Some(piece))) => {
                let left = cap.saturating_sub(received.len() as u64);
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                received.extend_from_slice(piece.get(..left).unwrap_or(&piece));
                if piece.len() > left {
                    break Received::Cut(TruncationReason::Size);
                }
            }
            Ok(Ok(None)) => break Received::Whole,
            Ok(Err(error)) if is_timeout(&error) => break Received::Cut(TruncationReason::Time),
            Ok(Err(error)) if ends_with_connection && is_unexpected_end(&error) => break Received::Unannounced,
            // As if the connection had been used: one that was lost in a body, which may be long, is no fault of HTTP/2.
            Ok(Err(error)) if remedy(&error, true) == Some(Remedy::Http1) => break Received::CutByHttp2,
            Ok(Err(_)) => break Received::Cut(TruncationReason::Connection),
            Err(_) => break Received::Cut(TruncationReason::Time),
        }
    };
    (received, end)
}

/// Decodes what was received into `answer`. Returns why it is not the whole body, if so.
fn finish(
    received: Vec<u8>,
    end: Received,
    codings: &[Coding],
    cap: u64,
    answer: &mut Response,
) -> Option<TruncationReason> {
    let decoded = if codings.is_empty() {
        answer.body = received;
        End::Whole
    } else {
        let (body, decoded) = decoding::decode(codings, &received, usize::try_from(cap).unwrap_or(usize::MAX));
        answer.body = body;
        if let Some(exchange) = &mut answer.exchange {
            exchange.encoded_body = Some(received);
        }
        decoded
    };
    match (decoded, end) {
        // What was received was wrong before it came to an end.
        (End::Full, _) => Some(TruncationReason::Size),
        (End::Damaged, _) => Some(TruncationReason::Coding),
        (_, Received::Cut(why)) => Some(why),
        (_, Received::CutByHttp2) | (End::Missing, Received::Unannounced) => Some(TruncationReason::Connection),
        (End::Missing, Received::Whole) => Some(TruncationReason::Coding),
        (End::Whole, _) => None,
    }
}
