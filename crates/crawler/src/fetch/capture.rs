//! A request and its answer, kept for archives.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use frontier::Time;

use crate::fetch::{BodyExtent, Exchange, FetchError, Response, TruncationReason};

/// One request and what was answered, as they went over the wire.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Capture {
    /// What was asked for: an absolute URL without fragment.
    pub url: String,
    /// When the request started, to the millisecond.
    pub started: SystemTime,
    /// Request and answer but for the body.
    pub exchange: Exchange,
    /// The body as it was received: without transfer codings, with content codings.
    pub body: Vec<u8>,
    /// How much of the body that is.
    pub extent: BodyExtent,
    /// Why it is not all of it.
    pub cut: Option<TruncationReason>,
}

impl Capture {
    /// Makes a capture of a whole body, such as to test an observer.
    pub fn new(url: impl Into<String>, started: SystemTime, exchange: Exchange, body: Vec<u8>) -> Self {
        Self {
            url: url.into(),
            started,
            exchange,
            body,
            extent: BodyExtent::Complete,
            cut: None,
        }
    }

    /// Takes what an answer has of it; `None` if the crawl does not keep exchanges or there was no answer.
    pub(crate) fn of(url: &str, started: Time, result: Result<Response, FetchError>) -> Option<Arc<Self>> {
        let answer = result.ok()?;
        let mut exchange = *answer.exchange?;
        Some(Arc::new(Self {
            url: url.to_owned(),
            started: UNIX_EPOCH + Duration::from_millis(started.as_millis()),
            body: exchange.encoded_body.take().unwrap_or(answer.body),
            exchange,
            extent: answer.extent,
            cut: answer.cut,
        }))
    }
}
