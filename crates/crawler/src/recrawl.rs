//! The pages of an earlier crawl, to be asked for again.
//!
//! A crawl that starts from them asks for each with what its server said to tell versions by (RFC 9110, section 13). Of a
//! page that is still the same the server sends nothing but a 304, and its links need not be known: what they lead to is
//! among the earlier pages, too.

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

/// A page of an earlier crawl, as the lines of its output tell of it ([`PageRecord`](crate::PageRecord)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PreviousPage {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, when redirects led from there to here.
    #[serde(default)]
    pub redirected_from: Option<String>,
    /// The same in a crawl before that one.
    #[serde(default)]
    pub was_redirected_from: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The length of the first path that was found to it, in links.
    #[serde(default)]
    pub depth: u32,
    /// Steps in a row that load it as a part of what came before; 0 for a page.
    #[serde(default)]
    pub embedded: u8,
    /// When it last changed, by the word of a sitemap.
    #[serde(default)]
    pub lastmod: Option<String>,
    /// The page that linked to it.
    #[serde(default)]
    pub referrer: Option<String>,
    /// Why its body was not read to the end.
    #[serde(default)]
    pub body_cut: Option<String>,
    /// The `ETag` header.
    #[serde(default)]
    pub etag: Option<String>,
    /// The `Last-Modified` header.
    #[serde(default)]
    pub last_modified: Option<String>,
}

impl PreviousPage {
    /// What tells the version that was had; nothing if there was none, or not as much of it as there is.
    fn validators(&self) -> Validators {
        let is_had = matches!(self.status, 200..=299 | 304);
        let is_whole = !matches!(self.body_cut.as_deref(), Some("time" | "connection" | "coding"));
        let is_short = |text: &&String| text.len() <= MAX_VALIDATOR_BYTES;
        if is_had && is_whole {
            Validators {
                etag: self.etag.as_ref().filter(is_short).cloned(),
                last_modified: self.last_modified.as_ref().filter(is_short).cloned(),
            }
        } else {
            Validators::default()
        }
    }

    /// The steps to it: to where it answered, and to where a redirect led from there, for that may lead elsewhere now. None to
    /// what can no longer be crawled.
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

/// The text as one that is shared with the page before, if it is the same: the links of one page follow each other.
pub(crate) fn shared(text: Option<&str>, before: &Option<Arc<str>>) -> Option<Arc<str>> {
    match (text, before) {
        (Some(text), Some(before)) if **before == *text => Some(Arc::clone(before)),
        (text, _) => text.map(Arc::from),
    }
}

/// Why the output of an earlier crawl cannot be used.
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
    /// It is a pipe, a folder or a device.
    #[error("{0} is no plain file, give one that can be read twice")]
    NoFile(PathBuf),
    /// A line is none that a crawl writes.
    #[error("line {line} of {path} tells of no page, give a file that --output has written: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1 on.
        line: u64,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// It has become shorter since it was checked.
    #[error("{0} has been changed while it was read")]
    Changed(PathBuf),
}

/// The output of an earlier crawl, a file of JSON lines. It is read line by line, once to check it and again when the crawl
/// starts and where a seed is redirected; so it may be larger than memory.
#[derive(Debug)]
pub struct PreviousCrawl {
    path: PathBuf,
    file: File,
    pages: u64,
}

impl PreviousCrawl {
    /// Checks every line of a file.
    ///
    /// A last line without its end, as a crawl leaves it that was killed, is passed over if it tells of no page.
    ///
    /// # Errors
    ///
    /// When the file cannot be read twice, or is no output of a crawl.
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
        for page in Pages::of(path, &file) {
            page?;
            pages += 1;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            pages,
        })
    }

    /// Reads the pages, one after the other, from the first on. What was added to the file since it was checked is left out.
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
        let mut pages = Pages::of(path, &self.file);
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
    fn of(path: &Path, file: R) -> Self {
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
                "a line is too long for a page",
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
                    "the last line of {} is torn, and skipped",
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
