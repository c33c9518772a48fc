//! A request and its answer as they were sent, for archives (WARC 1.1, ISO 28500:2017).

use std::fmt;
use std::net::SocketAddr;

use hyper::ext::ReasonPhrase;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::http::{Extensions, StatusCode, Version};
use url::{Position, Url};

/// What went over the wire, but for the body: that is [`Response::received_body`](super::Response::received_body).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The version that the server answered with.
    pub version: HttpVersion,
    /// What the request line names: path and query.
    pub target: String,
    /// The request's headers, in the order in which they were sent. Credentials are among them. HTTP/2 has no `host`, but
    /// `:authority`, which stands here as `host`.
    pub request_headers: Vec<Header>,
    /// The status.
    pub status: u16,
    /// The reason phrase; HTTP/2 has none, and the one of the standard stands here.
    pub reason: Vec<u8>,
    /// The answer's headers. Those of one name are in the order in which they were received, and stand where their first one
    /// was received.
    pub response_headers: Vec<Header>,
    /// The body as it was received, content codings not undone, cut as the body is. `None` when there were no codings: then
    /// it is the body itself.
    pub encoded_body: Option<Vec<u8>>,
    /// The address that was dialled; that of the proxy, if there is one.
    pub address: Option<SocketAddr>,
}

/// One header: its name in lower case, its value.
pub type Header = (String, Vec<u8>);

/// The version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}

/// The request of an exchange, kept from before it is sent.
pub(super) struct SentRequest {
    url: Url,
    headers: HeaderMap,
}

/// The answer of an exchange, without its body.
pub(super) struct Head<'a> {
    version: Version,
    status: StatusCode,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    address: Option<SocketAddr>,
}

impl<'a> Head<'a> {
    /// Returns the head of an answer, which came from this address.
    pub(super) fn of<B>(response: &'a hyper::Response<B>, address: Option<SocketAddr>) -> Self {
        Self {
            version: response.version(),
            status: response.status(),
            headers: response.headers(),
            extensions: response.extensions(),
            address,
        }
    }
}

impl SentRequest {
    pub(super) fn new(url: &Url, headers: &HeaderMap) -> Self {
        Self {
            url: url.clone(),
            headers: headers.clone(),
        }
    }

    pub(super) fn answered(self, head: &Head<'_>) -> Exchange {
        // Logins, cookies and the user's own headers are nobody else's business.
        let mut request_headers: Vec<_> = listed(&self.headers)
            .filter(|(value, _)| !value.is_sensitive())
            .map(|(_, header)| header)
            .collect();
        if !self.headers.contains_key(HOST) {
            // The HTTP library puts it at the end.
            let host = self.url[Position::BeforeHost..Position::AfterPort].as_bytes().to_vec();
            request_headers.push((HOST.as_str().to_owned(), host));
        }
        let said = head
            .extensions
            .get::<ReasonPhrase>()
            .map(|reason| reason.as_bytes().to_vec());
        let standard = || head.status.canonical_reason().unwrap_or_default().as_bytes().to_vec();
        Exchange {
            version: match head.version {
                Version::HTTP_09 | Version::HTTP_10 => HttpVersion::Http10,
                Version::HTTP_11 => HttpVersion::Http11,
                _ => HttpVersion::Http2,
            },
            target: self.url[Position::BeforePath..Position::AfterQuery].to_owned(),
            request_headers,
            status: head.status.as_u16(),
            reason: said.unwrap_or_else(standard),
            response_headers: listed(head.headers).map(|(_, header)| header).collect(),
            encoded_body: None,
            address: head.address,
        }
    }
}

fn listed(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderValue, Header)> {
    headers
        .iter()
        .map(|(name, value)| (value, (name.as_str().to_owned(), value.as_bytes().to_vec())))
}
