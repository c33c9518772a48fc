//! The pages of a previous crawl, to fetch again what has changed.
//!
//! A recrawl requests each page with its validators, `ETag` and `Last-Modified` (RFC 9110, section 13). For a page that has not
//! changed the server answers 304 without a body. Its links are not needed: their targets are among the previous pages too.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frontier::{Canonicalizer, Link, PreviousFetch, Validators};
use serde::Deserialize;

use crate::fetch::MAX_VALIDATOR_BYTES;
use crate::page::sitemap::parse_date;

/// The longest line that is read: more than a page can be written in, with all that may be selected.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// A page of a previous crawl, read from a line of its output ([`PageRecord`](crate::PageRecord)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PreviousPage {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, if redirects led from there to `url`.
    #[serde(default)]
    pub redirected_from: Option<String>,
    /// The same in a crawl before that one.
    #[serde(default)]
    pub was_redirected_from: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The depth: links from a seed to it.
    #[serde(default)]
    pub depth: u32,
    /// How many of the last steps load a part of a page; 0 for a page.
    #[serde(default)]
    pub embedded: u8,
    /// The `lastmod` of a sitemap.
    #[serde(default)]
    pub lastmod: Option<String>,
    /// The page with the first link to it.
    #[serde(default)]
    pub referrer: Option<String>,
    /// Why its body is truncated; an older output calls it `body_cut`.
    #[serde(default, alias = "body_cut")]
    pub truncation: Option<String>,
    /// The `ETag` header.
    #[serde(default)]
    pub etag: Option<String>,
    /// The `Last-Modified` header.
    #[serde(default)]
    pub last_modified: Option<String>,
}

impl PreviousPage {
    /// Returns the validators of the body that was fetched; none if there was no body, or if it was truncated.
    fn validators(&self) -> Validators {
        let is_fetched = matches!(self.status, 200..=299 | 304);
        let is_whole = !matches!(self.truncation.as_deref(), Some("time" | "connection" | "coding"));
        let is_short = |text: &&String| text.len() <= MAX_VALIDATOR_BYTES;
        if is_fetched && is_whole {
            Validators {
                etag: self.etag.as_ref().filter(is_short).cloned(),
                last_modified: self.last_modified.as_ref().filter(is_short).cloned(),
            }
        } else {
            Validators::default()
        }
    }

    /// Returns the links to it: to its URL, and to the URL that redirected to it, which may redirect elsewhere now. URLs that cannot
    /// be crawled any more are left out.
    pub(crate) fn links(
        &self,
        referrer: Option<Arc<str>>,
        canonicalizer: &Canonicalizer,
    ) -> impl Iterator<Item = Link> {
        let link = |url: &str| {
            Some(Link {
                referrer: referrer.clone(),
                embedded: self.embedded,
                ..Link::found(canonicalizer.parse(url).ok()?, self.depth, Arc::default())
            })
        };
        let redirected_from = self.redirected_from.as_ref().or(self.was_redirected_from.as_ref());
        let earlier = PreviousFetch {
            validators: self.validators(),
            redirected_from: redirected_from.cloned(),
        };
        let answered = link(&self.url).map(|link| Link {
            lastmod: self.lastmod.as_deref().and_then(parse_date),
            previous: (earlier != PreviousFetch::default()).then(|| Arc::new(earlier)),
            ..link
        });
        let linked_to = redirected_from.and_then(|url| link(url));
        [answered, linked_to].into_iter().flatten()
    }
}

/// Shares the text with that of the page before if they are equal: pages with the same referrer follow each other.
pub(crate) fn shared(text: Option<&str>, before: &Option<Arc<str>>) -> Option<Arc<str>> {
    match (text, before) {
        (Some(text), Some(before)) if **before == *text => Some(Arc::clone(before)),
        (text, _) => text.map(Arc::from),
    }
}

/// Why the output of a previous crawl cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecrawlError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// It is a pipe, a directory or a device.
    #[error("{0} is not a regular file: give a file that can be read twice")]
    NoFile(PathBuf),
    /// A line is not a page of a crawl's output.
    #[error("line {line} of {path} is not a page: give a file that --output has written: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, starting at 1.
        line: u64,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// It became shorter after it was checked.
    #[error("{0} was changed while it was read")]
    Changed(PathBuf),
}

/// The output of a previous crawl, a file of JSON lines.
///
/// It is read line by line, so it may be larger than memory: once to check it, once when the crawl starts, and again where a seed
/// is redirected.
#[derive(Debug)]
pub struct PreviousCrawl {
    path: PathBuf,
    file: File,
    pages: u64,
}

impl PreviousCrawl {
    /// Checks every line of a file.
    ///
    /// A last line without a line break that cannot be read is skipped: a killed crawl may leave one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read twice, or is not the output of a crawl.
    pub fn open(path: &Path) -> Result<Self, RecrawlError> {
        let unreadable = |source| RecrawlError::Read {
            path: path.to_owned(),
            source,
        };
        // Opening a pipe waits for somebody to write.
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(RecrawlError::NoFile(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mut pages = 0;
        for page in Pages::new(path, &file) {
            page?;
            pages += 1;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            pages,
        })
    }

    /// Reads the pages in order. Lines that were appended after the check are left out.
    ///
    /// An item is an error when the file can no longer be read, or has changed since it was checked.
    ///
    /// # Errors
    ///
    /// When the file can no longer be read.
    pub fn pages(&mut self) -> Result<impl Iterator<Item = Result<PreviousPage, RecrawlError>>, RecrawlError> {
        self.file.rewind().map_err(|source| RecrawlError::Read {
            path: self.path.clone(),
            source,
        })?;
        let mut left = self.pages;
        let path = &self.path;
        let mut pages = Pages::new(path, &self.file);
        Ok(std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let page = pages.next();
            Some(page.unwrap_or_else(|| Err(RecrawlError::Changed(path.clone()))))
        }))
    }
}

/// The pages of a file, from where it stands.
struct Pages<R> {
    path: PathBuf,
    reader: BufReader<R>,
    text: Vec<u8>,
    line: u64,
}

impl<R: Read> Pages<R> {
    fn new(path: &Path, file: R) -> Self {
        Self {
            path: path.to_owned(),
            reader: BufReader::new(file),
            text: Vec::new(),
            line: 0,
        }
    }

    /// Reads a line; false at the end.
    fn read_line(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.line += 1;
        let read = self
            .reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut self.text)?;
        if read as u64 == MAX_LINE_BYTES && !self.text.ends_with(b"\n") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a line is longer than any page",
            ));
        }
        Ok(read > 0)
    }
}

impl<R: Read> Iterator for Pages<R> {
    type Item = Result<PreviousPage, RecrawlError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read_line() {
                Ok(false) => return None,
                Ok(true) if self.text.trim_ascii().is_empty() => {}
                Ok(true) => break,
                Err(source) => {
                    return Some(Err(RecrawlError::Read {
                        path: self.path.clone(),
                        source,
                    }));
                }
            }
        }
        match serde_json::from_slice(&self.text) {
            Ok(page) => Some(Ok(page)),
            Err(_) if !self.text.ends_with(b"\n") => {
                log::warn!(
                    target: "crawler::recrawl",
                    path:% = self.path.display();
                    "the last line of {} is incomplete and was skipped",
                    self.path.display()
                );
                None
            }
            Err(why) => Some(Err(RecrawlError::Line {
                path: self.path.clone(),
                line: self.line,
                why,
            })),
        }
    }
}
