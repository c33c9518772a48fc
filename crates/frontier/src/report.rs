//! Numbers: what a frontier has counted, what each host was asked, and what decides about a URL.

mod host;

use std::collections::BTreeMap;
use std::fmt;

pub use host::{Health, HostHealth, HostReport};

use crate::class::Class;
use crate::exchange::ExchangeCounts;
use crate::lease::NotFetched;
use crate::partition::Partition;
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::time::Time;
use crate::traps::ResemblanceCounts;
use crate::url::HostKey;

/// What became of the leases of pages. Unit: pages; robots.txt files and sitemaps are not among them. Those that have ended are `done`,
/// `redirected`, `rejected`, `gave_up`, `lost_with_host`, and all of [`Report::not_fetched`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct PageCounts {
    /// Pages that were fetched.
    pub done: u64,
    /// Pages that answered with a redirect. Its target counts as a page of its own.
    pub redirected: u64,
    /// Pages whose answer is final and no page: HTTP 4xx.
    pub rejected: u64,
    /// Pages that failed in all their attempts, with or without an answer. One that is queued again counts no longer.
    pub gave_up: u64,
    /// Pages among them that were fetched before: it was a [refresh](crate::Frontier::queue_again) that failed.
    pub gave_up_again: u64,
    /// Pages that were dropped from the queue because their origin was given up. One that is queued again counts no longer.
    pub lost_with_host: u64,
    /// Answers to pages that were [queued again](crate::Frontier::queue_again) after their fetch: they are not among the others. Unit:
    /// answers.
    pub refreshed: u64,
    /// Requests for pages that failed and were queued again. Unit: requests.
    pub retries: u64,
}

impl PageCounts {
    pub(crate) fn spent(&self) -> u64 {
        self.done + self.rejected + self.gave_up.saturating_sub(self.gave_up_again)
    }
}

/// What became of the links that were offered. Unit: links; a URL counts once for each page that links to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct LinkCounts {
    /// Links to new URLs, which were queued.
    pub queued: u64,
    /// Links to URLs that were seen before, or were wrongly taken for seen.
    pub seen: u64,
    /// Links to sites of other partitions of the crawl: they were sent there, unless they are seeds.
    pub elsewhere: u64,
    /// Links that were refused, by reason: by the scope, or for want of room or budget.
    pub refused: BTreeMap<Refusal, u64>,
}

impl LinkCounts {
    pub(crate) fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Queued => self.queued = self.queued.saturating_add(1),
            Verdict::Seen => self.count_others(None, 1),
            Verdict::Elsewhere => self.elsewhere = self.elsewhere.saturating_add(1),
            Verdict::Refused(why) => self.count_others(Some(why), 1),
        }
    }

    pub(crate) fn count_others(&mut self, refused: Option<Refusal>, links: u64) {
        let count = match refused {
            None => &mut self.seen,
            Some(why) => self.refused.entry(why).or_default(),
        };
        *count = count.saturating_add(links);
    }

    /// Returns all links that were offered.
    pub fn offered(&self) -> u64 {
        let others = [self.queued, self.seen, self.elsewhere];
        others
            .iter()
            .chain(self.refused.values())
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The counts of a frontier at one moment, of all runs over its directory.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Entries that wait: pages, the postponed ones included, robots.txt files and sitemaps.
    pub queued: u64,
    /// Pages among them that may still be fetched.
    pub queued_pages: u64,
    /// Pages that wait behind everything else, because of too many near-duplicates.
    pub postponed: u64,
    /// Entries that are in flight: handed out, and not settled.
    pub leased: u64,
    /// Whether the page budget is spent: nothing that waits is handed out.
    pub is_budget_spent: bool,
    /// Queued pages among them that are [kept fresh](crate::FreshnessConfig::keeps_fresh): fetched before, and due again.
    pub revisits: u64,
    /// What became of pages.
    pub pages: PageCounts,
    /// Pages that left the queue without a request, by reason. Those of an origin that was given up are in
    /// [`PageCounts::lost_with_host`].
    pub not_fetched: BTreeMap<NotFetched, u64>,
    /// What became of links.
    pub links: LinkCounts,
    /// What became of links to sitemaps, which are not among the `links`.
    pub sitemaps: LinkCounts,
    /// Hosts that are remembered.
    pub hosts: u64,
    /// Origins that were away for too long and were given up.
    pub origins_given_up: u64,
    /// Bytes that the rules of robots.txt files take, as the rules state it.
    pub rules_bytes: u64,
    /// Pages by what they resemble.
    pub resemblance: ResemblanceCounts,
    /// Path prefixes that wait behind everything else because of too many near-duplicates.
    pub postponed_prefixes: u64,
    /// Path prefixes that were closed because of too many near-duplicates.
    pub closed_prefixes: u64,
    /// Whether earlier runs over the directory have refused links, or dropped pages, by a limit that a later run has widened: they are
    /// not offered again.
    pub refused_earlier: bool,
    /// How full the seen-set is and what that has cost.
    pub saturation: sieve::Saturation,
    /// The share of the crawl that the frontier has, if several processes share it.
    pub partition: Option<Partition>,
    /// Links between this partition and others.
    pub exchange: ExchangeCounts,
    /// The page budget that is [ordered](crate::CrawlPolicy::max_pages).
    pub ordered_max_pages: Option<u64>,
    /// The most links that may wait for other partitions: [`LimitConfig::max_outbox`](crate::LimitConfig::max_outbox).
    pub max_outbox: u64,
    /// What a frontier with a directory takes in memory; `None` without one.
    pub memory: Option<MemoryReport>,
}

