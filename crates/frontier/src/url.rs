//! Hosts, origins and URLs.
//!
//! | type | identifies | `http://a.example/` and `https://a.example:8443/` |
//! |---|---|---|
//! | [`HostKey`] | the host that politeness applies to | are one host, with one delay |
//! | [`Origin`] | whose robots.txt applies | are two origins, each with its robots.txt |
//! | [`CanonicalUrl`] | what is fetched, and what it is deduplicated on | are two URLs |

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Position;

/// The parsed URL of the crate `url`, which this crate takes and returns.
pub use url::Url;

/// Returns whether HTTP can fetch the URL. Only for such URLs, the `url` crate guarantees a host in lower-case ASCII.
pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Empty if there is no host, or only dots.
pub(crate) fn host_name(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

/// The host that politeness applies to: in lower-case ASCII, without port and trailing dot.
///
/// International names are in their `xn--` form, IPv4 addresses in four decimal parts, IPv6 addresses in brackets. `example.com.`
/// and `example.com` are one host in the DNS, so they are one key. A clone costs a reference count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// Returns the host of an `http` or `https` URL; `None` for any other scheme, and for a host of dots only.
    ///
    /// Cost: one allocation.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let name = host_name(url);
        (is_web(url) && !name.is_empty()).then(|| Self(name.into()))
    }

    /// Returns the host as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the registrable domain by the public suffix list, including private suffixes such as `github.io`.
    ///
    /// For an IP address, a single label or a public suffix, it is the host itself.
    #[must_use]
    pub fn site(&self) -> &str {
        site(&self.0)
    }
}

/// The site of a host in lower-case ASCII without trailing dots.
pub(crate) fn site(host: &str) -> &str {
    // By the list, 10.0.0.1 and 192.168.0.1 would share the domain `0.1`. A name whose last label is a number is an IPv4 address,
    // or not a host (URL standard, "ends in a number").
    let ends_in_number = host
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    let is_address = host.starts_with('[') || ends_in_number;
    if is_address {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for HostKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// For look-ups by a borrowed name in a map keyed by hosts: a link that is only checked costs no allocation.
impl Borrow<str> for HostKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for HostKey {
    /// Reads a name as it is serialized. A name that no host has is an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        let is_name = !name.is_empty()
            && !name.ends_with('.')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
            && !name.contains(['/', '?', '#', '@', '\\'])
            && (name.starts_with('[') || !name.contains(':'));
        if is_name {
            Ok(Self(name.into()))
        } else {
            Err(D::Error::custom("not the name of a host"))
        }
    }
}

/// The scope of one robots.txt: scheme, host and port (RFC 9309, section 2.3).
///
/// Displayed as `https://example.com` or `http://example.com:8080`, without the default port. Unlike in a [`HostKey`], a trailing dot
/// of the host stays: the robots.txt is fetched from the same authority as the pages. A clone costs two reference counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    // Stored as the URL of its robots.txt, which varies with the origin only. It is parsed already, so that returning it cannot fail.
    robots: Arc<Url>,
    host: HostKey,
}

impl Origin {
    /// Returns the origin of an `http` or `https` URL; `None` if [`HostKey::of`] is `None`.
    ///
    /// Cost: a copy of the URL.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let host = HostKey::of(url)?;
        let mut url = url.clone();
        remove_credentials(&mut url)?;
        Some(Self::new(url, host))
    }

    /// Reduces a URL to its origin. The URL has no credentials, and `host` is its host.
    pub(crate) fn new(mut url: Url, host: HostKey) -> Self {
        url.set_path("/robots.txt");
        url.set_query(None);
        url.set_fragment(None);
        Self {
            robots: Arc::new(url),
            host,
        }
    }

    /// Returns the host of the origin.
    #[must_use]
    pub fn host(&self) -> &HostKey {
        &self.host
    }

    /// Returns the URL of its robots.txt (RFC 9309, section 2.3).
    #[must_use]
    pub fn robots_url(&self) -> Url {
        Url::clone(&self.robots)
    }

    /// Returns the origin as text, as it is displayed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.robots[..Position::BeforePath]
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({})", self.as_str())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Origin {
    /// Reads an origin as it is serialized, such as `https://example.com`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let origin = Url::parse(&text).ok().and_then(|url| Self::of(&url));
        origin.ok_or_else(|| D::Error::custom("not an origin"))
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Removes user name and password; `None` if the URL is of a kind that has no authority.
pub(crate) fn remove_credentials(url: &mut Url) -> Option<()> {
    // Hardly any link has them, and the setters compare the scheme and the host.
    if url.has_host() && url[Position::BeforeUsername..Position::BeforeHost].is_empty() {
        return Some(());
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()
}

/// A URL that may be fetched, with the key that it is deduplicated on.
///
/// **Fetch [`url`](Self::url), deduplicate on [`key`](Self::key).** The URL is the link as the WHATWG rules resolve it, without
/// fragment and credentials. The key is its canonical form. It may be a different address, such as one without `www.`, and is never
/// requested. If both are equal, only one is stored.
///
/// Only a [`Canonicalizer`](crate::canonical::Canonicalizer) creates it. So it is always an `http` or `https` URL with a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalUrl {
    url: Url,
    key: Option<Box<str>>,
}

impl CanonicalUrl {
    /// Pairs a URL with its key. The caller has checked scheme and host.
    pub(crate) fn new(url: Url, key: Option<Box<str>>) -> Self {
        Self { url, key }
    }

    /// Returns the URL to request.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL to request as text, as it is displayed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the key to deduplicate on. It is a URL, and canonicalizes to itself by the same rules.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(self.url.as_str())
    }

    /// Returns the path of the key, from its first slash up to the query.
    #[must_use]
    pub fn key_path(&self) -> &str {
        let Some(key) = self.key.as_deref() else {
            return self.url.path();
        };
        let authority = key.find("://").map_or(0, |at| at + "://".len());
        let from = key[authority..].find('/').map_or(key.len(), |at| authority + at);
        let path = &key[from..];
        &path[..path.find(['?', '#']).unwrap_or(path.len())]
    }

    /// Returns the host. Cost: one allocation; [`host_str`](Self::host_str) needs none.
    #[must_use]
    pub fn host(&self) -> HostKey {
        HostKey(self.host_str().into())
    }

    /// Returns the text of [`host`](Self::host).
    #[must_use]
    pub fn host_str(&self) -> &str {
        host_name(&self.url)
    }

    /// Returns the origin. Cost: a copy of the URL.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::new(self.url.clone(), self.host())
    }

    /// Returns the URL, and the key if it differs from the URL.
    #[must_use]
    pub fn into_parts(self) -> (Url, Option<Box<str>>) {
        (self.url, self.key)
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A URL with its key, as a journal stores it.
pub(crate) mod stored_url {
    use std::borrow::Cow;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use url::Url;

    use super::{CanonicalUrl, host_name, is_web};

    pub(crate) fn serialize<S: Serializer>(url: &CanonicalUrl, serializer: S) -> Result<S::Ok, S::Error> {
        (url.url.as_str(), url.key.as_deref()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CanonicalUrl, D::Error> {
        let (url, key): (Cow<'de, str>, Option<Box<str>>) = <_>::deserialize(deserializer)?;
        let url = Url::parse(&url).map_err(D::Error::custom)?;
        if !is_web(&url) || host_name(&url).is_empty() {
            return Err(D::Error::custom("not the URL of a page"));
        }
        Ok(CanonicalUrl::new(url, key))
    }
}
