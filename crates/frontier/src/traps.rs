//! Budgets against crawler traps: queries of a path, hosts of a domain, near-duplicates.
//!
//! Budgets are checked before the seen-set, and count new URLs that are queued. All counts use keyed hashes, so that a site cannot
//! spend the budget of another.
//!
//! Queries of a path beyond its budget are postponed, because forums and wikis have all their pages under one path. Of a site that ends,
//! postponed pages lead to few new ones; of one without end, they lead to ever more. So those have a budget too, and what is beyond it is
//! refused.

mod clusters;
mod frequent_items;
mod near_duplicates;
mod path_prefix;
mod redirect_loops;

use std::num::NonZeroU32;

pub(crate) use clusters::Clusters;
pub use clusters::ResemblanceCounts;
pub(crate) use near_duplicates::{ClusterMember, LinkTreatment};
pub(crate) use redirect_loops::RedirectLoops;

use frequent_items::FrequentItems;
use near_duplicates::NearDuplicates;

use crate::config::FrontierConfig;
use crate::entry::{Entry, Purpose};
use crate::keyed_hash::KeyedHash;
use crate::link::Link;
use crate::scope::Refusal;
use crate::url::{HostKey, site};

/// The paths, and the sites, that are counted at a time: as many as fit a hash table of 65 536 places of 13 bytes.
const COUNTED: usize = 57_344;

/// How many times the budget of a path may be found on postponed pages, which a site without end has always more of.
const LATE_BUDGETS: u32 = 4;

/// The budgets of all sites.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Traps {
    #[serde(skip)]
    max_queries_per_path: u32,
    queries: FrequentItems,
    #[serde(skip)]
    max_hosts_per_site: u32,
    hosts: FrequentItems,
    near_duplicates: NearDuplicates,
    hash: KeyedHash,
}

/// The decision on an entry that is about to be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screening {
    Fetch,
    /// It waits behind everything else of the crawl.
    Postpone,
    Drop,
}

impl Traps {
    pub(crate) fn new(config: &FrontierConfig, hash: KeyedHash) -> Self {
        Self {
            max_queries_per_path: most(config.traps.max_queries_per_path),
            queries: FrequentItems::new(COUNTED),
            max_hosts_per_site: most(config.traps.max_hosts_per_site),
            hosts: FrequentItems::new(COUNTED),
            near_duplicates: NearDuplicates::new(
                most(config.traps.max_near_duplicates),
                most(config.traps.max_near_duplicates_in_all),
                hash,
            ),
            hash,
        }
    }

    pub(crate) fn configure(&mut self, config: &FrontierConfig) {
        self.max_queries_per_path = most(config.traps.max_queries_per_path);
        self.max_hosts_per_site = most(config.traps.max_hosts_per_site);
        let in_all = most(config.traps.max_near_duplicates_in_all);
        self.near_duplicates
            .configure(most(config.traps.max_near_duplicates), in_all);
    }

    /// Opens what was postponed or closed under lower limits. The next near-duplicate there is counted against the new ones.
    pub(crate) fn limits_changed(&mut self, before: &FrontierConfig, after: &FrontierConfig) {
        if most(after.traps.max_near_duplicates) > most(before.traps.max_near_duplicates) {
            self.near_duplicates.open_postponed();
        }
        if most(after.traps.max_near_duplicates_in_all) > most(before.traps.max_near_duplicates_in_all) {
            self.near_duplicates.open_closed();
        }
    }

    /// Checks a link against the budgets. Seeds and sitemaps are exempt. `is_late` says whether its page was postponed.
    pub(crate) fn admit(&self, link: &Link, is_late: bool) -> Result<(), Refusal> {
        if is_exempt(link) {
            return Ok(());
        }
        if let Some(path) = self.counted_path(link).filter(|_| is_late)
            && self.queries.get(late(path)) >= self.max_queries_per_path.saturating_mul(LATE_BUDGETS)
        {
            return Err(Refusal::TooManyQueries);
        }
        if self.near_duplicates.closes(link.url.key()) {
            return Err(Refusal::NearDuplicates);
        }
        Ok(())
    }

