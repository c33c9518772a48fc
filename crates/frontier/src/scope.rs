//! What may be crawled, and why not.
//!
//! A [`Scope`] looks at one [`Link`] at a time and remembers nothing but its seeds: budgets, queues
//! and the state of hosts are judged elsewhere. Its verdicts come before the filter is touched, so
//! that a URL refused today is not seen tomorrow.

mod reach;
mod refusal;

use std::fmt;
use std::str::FromStr;

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use url::Url;

use reach::Reached;
pub use refusal::Refusal;

use crate::link::Link;

use crate::url::{CanonicalUrl, Origin, host_name};

/// How long a URL may be, in bytes, unless the user says otherwise.
pub const DEFAULT_MAX_URL_BYTES: usize = 2048;
/// How often one path segment may occur in a URL, unless the user says otherwise.
pub const DEFAULT_MAX_SEGMENT_REPEATS: usize = 5;
/// How many redirects in a row are followed, unless the user says otherwise.
pub const DEFAULT_MAX_HOPS: u8 = 10;
/// How many sitemap indexes may lead to a sitemap, unless the user says otherwise. The protocol knows one.
pub const DEFAULT_MAX_SITEMAP_NESTING: u32 = 3;

/// How many steps from a page what it is made of may lie: a style sheet, three that import one another, and an image of the last.
pub const MAX_EMBEDDING: u32 = 5;

/// How large the include or the exclude patterns may be when compiled, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// How much memory matching them may use for its cache, in bytes per thread.
const MAX_PATTERN_CACHE_BYTES: usize = 8 << 20;

/// How far from its seeds a crawl may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The hosts of the seeds, on any port, by `http` or `https`.
    #[default]
    Host,
    /// All hosts under the registrable domains of the seeds, as the public suffix list has them:
    /// `a.example.co.uk` reaches `example.co.uk` and `b.example.co.uk`. An address, a host of one
    /// label and a public suffix reach themselves only.
    Site,
    /// The directories of the seeds: the host of a seed, and a path that begins with the seed's up
    /// to its last slash. Ports and the two schemes are one, as with [`Host`](Self::Host); case
    /// counts.
    Prefix,
    /// Everywhere.
    Any,
}

impl Reach {
    /// All reaches, from the usual one to the widest.
    pub const ALL: [Self; 4] = [Self::Host, Self::Site, Self::Prefix, Self::Any];

