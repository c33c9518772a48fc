//! The answer to each request.

use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;

use crawler::{Phase, StopHandle};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::watch;

use super::CONNECTIONS;
use super::events::{self, Place};
use super::scraper::Scraper;
use crate::metrics::CONTENT_TYPE as METRICS;
use crate::recorder::Watch;
use crate::report;

type Body = BoxBody<Bytes, Infallible>;

/// The longest order.
const MOST_BYTES_OF_ORDER: usize = 16 << 20;

const TEXT: &str = "text/plain; charset=utf-8";

/// Obeys an order, and returns the answer; an error if it was refused.
type Obey = Box<dyn Fn(Vec<u8>) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// What is served.
pub(super) struct Site {
    pub(super) watch: Watch,
    pub(super) handle: StopHandle,
    pub(super) token: String,
    /// Returns the name of an option by its field.
    pub(super) names: Box<dyn Fn(&str) -> String + Send + Sync>,
    pub(super) obey: Obey,
    /// Those who listen to events have a receiver.
    pub(super) listeners: watch::Sender<()>,
    pub(super) scraper: Scraper,
}

impl Site {
    /// `None` for an order that its [body](Self::obeyed) has.
    pub(super) fn answer<B>(self: &Arc<Self>, request: &Request<B>, place: &Place) -> Option<Response<Body>> {
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        if !host.is_some_and(is_own_name) {
            let why = "this server answers to its address and to localhost only: a name could belong to another site";
            return Some(text(StatusCode::FORBIDDEN, why));
        }
        let (method, path) = (request.method(), request.uri().path());
        let is_order = matches!(path, "/pause" | "/resume" | "/stop" | "/order");
        let is_read = *method == Method::GET || *method == Method::HEAD && path != "/events";
        Some(match path {
            _ if is_order && *method == Method::POST => {
                let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
                return self.order(path, given);
            }
            _ if is_order => not_allowed("POST"),
            _ if !is_read => not_allowed("GET"),
            "/metrics" => {
                let status = self.watch.status();
                let _ = place.metrics.set(status.as_of);
                page(METRICS, status.metrics())
            }
            "/status.json" => page("application/json", self.watch.status().to_json(&self.names).to_string()),
            "/series.json" => page("application/json", self.watch.status().series_to_json().to_string()),
            "/events" => self.events(place),
            "/healthz" => text(StatusCode::OK, "ok"),
            "/" => html(),
            "/page.css" => page("text/css", report::STYLE.to_owned()),
            "/page.js" => page("text/javascript", report::SCRIPT.to_owned()),
            _ => text(
                StatusCode::NOT_FOUND,
                "not found: there are /, /metrics, /healthz, /status.json, /series.json and /events",
            ),
        })
    }

    fn events(self: &Arc<Self>, place: &Place) -> Response<Body> {
        if self.listeners.receiver_count() >= CONNECTIONS {
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many clients listen to events");
        }
        let _ = place.listener.set(self.listeners.subscribe());
        let site = Arc::clone(self);
        let body = events::body(self.watch.clone(), move |status| {
            status.to_json(&site.names).to_string()
        });
        with_type("text/event-stream", Response::new(body.boxed()))
    }

    /// Obeys the order in a body.
    pub(super) async fn obeyed(&self, body: Incoming) -> Response<Body> {
        let Ok(order) = Limited::new(body, MOST_BYTES_OF_ORDER).collect().await else {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "the order is not whole, or too long");
        };
        let (status, answer) = match (self.obey)(order.to_bytes().to_vec()).await {
            Ok(answer) => (StatusCode::OK, answer),
            Err(answer) => (StatusCode::BAD_REQUEST, answer),
        };
        let mut answer = page("application/json", answer);
        *answer.status_mut() = status;
        answer
    }

    fn order(&self, path: &str, authorization: Option<&[u8]>) -> Option<Response<Body>> {
        let given = authorization.and_then(|given| given.strip_prefix(b"Bearer "));
        if !given.is_some_and(|given| is_equal(given, self.token.as_bytes())) {
            return Some(text(
                StatusCode::FORBIDDEN,
                "the token is missing or wrong: the log has it, at the start of the crawl",
            ));
        }
        let (is_new, what) = match path {
            "/pause" => (self.handle.pause(), "pausing until Resume, once requests have ended"),
            "/order" => return None,
            "/resume" => (self.handle.resume(), "continuing"),
            _ => {
                let is_new = self.handle.phase() != Phase::Stopping;
                self.handle.finish();
                (is_new, "stopping: finishing requests in flight")
            }
        };
        if is_new {
            log::warn!(target: "crawler::watch", "{what}, as the page asks");
        }
        let mut answer = Response::new(Full::default().boxed());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        Some(answer)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").finish_non_exhaustive()
    }
}

/// Returns whether a `Host` header (RFC 9110, section 7.2) is an address or `localhost`, with or without a port.
fn is_own_name(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    is_port(port) && (name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok())
}

/// Compares in a time that does not depend on where the difference is.
fn is_equal(given: &[u8], token: &[u8]) -> bool {
    let differences = given
        .iter()
        .zip(token)
        .fold(0, |differences, (a, b)| differences | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn page(media_type: &'static str, body: String) -> Response<Body> {
    with_type(media_type, Response::new(Full::from(body).boxed()))
}

/// Returns the page. It loads its own style and script, and its data; nothing else.
fn html() -> Response<Body> {
    let mut answer = page("text/html; charset=utf-8", report::PAGE.to_owned());
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'";
    answer
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

fn text(status: StatusCode, message: &'static str) -> Response<Body> {
    let mut answer = page(TEXT, format!("{message}\n"));
    *answer.status_mut() = status;
    answer
}

fn not_allowed(method: &'static str) -> Response<Body> {
    let why = "this method does not work here: POST is for /pause, /resume, /stop and /order";
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, why);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    answer
}

fn with_type(media_type: &'static str, mut answer: Response<Body>) -> Response<Body> {
    for (name, value) in [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::is_own_name;

    #[test]
    fn only_addresses_and_localhost_are_own_names() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "localhost:1",
            "LOCALHOST",
            "[::1]",
            "[::1]:80",
            "192.0.2.7:9",
        ] {
            assert!(is_own_name(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1",
            "[evil]:1",
            "127.0.0.1:x",
            "127.0.0.1:80@evil.example",
            "[::1]evil.example",
            "localhost:80:80",
        ] {
            assert!(!is_own_name(host.as_bytes()), "{host}");
        }
    }
}
