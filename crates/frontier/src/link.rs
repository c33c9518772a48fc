//! Links: a URL, and where it was found.

use std::borrow::Cow;
use std::sync::Arc;

use crate::class::Class;
use crate::fingerprint::ContentHash;
use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// The validators of a page: what distinguishes its versions (RFC 9110, section 8.8), as the server sent it. The frontier stores
/// them for a conditional request and does not interpret them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Validators {
    /// The `ETag`, sent as `If-None-Match`.
    pub etag: Option<String>,
    /// The `Last-Modified` date, sent as `If-Modified-Since`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Returns whether there is no validator.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// What a previous crawl stored about a page. The frontier keeps it for the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PreviousFetch {
    /// The validators of the version that was fetched.
    pub validators: Validators,
    /// The URL that was linked to, if redirects led from there to this one.
    pub redirected_from: Option<String>,
    /// The hash of its bytes, if it was computed.
    pub content: Option<ContentHash>,
    /// Whether it was fetched in this crawl, and is [queued again](crate::Frontier::queue_again).
    pub is_of_this_crawl: bool,
}

/// Own data of the caller on a URL: at most 1 KiB. The frontier keeps them and does not interpret them. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Arc<[u8]>")]
pub struct OwnData(Arc<[u8]>);

/// The data are longer than [`OwnData::MAX_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("own data of {0} bytes: give at most {max}, such as a number that names the rest", max = OwnData::MAX_BYTES)]
pub struct OwnDataTooLong(usize);

impl OwnData {
    /// The most bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes as UTF-8, with U+FFFD for what is not.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl TryFrom<Arc<[u8]>> for OwnData {
    type Error = OwnDataTooLong;

    fn try_from(bytes: Arc<[u8]>) -> Result<Self, OwnDataTooLong> {
        match bytes.len() {
            0..=Self::MAX_BYTES => Ok(Self(bytes)),
            length => Err(OwnDataTooLong(length)),
        }
    }
}

/// A link from a page to a URL, or a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The target.
    pub url: CanonicalUrl,
    /// The number of links on the first path found from a seed; 0 for a seed. Redirects do not count.
    pub depth: u32,
    /// Redirects followed since the link.
    pub hops: u8,
    /// The URL of the page that has the link; `None` for a seed.
    pub referrer: Option<Arc<str>>,
    /// Steps in a row that load it as a part of another resource: 0 for a page, 1 for its style sheet, 2 for an image of the style
    /// sheet. They do not count towards the depth, but have a limit of their own, of 5.
    pub embedded: u8,
    /// Whether it is the target of a redirect, and its request would have other cookies than its last one. Then it is fetched even if it was
    /// seen; only the limit of hops bounds how often.
    pub has_new_cookies: bool,
    /// The first URL of the chain of redirects that leads here; `None` without redirects.
    pub redirected_from: Option<Arc<str>>,
    /// Whether it is a seed, or the target of a redirected seed.
    pub seed: bool,
    /// When the page last changed, according to the sitemap that lists it.
    pub lastmod: Option<Time>,
    /// What a previous crawl stored about the page.
    pub previous: Option<Arc<PreviousFetch>>,
    /// The origin that the sitemap belongs to; `None` if the target is a page.
    pub sitemap_of: Option<Origin>,
    /// Data of the caller, which come back with its lease, its row and its redirects. The first link to a URL counts: one that was seen changes none.
    pub data: Option<OwnData>,
    /// What comes first: see [`Class`]. `None` lets the [rules of the order](crate::FrontierConfig::order) decide when it is queued. The first link to a URL
    /// counts here, too. A redirect and a fetch again keep it, unless it is the default; links of its page do not get it.
    pub class: Option<Class>,
}

impl Link {
    /// Creates the link to a seed.
    #[must_use]
    pub fn seed(url: CanonicalUrl) -> Self {
        Self {
            url,
            depth: 0,
            hops: 0,
            has_new_cookies: false,
            embedded: 0,
            referrer: None,
            redirected_from: None,
            seed: true,
            lastmod: None,
            previous: None,
            sitemap_of: None,
            data: None,
            class: None,
        }
    }

    /// Returns the link with a class.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self {
            class: Some(class),
            ..self
        }
    }

    /// Returns the link with own data, such as the number of a customer.
    ///
    /// # Errors
    ///
    /// When the data are longer than [`OwnData::MAX_BYTES`].
    pub fn with_data(self, data: &[u8]) -> Result<Self, OwnDataTooLong> {
        let data = Some(Arc::<[u8]>::from(data).try_into()?);
        Ok(Self { data, ..self })
    }

    /// Returns whether it joins the scope when it is offered. The target of a redirected seed has joined it with the redirect.
    pub(crate) fn is_seed(&self) -> bool {
        self.seed && self.hops == 0 && self.sitemap_of.is_none()
    }

    /// Creates the link to a URL found on the page `referrer`, `depth` links away from the nearest seed.
    #[must_use]
    pub fn found(url: CanonicalUrl, depth: u32, referrer: Arc<str>) -> Self {
        Self {
            depth,
            referrer: Some(referrer),
            seed: false,
            ..Self::seed(url)
        }
    }

    /// Creates the link to a sitemap of the origin `of`. `referrer` is the robots.txt or the sitemap index that lists it; `None` for a
    /// usual place of sitemaps. `indexes` is the number of sitemap indexes above it: 0 for one that a robots.txt lists.
    #[must_use]
    pub fn sitemap(url: CanonicalUrl, of: Origin, indexes: u32, referrer: Option<Arc<str>>) -> Self {
        Self {
            depth: indexes,
            referrer,
            seed: false,
            sitemap_of: Some(of),
            ..Self::seed(url)
        }
    }
}

impl From<&CanonicalUrl> for Link {
    /// A seed.
    fn from(url: &CanonicalUrl) -> Self {
        Self::seed(url.clone())
    }
}
