//! What a pass over all lines of a file learns: which of them a later line of the same URL replaces, and which pages have children without
//! a line.
//!
//! A page has several lines if a crawl fetched it again: each fetch has one. Of its [children](crate::PageRecord::children) a line counts
//! those that its own fetch found, and those of the crawl that was repeated. The latter are in every line of the page.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::PreviousPage;

/// The number of URLs that name each page as their referrer, by a hash of the page's URL.
#[derive(Debug, Default)]
pub(crate) struct Children {
    urls: HashMap<u64, u64>,
    hasher: RandomState,
}

impl Children {
    pub(super) fn key(&self, url: &str) -> u64 {
        self.hasher.hash_one(url)
    }

    pub(crate) fn of(&self, url: &str) -> u64 {
        match self.urls.is_empty() {
            true => 0,
            false => self.of_key(self.key(url)),
        }
    }

    fn of_key(&self, page: u64) -> u64 {
        self.urls.get(&page).copied().unwrap_or_default()
    }
}

/// The lines of a file so far. It has hashes only: 8 to 16 bytes per line, 10 to 21 per URL (31 for a moment while the set grows), and 19 to
/// 39 per page that promises children. [`Children`] has as much per page that has them, and is kept.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The URL of each line.
    urls: Vec<u64>,
    /// The URLs that have a line, and those that redirected to one.
    known: HashSet<u64>,
    has_repeated: bool,
    /// How many children the lines of each page promise.
    promised: HashMap<u64, u64>,
    children: Children,
    left: Option<u64>,
}

/// What was learned.
#[derive(Debug)]
pub(super) struct Learned {
    /// The number of lines.
    pub(super) lines: usize,
    /// Whether each line has a later one of the same URL; empty if none has.
    pub(super) replaced: Vec<bool>,
    /// The pages that have children without a line.
    pub(super) whole: HashSet<u64>,
    pub(super) children: Children,
}

impl Lines {
    pub(super) fn add(&mut self, page: &PreviousPage) {
        self.left = page.left;
        let url = self.children.key(&page.url);
        self.urls.push(url);
        self.count_child(page, url);
        let earlier = page.children.saturating_sub(page.links_new);
        if page.children + page.links_new > 0 {
            let promised = self.promised.entry(url).or_default();
            *promised = (*promised).max(earlier).saturating_add(page.links_new);
        }
    }

    /// Counts a URL as a child of its referrer, unless the link that led to it was counted: for a line of the same URL, or for one that
    /// the same URL redirected to at another time.
    fn count_child(&mut self, page: &PreviousPage, url: u64) {
        let is_new = self.known.insert(url);
        self.has_repeated |= !is_new;
        let redirect = page.redirect_source().map(|from| self.children.key(from));
        let redirect = redirect.filter(|from| *from != url);
        let is_link_new = redirect.is_none_or(|from| self.known.insert(from));
        if let Some(referrer) = page.referrer.as_ref().filter(|_| is_new && is_link_new) {
            let referrer = self.children.key(referrer);
            *self.children.urls.entry(referrer).or_default() += 1;
        }
    }

    pub(super) fn learn(mut self) -> Learned {
        if self.left == Some(0) {
            self.promised.clear();
        }
        let children = &self.children;
        self.promised.retain(|page, number| children.of_key(*page) < *number);
        Learned {
            lines: self.urls.len(),
            replaced: match self.has_repeated {
                true => replaced(&self.urls, self.known),
                false => Vec::new(),
            },
            whole: self.promised.into_keys().collect(),
            children: self.children,
        }
    }
}

/// Returns whether each line has a later one. `room` is used for the URLs of later lines.
fn replaced(urls: &[u64], mut room: HashSet<u64>) -> Vec<bool> {
    room.clear();
    let mut replaced: Vec<_> = urls.iter().rev().map(|url| !room.insert(*url)).collect();
    replaced.reverse();
    replaced
}