/// What a frontier with a directory takes in memory. The sizes are estimates, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The bound: [`FrontierConfig::max_memory`](crate::FrontierConfig::max_memory).
    pub bound: Option<u64>,
    /// The seen-set. A checkpoint copies it.
    pub seen_set: u64,
    /// The hosts in memory, with the ends of their queues and their rules of robots.txt.
    pub hosts: u64,
    /// The names of all hosts, and their places in the rounds.
    pub host_names: u64,
    /// The links that were sent to other partitions last.
    pub sent_links: u64,
    /// The pages that others are compared with.
    pub fingerprints: u64,
    /// The store: its caches, and what is written at once.
    pub store: u64,
    /// Hosts that lie on disk. Unit: hosts.
    pub hosts_on_disk: u64,
}

impl MemoryReport {
    /// Returns the sum of all parts, in bytes.
    pub fn total(&self) -> u64 {
        self.seen_set + self.hosts + self.host_names + self.sent_links + self.fingerprints + self.store
    }
}

impl Report {
    /// Returns whether nothing is queued, nothing is leased, and all dropped entries were returned.
    pub fn is_drained(&self) -> bool {
        self.queued == 0 && self.leased == 0
    }

    /// Returns whether a partition has nothing left to fetch, or has spent its page budget: the crawl ends when all have.
    pub fn waits_for_others(&self) -> bool {
        self.partition.is_some() && (self.is_budget_spent || self.is_drained())
    }

    /// Returns how many pages are left: queued, or in flight. A robots.txt, a sitemap or an address in flight counts, too.
    pub fn pages_left(&self) -> u64 {
        self.queued_pages + self.leased
    }
}

impl fmt::Display for Report {
    /// Writes a few lines: pages, what is left, links, hosts and the seen-set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pages, links) = (&self.pages, &self.links);
        writeln!(
            f,
            "pages: {} fetched, {} redirects, {} rejected, {} given up, {} lost with their origin; {} retries",
            pages.done, pages.redirected, pages.rejected, pages.gave_up, pages.lost_with_host, pages.retries
        )?;
        for (why, count) in &self.not_fetched {
            writeln!(f, "dropped without a request: {count}, {why}")?;
        }
        writeln!(
            f,
            "left: {} pages queued, {} leases in flight",
            self.queued_pages, self.leased
        )?;
        let refused: u64 = links.refused.values().sum();
        writeln!(
            f,
            "links: {} to new URLs, {} to URLs seen before, {refused} refused",
            links.queued, links.seen
        )?;
        writeln!(f, "hosts: {}, {} origins given up", self.hosts, self.origins_given_up)?;
        write!(f, "seen-set: {}", self.saturation)
    }
}

