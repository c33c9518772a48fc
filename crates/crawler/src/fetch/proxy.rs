//! The proxy that all requests may go through.

use reqwest::Proxy;
use url::Url;

use super::options::{ClientError, Secret};

/// Returns a proxy for all requests, and its host.
pub(super) fn proxy_of(text: &Secret) -> Result<(Proxy, String), ClientError> {
    let url = Url::parse(text.reveal()).map_err(|_| ClientError::Proxy)?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let host = url
        .host_str()
        .filter(|_| is_known)
        .ok_or(ClientError::Proxy)?
        .to_owned();
    let proxy = Proxy::all(url).map_err(|_| ClientError::Proxy)?;
    Ok((proxy, host))
}
