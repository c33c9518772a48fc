//! What an error of the HTTP library means: which [`FetchError`] it is ([`classify`]), and whether the request may be repeated at once
//! ([`remedy`]). Most errors are known by their type, some by their words only; `tests/it/client_errors.rs` and `tests/it/fetching.rs` fail if
//! a new version of the library has others. For fetchers with other libraries, `WORDS` in `frontier/failure.rs` does the same with text alone.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use frontier::failure::causes;
use h2::Reason;
use rustls::{AlertDescription as Alert, CertificateError as Certificate, PeerIncompatible as Incompatible};

use super::error::FetchError;

/// How the HTTP library begins what it says of a proxy that does not connect it.
pub(super) const PROXY_ERRORS: [&str; 2] = ["tunnel error", "SOCKS error"];

/// How the HTTP library words that a head is longer than it reads, or has more headers. It has no other sign of that.
const HEAD_TOO_LARGE: &str = "message head is too large";

/// How it words that a connection over HTTP/1 ended before an answer.
const CLOSED: &str = "connection closed before message completed";

/// Classifies why no head of an answer was received.
pub(super) fn classify(error: &reqwest::Error) -> FetchError {
    if let Some(dialling) = find::<FetchError>(error) {
        return dialling.clone();
    }
    if has_io_error(error, is_out_of_handles) {
        return FetchError::OutOfHandles;
    }
    if let Some(why) = find(error).and_then(|why| explained(why, error.is_connect())) {
        return FetchError::Tls(why);
    }
    if is_handshake_cut(error) {
        let why = "the server ends the connection in the TLS handshake; try http:// instead of https://";
        return FetchError::Tls(why.to_owned());
    }
    if find::<h2::Error>(error)
        .is_some_and(|error| error.is_library() && error.reason() == Some(Reason::PROTOCOL_ERROR))
    {
        let why = "it is not valid HTTP/2, as with a header that only HTTP/1 has (connection, keep-alive, upgrade)";
        // Unlike a malformed head it is asked again: over HTTP/1.1 it may be well.
        return FetchError::Broken(why.to_owned());
    }
    let last = last_cause(error);
    if let Some(why) = malformed(&last) {
        return FetchError::Malformed(why.to_owned());
    }
    match last {
        last if last == HEAD_TOO_LARGE => {
            FetchError::HeadTooLarge("may be, or longer than the 400 KiB that can be read".to_owned())
        }
        // Asked first: a connection that does not come about in time is both, and says that the host is down.
        last if error.is_connect() => FetchError::Connect(last),
        _ if is_timeout(error) => FetchError::Timeout,
        last => FetchError::Broken(last),
    }
}

/// What may get an answer that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    NewConnection,
    Http1,
}

/// Says how to repeat a request at once that got no whole answer. A server may close an idle connection at any time, also when a request is on
/// its way (RFC 9112, section 9.3.1). And some offer HTTP/2 without meaning it; the reason that they give may be lost with the connection.
pub(super) fn remedy(error: &reqwest::Error, is_reused: bool) -> Option<Remedy> {
    // HTTP/2 copies such an error without its number. Over TLS an end without its alert has none over HTTP/1 either.
    let may_be_http2 = |error: &io::Error| is_lost(error) && error.raw_os_error().is_none();
    match find::<h2::Error>(error).and_then(h2::Error::reason) {
        // It may be overloaded, or broken.
        Some(Reason::REFUSED_STREAM | Reason::CANCEL | Reason::ENHANCE_YOUR_CALM | Reason::INTERNAL_ERROR) => None,
        Some(Reason::NO_ERROR) if is_reused => Some(Remedy::NewConnection),
        Some(_) => Some(Remedy::Http1),
        None if error.is_connect() => None,
        None if is_reused => {
            let last = last_cause(error);
            // What cannot be read may be the rest of an earlier answer, longer than it said.
            let is_lost = has_io_error(error, is_lost) || last == CLOSED || malformed(&last).is_some();
            is_lost.then_some(Remedy::NewConnection)
        }
        None => has_io_error(error, may_be_http2).then_some(Remedy::Http1),
    }
}

fn find<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

fn has_io_error(error: &reqwest::Error, is_it: impl Fn(&io::Error) -> bool) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref()).any(is_it)
}

/// Says whether the time had run out.
pub(super) fn is_timeout(error: &reqwest::Error) -> bool {
    error.is_timeout() || has_io_error(error, |error| error.kind() == io::ErrorKind::TimedOut)
}

