//! Links that are known before a crawl starts, from lines of JSON: an output of an earlier crawl, or the export of a repair.
//!
//! A page is requested with the validators of its line, `ETag` and `Last-Modified` (RFC 9110, section 13). If it has not changed, the server
//! answers 304 without a body. Its links are not needed then, because their targets have lines, too. Of a crawl that did not end, some have none.
//! So all pages are requested whole if the last line says that some were [left](crate::PageRecord::left).

use std::sync::Arc;

use frontier::{Canonicalizer, Link, NotCrawlable, OwnData, OwnDataTooLong, PreviousFetch, Validators};
use indexmap::IndexMap;
use page::sitemap::parse_date;
use serde::Deserialize;

use crate::fetch::MAX_VALIDATOR_BYTES;

/// What is taken from a line ([`PageRecord`](crate::PageRecord)).
#[derive(Deserialize)]
struct Line {
    url: String,
    redirected_from: Option<String>,
    was_redirected_from: Option<String>,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    depth: u32,
    #[serde(default)]
    embedded: u8,
    lastmod: Option<String>,
    referrer: Option<String>,
    data: Option<String>,
    truncation: Option<String>,
    etag: Option<String>,
    last_modified: Option<String>,
    left: Option<u64>,
}

/// Why a line is no link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnownLinkError {
    /// It is not JSON, or has no URL.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Its URL cannot be crawled.
    #[error(transparent)]
    Url(#[from] NotCrawlable),
    /// Its data are too long.
    #[error(transparent)]
    Data(#[from] OwnDataTooLong),
}

/// The links of some lines. They take about half a kilobyte of memory each, until the crawl has queued them.
///
/// ```
/// use crawler::{CrawlOptions, KnownLinks};
///
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let mut known = KnownLinks::default();
/// known.add(r#"{"url":"https://example.com/a","depth":1,"status":200,"etag":"\"7\""}"#, &options.canonicalizer)?;
/// let options = CrawlOptions { links: known.into_links(), ..options };
/// # Ok::<(), crawler::known_links::KnownLinkError>(())
/// ```
#[derive(Debug, Default)]
pub struct KnownLinks {
    /// By the keys of their URLs.
    links: IndexMap<String, Link>,
    left: u64,
    referrer: Option<Arc<str>>,
}

impl KnownLinks {
    /// Adds the link to the page of a line, and to the URL that redirected there, which may redirect elsewhere now. Of several lines of a page, the
    /// last one counts.
    ///
    /// # Errors
    ///
    /// When the line is not a JSON object with a `url` that can be crawled, or its `data` are too long.
    pub fn add(&mut self, line: &str, canonicalizer: &Canonicalizer) -> Result<(), KnownLinkError> {
        let line: Line = serde_json::from_str(line)?;
        let url = canonicalizer.parse(&line.url)?;
        self.left = line.left.unwrap_or(self.left);
        // Pages with the same referrer follow each other.
        if self.referrer.as_deref() != line.referrer.as_deref() {
            self.referrer = line.referrer.as_deref().map(Arc::from);
        }
        let data = line
            .data
            .as_deref()
            .map(|data| OwnData::try_from(Arc::from(data.as_bytes())))
            .transpose()?;
        let validators = Validators {
            etag: line.etag,
            last_modified: line.last_modified,
        };
        let previous = PreviousFetch {
            validators: validators_of_body(line.status, line.truncation.as_deref(), validators),
            redirected_from: line.redirected_from.or(line.was_redirected_from),
            ..PreviousFetch::default()
        };
        let link = |url| Link {
            referrer: self.referrer.clone(),
            embedded: line.embedded,
            data: data.clone(),
            ..Link::found(url, line.depth, Arc::default())
        };
        let source = previous.redirected_from.as_deref();
        let source = source.and_then(|url| canonicalizer.parse(url).ok()).map(link);
        let answered = Link {
            lastmod: line.lastmod.as_deref().and_then(parse_date),
            previous: (previous != PreviousFetch::default()).then(|| Arc::new(previous)),
            ..link(url)
        };
        // First: it has no line, and the last line of this crawl, too, is to say that nothing is left.
        if let Some(source) = source {
            self.links.entry(source.url.key().to_owned()).or_insert(source);
        }
        self.links.insert(answered.url.key().to_owned(), answered);
        Ok(())
    }

    /// Returns whether the crawl of the lines ended before it had fetched all pages, as far as its last line says: then all are requested whole.
    #[must_use]
    pub fn are_partial(&self) -> bool {
        self.left > 0
    }

    /// Returns the links, for [`CrawlOptions::links`](crate::CrawlOptions::links).
    #[must_use]
    pub fn into_links(self) -> Vec<Link> {
        let are_partial = self.are_partial();
        let mut links: Vec<_> = self.links.into_values().collect();
        for previous in links.iter_mut().filter_map(|link| link.previous.as_mut()) {
            if are_partial {
                Arc::make_mut(previous).validators = Validators::default();
            }
        }
        links
    }
}

/// None if its body was not fetched, or is not whole.
pub(crate) fn validators_of_body(status: u16, truncation: Option<&str>, validators: Validators) -> Validators {
    let is_fetched = matches!(status, 200..=299 | 304);
    let is_whole = !matches!(truncation, Some("time" | "connection" | "coding" | "part"));
    // What can be no header value is not sent, and 304 would not answer it.
    let is_value = |c: char| c <= '\u{ff}' && (c == '\t' || !c.is_ascii_control());
    let can_be_sent = |text: &String| text.len() <= MAX_VALIDATOR_BYTES && text.chars().all(is_value);
    if !is_fetched || !is_whole {
        return Validators::default();
    }
    Validators {
        etag: validators.etag.filter(can_be_sent),
        last_modified: validators.last_modified.filter(can_be_sent),
    }
}
