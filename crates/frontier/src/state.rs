//! The state of a frontier: all that decides, and all that a replay restores.
//!
//! It is deterministic: what it answers depends on its configuration and on the [calls](Call) so far. It knows no journal and no store. Parts
//! of queues and hosts that lie elsewhere come through [`SegmentStore`](crate::hosts::SegmentStore), stored keys through [`StoredKeys`].
//!
//! [`State::apply`] is the only way to change what it answers. Who changes what a call does raises `LOGIC` in `durable/checkpoint.rs`.

mod again;
mod call;
mod exchange;
mod inspect;
mod lease;
mod memory;
mod offer;
mod ordered;
mod outbox;
mod release;
mod seen;
mod settle;
mod stored;
mod widened;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sieve::{SeenSet, Sieve};

use exchange::{Exchange, Sending};
use lease::Leases;

pub(crate) use again::{Again, PagesRead, Place};
pub(crate) use call::{Answer, Call, Links};
pub(crate) use outbox::read_batch;
pub(crate) use seen::{Seen, StoredKeys};
pub(crate) use widened::{OF_LINKS, is_widened};

use crate::config::{FrontierConfig, FrontierConfigError, RetryPolicy};
use crate::entry::{Entry, Purpose};
use crate::freshness::FreshnessConfig;
use crate::hosts::{HostConfig, HostQueues, HostTable};
use crate::keyed_hash::KeyedHash;
use crate::lease::NotFetched;
use crate::link::Link;
use crate::partition::Partition;
use crate::policy::CrawlPolicy;
use crate::report::{LinkCounts, PageCounts};
use crate::scope::Scope;
use crate::sitemaps::Sitemaps;
use crate::time::Time;
use crate::traps::{Clusters, RedirectLoops, Traps};

/// The state of a frontier.
#[derive(Debug)]
pub(crate) struct State {
    sieve: Sieve<Seen, HostQueues>,
    scope: Scope,
    retries: RetryPolicy,
    max_pages: Option<u64>,
    freshness: FreshnessConfig,
    partition: Option<Partition>,
    /// Without what is ordered.
    config: Box<FrontierConfig>,
    tables: Tables,
}

/// How long what limits a crawl is counted for, if pages are kept fresh.
const COUNTED_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is neither in the seen-set nor in the queues, and needs no configuration.
#[derive(Debug, Serialize, Deserialize)]
struct Tables {
    leases: Leases,
    pages: PageCounts,
    not_fetched: BTreeMap<NotFetched, u64>,
    links: LinkCounts,
    sitemaps: Sitemaps,
    clusters: Clusters,
    redirects: RedirectLoops,
    exchange: Exchange,
    hash: KeyedHash,
    /// The latest time of a call.
    latest: Time,
    pages_read: PagesRead,
    /// Since when sitemaps, traps and pages of hosts are counted, if pages are kept fresh.
    counted_since: Time,
    /// The pages that have ended; the number of the last row of the table of pages.
    pages_ended: u64,
    /// The configurations of earlier runs that have refused links by limits that were widened since, as JSON.
    refused_under: Option<String>,
    ordered: CrawlPolicy,
}

impl State {
    /// Makes a state with nothing in it. The capacity and rate of `config` are ignored.
    ///
    /// # Errors
    ///
    /// An invalid pattern of the scope.
    pub(crate) fn new(config: &FrontierConfig, seen: impl Into<Seen>) -> Result<Self, FrontierConfigError> {
        let hash = KeyedHash::with_secret_of(&config.seen_set.hash);
        let queues = HostQueues::new(HostConfig::of(config, &[])?, Traps::new(config.traps.clone(), hash));
        Ok(Self {
            sieve: Sieve::from_parts(seen.into(), queues).on_saturation(config.seen_set.on_saturation),
            scope: Scope::new(config.scope.clone())?,
            retries: config.retries,
            max_pages: config.limits.max_pages,
            freshness: config.freshness,
            partition: config.partition,
            config: Box::new(config.clone()),
            tables: Tables {
                leases: Leases::default(),
                pages: PageCounts::default(),
                not_fetched: BTreeMap::new(),
                links: LinkCounts::default(),
                sitemaps: Sitemaps::default(),
                clusters: Clusters::new(config.traps.max_fingerprints),
                redirects: RedirectLoops::default(),
                exchange: Exchange::new(config.partition),
                hash,
                latest: Time::EPOCH,
                pages_read: PagesRead::default(),
                counted_since: Time::EPOCH,
                pages_ended: 0,
                refused_under: None,
                ordered: CrawlPolicy::default(),
            },
        })
    }

