//! Recrawls: a crawl that starts from the pages of a previous one, and downloads only the changed bodies.
//!
//! A recrawl requests each page with its validators, `ETag` and `Last-Modified` (RFC 9110, section 13). If the page has not changed,
//! the server answers 304 without a body. Its links are not needed, because their targets are among the previous pages too.
//!
//! That holds if the previous crawl ended. If it was interrupted, URLs were queued that have no line. So unless the last line says that
//! nothing was [left](crate::PageRecord::left), a page is requested without validators if it has more [children](crate::PageRecord::children) than
//! URLs name it as their referrer. Its answer has the links again, and none of them is lost.
//!
//! Of a page that was fetched several times, the last line has the validators.

mod lines;
mod pages;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frontier::{Canonicalizer, Link, PreviousFetch, Validators};
use serde::{Deserialize, Serialize};

use self::lines::{Learned, Lines};
use self::pages::Pages;
use crate::fetch::MAX_VALIDATOR_BYTES;
use crate::page::sitemap::parse_date;

pub(crate) use self::lines::Children;

/// A page of a previous crawl, read from a line of its output ([`PageRecord`](crate::PageRecord)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PreviousPage {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, if redirects led from there to `url`.
    pub redirected_from: Option<String>,
    /// The URL that redirected to `url` in a crawl before that one.
    pub was_redirected_from: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The depth: how many links the crawl followed from a seed to this page.
    #[serde(default)]
    pub depth: u32,
    /// The number of last steps that load a part of a page; 0 for a page.
    #[serde(default)]
    pub embedded: u8,
    /// The `lastmod` of the page in a sitemap.
    pub lastmod: Option<String>,
    /// The page with the first link to it.
    pub referrer: Option<String>,
    /// Why its body is truncated.
    pub truncation: Option<String>,
    /// The `ETag` header.
    pub etag: Option<String>,
    /// The `Last-Modified` header.
    pub last_modified: Option<String>,
    /// How many of its links were new to the crawl.
    #[serde(default)]
    pub links_new: u64,
    /// How many URLs were first found on it.
    #[serde(default)]
    pub children: u64,
    /// How many pages were left when the line was written.
    pub left: Option<u64>,
}

impl PreviousPage {
    /// None if there was no body, or if it was truncated.
    fn validators(&self) -> Validators {
        let validators = Validators {
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
        };
        validators_of_body(self.status, self.truncation.as_deref(), validators)
    }

    fn redirect_source(&self) -> Option<&String> {
        self.redirected_from.as_ref().or(self.was_redirected_from.as_ref())
    }

    /// Returns the links to request it again: its URL, and the URL that redirected to it, which may redirect elsewhere now. URLs that
    /// cannot be crawled are left out.
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
        let redirected_from = self.redirect_source();
        let previous = PreviousFetch {
            validators: self.validators(),
            redirected_from: redirected_from.cloned(),
            ..PreviousFetch::default()
        };
        let answered = link(&self.url).map(|link| Link {
            lastmod: self.lastmod.as_deref().and_then(parse_date),
            previous: (previous != PreviousFetch::default()).then(|| Arc::new(previous)),
            ..link
        });
        let linked_to = redirected_from.and_then(|url| link(url));
        [answered, linked_to].into_iter().flatten()
    }
}

/// None if its body was not fetched, or is not whole.
pub(crate) fn validators_of_body(status: u16, truncation: Option<&str>, validators: Validators) -> Validators {
    let is_fetched = matches!(status, 200..=299 | 304);
    let is_whole = !matches!(truncation, Some("time" | "connection" | "coding" | "part"));
    let is_short = |text: &String| text.len() <= MAX_VALIDATOR_BYTES;
    if !is_fetched || !is_whole {
        return Validators::default();
    }
    Validators {
        etag: validators.etag.filter(is_short),
        last_modified: validators.last_modified.filter(is_short),
    }
}

/// Returns `text`, shared with the text of the page before if they are equal. Pages with the same referrer follow each other.
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
        /// The error of the system.
        source: io::Error,
    },
    /// It is a pipe, a directory or a device.
    #[error("{0} is not a regular file: give a file that can be read twice")]
    NoFile(PathBuf),
    /// A line is not a page of a crawl's output.
    #[error("line {line} of {path} is not a page: give a JSON lines file that a crawl wrote{hint}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, starting at 1.
        line: u64,
        /// What the file probably is, after a comma; nothing if that is not known.
        hint: &'static str,
        /// Why it cannot be parsed.
        why: serde_json::Error,
    },
    /// The file became shorter after the check.
    #[error("{0} was changed while it was read: give a file that nothing writes to")]
    Changed(PathBuf),
    /// The crawl of the state directory repeats another file.
    #[error(
        "{0} is not the file that the crawl in this state directory repeats, and its pages would not be fetched: give the file that the crawl was \
         begun with, or another directory. To repeat a crawl in its own directory, use a refresh instead of a file"
    )]
    OtherFile(PathBuf),
    /// The crawl of the state directory was begun without a file.
    #[error(
        "the crawl in this state directory was begun without a file to recrawl, so most pages of {0} would not be fetched: give another directory. To \
         repeat a crawl in its own directory, use a refresh instead of a file"
    )]
    BegunWithoutFile(PathBuf),
}

