//! The pages of an earlier crawl, to be asked for again.
//!
//! A crawl that starts from them asks for each with what its server said to tell versions by (RFC 9110, section 13). Of a
//! page that is still the same the server sends nothing but a 304, and its links need not be known: what they lead to is
//! among the earlier pages, too.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frontier::{Canonicalizer, Link, Validators};
use serde::Deserialize;

/// The longest line that is read: more than a page can be written in, with all that may be selected.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// A page of an earlier crawl, as the lines of its output tell of it ([`PageRecord`](crate::PageRecord)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct EarlierPage {
    /// The URL that answered.
    pub url: String,
    /// The URL that was linked to, when redirects led from there to here.
    #[serde(default)]
    pub redirected_from: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The length of the first path that was found to it, in links.
    #[serde(default)]
    pub depth: u32,
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

impl EarlierPage {
    /// What tells the version that was had; none if there was none, or not as much of it as there is.
    fn validators(&self) -> Option<Arc<Validators>> {
        let is_had = matches!(self.status, 200..=299 | 304);
        let is_whole = !matches!(self.body_cut.as_deref(), Some("time" | "connection" | "coding"));
        let validators = Validators {
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
        };
        (is_had && is_whole && !validators.is_empty()).then(|| Arc::new(validators))
    }

    /// The steps to it: to where it answered, and to where a redirect led from there, for that may lead elsewhere now. None to
    /// what can no longer be crawled.
    pub(crate) fn links(&self, canonicalizer: &Canonicalizer) -> impl Iterator<Item = Link> {
        let referrer: Option<Arc<str>> = self.referrer.as_deref().map(Arc::from);
        let link = |url: &str, validators| {
            Some(Link {
                referrer: referrer.clone(),
                validators,
                ..Link::found(canonicalizer.parse(url).ok()?, self.depth, Arc::default())
            })
        };
        let answered = link(&self.url, self.validators());
        let linked_to = self.redirected_from.as_deref().and_then(|url| link(url, None));
        [answered, linked_to].into_iter().flatten()
    }
}

/// Why the output of an earlier crawl cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EarlierError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
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
}

/// The output of an earlier crawl, a file of JSON lines. It is read twice: once to check it, and line by line when the crawl
/// starts; so it may be larger than memory.
#[derive(Debug)]
pub struct EarlierCrawl {
    path: PathBuf,
    lines: u64,
}

impl EarlierCrawl {
    /// Checks every line of a file.
    ///
    /// A last line without its end, as a crawl leaves it that was killed, is passed over if it tells of no page.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is no output of a crawl.
    pub fn open(path: &Path) -> Result<Self, EarlierError> {
        let mut earlier = Self {
            path: path.to_owned(),
            lines: u64::MAX,
        };
        let mut lines = 0;
        for page in earlier.pages()? {
            page?;
            lines += 1;
        }
        earlier.lines = lines;
        Ok(earlier)
    }

    /// Reads the pages, one after the other.
    ///
    /// # Errors
    ///
    /// When the file cannot be read; of a page, when it changed since it was checked.
    pub fn pages(
        &self,
    ) -> Result<impl Iterator<Item = Result<EarlierPage, EarlierError>> + Send + use<>, EarlierError> {
        let file = File::open(&self.path).map_err(|source| self.unreadable(source))?;
        let path = self.path.clone();
        let mut reader = BufReader::new(file);
        let mut text = Vec::new();
        let mut line = 0;
        let pages = std::iter::from_fn(move || {
            loop {
                text.clear();
                line += 1;
                match read_line(&mut reader, &mut text) {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(source) => {
                        return Some(Err(EarlierError::Read {
                            path: path.clone(),
                            source,
                        }));
                    }
                }
                if text.trim_ascii().is_empty() {
                    continue;
                }
                return match serde_json::from_slice(&text) {
                    Ok(page) => Some(Ok(page)),
                    Err(_) if !text.ends_with(b"\n") => {
                        log::warn!("the last line of {} is torn, and passed over", path.display());
                        None
                    }
                    Err(why) => Some(Err(EarlierError::Line {
                        path: path.clone(),
                        line,
                        why,
                    })),
                };
            }
        });
        // What was appended since, by whoever does that, was not checked.
        Ok(pages.take(usize::try_from(self.lines).unwrap_or(usize::MAX)))
    }

    fn unreadable(&self, source: io::Error) -> EarlierError {
        EarlierError::Read {
            path: self.path.clone(),
            source,
        }
    }
}

fn read_line(reader: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<usize> {
    let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', text)?;
    if read as u64 == MAX_LINE_BYTES && !text.ends_with(b"\n") {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line is too long for a page",
        ));
    }
    Ok(read)
}
