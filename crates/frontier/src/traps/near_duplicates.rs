//! The limits on near-duplicates: how many pages of a cluster are fetched, and what is postponed or closed beyond.
//!
//! [`Clusters`](super::clusters::Clusters) finds the clusters; this module applies the limits. It counts the members of a cluster
//!
//! * per [path prefix](path_prefix). Beyond the first limit the prefix is **postponed**: its queued and later pages wait behind
//!   everything else of the crawl. Beyond the second limit it is **closed**: links to it are refused and its queued pages dropped.
//!   That ends calendars, session identifiers and faceted search, while a catalogue of similar pages is fetched completely.
//! * per site, with the same two limits, for the links of the members. That ends sites that answer every URL with the same page,
//!   whose relative links become deeper and deeper.
//!
//! Pages with too little text to compare are near-duplicates only if their bytes are equal. If they have links, they count as one
//! cluster per prefix and site, so that a chain of them ends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;

use super::frequent_items::FrequentItems;
use super::most;
use super::path_prefix::path_prefix;
use crate::config::TrapConfig;
use crate::entry::Entry;
use crate::keyed_hash::KeyedHash;
use crate::notice::Notice;

/// The clusters that are counted at a time, in a hash table of 65 536 places.
const CLUSTERS_COUNTED: usize = 57_344;

/// The sites that are suspect at a time. If there are more, all sites are.
const MAX_SUSPECTS: usize = 65_536;

/// The prefixes and sites that are closed, or postponed, at a time. If there are more, the oldest is opened again.
const MAX_PLACES: usize = 65_536;

/// A page of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterMember<'a> {
    /// The number of the cluster; `None` for the cluster of pages with too little text.
    pub(crate) cluster: Option<u64>,
    /// The first page of the cluster, if known.
    pub(crate) first: &'a str,
    /// How many pages it represents, if not all are compared.
    pub(crate) stands_for: u32,
}

/// How the links of a page are treated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LinkTreatment {
    /// They wait behind everything else of the crawl.
    pub(crate) is_postponed: bool,
    /// The new ones are refused.
    pub(crate) is_refused: bool,
    pub(crate) notices: Vec<Notice>,
}

/// The latest prefixes or sites with a property, as hashes.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct RecentPlaces {
    pub(super) known: HashSet<u64>,
    in_order: VecDeque<u64>,
    ever: u64,
}

impl RecentPlaces {
    /// Adds a place. Returns whether it is new.
    fn add(&mut self, place: u64) -> bool {
        if !self.known.insert(place) {
            return false;
        }
        self.ever += 1;
        self.in_order.push_back(place);
        if self.known.len() > MAX_PLACES
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    /// Removes all places.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.in_order.clear();
    }

    fn has(&self, place: impl FnOnce() -> u64) -> bool {
        !self.known.is_empty() && self.known.contains(&place())
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct NearDuplicates {
    of_prefix: FrequentItems,
    of_site: FrequentItems,
    /// The estimated number of members of a cluster on a site, compared or not.
    guessed: FrequentItems,
    pub(super) postponed: RecentPlaces,
    pub(super) closed: RecentPlaces,
    /// Clusters of sites for which a notice was returned.
    reported_sites: RecentPlaces,
    /// By site, how many members the cluster has that made it suspect last.
    suspects: HashMap<u64, u32>,
    hash: KeyedHash,
}

impl NearDuplicates {
    pub(crate) fn new(hash: KeyedHash) -> Self {
        Self {
            of_prefix: FrequentItems::new(CLUSTERS_COUNTED),
            of_site: FrequentItems::new(CLUSTERS_COUNTED),
            guessed: FrequentItems::new(CLUSTERS_COUNTED),
            postponed: RecentPlaces::default(),
            closed: RecentPlaces::default(),
            reported_sites: RecentPlaces::default(),
            suspects: HashMap::new(),
            hash,
        }
    }

    /// Counts a page of a cluster.
    ///
    /// The estimate that includes pages which were not compared makes a site suspect. Only pages that were compared count for the
    /// limits.
    pub(crate) fn count(&mut self, entry: &Entry, member: &ClusterMember<'_>, limits: &TrapConfig) -> LinkTreatment {
        let mut links = LinkTreatment::default();
        let (first, second) = (
            most(limits.max_near_duplicates),
            most(limits.max_near_duplicates_in_all),
        );
        // Links of seeds are always followed.
        if entry.metadata.seed || first.min(second) == u32::MAX {
            return links;
        }
        let prefix = path_prefix(entry.key());
        let of_prefix = self.of_prefix.add(self.hash.of((&prefix, member.cluster)));
        let site = entry.queue.site();
        let of_cluster = self.hash.of((site, member.cluster));
        let of_site = self.of_site.add(of_cluster);
        let guessed = self.guessed.add_times(of_cluster, member.stands_for);
        if guessed >= first.min(second) && self.suspects.len() < MAX_SUSPECTS {
            self.suspects.insert(self.hash.of(site), of_site);
        }
        let key = self.hash.of(&*prefix);
        if of_prefix > second {
            if self.closed.add(key) {
                links.notices.push(closed(&prefix, member));
            }
        } else if of_prefix > first && self.postponed.add(key) {
            links.notices.push(postponed(&prefix, member));
        }
        links.is_refused = of_site > second;
        links.is_postponed = of_site > first;
        // A notice about the prefix is enough.
        let limit = if links.is_refused { second } else { first };
        let is_reported = !links.is_postponed && !links.is_refused || of_prefix > limit;
        if !is_reported && self.reported_sites.add(self.hash.of((of_cluster, links.is_refused))) {
            let notice = if links.is_refused { closed } else { postponed };
            links.notices.push(notice(site, member));
        }
        links
    }

    pub(crate) fn closes(&self, key: &str) -> bool {
        self.closed.has(|| self.hash.of(&*path_prefix(key)))
    }

    /// Whether a URL is under a postponed prefix.
    pub(crate) fn postpones(&self, key: &str) -> bool {
        self.postponed.has(|| self.hash.of(&*path_prefix(key)))
    }

    pub(crate) fn suspects(&self, site: &str) -> bool {
        self.suspects.len() >= MAX_SUSPECTS || self.suspects.contains_key(&self.hash.of(site))
    }

    /// How many more pages of a suspect site may be fetched that look alike; 0 without a limit.
    pub(crate) fn to_come(&self, site: &str, limits: &TrapConfig) -> u64 {
        let most = limits.max_near_duplicates_in_all.map_or(0, NonZeroU32::get);
        let members = self.suspects.get(&self.hash.of(site));
        members.map_or(0, |members| most.saturating_sub(*members).into())
    }

    /// The numbers of prefixes that were closed and postponed.
    pub(crate) fn prefixes(&self) -> (u64, u64) {
        (self.closed.ever, self.postponed.ever)
    }
}

fn postponed(place: &str, member: &ClusterMember<'_>) -> Notice {
    Notice::Postponed {
        place: place.into(),
        first: member.first.into(),
    }
}

fn closed(place: &str, member: &ClusterMember<'_>) -> Notice {
    Notice::PrefixClosed {
        place: place.into(),
        first: member.first.into(),
    }
}
