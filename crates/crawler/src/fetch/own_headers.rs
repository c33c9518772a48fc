//! The user's headers, sent to the origins of the seeds only, and logins, each sent to its origin only.
//!
//! An origin is scheme, host and port (RFC 6454), as for browsers. What is meant for one is never sent to another, whatever
//! links and redirects say.

use std::collections::{HashMap, HashSet};

use data_encoding::BASE64;
use frontier::Origin;
use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::options::{ClientError, Secret};

/// Headers that the HTTP client makes itself, or that would break the connection.
const RESERVED: &str = "host connection content-length expect keep-alive te transfer-encoding upgrade user-agent \
    proxy-authorization";

/// Headers and logins, each with the origins that they are meant for.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnHeaders {
    seeds: HashSet<Origin>,
    headers: HeaderMap,
    logins: HashMap<Origin, HeaderValue>,
}

impl OwnHeaders {
    /// `headers` are for the origins of the seeds; a login without an origin is for that of the first one. A seed that has
    /// user name and password is a login for its origin.
    pub(super) fn new(seeds: &[Url], headers: &[Secret], logins: &[Secret]) -> Result<Self, ClientError> {
        let mut own = Self {
            seeds: seeds.iter().filter_map(Origin::of).collect(),
            ..Self::default()
        };
        for header in headers {
            let (name, value) = header_of(header.reveal())?;
            own.headers.append(name, value);
        }
        for seed in seeds {
            if let (Some(login), Some(origin)) = (login_of_url(seed), Origin::of(seed)) {
                own.logins.insert(origin, login);
            }
        }
        let first = seeds.first().and_then(Origin::of);
        for login in logins {
            let (origin, user, password) = split_login(login.reveal())?;
            if let Some(origin) = origin.or_else(|| first.clone()) {
                own.logins.insert(origin, basic(user, password));
            }
        }
        Ok(own)
    }

    /// Adds what is meant for the origin of a URL. The user's header replaces ours of that name.
    pub(super) fn add_to(&self, headers: &mut HeaderMap, url: &Url) {
        if self.headers.is_empty() && self.logins.is_empty() {
            return;
        }
        let Some(origin) = Origin::of(url) else { return };
        if self.seeds.contains(&origin) {
            self.headers.keys().for_each(|name| {
                headers.remove(name);
            });
            headers.extend(self.headers.clone());
        }
        if let Some(login) = self.logins.get(&origin) {
            headers.insert(AUTHORIZATION, login.clone());
        }
    }
}

fn header_of(text: &str) -> Result<(HeaderName, HeaderValue), ClientError> {
    let (name, value) = text.split_once(':').ok_or(ClientError::HeaderName)?;
    let name: HeaderName = name.trim().parse().map_err(|_| ClientError::HeaderName)?;
    if RESERVED.split(' ').any(|reserved| name.as_str() == reserved) {
        return Err(ClientError::ReservedHeader(name.to_string()));
    }
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| ClientError::HeaderValue(name.to_string()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Splits `[ORIGIN=]USER:PASSWORD`. A password may have any character, a user name no colon (RFC 7617, section 2).
fn split_login(text: &str) -> Result<(Option<Origin>, &str, &str), ClientError> {
    let has_origin = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let (origin, login) = match text.split_once('=') {
        Some((origin, login)) if has_origin => (Some(origin_of(origin)?), login),
        _ if has_origin => return Err(ClientError::Login),
        _ => (None, text),
    };
    let (user, password) = login.split_once(':').ok_or(ClientError::Login)?;
    Ok((origin, user, password))
}

fn origin_of(text: &str) -> Result<Origin, ClientError> {
    let wrong = || ClientError::LoginOrigin(text.to_owned());
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    // With a name or a password in it the error would show them.
    let is_safe = url.username().is_empty() && url.password().is_none();
    if !is_safe {
        return Err(ClientError::Login);
    }
    Origin::of(&url).filter(|_| is_bare).ok_or_else(wrong)
}

fn login_of_url(url: &Url) -> Option<HeaderValue> {
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let has_login = !url.username().is_empty() || url.password().is_some();
    has_login.then(|| basic(&decoded(url.username()), &decoded(url.password().unwrap_or_default())))
}

/// RFC 7617, section 2.
fn basic(user: &str, password: &str) -> HeaderValue {
    let token = format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()));
    // Base64 is always a header value.
    let mut value = HeaderValue::from_str(&token).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(headers: &[&str], logins: &[&str]) -> Result<OwnHeaders, ClientError> {
        let seeds = ["https://u%3Aser:p%40ss@c.example/", "http://a.example/x"].map(|seed| Url::parse(seed).unwrap());
        let secrets = |texts: &[&str]| texts.iter().map(|text| Secret::from(*text)).collect::<Vec<_>>();
        OwnHeaders::new(&seeds, &secrets(headers), &secrets(logins))
    }

    fn sent(own: &OwnHeaders, url: &str) -> Vec<String> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("ours"));
        own.add_to(&mut headers, &Url::parse(url).unwrap());
        let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        headers.iter().map(line).collect()
    }

    #[test]
    fn headers_go_to_the_origins_of_the_seeds_and_each_login_to_its_own() {
        let plain = own(&["Accept: mine", "X-Key:  1 ", "x-key: 2"], &[]).unwrap();
        let mine = ["accept: mine", "x-key: 1", "x-key: 2"];
        assert_eq!(sent(&plain, "http://a.example/any"), mine);
        // The seed has a password.
        let of_seed = [&mine[..], &["authorization: Basic dTpzZXI6cEBzcw=="]].concat();
        assert_eq!(sent(&plain, "https://c.example/"), of_seed);
        let logins = own(&[], &["me:a:b", "http://b.example:81=you:=c="]).unwrap();
        let login = |url| sent(&logins, url)[1].clone();
        assert_eq!(login("https://c.example/"), "authorization: Basic bWU6YTpi");
        assert_eq!(login("http://b.example:81/"), "authorization: Basic eW91Oj1jPQ==");
        for other in [
            "https://a.example/",
            "http://a.example:81/",
            "http://b.a.example/",
            "http://b.example/",
            "http://c.example/",
            "https://b.example:81/",
        ] {
            assert_eq!(sent(&plain, other), ["accept: ours"], "{other}");
            assert_eq!(sent(&logins, other), ["accept: ours"], "{other}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_repeating_it() {
        for (header, says) in [
            ("secret", "a colon"),
            (": secret", "a colon"),
            ("X y: secret", "a colon"),
            ("X: secret\r\nY: z", "line break"),
            ("Host: secret", "host"),
            ("User-Agent: secret", "set the user agent of the crawl"),
        ] {
            let error = own(&[header], &[]).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{header}: {error}");
        }
        for (login, says) in [
            ("secret", "USER:PASSWORD"),
            ("http://a.example", "ORIGIN=USER:PASSWORD"),
            ("http://a.example/path=me:secret", "no origin"),
            ("http://me:secret@a.example=me:secret", "USER:PASSWORD"),
        ] {
            let error = own(&[], &[login]).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{login}: {error}");
        }
    }
}