    pub(crate) fn apply(&mut self, call: &Call<'_>, now: Time) -> Answer {
        self.tables.latest = self.tables.latest.max(now);
        self.forget_counts(now);
        let mut answer = Answer::default();
        match call {
            Call::AddSeed(seeds) => {
                for seed in &*seeds.links {
                    self.scope.add_seed(&seed.url);
                }
                // All processes of the crawl have the same seeds.
                answer.verdicts = self.offer_links(&seeds.links, false, None, Sending::Nothing, now);
            }
            Call::Offer(offered) => {
                let mut sending = Sending::New;
                for seed in offered.links.iter().filter(|link| link.seed) {
                    self.widen_reach(seed);
                    sending = Sending::All;
                }
                answer.verdicts = self.offer_links(&offered.links, false, None, sending, now);
                self.count_others(&offered.others);
            }
            Call::Lease(up_to) => answer.leasing = self.lease_ready(now, usize::try_from(*up_to).unwrap_or(usize::MAX)),
            Call::Settle(settlements) => {
                let all = settlements.all.iter();
                answer.settled = all.map(|settlement| self.settle_one(settlement, now)).collect();
            }
            Call::SetPolicy(host, policy) => self.set_policy(host, policy, now),
            Call::SetCrawlPolicy(policy) => self.set_crawl_policy(policy, now),
            Call::ReleaseLeases => answer.released = self.release_all(now),
            Call::GiveBack(leases) => answer.released = self.release(leases, false, now),
            Call::CloseBatches => self.close_batches(),
            Call::Tell(text) => self.tell(text, now),
            Call::Receive {
                from,
                mark,
                links,
                told,
            } => answer.verdicts = self.receive((*from, *mark), links, told.as_deref(), now),
            Call::Acknowledged { by, mark } => self.acknowledge(*by, *mark),
            Call::AcceptLoss {
                peer,
                its_received,
                its_acknowledged,
            } => self.accept_loss(*peer, *its_received, *its_acknowledged),
            Call::BeginRetry { end } => {
                self.tables.pages_read.retry_end = *end;
                self.hosts().reopen_all(now);
            }
            Call::QueueAgain { pages, ends, why, read } => {
                let pages = pages.links.iter().zip(&**ends);
                answer.verdicts = pages
                    .map(|(link, end)| self.queue_one_again(link, *end, *why, now))
                    .collect();
                self.tables.pages_read = *read;
            }
        }
        answer
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.sieve.is_empty() && self.tables.leases.in_flight.is_empty() && !self.sieve.queue().has_dropped()
    }

    fn hosts(&mut self) -> &mut HostQueues {
        self.sieve.queue_mut()
    }

    /// Returns the hosts, to copy or evict them. Where they lie decides nothing.
    pub(crate) fn host_table(&mut self) -> &mut HostTable {
        self.hosts().table_mut()
    }

    pub(crate) fn queues(&self) -> &HostQueues {
        self.sieve.queue()
    }

    pub(crate) fn seen(&self) -> &Seen {
        self.sieve.filter()
    }

    pub(crate) fn latest(&self) -> Time {
        self.tables.latest
    }

    /// How pages are kept fresh, under what is ordered.
    pub(crate) fn freshness(&self) -> FreshnessConfig {
        self.freshness
    }

    /// Says that pages before this row of the journal were not planned as they ended.
    pub(crate) fn plan_from(&mut self, row: u64) {
        self.tables.pages_read.planned_from = row;
    }

    /// The number of the last page that has ended.
    pub(crate) fn pages_ended(&self) -> u64 {
        self.tables.pages_ended
    }

    pub(crate) fn pages_read(&self) -> PagesRead {
        self.tables.pages_read
    }

    /// The number of the row of an entry that has ended: the next one, at the first end of a page; 0 if it is no page.
    fn page_of(&mut self, entry: &Entry) -> u64 {
        let is_first = entry.purpose == Purpose::Page && entry.page == 0;
        self.tables.pages_ended += u64::from(is_first);
        if is_first { self.tables.pages_ended } else { entry.page }
    }

    pub(crate) fn set_silent(&mut self, is_silent: bool) {
        self.sieve.set_silent(is_silent);
    }

    /// Places all hosts anew, after the configuration has changed. A checkpoint has to follow.
    pub(crate) fn place_anew(&mut self, before: &FrontierConfig, after: &FrontierConfig, now: Time) {
        self.hosts().place_anew(before, after, now);
    }

    /// Limits that make a crawl end must not end one that does not: they hold for what was counted in the last weeks.
    fn forget_counts(&mut self, now: Time) {
        let since = self.tables.counted_since;
        if !self.freshness.keeps_fresh || now < since + COUNTED_FOR {
            return;
        }
        self.tables.counted_since = now;
        if since > Time::EPOCH {
            self.tables.sitemaps.forget(since);
            self.hosts().forget_counts(now);
        }
    }

    /// The sitemaps that no other lists and that are read again now.
    pub(crate) fn sitemaps_due(&self, now: Time) -> Vec<Link> {
        let after = self.freshness.sitemaps_after();
        after.map_or_else(Vec::new, |after| self.tables.sitemaps.due(after, now))
    }

    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Entry> {
        self.tables.leases.in_flight.values().map(|leased| &*leased.entry)
    }

    #[cfg(fuzzing)]
    pub(crate) fn classify(&mut self, url: &str, fingerprint: crate::fingerprint::Fingerprint) {
        self.tables.clusters.classify(url, fingerprint);
    }

    fn count_not_fetched(&mut self, purpose: &Purpose, why: NotFetched) {
        if *purpose != Purpose::Page {
            return;
        }
        if why == NotFetched::HostDown {
            self.tables.pages.lost_with_host += 1;
        } else {
            *self.tables.not_fetched.entry(why).or_default() += 1;
        }
    }
}

/// Builds the Bloom filter that a configuration describes.
pub(crate) fn bloom_filter(config: &FrontierConfig) -> Result<SeenSet, FrontierConfigError> {
    let mut seen = Sieve::builder()
        .capacity(config.seen_set.capacity)
        .false_positive_rate(config.seen_set.false_positive_rate)
        .hashing(config.seen_set.hash)
        .on_saturation(config.seen_set.on_saturation)
        .build_filter()?;
    if let SeenSet::Growing(growing) = &mut seen {
        growing.set_max_bytes(config.seen_set.max_seen_set_bytes);
    }
    Ok(seen)
}
