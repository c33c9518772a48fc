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
use std::sync::Arc;

pub(crate) use clusters::Clusters;
pub use clusters::ResemblanceCounts;
pub(crate) use near_duplicates::{ClusterMember, LinkTreatment};
pub(crate) use redirect_loops::RedirectLoops;

use frequent_items::FrequentItems;
use near_duplicates::NearDuplicates;

use crate::config::TrapConfig;
use crate::entry::{Entry, Purpose};
use crate::failure::Failure;
use crate::keyed_hash::KeyedHash;
use crate::lease::NotFetched;
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
    pub(crate) limits: TrapConfig,
    queries: FrequentItems,
    hosts: FrequentItems,
    near_duplicates: NearDuplicates,
    pub(crate) hash: KeyedHash,
}

/// The decision on an entry that is about to be leased.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Screening {
    Fetch,
    /// It waits behind everything else of the crawl.
    Postpone,
    /// It is dropped for this reason, because of this failure.
    Drop(NotFetched, Option<Arc<Failure>>),
}

impl Traps {
    pub(crate) fn new(limits: TrapConfig, hash: KeyedHash) -> Self {
        Self {
            limits,
            queries: FrequentItems::new(COUNTED),
            hosts: FrequentItems::new(COUNTED),
            near_duplicates: NearDuplicates::new(hash),
            hash,
        }
    }

    /// Opens what was postponed or closed under lower limits. The next near-duplicate there is counted against the new ones.
    pub(crate) fn limits_changed(&mut self, before: &TrapConfig, after: &TrapConfig) {
        if most(after.max_near_duplicates) > most(before.max_near_duplicates) {
            self.near_duplicates.postponed.clear();
        }
        if most(after.max_near_duplicates_in_all) > most(before.max_near_duplicates_in_all) {
            self.near_duplicates.closed.clear();
        }
    }

    /// Checks a link against the budgets. Seeds and sitemaps are exempt. `is_late` says whether its page was postponed.
    pub(crate) fn admit(&self, link: &Link, is_late: bool) -> Result<(), Refusal> {
        if is_exempt(link) {
            return Ok(());
        }
        if let Some(path) = self.counted_path(link).filter(|_| is_late)
            && self.queries.get(late(path)) >= most(self.limits.max_queries_per_path).saturating_mul(LATE_BUDGETS)
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
        let has_room = |items: &FrequentItems, most: Option<NonZeroU32>| {
            most.is_none_or(|most| items.highest().saturating_add(more) <= most.get())
        };
        has_room(&self.queries, self.limits.max_queries_per_path)
            && has_room(&self.hosts, self.limits.max_hosts_per_site)
            && self.near_duplicates.closed.known.is_empty()
    }

    /// Checks the first link of a host against the budget of its site. Seeds are exempt.
    pub(crate) fn admit_host(&self, link: &Link) -> Result<(), Refusal> {
        let is_full = |most: NonZeroU32| self.hosts.get(self.site(link)) >= most.get();
        if !link.seed && self.limits.max_hosts_per_site.is_some_and(is_full) {
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
        self.queries.add(path) > most(self.limits.max_queries_per_path) && !is_exempt(link)
    }

    pub(crate) fn count_host(&mut self, link: &Link) {
        if self.limits.max_hosts_per_site.is_some() {
            self.hosts.add(self.site(link));
        }
    }

    /// Decides whether an entry is fetched, postponed or dropped. One that was fetched in this crawl before is not dropped.
    pub(crate) fn screen(&self, entry: &Entry) -> Screening {
        if entry.purpose != Purpose::Page || entry.metadata.seed {
            Screening::Fetch
        } else if !entry.is_refresh() && self.near_duplicates.closes(entry.key()) {
            Screening::Drop(NotFetched::NearDuplicates, None)
        } else if !entry.postponed && !entry.was_asked_for() && self.near_duplicates.postpones(entry.key()) {
            Screening::Postpone
        } else {
            Screening::Fetch
        }
    }

    pub(crate) fn count_member(&mut self, entry: &Entry, member: &ClusterMember<'_>) -> LinkTreatment {
        self.near_duplicates.count(entry, member, &self.limits)
    }

    pub(crate) fn suspects(&self, host: &HostKey) -> bool {
        self.near_duplicates.suspects(host.site())
    }

    pub(crate) fn alike_to_come(&self, host: &HostKey) -> u64 {
        self.near_duplicates.to_come(host.site(), &self.limits)
    }

    pub(crate) fn bounds_near_duplicates(&self) -> bool {
        self.limits
            .max_near_duplicates
            .or(self.limits.max_near_duplicates_in_all)
            .is_some()
    }

    /// The numbers of path prefixes that were closed and postponed.
    pub(crate) fn prefixes(&self) -> (u64, u64) {
        self.near_duplicates.prefixes()
    }

    fn counted_path(&self, link: &Link) -> Option<u64> {
        self.limits.max_queries_per_path?;
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
