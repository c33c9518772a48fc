//! Pages that repeat one another: how many of a cluster are followed, and what is closed then.
//!
//! Who fetches pages can tell that one is a near-duplicate of another; what follows from it is decided here. All pages
//! that repeat one page are a cluster, whose members are counted
//!
//! * under each [path prefix](path_prefix): when there are more than a crawl allows, the prefix is closed: links
//!   to it are refused, and what waits there is not fetched. That stops calendars, session identifiers and faceted search.
//! * on the whole site: the links of members beyond that number are not followed. That stops sites that answer
//!   every URL with the same page, whose relative links lead deeper and deeper.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use crate::entry::Entry;
use crate::tally::Tally;

/// Clusters that are counted at a time, in 16 bytes each.
const CLUSTERS_COUNTED: usize = 65_536;

/// Sites that are suspect at a time; if there are more, all are.
const MOST_SUSPECTS: usize = 65_536;

/// Prefixes that are closed at a time; the oldest is opened again when there are more.
const MOST_CLOSED: usize = 65_536;

/// What a near-duplicate leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeat {
    /// It was counted; its links are followed.
    Counted,
    /// Its cluster has had as many members as are followed on this site: its new links will be refused.
    LinksRefused,
    /// So has it under this path prefix, which is closed from now on.
    PrefixClosed(String),
}

#[derive(Debug)]
pub(crate) struct Repeats {
    most: u32,
    of_prefix: Tally,
    of_site: Tally,
    /// How many members a cluster of a site may have, compared or not.
    guessed: Tally,
    closed: HashSet<u64>,
    closed_in_order: VecDeque<u64>,
    closed_ever: u64,
    suspects: HashSet<u64>,
    hasher: RandomState,
}

impl Repeats {
    /// Follows `most` near-duplicates of a cluster; `u32::MAX` for all.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            of_prefix: Tally::new(CLUSTERS_COUNTED),
            of_site: Tally::new(CLUSTERS_COUNTED),
            guessed: Tally::new(CLUSTERS_COUNTED),
            closed: HashSet::new(),
            closed_in_order: VecDeque::new(),
            closed_ever: 0,
            suspects: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Counts a page of a cluster that stands for so many of it.
    ///
    /// That others are like it is a guess, which makes a site suspect; what is followed is decided by pages that were compared.
    pub(crate) fn count(&mut self, entry: &Entry, cluster: u64, stands_for: u32) -> Repeat {
        // What the user named is followed, however alike it is.
        if entry.metadata.seed || self.most == u32::MAX {
            return Repeat::Counted;
        }
        let prefix = path_prefix(entry.key());
        let of_prefix = self.of_prefix.add(self.hasher.hash_one((&prefix, cluster)));
        let site = entry.queue.site();
        let of_cluster = self.hasher.hash_one((site, cluster));
        let of_site = self.of_site.add(of_cluster);
        let guessed = self.guessed.add_times(of_cluster, stands_for);
        if guessed >= self.most && self.suspects.len() < MOST_SUSPECTS {
            self.suspects.insert(self.hasher.hash_one(site));
        }
        if of_prefix > self.most && self.close(&prefix) {
            return Repeat::PrefixClosed(prefix);
        }
        if of_site > self.most {
            Repeat::LinksRefused
        } else {
            Repeat::Counted
        }
    }

    /// Says whether a URL lies under a closed prefix.
    pub(crate) fn closes(&self, key: &str) -> bool {
        !self.closed.is_empty() && self.closed.contains(&self.hasher.hash_one(path_prefix(key)))
    }

    /// Says whether a site has repeated a page so often that it may be a trap.
    pub(crate) fn suspects(&self, site: &str) -> bool {
        self.suspects.len() >= MOST_SUSPECTS || self.suspects.contains(&self.hasher.hash_one(site))
    }

    /// Returns how many prefixes were closed.
    pub(crate) fn closed_ever(&self) -> u64 {
        self.closed_ever
    }

    /// Says whether the prefix was open until now.
    fn close(&mut self, prefix: &str) -> bool {
        let key = self.hasher.hash_one(prefix);
        if !self.closed.insert(key) {
            return false;
        }
        self.closed_ever += 1;
        self.closed_in_order.push_back(key);
        if self.closed.len() > MOST_CLOSED
            && let Some(oldest) = self.closed_in_order.pop_front()
        {
            self.closed.remove(&oldest);
        }
        true
    }
}

/// What the URLs of a trap have in common, and few others have.
///
/// | URL | prefix |
/// |---|---|
/// | `http://a.example/list?page=2` | `http://a.example/list?`: all queries of a path |
/// | `http://a.example/list;jsessionid=1F` | `http://a.example/list;`: all parameters of a path |
/// | `http://a.example/calendar/2031/01/` | `http://a.example/calendar/#/#/`: any numbers in these places |
/// | `http://a.example/api/Vec.html` | `http://a.example/api/*`: the directory, but not the directories in it |
///
/// A part of a path with a digit in it stands for all such parts, percent-escapes aside. Directories have no say over
/// what is in their directories, because documentation is full of pages that resemble one another across directories.
pub fn path_prefix(url: &str) -> String {
    let path_at = url
        .find("://")
        .map_or(0, |at| at + 3 + url[at + 3..].find('/').unwrap_or(url.len() - at - 3));
    let (origin, rest) = url.split_at(path_at);
    let end = rest.find(['?', ';', '#']).unwrap_or(rest.len());
    let (path, tail) = rest.split_at(end);
    let mut prefix = String::with_capacity(url.len());
    prefix.push_str(origin);
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "" => {}
            _ if has_digit(part) => prefix.push('#'),
            _ if is_last && tail.is_empty() => prefix.push('*'),
            _ => prefix.push_str(part),
        }
        if !is_last {
            prefix.push('/');
        }
    }
    prefix.extend(tail.chars().next());
    prefix
}

/// Says whether there is a digit that belongs to no percent-escape.
fn has_digit(part: &str) -> bool {
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'0'..=b'9' => return true,
            b'%' => {
                bytes.next();
                bytes.next();
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_trap_have_one_prefix() {
        for (url, prefix) in [
            ("http://a.example/", "http://a.example/"),
            ("http://a.example/about", "http://a.example/*"),
            ("http://a.example/calendar/2031/01/", "http://a.example/calendar/#/#/"),
            ("http://a.example/calendar/2031/01", "http://a.example/calendar/#/#"),
            ("http://a.example/calendar/about", "http://a.example/calendar/*"),
            ("http://a.example/list?page=2", "http://a.example/list?"),
            ("http://a.example/list7?page=2", "http://a.example/#?"),
            ("http://a.example/shop/;sid=2/x?y", "http://a.example/shop/;"),
            ("http://a.example/(S(k3x))/a.aspx", "http://a.example/#/*"),
            ("http://a.example/%E6%97%A5/%41", "http://a.example/%E6%97%A5/*"),
            ("http://a.example/%E6%97%A5%2", "http://a.example/*"),
            ("http://a.example:8080/x1", "http://a.example:8080/#"),
            ("http://[::1]/x/y", "http://[::1]/x/*"),
            ("http://a.example", "http://a.example"),
            ("?;#", "?"),
            ("", ""),
        ] {
            assert_eq!(path_prefix(url), prefix, "{url}");
        }
    }
}
