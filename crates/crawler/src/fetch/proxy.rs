//! The proxies that requests may go through.

use std::env;

use reqwest::{NoProxy, Proxy};
use url::Url;

use super::options::{ClientError, HttpOptions};

/// What proxies of the environment never get: to them it would be another machine. In all spellings of RFC 6761, section 6.3, RFC 1122,
/// section 3.2.1.3, and RFC 4291, section 2.5.
const LOOPBACK: &str = "localhost,localhost.,127.0.0.0/8,0.0.0.0,::1,::,::ffff:127.0.0.0/104,::ffff:0.0.0.0";

pub(super) fn proxies_of(http: &HttpOptions) -> Result<Vec<(Proxy, String)>, ClientError> {
    match &http.proxy {
        Some(url) => {
            let proxy = proxy_of(url.reveal(), Proxy::all);
            Ok(vec![proxy.ok_or(ClientError::Proxy)?])
        }
        None if http.environment_proxies => of_environment(http.untrusted_seeds),
        None => Ok(Vec::new()),
    }
}

fn proxy_of(url: &str, make: fn(Url) -> reqwest::Result<Proxy>) -> Option<(Proxy, String)> {
    let url = Url::parse(url).ok()?;
    let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let host = url.host_str().filter(|_| is_known)?.to_owned();
    Some((make(url).ok()?, host))
}

/// In lower case if there is one, else in upper case.
fn variable(name: &str) -> Option<(String, String)> {
    let names = [name.to_owned(), name.to_uppercase()];
    let (name, value) = names
        .into_iter()
        .find_map(|name| env::var_os(&name).map(|value| (name, value)))?;
    let value = value.into_string().ok().filter(|value| !value.is_empty())?;
    Some((name, value))
}

/// Reads the proxies of the environment, and says so in the log. They are not for seeds that are not trusted, because nobody would check to
/// which addresses the names of these lead.
fn of_environment(untrusted_seeds: bool) -> Result<Vec<(Proxy, String)>, ClientError> {
    let (_, others) = variable("no_proxy").unwrap_or_default();
    let others = others.replace(char::is_whitespace, ",");
    if others.split(',').any(|host| host == "*") {
        return Ok(Vec::new());
    }
    let direct = NoProxy::from_string(&format!("{others},{LOOPBACK}"));
    let schemes: [(_, _, fn(Url) -> _); 2] = [
        ("http", "http_proxy", Proxy::http),
        ("https", "https_proxy", Proxy::https),
    ];
    let mut proxies = Vec::new();
    for (scheme, name, make) in schemes {
        let Some((name, url)) = variable(name).or_else(|| variable("all_proxy")) else {
            continue;
        };
        if untrusted_seeds {
            log::info!(
                target: "crawler::fetch",
                "the proxies of the environment are ignored, because the seeds are not trusted: a proxy connects to any address"
            );
            return Ok(Vec::new());
        }
        let url = match url.contains("://") {
            true => url,
            false => format!("http://{url}"),
        };
        let (proxy, host) = proxy_of(&url, make).ok_or_else(|| ClientError::EnvironmentProxy(name.clone()))?;
        log::info!(
            target: "crawler::fetch",
            "{scheme} requests go through the proxy at {host}, as {name} says, but for the hosts of NO_PROXY and this machine; to which \
             addresses it connects is not checked"
        );
        proxies.push((proxy.no_proxy(direct.clone()), host));
    }
    Ok(proxies)
}