/// Says whether the connection ended, over TLS without the alert that announces it, or before all was there.
pub(super) fn is_unexpected_end(error: &reqwest::Error) -> bool {
    has_io_error(error, |error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// Says whether the limit of open files was met, the process's or the system's.
pub(super) fn is_out_of_handles(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Says what an error of TLS means to whoever runs the crawl; `None` if the next try may fare otherwise.
fn explained(error: &rustls::Error, is_handshake: bool) -> Option<String> {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible, PeerMisbehaved};
    let old = "the server has no version of TLS that this client trusts (1.2 or 1.3); try http:// instead of https://";
    let why = match error {
        InvalidCertificate(why) => {
            let why = match why {
                Certificate::Expired | Certificate::ExpiredContext { .. } => "it has expired",
                Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => "it is not valid yet",
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => "it is for another host",
                Certificate::UnknownIssuer => "it is not signed by an authority that this system trusts",
                Certificate::Revoked => "it was revoked",
                _ => "it is self-signed, or of a kind that is not understood",
            };
            return Some(format!(
                "the certificate is not trusted: {why}, of which a browser would warn; try to accept any certificate"
            ));
        }
        AlertReceived(Alert::ProtocolVersion)
        | PeerIncompatible(
            Incompatible::ServerDoesNotSupportTls12Or13 | Incompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => old,
        AlertReceived(Alert::HandshakeFailure) => {
            "the server refuses the TLS handshake: no cipher or version in common, or it wants a certificate of the client"
        }
        AlertReceived(Alert::InsufficientSecurity) | PeerIncompatible(_) | PeerMisbehaved(_) => {
            "the server and this client have no cipher or key exchange in common that is safe; try http:// instead of https://"
        }
        AlertReceived(Alert::UnrecognisedName) => "the server does not know this host; try another name of the site",
        AlertReceived(Alert::NoApplicationProtocol) => {
            "the server speaks neither HTTP/1.1 nor HTTP/2 here; try http://"
        }
        AlertReceived(Alert::CertificateRequired | Alert::BadCertificate | Alert::UnknownCA | Alert::AccessDenied) => {
            "the server asks for a certificate of the client, and there is none"
        }
        InvalidMessage(_) => "the server does not speak TLS here; try http:// instead of https://",
        // Of a connection that was made, another may fare otherwise.
        AlertReceived(alert) if is_handshake => {
            let mut words = String::new();
            for c in format!("{alert:?}").chars() {
                words.extend(c.is_uppercase().then_some(' '));
                words.extend(c.to_lowercase());
            }
            return Some(format!(
                "the server refuses the TLS handshake:{words} (alert {})",
                u8::from(*alert)
            ));
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Says whether a server ended a connection in the handshake of TLS. Where a proxy did, the tunnel has an error of its own.
fn is_handshake_cut(error: &reqwest::Error) -> bool {
    let is_secure = error.url().is_some_and(|url| url.scheme() == "https");
    let is_of_proxy =
        |cause: &(dyn Error + 'static)| PROXY_ERRORS.iter().any(|start| cause.to_string().starts_with(start));
    is_secure && error.is_connect() && has_io_error(error, is_lost) && !causes(error).any(is_of_proxy)
}

/// Returns the address that a failed connection was for. The HTTP library has it only in the debug text of the error.
pub(super) fn dialled(error: &reqwest::Error) -> Option<SocketAddr> {
    causes(error).find_map(|cause| {
        let text = format!("{cause:?}");
        let rest = text.strip_prefix("ConnectError(\"tcp connect error\", ")?;
        rest.split([',', ')']).next()?.parse().ok()
    })
}

fn last_cause(error: &reqwest::Error) -> String {
    let words = causes(error).last().map(ToString::to_string).unwrap_or_default();
    // The TLS library adds an address of its documentation.
    words.split(": https://").next().unwrap_or_default().to_owned()
}

/// Says what is wrong with a head that the HTTP library cannot read. It has no other sign of that than its words.
fn malformed(error: &str) -> Option<&'static str> {
    Some(match error {
        "invalid content-length parsed" => "the header Content-Length cannot be read",
        "unexpected transfer-encoding parsed" => "the header Transfer-Encoding cannot be read",
        "invalid HTTP header parsed" => "a header cannot be read",
        "invalid HTTP status-code parsed" => "the status in the first line cannot be read",
        _ if error.starts_with("invalid HTTP version") => "the first line is not that of HTTP/1; check scheme and port",
        _ => return None,
    })
}
