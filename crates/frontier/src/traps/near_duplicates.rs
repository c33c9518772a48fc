//! Pages that resemble one another: how many of a cluster are fetched, and what waits or is closed then.
//!
//! Which pages form a cluster is found by [`Clusters`](super::clusters::Clusters); what follows from it is decided here. Members are counted
//!
//! * under each [path prefix](crate::path_prefix). Beyond the first limit the prefix is **postponed**: what waits there, or is
//!   found later, waits behind everything else of the crawl. Beyond the second limit it is **closed**: links to it are refused, and
//!   what waits there is dropped. That ends calendars, session identifiers and faceted search, and an honest catalogue
//!   of look-alikes is fetched whole.
//! * on the whole site, with the same two limits, for the links of the members. That ends sites that answer every URL with the
//!   same page, whose relative links lead deeper and deeper.
//!
//! Pages of too few words to be compared resemble one another only if their bytes are equal. Those that lead on are counted
//! all the same, as one cluster of each prefix and site, so that no chain of them is without end.

use std::collections::{HashSet, VecDeque};

use super::frequent_items::FrequentItems;
use super::path_prefix::path_prefix;
use crate::entry::Entry;
use crate::keyed_hash::KeyedHash;
use crate::notice::Notice;

/// Clusters that are counted at a time, in 16 bytes each.
const CLUSTERS_COUNTED: usize = 65_536;

/// Sites that are suspect at a time; if there are more, all are.
const MAX_SUSPECTS: usize = 65_536;

/// Prefixes and sites that are closed, or postponed, at a time; the oldest is opened again when there are more.
const MAX_PLACES: usize = 65_536;

/// A page of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterMember<'a> {
    /// The number of the cluster; `None` for the cluster of pages that have too few words.
    pub(crate) cluster: Option<u64>,
    /// The first page of the cluster, as far as that is known.
    pub(crate) first: &'a str,
    /// How many pages it stands for, where not all are compared.
    pub(crate) stands_for: u32,
}

/// What is done with the links of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LinkTreatment {
    /// They wait behind everything else of the crawl.
    pub(crate) is_postponed: bool,
    /// The new ones are refused.
    pub(crate) is_refused: bool,
    pub(crate) notices: Vec<Notice>,
}

/// Prefixes or sites of which something is known.
#[derive(Debug, Default)]
struct RecentPlaces {
    known: HashSet<u64>,
    in_order: VecDeque<u64>,
    ever: u64,
}

impl RecentPlaces {
    /// Adds a place. Says whether it is new.
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

    fn has(&self, place: impl FnOnce() -> u64) -> bool {
        !self.known.is_empty() && self.known.contains(&place())
    }
}

#[derive(Debug)]
pub(crate) struct NearDuplicates {
    most: u32,
    most_in_all: u32,
    of_prefix: FrequentItems,
    of_site: FrequentItems,
    /// How many members a cluster of a site may have, compared or not.
    guessed: FrequentItems,
    postponed: RecentPlaces,
    closed: RecentPlaces,
    /// Sites of which something was said.
    reported_sites: RecentPlaces,
    suspects: HashSet<u64>,
    hash: KeyedHash,
}

impl NearDuplicates {
    /// Postpones beyond `most` members of a cluster, and closes beyond `most_in_all`; `u32::MAX` for neither.
    pub(crate) fn new(most: u32, most_in_all: u32, hash: KeyedHash) -> Self {
        Self {
            most,
            most_in_all,
            of_prefix: FrequentItems::new(CLUSTERS_COUNTED),
            of_site: FrequentItems::new(CLUSTERS_COUNTED),
            guessed: FrequentItems::new(CLUSTERS_COUNTED),
            postponed: RecentPlaces::default(),
            closed: RecentPlaces::default(),
            reported_sites: RecentPlaces::default(),
            suspects: HashSet::new(),
            hash,
        }
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.most.min(self.most_in_all) < u32::MAX
    }

    /// Counts a page of a cluster.
    ///
    /// That others resemble it is a guess, which makes a site suspect; what is fetched is decided by pages that were compared.
    pub(crate) fn count(&mut self, entry: &Entry, member: &ClusterMember<'_>) -> LinkTreatment {
        let mut links = LinkTreatment::default();
        // What the user named is followed, however alike it is.
        if entry.metadata.seed || !self.is_bounded() {
            return links;
        }
        let prefix = path_prefix(entry.key());
        let of_prefix = self.of_prefix.add(self.hash.of((&prefix, member.cluster)));
        let site = entry.queue.site();
        let of_cluster = self.hash.of((site, member.cluster));
        let of_site = self.of_site.add(of_cluster);
        let guessed = self.guessed.add_times(of_cluster, member.stands_for);
        if guessed >= self.most.min(self.most_in_all) && self.suspects.len() < MAX_SUSPECTS {
            self.suspects.insert(self.hash.of(site));
        }
        let key = self.hash.of(&*prefix);
        if of_prefix > self.most_in_all {
            if self.closed.add(key) {
                links.notices.push(closed(&prefix, member));
            }
        } else if of_prefix > self.most && self.postponed.add(key) {
            links.notices.push(postponed(&prefix, member));
        }
        links.is_refused = of_site > self.most_in_all;
        links.is_postponed = of_site > self.most;
        // Where the prefix was told of, that was all there is to say.
        let limit = if links.is_refused { self.most_in_all } else { self.most };
        let is_reported = !links.is_postponed && !links.is_refused || of_prefix > limit;
        if !is_reported && self.reported_sites.add(self.hash.of((of_cluster, links.is_refused))) {
            let notice = if links.is_refused { closed } else { postponed };
            links.notices.push(notice(site, member));
        }
        links
    }

    /// Says whether a URL lies under a closed prefix.
    pub(crate) fn closes(&self, key: &str) -> bool {
        self.closed.has(|| self.hash.of(&*path_prefix(key)))
    }

    /// Says whether any prefix is closed.
    pub(crate) fn closes_any(&self) -> bool {
        !self.closed.known.is_empty()
    }

    /// Says whether a URL lies under a prefix that waits behind everything else.
    pub(crate) fn postpones(&self, key: &str) -> bool {
        self.postponed.has(|| self.hash.of(&*path_prefix(key)))
    }

    /// Says whether a site has repeated a page so often that it may be a trap.
    pub(crate) fn suspects(&self, site: &str) -> bool {
        self.suspects.len() >= MAX_SUSPECTS || self.suspects.contains(&self.hash.of(site))
    }

    /// Returns how many prefixes were closed, and how many were postponed.
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