    /// Returns the name by which it is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Site => "site",
            Self::Prefix => "prefix",
            Self::Any => "any",
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no [`Reach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such scope: choose one of host, site, prefix, any")]
pub struct UnknownReach;

impl FromStr for Reach {
    type Err = UnknownReach;

    fn from_str(name: &str) -> Result<Self, UnknownReach> {
        Self::ALL
            .into_iter()
            .find(|reach| reach.name() == name)
            .ok_or(UnknownReach)
    }
}

/// What the user asked to be crawled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeConfig {
    /// How far from the seeds to go.
    pub reach: Reach,
    /// Regular expressions over the key, not anchored. If there are any, one must match.
    pub include: Vec<String>,
    /// Regular expressions over the key, not anchored. None may match, whatever was included.
    pub exclude: Vec<String>,
    /// How many links away from the nearest seed to go; `None` for no limit.
    pub max_depth: Option<u32>,
    /// How long a URL may be, in bytes.
    pub max_url_bytes: usize,
    /// How often one path segment may occur: `/a/b/a/b/a/b/…` is what an endless calendar or a
    /// broken relative link makes.
    pub max_segment_repeats: usize,
    /// How many redirects in a row to follow.
    pub max_hops: u8,
    /// How many sitemap indexes may lead to a sitemap.
    pub max_sitemap_nesting: u32,
}

impl Default for ScopeConfig {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
            max_url_bytes: DEFAULT_MAX_URL_BYTES,
            max_segment_repeats: DEFAULT_MAX_SEGMENT_REPEATS,
            max_hops: DEFAULT_MAX_HOPS,
            max_sitemap_nesting: DEFAULT_MAX_SITEMAP_NESTING,
        }
    }
}

/// Why a [`ScopeConfig`] cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScopeError {
    /// A pattern is not a regular expression, or too large a one.
    #[error("the {list} pattern `{pattern}` cannot be used: {reason}")]
    Pattern {
        /// Which list it is in: `include` or `exclude`.
        list: &'static str,
        /// The pattern as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: regex::Error,
    },
    /// Each pattern is well, but together they are too large.
    #[error(
        "the {list} patterns are too large together, more than {MAX_PATTERN_BYTES} bytes when \
         compiled: give fewer or simpler ones"
    )]
    TooLarge {
        /// Which list it is: `include` or `exclude`.
        list: &'static str,
    },
}

/// Judges links by the seeds and the wishes of the user.
#[derive(Clone, Debug)]
pub struct Scope {
    reached: Reached,
    include: Option<RegexSet>,
    exclude: RegexSet,
    max_depth: u32,
    max_url_bytes: usize,
    max_segment_repeats: usize,
    max_hops: u8,
    max_sitemap_nesting: u32,
}

impl Scope {
    /// Compiles the patterns; no seed is in the scope yet.
    ///
    /// # Errors
    ///
    /// When a pattern cannot be used, and says which and why.
    pub fn new(config: ScopeConfig) -> Result<Self, ScopeError> {
        let include = compile("include", &config.include)?;
        Ok(Self {
            reached: Reached::new(config.reach),
            include: (!include.is_empty()).then_some(include),
            exclude: compile("exclude", &config.exclude)?,
            max_depth: config.max_depth.unwrap_or(u32::MAX),
            max_url_bytes: config.max_url_bytes,
            max_segment_repeats: config.max_segment_repeats,
            max_hops: config.max_hops,
            max_sitemap_nesting: config.max_sitemap_nesting,
        })
    }

    /// Lets the crawl reach what belongs to this seed. So does the target of a redirected seed.
    pub fn add_seed(&mut self, url: &CanonicalUrl) {
        self.reached.add(url);
    }

    /// Tells whether a URL belongs to a seed; other rules are not asked.
    pub fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.reached.judge(url).is_ok()
    }

    /// Tells whether a link may be crawled.
    ///
    /// The cheap questions come first, so the length bounds the cost of all others; of several
    /// reasons the first is told. A seed as the user gave it needs only be short enough; where it is
    /// redirected to needs no include pattern. Allocates only for paths of many segments.
    ///
    /// # Errors
    ///
    /// With the reason, when it may not.
    pub fn judge(&self, link: &Link) -> Result<(), Refusal> {
        if link.url.url().as_str().len() > self.max_url_bytes {
            return Err(Refusal::UrlTooLong);
        }
        if let Some(origin) = &link.sitemap_of {
            return self.judge_sitemap(link, origin);
        }
        let seed_redirected = link.seed && link.hops > 0;
        if link.seed && !seed_redirected {
            return Ok(());
        }
        if link.hops > self.max_hops {
            return Err(Refusal::TooManyHops);
        }
        self.reached.judge(&link.url)?;
        let embedded = u32::from(link.embedded);
        if embedded > MAX_EMBEDDING || link.depth > self.max_depth.saturating_add(embedded) {
            return Err(Refusal::TooDeep);
        }
        if repeats_itself(link.url.key_path(), self.max_segment_repeats) {
            return Err(Refusal::RepeatedSegments);
        }
        self.judge_patterns(link.url.key(), seed_redirected)
    }

    /// A sitemap is worth reading when its origin is on a host where pages may be crawled. Its own place may be anywhere when
    /// the robots.txt of its origin names it, as the protocol has it ("Sitemaps & Cross Submits"); one that an index names must
    /// be on the host of the index, or on one where pages may be crawled.
    fn judge_sitemap(&self, link: &Link, origin: &Origin) -> Result<(), Refusal> {
        if link.hops > self.max_hops {
            return Err(Refusal::TooManyHops);
        }
        if link.depth > self.max_sitemap_nesting {
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

    /// Where a seed is redirected to stands for the seed, which needs no pattern to include it.
    fn judge_patterns(&self, key: &str, seed_redirected: bool) -> Result<(), Refusal> {
        if self.exclude.is_match(key) {
            return Err(Refusal::Excluded);
        }
        match &self.include {
            Some(include) if !seed_redirected && !include.is_match(key) => Err(Refusal::NotIncluded),
            _ => Ok(()),
        }
    }
}

/// Compiles a list of patterns to be asked all at once, in one pass over the text.
fn compile(list: &'static str, patterns: &[String]) -> Result<RegexSet, ScopeError> {
    RegexSetBuilder::new(patterns)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_CACHE_BYTES)
        .build()
        .map_err(|_| blame(list, patterns))
}

/// Finds the pattern that kept a set from being compiled: the set does not say.
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

/// Whether a segment of the path occurs more than `most` times. Empty segments count, but for the
/// one after the last slash.
///
/// Costs n log n comparisons for n segments: nested loops would let a long URL take seconds.
fn repeats_itself(path: &str, most: usize) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() || path.bytes().filter(|&byte| byte == b'/').count() < most {
        return false;
    }
    let mut segments: Vec<&str> = path.split('/').collect();
    segments.sort_unstable();
    segments.chunk_by(|a, b| a == b).any(|same| same.len() > most)
}
