//! The whole state of a frontier as bytes: what a checkpoint holds.
//!
//! The seen-set is apart, because it is large. The rest is written by postcard, field after field, so it can
//! be read by the same version of the format only. Neither contains anything of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sieve::{SeenSet, Sieve};

use super::super::Frontier;
use super::super::again::RecordsRead;
use super::error::StateError;
use super::seen::Seen;
use super::seen_set::encode_seen_set;
use super::shelf::{SharedStore, StoreShelf};
use super::sizes::Sizes;
use crate::config::FrontierConfig;
use crate::hosts::{HostQueues, HostTable, HostsOnDisk, LeasedEntry, Shelf};
use crate::keyed_hash::KeyedHash;
use crate::lease::{LeaseId, NotFetched};
use crate::report::{LinkCounts, PageCounts};
use crate::rules::ParseRules;
use crate::scope::Reached;
use crate::sitemaps::Sitemaps;
use crate::time::Time;
use crate::traps::{Clusters, RedirectLoops};

/// A state as bytes, without the hosts, which are copied one after the other.
#[derive(Debug)]
pub(super) struct EncodedState {
    pub(super) state: Vec<u8>,
    pub(super) seen_set: Vec<u8>,
}

impl EncodedState {
    pub(super) fn bytes(&self) -> u64 {
        (self.state.len() + self.seen_set.len()) as u64
    }
}

#[derive(Serialize)]
struct StateRef<'a> {
    counters: sieve::Counters,
    queues: &'a HostQueues,
    reached: &'a Reached,
    leases: BTreeMap<LeaseId, &'a LeasedEntry>,
    leased_pages: u64,
    next_lease: u64,
    has_just_dropped: bool,
    pages: PageCounts,
    not_fetched: &'a BTreeMap<NotFetched, u64>,
    links: &'a LinkCounts,
    sitemaps: &'a Sitemaps,
    clusters: &'a Clusters,
    redirects: &'a RedirectLoops,
    hash: KeyedHash,
    next_segment: u64,
    latest: Time,
    records_read: RecordsRead,
    refused_under: Option<&'a str>,
}

#[derive(Deserialize)]
struct State {
    counters: sieve::Counters,
    queues: HostQueues,
    reached: Reached,
    leases: BTreeMap<LeaseId, LeasedEntry>,
    leased_pages: u64,
    next_lease: u64,
    has_just_dropped: bool,
    pages: PageCounts,
    not_fetched: BTreeMap<NotFetched, u64>,
    links: LinkCounts,
    sitemaps: Sitemaps,
    clusters: Clusters,
    redirects: RedirectLoops,
    hash: KeyedHash,
    next_segment: u64,
    latest: Time,
    records_read: RecordsRead,
    refused_under: Option<String>,
}

impl Frontier {
    /// Returns the state as bytes, without the hosts. Cost: a copy of it.
    pub(super) fn encode_state(&self, next_segment: u64) -> Result<EncodedState, StateError> {
        Ok(EncodedState {
            state: self.encode_without_seen_set(next_segment)?,
            seen_set: encode_seen_set(self.sieve.filter().filter())?,
        })
    }

    /// Returns the state as bytes, without the hosts and the seen-set.
    pub(super) fn encode_without_seen_set(&self, next_segment: u64) -> Result<Vec<u8>, StateError> {
        let state = postcard::to_allocvec(&StateRef {
            counters: self.sieve.counters(),
            queues: self.sieve.queue(),
            reached: self.scope.reached(),
            leases: self.leases.iter().map(|(id, leased)| (*id, leased)).collect(),
            leased_pages: self.leased_pages,
            next_lease: self.next_lease,
            has_just_dropped: self.has_just_dropped,
            pages: self.pages,
            not_fetched: &self.not_fetched,
            links: &self.links,
            sitemaps: &self.sitemaps,
            clusters: &self.clusters,
            redirects: &self.redirects,
            hash: self.hash,
            next_segment,
            latest: self.latest,
            records_read: self.records_read,
            refused_under: self.refused_under.as_deref(),
        })?;
        Ok(state)
    }

    /// Returns the seen-set, without the digests of its keys.
    pub(super) fn into_seen_set(self) -> SeenSet {
        self.sieve.into_parts().0.into_filter()
    }

    /// Makes a frontier of a state, its seen-set and its hosts, under a configuration that fits them. Returns the shelf of its queues, too.
    pub(super) fn decode_state(
        state: &[u8],
        seen_set: Seen,
        hosts: HostTable,
        config: &FrontierConfig,
        parse: &ParseRules,
        store: &SharedStore,
        sizes: Sizes,
    ) -> Result<(Self, Arc<StoreShelf>), StateError> {
        let mut state: State = postcard::from_bytes(state)?;
        let mut frontier = Self::with_seen_set(config.clone(), SeenSet::exact())?;
        let shelf = Arc::new(StoreShelf::new(store.clone(), state.next_segment, sizes.young_at_once));
        let on_disk = HostsOnDisk {
            shelf: Arc::clone(&shelf) as Arc<dyn Shelf>,
            parse,
            sizes: sizes.rows,
        };
        state.queues.configure(Self::host_rules(config), config, hosts, on_disk);
        state.sitemaps.configure(config.max_sitemaps);
        state.clusters.configure(config.max_fingerprints);
        frontier.sieve = Sieve::from_parts(seen_set, state.queues)
            .on_saturation(config.on_saturation)
            .with_counters(state.counters);
        frontier.scope.set_reached(state.reached);
        frontier.leases = state.leases.into_iter().collect();
        frontier.leased_pages = state.leased_pages;
        frontier.next_lease = state.next_lease;
        frontier.has_just_dropped = state.has_just_dropped;
        frontier.pages = state.pages;
        frontier.not_fetched = state.not_fetched;
        frontier.links = state.links;
        frontier.sitemaps = state.sitemaps;
        frontier.clusters = state.clusters;
        frontier.redirects = state.redirects;
        frontier.hash = state.hash;
        frontier.latest = state.latest;
        frontier.records_read = state.records_read;
        frontier.refused_under = state.refused_under;
        Ok((frontier, shelf))
    }
}