/// What decides about a URL: a rule, a queue or the seen-set. [`Frontier::why`](crate::Frontier::why) returns it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// The scope, the state of its host, or a lack of room refuses it.
    Refused(Refusal),
    /// It is in flight.
    Leased {
        /// Its attempt, from 1.
        attempt: u32,
    },
    /// It waits in its host's queue.
    Queued {
        /// Its host.
        host: HostKey,
        /// What it waits for.
        wait: Wait,
        /// Behind how many it waits.
        place: QueuePlace,
        /// The pattern of the [rule](crate::OrderRule) that matches it, if its class is that of the rule.
        rule: Option<String>,
    },
    /// It waits, and will be dropped when its turn comes.
    WillBeDropped(NotFetched),
    /// The seen-set knows it: it was fetched, failed or dropped before, or it is one of the new URLs that are wrongly dropped. Which,
    /// [`Settled`](crate::Settled) and [`Dropped`](crate::Dropped) said then, and the [records](crate::StoredPage) of a directory say.
    Seen {
        /// The chance that the seen-set says so of a URL that it never met; 0 if it surely met this one.
        false_positive_rate: f64,
    },
    /// It belongs to another partition of the crawl, which knows more.
    Elsewhere {
        /// The index of the partition.
        owner: u32,
    },
    /// It was never offered, or was refused for a reason that no longer holds.
    NeverOffered,
}

/// Where an entry waits, and behind how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct QueuePlace {
    /// Entries of its origin that come before it, as they stand now. A retry that is not due yet is behind all of its class and of better ones; one that is due
    /// is behind all pages. Some of them may be dropped without a request.
    pub ahead: u64,
    /// Other entries that wait for its host, those of other ports and schemes included. The origins of a host take turns.
    pub others_of_host: u64,
    /// Requests to its host that are in flight.
    pub in_flight: u32,
    /// What comes first.
    pub class: Class,
    /// Requests for it that failed, and counted.
    pub attempts: u32,
}

impl fmt::Display for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "class {}, {} ahead of it; its host has {} more waiting, {} in flight",
            self.class, self.ahead, self.others_of_host, self.in_flight
        )
    }
}

/// What a queued entry waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Nothing but its turn: its host can be asked now.
    Turn,
    /// The delay, a rest or a block of its host, until this time.
    Until(Time),
    /// Requests to its host that are in flight: as many as it may have, or as its page budget has left.
    InFlight,
    /// The robots.txt of its origin, which is asked for first.
    Robots,
    /// Its origin, which is away.
    Away {
        /// Since when.
        since: Time,
        /// What went wrong.
        cause: Box<str>,
    },
    /// Everything else of the crawl: it lies where too many pages resemble one another.
    EverythingElse,
    /// The IP address of its host, which is looked up first.
    AddressLookup,
    /// The IP address of its host, whose other hosts are asked first.
    SharedAddress,
    /// Pages in flight, anywhere in the crawl: if they are fetched, they spend the page budget. One that is a redirect spends none.
    PagesInFlight,
    /// The end: the page budget of the crawl is spent.
    PageBudget,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn => f.write_str("its host can be asked now"),
            Self::Until(time) => write!(f, "its host can be asked from {time} on"),
            Self::InFlight => f.write_str("waits for a request in flight to its host"),
            Self::Robots => f.write_str("waits for its robots.txt"),
            Self::Away { since, cause } => {
                write!(f, "its origin is away since {since}: {cause}")
            }
            Self::EverythingElse => f.write_str("waits behind everything else, because of too many near-duplicates"),
            Self::AddressLookup => f.write_str("waits for the IP address of its host"),
            Self::SharedAddress => f.write_str("waits for other hosts of its IP address"),
            Self::PagesInFlight => f.write_str("waits for pages in flight, which may spend the page budget"),
            Self::PageBudget => f.write_str("is not fetched in this crawl: the page budget is spent"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Leased { attempt } => write!(f, "in flight, attempt {attempt}"),
            Self::Queued { host, wait, place, .. } => write!(f, "queued at {host}: {wait} ({place})"),
            Self::WillBeDropped(why) => write!(f, "queued, but will not be fetched: {why}"),
            Self::Seen { false_positive_rate } => {
                f.write_str("seen, and no longer queued: it was fetched, failed or dropped")?;
                if *false_positive_rate > 0.0 {
                    write!(
                        f,
                        ". (The seen-set says so of a share of {false_positive_rate:.1e} of the URLs that it never met.)"
                    )?;
                }
                Ok(())
            }
            Self::Elsewhere { owner } => write!(
                f,
                "not here: its site belongs to partition {owner}, whose process knows more"
            ),
            Self::NeverOffered => f.write_str("unknown: never offered, or refused for a reason that no longer holds"),
        }
    }
}