/// The file of a previous crawl, as the state of the crawl that repeats it has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviousFile {
    /// A hash of its bytes.
    pub(crate) hash: u64,
    /// Whether all its pages were offered.
    pub(crate) is_offered: bool,
}

/// The output of a previous crawl, a file of JSON lines.
///
/// The file is read line by line, so it may be larger than memory. It is read once to check it, once when the crawl starts, and
/// again when a seed redirects.
#[derive(Debug)]
pub struct PreviousCrawl {
    path: PathBuf,
    file: File,
    /// A hash of its bytes.
    hash: u64,
    lines: usize,
    /// Whether each line has a later one of the same URL; empty if none has.
    replaced: Vec<bool>,
    children: Children,
    /// The pages that are requested without validators, because some of their children have no line; by a hash of their URL.
    whole: HashSet<u64>,
}

impl PreviousCrawl {
    /// Checks every line of a file.
    ///
    /// An incomplete last line is skipped: a killed crawl may leave one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read twice, or is not the output of a crawl.
    pub fn open(path: &Path) -> Result<Self, RecrawlError> {
        let unreadable = |source| RecrawlError::Read {
            path: path.to_owned(),
            source,
        };
        // Opening a pipe would wait for a writer.
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(RecrawlError::NoFile(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mut pages = Pages::new(path, &file);
        let mut lines = Lines::default();
        for page in &mut pages {
            lines.add(&page?);
        }
        let hash = pages.hash();
        let Learned {
            lines,
            replaced,
            whole,
            children,
        } = lines.learn();
        if lines == 0 {
            log::warn!(
                target: "crawler::recrawl",
                path:% = path.display();
                "{} has no page: the crawl is a first one",
                path.display()
            );
        }
        if !whole.is_empty() {
            let pages = lines - replaced.iter().filter(|is_replaced| **is_replaced).count();
            log::info!(
                target: "crawler::recrawl",
                path:% = path.display(), pages = whole.len();
                "the crawl of {} did not end, or not all pages answered: {} of its {pages} pages are requested whole, because URLs \
                 that were found on them have no line",
                path.display(),
                whole.len()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            hash,
            lines,
            replaced,
            whole,
            children,
        })
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn children(&self) -> &Children {
        &self.children
    }

    /// Reads the pages in order. A page with several lines is read from the last one. A URL that redirected to it in an earlier one is a page of its own.
    /// Lines that were appended after the check are left out. A page that must be requested whole has no validators.
    ///
    /// An item is an error if the file can no longer be read, or has changed since the check.
    ///
    /// # Errors
    ///
    /// When the file can no longer be read from its start.
    pub fn pages(&mut self) -> Result<impl Iterator<Item = Result<PreviousPage, RecrawlError>>, RecrawlError> {
        self.file.rewind().map_err(|source| RecrawlError::Read {
            path: self.path.clone(),
            source,
        })?;
        let mut lines = 0..self.lines;
        let previous = &*self;
        let mut pages = Pages::new(&previous.path, &previous.file);
        Ok(std::iter::from_fn(move || {
            loop {
                let line = lines.next()?;
                let changed = || Err(RecrawlError::Changed(previous.path.clone()));
                match pages.next().unwrap_or_else(changed) {
                    Ok(page) => match previous.page_of_line(line, page) {
                        Some(page) => return Some(Ok(page)),
                        None => continue,
                    },
                    error => return Some(error),
                }
            }
        }))
    }

    /// `None` if a later line has it.
    fn page_of_line(&self, line: usize, mut page: PreviousPage) -> Option<PreviousPage> {
        if self.replaced.get(line) == Some(&true) {
            // It may redirect elsewhere now.
            return Some(PreviousPage {
                url: page.redirect_source()?.clone(),
                depth: page.depth,
                embedded: page.embedded,
                referrer: page.referrer,
                ..PreviousPage::default()
            });
        }
        if self.whole.contains(&self.children.key(&page.url)) {
            (page.etag, page.last_modified) = (None, None);
        }
        Some(page)
    }
}
