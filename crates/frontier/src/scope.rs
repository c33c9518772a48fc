//! The scope of a crawl: which links are followed, and why others are refused.
//!
//! It is checked for one [`Link`] at a time; budgets, queues and the state of hosts are checked elsewhere. The scope is checked before the seen-set, so that a refused URL is not marked as seen.

mod reach;
mod refusal;
#[cfg(test)]
mod tests;

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use url::Url;

pub(crate) use reach::Reached;
pub use refusal::Refusal;

use crate::link::Link;
use crate::url::{CanonicalUrl, Origin, host_name};

/// The largest limit of redirects in a row. [`Link::hops`] stands still at 255, which is thus too many under every limit.
pub const MOST_REDIRECTS: u8 = u8::MAX - 1;

/// The longest chain of embedded resources from a page: a style sheet, three more by `@import`, and an image of the last one.
const MAX_EMBEDDING: u32 = 5;

/// The maximum size of the compiled include patterns, and of the compiled exclude patterns, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// The maximum size of the cache for matching them, in bytes per thread.
const MAX_PATTERN_CACHE_BYTES: usize = 8 << 20;

/// How far from its seeds a crawl goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The hosts of the seeds, on any port, by `http` or `https`.
    #[default]
    Host,
    /// All hosts of the registrable domains of the seeds, by the public suffix list: `a.example.co.uk` reaches `example.co.uk` and
    /// `b.example.co.uk`. An IP address, a host of one label and a public suffix reach themselves only.
    Site,
    /// The directories of the seeds: the host of a seed, and paths that begin with the path of the seed up to its last slash. Any
    /// port and both schemes belong to it, as with [`Host`](Self::Host). Paths are case-sensitive.
    Prefix,
    /// Everywhere.
    Any,
}

/// What may be crawled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeConfig {
    /// How far from the seeds the crawl goes: by default to their hosts.
    pub reach: Reach,
    /// Regular expressions that are searched in the key of a link. If there are any, one must match.
    pub include: Vec<String>,
    /// Regular expressions that are searched in the key of a link. None may match, even if an include pattern does.
    pub exclude: Vec<String>,
    /// The maximum number of links from a seed to a page; `None` for no limit.
    pub max_depth: Option<u32>,
    /// The maximum length of a URL, in bytes: by default 2 048.
    pub max_url_bytes: usize,
    /// The maximum number of times that one path segment may occur: by default 5. Endless calendars and broken relative links generate
    /// `/a/b/a/b/a/b/…`.
    #[serde(alias = "max_segment_repeats")]
    pub max_path_repeats: usize,
    /// The maximum number of redirects in a row: by default 10, at most [`MOST_REDIRECTS`]; 255 is taken as that.
    #[serde(alias = "max_hops")]
    pub max_redirects: u8,
    /// The maximum number of sitemap indexes above a sitemap: by default 3. The protocol allows one.
    pub max_sitemap_nesting: u32,
}

impl Default for ScopeConfig {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
            max_url_bytes: 2048,
            max_path_repeats: 5,
            max_redirects: 10,
            max_sitemap_nesting: 3,
        }
    }
}

/// Why a [`ScopeConfig`] cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScopeError {
    /// A pattern is not a regular expression, or is too large.
    #[error("the {list} pattern `{pattern}` cannot be used: {reason}{}", of_file_names(pattern))]
    Pattern {
        /// The list that contains it: `include`, `exclude` or `order`.
        list: &'static str,
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: regex::Error,
    },
    /// Each pattern is valid, but together they are too large.
    #[error(
        "the {list} patterns are too large together, more than {MAX_PATTERN_BYTES} bytes when \
         compiled: give fewer or simpler ones"
    )]
    TooLarge {
        /// The list: `include`, `exclude` or `order`.
        list: &'static str,
    },
}

/// Checks links against the seeds and the [`ScopeConfig`].
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    reached: Reached,
    include: Option<RegexSet>,
    exclude: Option<RegexSet>,
    limits: ScopeConfig,
}

impl Scope {
    /// Compiles the patterns. The scope has no seeds yet.
    ///
    /// # Errors
    ///
    /// A pattern that cannot be used. The error names it and the reason.
    pub(crate) fn new(config: ScopeConfig) -> Result<Self, ScopeError> {
        Ok(Self {
            reached: Reached::new(config.reach),
            include: compile("include", &config.include)?,
            exclude: compile("exclude", &config.exclude)?,
            limits: ScopeConfig {
                max_redirects: config.max_redirects.min(MOST_REDIRECTS),
                ..config
            },
        })
    }

    /// Adds a seed, or the target of a redirected seed, to the reach. Returns whether that has grown.
    pub(crate) fn add_seed(&mut self, url: &CanonicalUrl) -> bool {
        self.reached.add(url)
    }

    pub(crate) fn reached(&self) -> &Reached {
        &self.reached
    }

    pub(crate) fn take_reached(&mut self) -> Reached {
        let nothing = Reached::new(self.limits.reach);
        std::mem::replace(&mut self.reached, nothing)
    }

    pub(crate) fn set_reached(&mut self, reached: Reached) {
        self.reached = reached;
    }

