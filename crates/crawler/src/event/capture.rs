//! What an archive keeps of a request and its answer.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frontier::Time;

use crate::fetch::{BodyExtent, FetchError, HttpExchange, Response, TruncationReason};

/// One request and its answer, as they were sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Capture {
    /// The URL of the request, absolute and without fragment.
    pub url: String,
    /// When the request started, to the millisecond.
    pub started: SystemTime,
    /// Request and answer but for the body.
    pub exchange: HttpExchange,
    /// The body as it was received: without transfer codings, with content codings.
    pub body: Vec<u8>,
    /// How much of the body was read.
    pub extent: BodyExtent,
    /// Why the body is truncated.
    pub truncation: Option<TruncationReason>,
}

impl Capture {
    /// Makes a capture of a complete body, for tests of observers.
    pub fn new(url: impl Into<String>, started: SystemTime, exchange: HttpExchange, body: Vec<u8>) -> Self {
        Self {
            url: url.into(),
            started,
            exchange,
            body,
            extent: BodyExtent::Complete,
            truncation: None,
        }
    }

    /// `None` if there was no answer, or if it has no exchange.
    pub(crate) fn from_result(url: &str, started: Time, result: Result<Response, FetchError>) -> Option<Arc<Self>> {
        let answer = result.ok()?;
        let mut exchange = *answer.exchange?;
        Some(Arc::new(Self {
            url: url.to_owned(),
            started: UNIX_EPOCH + Duration::from_millis(started.as_millis()),
            body: exchange.encoded_body.take().unwrap_or(answer.body),
            exchange,
            extent: answer.extent,
            truncation: answer.truncation,
        }))
    }
}
