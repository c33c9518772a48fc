//! Budgets that one site may spend: queries of a path, hosts of a domain, pages that repeat one another.
//!
//! They are asked before the filter is touched, and count only what was new and is queued.

use std::hash::{BuildHasher, RandomState};

use crate::config::FrontierConfig;
use crate::link::Link;
use crate::repeats::Repeats;
use crate::scope::Refusal;
use crate::tally::Tally;
use crate::url::site;

/// Paths, and sites, that are counted at a time, in 16 bytes each.
const COUNTED: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Budgets {
    max_queries_per_path: u32,
    queries: Tally,
    max_hosts_per_site: u32,
    hosts: Tally,
    pub(crate) repeats: Repeats,
    hasher: RandomState,
}

impl Budgets {
    pub(crate) fn new(config: &FrontierConfig) -> Self {
        let most = |max: Option<std::num::NonZeroU32>| max.map_or(u32::MAX, std::num::NonZeroU32::get);
        Self {
            max_queries_per_path: most(config.max_queries_per_path),
            queries: Tally::new(COUNTED),
            max_hosts_per_site: most(config.max_hosts_per_site),
            hosts: Tally::new(COUNTED),
            repeats: Repeats::new(most(config.max_near_duplicates)),
            hasher: RandomState::new(),
        }
    }

    /// Says whether a URL fits into the budgets. What the user named always does, and so does a sitemap.
    pub(crate) fn admit(&self, link: &Link) -> Result<(), Refusal> {
        if is_exempt(link) {
            return Ok(());
        }
        if let Some(path) = self.counted_path(link)
            && self.queries.get(path) >= self.max_queries_per_path
        {
            return Err(Refusal::TooManyQueries);
        }
        if self.repeats.closes(link.url.key()) {
            return Err(Refusal::NearDuplicates);
        }
        Ok(())
    }

    /// Says whether the first URL of a host fits into the budget of its site.
    pub(crate) fn admit_host(&self, link: &Link) -> Result<(), Refusal> {
        let is_bounded = self.max_hosts_per_site < u32::MAX && !is_exempt(link);
        if is_bounded && self.hosts.get(self.site(link)) >= self.max_hosts_per_site {
            return Err(Refusal::TooManySubdomains);
        }
        Ok(())
    }

    /// Counts what was new and is about to be queued.
    pub(crate) fn count(&mut self, link: &Link, is_first_of_host: bool) {
        if let Some(path) = self.counted_path(link) {
            self.queries.add(path);
        }
        if is_first_of_host && self.max_hosts_per_site < u32::MAX {
            self.hosts.add(self.site(link));
        }
    }

    /// The path that a URL with a query belongs to.
    fn counted_path(&self, link: &Link) -> Option<u64> {
        if self.max_queries_per_path == u32::MAX {
            return None;
        }
        let (path, _query) = link.url.key().split_once('?')?;
        Some(self.hasher.hash_one(path))
    }

    fn site(&self, link: &Link) -> u64 {
        self.hasher.hash_one(site(link.url.host_str()))
    }
}

fn is_exempt(link: &Link) -> bool {
    link.seed || link.sitemap_of.is_some()
}
