//! The proxies that requests may go through.

use std::env;

use reqwest::{NoProxy, Proxy};
use url::Url;

use super::options::{ClientError, HttpOptions};

/// What proxies of the environment never get: to them it would be another machine. In all spellings of RFC 6761, section 6.3, RFC 1122,
/// section 3.2.1.3, and RFC 4291, section 2.5.
const LOOPBACK: &str = "localhost,localhost.,127.0.0.0/8,0.0.0.0,::1,::,::ffff:127.0.0.0/104,::ffff:0.0.0.0";

/// Returns the proxies of a crawl, each with its host.
pub(super) fn proxies_of(http: &HttpOptions) -> Result<Vec<(Proxy, String)>, ClientError> {
    match &http.proxy {
        Some(url) => Ok(vec![proxy_of(url.reveal(), "option", Proxy::all)?]),
        None if http.environment_proxies => of_environment(),
        None => Ok(Vec::new()),
    }
}

fn proxy_of(
    url: &str,
    source: &'static str,
    make: fn(Url) -> reqwest::Result<Proxy>,
) -> Result<(Proxy, String), ClientError> {
    let url = Url::parse(url).map_err(|_| ClientError::Proxy(source))?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let host = url.host_str().filter(|_| is_known);
    let host = host.ok_or(ClientError::Proxy(source))?.to_owned();
    let proxy = make(url).map_err(|_| ClientError::Proxy(source))?;
    Ok((proxy, host))
}

/// Reads the proxies of the environment as curl does. Says so in the log.
fn of_environment() -> Result<Vec<(Proxy, String)>, ClientError> {
    let get = |name: &str| {
        let names = [name.to_lowercase(), name.to_owned()];
        names
            .iter()
            .find_map(env::var_os)?
            .into_string()
            .ok()
            .filter(|value| !value.is_empty())
    };
    let others = get("NO_PROXY").unwrap_or_default().replace(char::is_whitespace, ",");
    if others.split(',').any(|host| host == "*") {
        return Ok(Vec::new());
    }
    let direct = NoProxy::from_string(&format!("{others},{LOOPBACK}"));
    let schemes: [(_, fn(Url) -> _); 2] = [("HTTP_PROXY", Proxy::http), ("HTTPS_PROXY", Proxy::https)];
    let mut proxies = Vec::new();
    for (name, make) in schemes {
        let Some(url) = get(name).or_else(|| get("ALL_PROXY")) else {
            continue;
        };
        let url = if url.contains("://") {
            url
        } else {
            format!("http://{url}")
        };
        let (proxy, host) = proxy_of(&url, name, make)?;
        log::info!(
            target: "crawler::fetch",
            "{} requests go through the proxy at {host}, as {name} or ALL_PROXY says, but for the hosts of NO_PROXY and this machine; to which \
             addresses it connects is not checked",
            if name == "HTTP_PROXY" { "http" } else { "https" }
        );
        proxies.push((proxy.no_proxy(direct.clone()), host));
    }
    Ok(proxies)
}
