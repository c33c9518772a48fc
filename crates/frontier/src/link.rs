//! A step of the crawl: which URL, and how we came to it.

use std::sync::Arc;

use crate::time::Time;
use crate::url::{CanonicalUrl, Origin};

/// What tells one version of a page from another (RFC 9110, section 8.8), as its server wrote it. The frontier keeps it for
/// whoever fetches the page again, and does not look into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The `ETag`, sent as `If-None-Match`.
    pub etag: Option<String>,
    /// The `Last-Modified` date, sent as `If-Modified-Since`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Says whether there is nothing to tell versions by.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// What an earlier crawl has told of a page. The frontier keeps it for whoever fetches the page again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousFetch {
    /// What tells the version that was had.
    pub validators: Validators,
    /// The URL that was linked to, when redirects led from there to here.
    pub redirected_from: Option<String>,
}

/// One step from a page, or from the user, to a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the step leads.
    pub url: CanonicalUrl,
    /// How many links the first path found was long: 0 for a seed. Redirects do not count.
    pub depth: u32,
    /// How many redirects were taken since the link was followed.
    pub hops: u8,
    /// The URL of the page that has the link; `None` for a seed.
    pub referrer: Option<Arc<str>>,
    /// How many steps in a row lead to it that load it as a part of what came before: 0 to a page, 1 to its style sheet, 2 to
    /// an image of that. They do not count for the limit of depth, but [have one of their own](crate::scope::MAX_EMBEDDING).
    pub embedded: u8,
    /// The first URL of the chain of redirects that led here; `None` when there was none.
    pub redirected_from: Option<Arc<str>>,
    /// Whether the user gave it, or was led here from what the user gave by redirects alone.
    pub seed: bool,
    /// When the page last changed, by the word of the sitemap that names it.
    pub lastmod: Option<Time>,
    /// What is known from an earlier crawl; `None` when nothing is.
    pub previous: Option<Arc<PreviousFetch>>,
    /// The origin whose sitemap it leads to; `None` when it leads to a page.
    pub sitemap_of: Option<Origin>,
}

impl Link {
    /// Makes the step to a URL that the user gave.
    #[must_use]
    pub fn seed(url: CanonicalUrl) -> Self {
        Self {
            url,
            depth: 0,
            hops: 0,
            embedded: 0,
            referrer: None,
            redirected_from: None,
            seed: true,
            lastmod: None,
            previous: None,
            sitemap_of: None,
        }
    }

    /// Makes the step to a URL found on the page `referrer`, `depth` links away from the nearest
    /// seed.
    #[must_use]
    pub fn found(url: CanonicalUrl, depth: u32, referrer: Arc<str>) -> Self {
        Self {
            url,
            depth,
            hops: 0,
            embedded: 0,
            referrer: Some(referrer),
            redirected_from: None,
            seed: false,
            lastmod: None,
            previous: None,
            sitemap_of: None,
        }
    }

    /// Makes the step to a sitemap of the origin `of`: named by `referrer`, which is a robots.txt or a sitemap index, or
    /// looked for where sitemaps use to be. `indexes` lead to it: none to one that robots.txt names.
    #[must_use]
    pub fn sitemap(url: CanonicalUrl, of: Origin, indexes: u32, referrer: Option<Arc<str>>) -> Self {
        Self {
            url,
            depth: indexes,
            hops: 0,
            embedded: 0,
            referrer,
            redirected_from: None,
            seed: false,
            lastmod: None,
            previous: None,
            sitemap_of: Some(of),
        }
    }
}
