//! A request and its answer as they were sent, for archives (WARC 1.1, ISO 28500:2017).

use std::net::SocketAddr;

pub use reqwest::Version as HttpVersion;
use reqwest::header::{HOST, HeaderMap, HeaderValue};
use url::{Position, Url};

/// What went over the wire, but for the body: that is [`encoded_body`](Self::encoded_body), or the
/// [`body`](super::Response::body) of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpExchange {
    /// The version that the server answered with.
    pub version: HttpVersion,
    /// What the request line names: path and query.
    pub target: String,
    /// The request's headers, in the order in which they were sent. Credentials are among them. HTTP/2 has no `host`, but
    /// `:authority`, which stands here as `host`.
    pub request_headers: Vec<Header>,
    /// The status.
    pub status: u16,
    /// The reason phrase that the standard has for the status: the HTTP library does not tell the one that was sent.
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

/// One header: its name, in lower case but for requests over HTTP/1, and its value.
pub type Header = (String, Vec<u8>);

impl HttpExchange {
    pub(super) fn new(url: &Url, sent: &HeaderMap, answer: &reqwest::Response) -> Self {
        // Logins, cookies and the user's own headers are nobody else's business.
        let open = listed(sent).filter(|(value, _)| !value.is_sensitive());
        let mut request_headers: Vec<_> = open.map(|(_, header)| header).collect();
        if !sent.contains_key(HOST) {
            // The HTTP library puts it at the end.
            let host = url[Position::BeforeHost..Position::AfterPort].as_bytes().to_vec();
            request_headers.push((HOST.as_str().to_owned(), host));
        }
        if answer.version() < HttpVersion::HTTP_2 {
            request_headers
                .iter_mut()
                .for_each(|(name, _)| *name = title_case(name));
        }
        Self {
            version: answer.version(),
            target: url[Position::BeforePath..Position::AfterQuery].to_owned(),
            request_headers,
            status: answer.status().as_u16(),
            reason: answer.status().canonical_reason().unwrap_or_default().into(),
            response_headers: listed(answer.headers()).map(|(_, header)| header).collect(),
            encoded_body: None,
            address: answer.remote_addr(),
        }
    }
}

/// Writes the name of a header as it is sent over HTTP/1.
fn title_case(name: &str) -> String {
    let words = name.split_inclusive('-');
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

fn listed(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderValue, Header)> {
    headers
        .iter()
        .map(|(name, value)| (value, (name.as_str().to_owned(), value.as_bytes().to_vec())))
}
