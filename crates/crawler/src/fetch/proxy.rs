//! The proxy that all requests may go through.

use reqwest::Proxy;
use url::Url;

use super::own_headers::Secret;

/// Why a proxy cannot be used. The message does not repeat it, for it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "the proxy cannot be used: write http://, https://, socks5:// (names are looked up here) or socks5h:// (by the proxy), then host and port"
)]
pub struct ProxyError;

/// Returns a proxy for all requests, and its host.
pub(super) fn proxy_of(text: &Secret) -> Result<(Proxy, String), ProxyError> {
    let url = Url::parse(text.reveal()).map_err(|_| ProxyError)?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let host = url.host_str().filter(|_| is_known).ok_or(ProxyError)?.to_owned();
    let proxy = Proxy::all(url).map_err(|_| ProxyError)?;
    Ok((proxy, host))
}