    /// Returns whether a URL is in reach of a seed. Other rules are not checked.
    pub(crate) fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.reached.judge(url).is_ok()
    }

    /// Checks whether a link may be crawled.
    ///
    /// Cheap checks come first: the length bounds the cost of all others. A seed need only be short enough. The target of a
    /// redirected seed needs no include pattern. Allocates only for paths of many segments.
    ///
    /// # Errors
    ///
    /// The first reason against it.
    pub(crate) fn judge(&self, link: &Link) -> Result<(), Refusal> {
        if link.url.url().as_str().len() > self.limits.max_url_bytes {
            return Err(Refusal::UrlTooLong);
        }
        if let Some(origin) = &link.sitemap_of {
            return self.judge_sitemap(link, origin);
        }
        let seed_redirected = link.seed && link.hops > 0;
        if link.seed && !seed_redirected {
            return Ok(());
        }
        if link.hops > self.limits.max_redirects {
            return Err(Refusal::TooManyHops);
        }
        self.reached.judge(&link.url)?;
        let embedded = u32::from(link.embedded);
        let is_too_deep = |most: u32| link.depth > most.saturating_add(embedded);
        if embedded > MAX_EMBEDDING || self.limits.max_depth.is_some_and(is_too_deep) {
            return Err(Refusal::TooDeep);
        }
        if repeats_itself(link.url.key_path(), self.limits.max_path_repeats) {
            return Err(Refusal::RepeatedSegments);
        }
        self.judge_patterns(link.url.key(), seed_redirected)
    }

    /// Checks a sitemap: its origin must be on a host in reach.
    ///
    /// A sitemap that a robots.txt lists may be on any host (the protocol's "Sitemaps & Cross Submits"). One that an index lists
    /// must be on the host of the index, or on a host in reach.
    fn judge_sitemap(&self, link: &Link, origin: &Origin) -> Result<(), Refusal> {
        if link.hops > self.limits.max_redirects {
            return Err(Refusal::TooManyHops);
        }
        if link.depth > self.limits.max_sitemap_nesting {
            return Err(Refusal::TooDeep);
        }
        let url = link.url.url();
        let beside_index = || {
            let index = link.referrer.as_deref().and_then(|index| Url::parse(index).ok());
            index.is_some_and(|index| host_name(&index) == host_name(url))
        };
        let may_be_there = link.depth == 0 || self.reached.reaches(url) || beside_index();
        if may_be_there && self.reached.reaches(&origin.robots_url()) {
            Ok(())
        } else {
            Err(Refusal::OtherHost)
        }
    }

    /// Checks the patterns. The target of a redirected seed needs no include pattern, as a seed does not.
    fn judge_patterns(&self, key: &str, seed_redirected: bool) -> Result<(), Refusal> {
        if self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(key)) {
            return Err(Refusal::Excluded);
        }
        match &self.include {
            Some(include) if !seed_redirected && !include.is_match(key) => Err(Refusal::NotIncluded),
            _ => Ok(()),
        }
    }
}

/// Compiles a list of patterns, to match all of them in one pass over the text; `None` without patterns.
pub(crate) fn compile(list: &'static str, patterns: &[String]) -> Result<Option<RegexSet>, ScopeError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    // The library takes long to see that many small ones are too large.
    if patterns.iter().map(String::len).sum::<usize>() > MAX_PATTERN_BYTES / 16 {
        return Err(ScopeError::TooLarge { list });
    }
    RegexSetBuilder::new(patterns)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_CACHE_BYTES)
        .build()
        .map(Some)
        .map_err(|_| blame(list, patterns))
}

/// Finds the pattern that prevents a set from being compiled. The set does not say which.
fn blame(list: &'static str, patterns: &[String]) -> ScopeError {
    let unusable = |pattern: &String| -> Option<(String, regex::Error)> {
        let result = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
        result.err().map(|reason| (pattern.clone(), reason))
    };
    match patterns.iter().find_map(unusable) {
        Some((pattern, reason)) => ScopeError::Pattern { list, pattern, reason },
        None => ScopeError::TooLarge { list },
    }
}

/// Returns what to write instead of a pattern of file names such as `*.pdf` or `?.pdf`, which is no regular expression.
fn of_file_names(pattern: &str) -> String {
    let (start, rest) = match (pattern.strip_prefix('?'), pattern.strip_prefix('*')) {
        (Some(rest), _) => (".", rest),
        (None, Some(rest)) => ("", rest.trim_start_matches('*')),
        (None, None) => return String::new(),
    };
    let (rest, end) = match rest.strip_suffix('*') {
        Some(rest) => (rest, ""),
        None if rest.is_empty() => ("", "."),
        None => (rest, "$"),
    };
    let parts = rest.split('*').map(regex::escape);
    let written = start.to_owned() + &parts.collect::<Vec<_>>().join(".*") + end;
    let written = written.replace("\\{", "(").replace("\\}", ")").replace(',', "|");
    format!("; it is a regular expression, not a pattern of file names: write {written}")
}

/// Returns whether a segment of the path occurs more than `most` times. Empty segments count, except the one after the last slash.
///
/// Cost: n log n comparisons for n segments. With nested loops, a long URL would take seconds.
fn repeats_itself(path: &str, most: usize) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let slashes = path.bytes().filter(|&byte| byte == b'/').count();
    if path.is_empty() || slashes < most {
        return false;
    }
    let mut segments: Vec<&str> = path.split('/').collect();
    segments.sort_unstable();
    segments.chunk_by(|a, b| a == b).any(|same| same.len() > most)
}
