//! The proxy that all requests may go through.

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::Url;

use super::own_headers::Secret;

/// Why a proxy cannot be used. The message does not repeat it, for it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "the proxy cannot be used: write http://, https://, socks5:// (names are looked up here) or socks5h:// (by the proxy), then host and port"
)]
pub struct ProxyError;

/// A proxy for all requests.
#[derive(Debug, Clone)]
pub(super) struct UsableProxy {
    /// Its URL without the login, and the login. Its `Debug` leaves the login out.
    proxy: Intercept,
    /// Its name as it is looked up.
    pub(super) host: String,
}

impl UsableProxy {
    pub(super) fn new(text: &Secret) -> Result<Self, ProxyError> {
        let url = Url::parse(text.reveal()).map_err(|_| ProxyError)?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        let host = url.host_str().filter(|_| is_known).ok_or(ProxyError)?.to_owned();
        let matcher = Matcher::builder().all(url.as_str()).build();
        // It intercepts every URL.
        let proxy = matcher
            .intercept(&Uri::from_static("http://any.invalid/"))
            .ok_or(ProxyError)?;
        Ok(Self { proxy, host })
    }

    pub(super) fn uri(&self) -> &Uri {
        self.proxy.uri()
    }

    pub(super) fn is_socks(&self) -> bool {
        self.uri()
            .scheme_str()
            .is_some_and(|scheme| scheme.starts_with("socks"))
    }

    /// Says whether the proxy looks up the names of servers.
    pub(super) fn leaves_names(&self) -> bool {
        self.uri().scheme_str() != Some("socks5")
    }

    /// Returns the login of an HTTP proxy, as a `Proxy-Authorization` header.
    pub(super) fn basic_auth(&self) -> Option<&HeaderValue> {
        self.proxy.basic_auth()
    }

    /// Returns the login of a SOCKS proxy: user and password.
    pub(super) fn raw_auth(&self) -> Option<(&str, &str)> {
        self.proxy.raw_auth()
    }
}