    pub(crate) fn admits_next(&self, count: usize) -> bool {
        let more = u32::try_from(count).unwrap_or(u32::MAX);
        let has_room =
            |items: &FrequentItems, most: u32| most == u32::MAX || items.highest().saturating_add(more) <= most;
        has_room(&self.queries, self.max_queries_per_path)
            && has_room(&self.hosts, self.max_hosts_per_site)
            && !self.near_duplicates.closes_any()
    }

    /// Checks the first link of a host against the budget of its site. Seeds are exempt.
    pub(crate) fn admit_host(&self, link: &Link) -> Result<(), Refusal> {
        let is_bounded = self.max_hosts_per_site < u32::MAX && !link.seed;
        if is_bounded && self.hosts.get(self.site(link)) >= self.max_hosts_per_site {
            return Err(Refusal::TooManySubdomains);
        }
        Ok(())
    }

    /// Counts a new link that is about to be queued. Returns whether it is over the budget of its path, and so waits behind everything
    /// else of the crawl. `is_late` says whether its page has done so.
    pub(crate) fn count(&mut self, link: &Link, is_late: bool) -> bool {
        let Some(path) = self.counted_path(link) else {
            return false;
        };
        if is_late {
            self.queries.add(late(path));
        }
        self.queries.add(path) > self.max_queries_per_path && !is_exempt(link)
    }

    pub(crate) fn count_host(&mut self, link: &Link) {
        if self.max_hosts_per_site < u32::MAX {
            self.hosts.add(self.site(link));
        }
    }

    /// Decides whether an entry is fetched, postponed or dropped. One that was fetched in this crawl before is not dropped.
    pub(crate) fn screen(&self, entry: &Entry) -> Screening {
        if entry.purpose != Purpose::Page || entry.metadata.seed {
            Screening::Fetch
        } else if !entry.is_refresh() && self.near_duplicates.closes(entry.key()) {
            Screening::Drop
        } else if !entry.postponed && !entry.was_asked_for() && self.near_duplicates.postpones(entry.key()) {
            Screening::Postpone
        } else {
            Screening::Fetch
        }
    }

    pub(crate) fn postpones(&self, entry: &Entry) -> bool {
        self.screen(entry) == Screening::Postpone
    }

    pub(crate) fn count_member(&mut self, entry: &Entry, member: &ClusterMember<'_>) -> LinkTreatment {
        self.near_duplicates.count(entry, member)
    }

    pub(crate) fn suspects(&self, host: &HostKey) -> bool {
        self.near_duplicates.suspects(host.site())
    }

    pub(crate) fn bounds_near_duplicates(&self) -> bool {
        self.near_duplicates.is_bounded()
    }

    /// The numbers of path prefixes that were closed and postponed.
    pub(crate) fn prefixes(&self) -> (u64, u64) {
        self.near_duplicates.prefixes()
    }

    pub(crate) fn hash(&self) -> KeyedHash {
        self.hash
    }

    fn counted_path(&self, link: &Link) -> Option<u64> {
        if self.max_queries_per_path == u32::MAX {
            return None;
        }
        let (path, _query) = link.url.key().split_once('?')?;
        Some(self.hash.of(path))
    }

    fn site(&self, link: &Link) -> u64 {
        self.hash.of(site(link.url.host_str()))
    }
}

/// The key by which those queries of a path are counted that were found on postponed pages.
fn late(path: u64) -> u64 {
    !path
}

/// `u32::MAX` for none.
fn most(max: Option<NonZeroU32>) -> u32 {
    max.map_or(u32::MAX, NonZeroU32::get)
}

fn is_exempt(link: &Link) -> bool {
    link.seed || link.sitemap_of.is_some()
}
