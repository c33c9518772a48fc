//! The names a frontier goes by: whom we owe politeness, whose rules apply, what is fetched.
//!
//! Three types for three ideas that a plain string would blur. A [`HostKey`] shares one delay
//! between `http://a.example/` and `https://a.example:8443/`; an [`Origin`] keeps them apart,
//! because each has a robots.txt of its own; a [`CanonicalUrl`] is the proof that a
//! [`Canonicalizer`](crate::canonical::Canonicalizer) has looked at a URL.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use url::{Position, Url};

/// Whether the URL is one that HTTP can fetch: only for these does the `url` crate promise a host
/// in lower-case ASCII.
pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// The host without the dot of the DNS root: empty when there is no host, or when it is nothing but
/// dots.
pub(crate) fn host_name(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

/// Whom we owe politeness: a host in lower-case ASCII, without port and without a trailing dot.
///
/// International names are in their `xn--` form, IPv4 addresses in four decimal parts, IPv6
/// addresses in brackets. `example.com.` and `example.com` are one machine to the DNS, so they are
/// one key. A clone costs a reference count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// Reads the host of an `http` or `https` URL; `None` for any other scheme, and for a host that
    /// is nothing but dots.
    ///
    /// Costs one allocation.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let name = host_name(url);
        (is_web(url) && !name.is_empty()).then(|| Self(name.into()))
    }

    /// Borrows the host as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the registrable domain by the public suffix list, private suffixes such as `github.io` included; the
    /// host itself where there is none: for an address, a single label, or a public suffix.
    #[must_use]
    pub fn site(&self) -> &str {
        site(&self.0)
    }
}

/// The site of a host in lower-case ASCII without trailing dots.
pub(crate) fn site(host: &str) -> &str {
    // The list would take 10.0.0.1 and 192.168.0.1 for neighbours under `0.1`. A name whose last label is a number is
    // an IPv4 address, or no host at all (URL standard, "ends in a number").
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

// Lets a map keyed by hosts be asked with a borrowed name: no allocation for a link that is only
// looked at.
impl Borrow<str> for HostKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for HostKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Whose robots.txt applies: scheme, host and port (RFC 9309, section 2.3).
///
/// Shown as `https://example.com` or `http://example.com:8080`; the default port is left out.
/// Unlike in a [`HostKey`], a trailing dot of the host stays: robots.txt is asked of the very
/// authority that the pages are asked of. A clone costs two reference counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    // Kept as the URL of robots.txt, which is all of the origin and nothing else that varies: it
    // was valid when it was made, so that asking for it again cannot fail.
    robots: Arc<Url>,
    host: HostKey,
}

impl Origin {
    /// Reads the origin of an `http` or `https` URL; `None` when [`HostKey::of`] is.
    ///
    /// Costs a copy of the URL.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let host = HostKey::of(url)?;
        let mut url = url.clone();
        remove_credentials(&mut url)?;
        Some(Self::new(url, host))
    }

    /// Forgets all of a URL but its origin. The URL has no credentials, and `host` is its host.
    fn new(mut url: Url, host: HostKey) -> Self {
        url.set_path("/robots.txt");
        url.set_query(None);
        url.set_fragment(None);
        Self {
            robots: Arc::new(url),
            host,
        }
    }

    /// Returns the host we owe politeness while asking this origin.
    #[must_use]
    pub fn host(&self) -> &HostKey {
        &self.host
    }

    /// Returns where the rules of this origin are read: `/robots.txt` (RFC 9309, section 2.3).
    #[must_use]
    pub fn robots_url(&self) -> Url {
        Url::clone(&self.robots)
    }

    /// Borrows the origin as text, as it is displayed.
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

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Removes user name and password; `None` when the URL is of a kind that has no place for them, so
/// has no host either.
pub(crate) fn remove_credentials(url: &mut Url) -> Option<()> {
    url.set_username("").ok()?;
    url.set_password(None).ok()
}

/// A URL that may be fetched, with the key it is deduplicated on.
///
/// **Fetch [`url`](Self::url), dedupe on [`key`](Self::key).** The URL is what was linked, resolved
/// by the WHATWG rules, without fragment and credentials. The key is its canonical form and may be
/// another address altogether (without `www.`, say): it is never sent. When the two are equal, only
/// one is stored.
///
/// Only a [`Canonicalizer`](crate::canonical::Canonicalizer) makes one, so whoever holds one holds
/// an `http` or `https` URL with a host.
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

    /// Returns the URL to ask for.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the key to deduplicate on; it parses as a URL, and canonicalizes to itself under the
    /// same rules.
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

    /// Returns the host we owe politeness. Costs one allocation; [`host_str`](Self::host_str) costs
    /// none.
    #[must_use]
    pub fn host(&self) -> HostKey {
        HostKey(self.host_str().into())
    }

    /// Borrows what [`host`](Self::host) would hold.
    #[must_use]
    pub fn host_str(&self) -> &str {
        host_name(&self.url)
    }

    /// Returns whose robots.txt applies. Costs a copy of the URL.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::new(self.url.clone(), self.host())
    }

    /// Takes the pair apart: the URL, and the key where it differs from the URL.
    #[must_use]
    pub fn into_parts(self) -> (Url, Option<Box<str>>) {
        (self.url, self.key)
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.url.as_str())
    }
}
