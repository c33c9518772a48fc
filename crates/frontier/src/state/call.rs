//! The calls that change a state, as they are made and as a journal stores them.
//!
//! Of the links of a page only the new ones are stored; for the others their number is enough. So a call is stored
//! [after its answer](Call::trim).

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;

use super::again::{Again, PagesRead};
use crate::class::Class;
use crate::entry::Entry;
use crate::exchange::{Mark, Told};
use crate::fingerprint::Fingerprint;
use crate::lease::{LeaseId, Leasing};
use crate::link::{Link, OwnData, PreviousFetch};
use crate::policy::{CrawlPolicy, HostPolicy};
use crate::rules::{ParseRules, RobotsRules, stored_rules};
use crate::settlement::{Fate, OtherLinks, Outcome, Settled, Settlement, Verdict};
use crate::stored_page::PageEnd;
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey, Origin, stored_url};

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call<'a> {
    AddSeed(Links<'a>),
    Offer(Links<'a>),
    Lease(u64),
    Settle(Settlements<'a>),
    SetPolicy(Cow<'a, HostKey>, Cow<'a, HostPolicy>),
    SetCrawlPolicy(Cow<'a, CrawlPolicy>),
    ReleaseLeases,
    GiveBack(Cow<'a, [LeaseId]>),
    /// Gives links for other partitions their numbers.
    CloseBatches,
    /// Puts a text of the caller's into the outbox of each other partition.
    Tell(Cow<'a, serde_bytes::Bytes>),
    Receive {
        from: u32,
        mark: Mark,
        links: Links<'a>,
        told: Option<Cow<'a, Told>>,
    },
    Acknowledged {
        by: u32,
        mark: Mark,
    },
    AcceptLoss {
        peer: u32,
        its_received: Option<Mark>,
        its_acknowledged: Option<Mark>,
    },
    /// A retry of pages without an answer begins: of those that were saved before this row.
    BeginRetry {
        end: u64,
    },
    QueueAgain {
        pages: Links<'a>,
        /// The number of each, and how its last fetch has ended.
        ends: Cow<'a, [(u64, PageEnd)]>,
        why: Again,
        read: PagesRead,
    },
}

/// What a call answers: each has its own part.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) leasing: Leasing,
    /// With the entries of pages and sitemaps.
    pub(crate) settled: Vec<(Settled, Option<Arc<Entry>>)>,
    pub(crate) released: u64,
}

impl<'a> Call<'a> {
    /// Leaves out of what is stored what changed nothing, or nothing but a count.
    pub(crate) fn trim(&mut self, answer: &'a Answer) {
        match self {
            Self::Settle(settlements) => settlements.settled = &answer.settled,
            // A seed changes more than the queue.
            Self::Offer(links) | Self::Receive { links, .. } if links.links.iter().any(|link| link.seed) => {}
            Self::Offer(links) | Self::Receive { links, .. } => links.verdicts = Some(&answer.verdicts),
            Self::QueueAgain { pages, ends, .. } => {
                let queued = ends.iter().zip(&answer.verdicts);
                let queued = queued.filter(|(_, verdict)| **verdict == Verdict::Queued);
                *ends = queued.map(|(end, _)| *end).collect();
                pages.verdicts = Some(&answer.verdicts);
            }
            _ => {}
        }
    }

    /// Parses the rules that were read from a store.
    pub(crate) fn parse_rules(&mut self, parse: &ParseRules) {
        let Self::Settle(settlements) = self else { return };
        for settlement in settlements.all.to_mut() {
            if let Some(rules) = &mut settlement.rules
                && let Some(text) = rules.text()
            {
                *rules = parse(text);
            }
        }
    }

    pub(crate) fn into_links(self) -> Vec<Link> {
        match self {
            Self::AddSeed(links) | Self::Offer(links) | Self::Receive { links, .. } => links.links.into_owned(),
            Self::Settle(settlements) => {
                let all = settlements.all.into_owned().into_iter();
                all.flat_map(|settlement| settlement.links).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Answer {
    pub(crate) fn is_change(&self, call: &Call<'_>) -> bool {
        match call {
            Call::Lease(_) => self.taken() > 0,
            Call::Settle(_) => self.settled.iter().any(is_known),
            _ => true,
        }
    }

    pub(crate) fn check(&self) -> u32 {
        let is_kept = |verdict: &&Verdict| matches!(verdict, Verdict::Queued | Verdict::Elsewhere);
        let queued = |verdicts: &[Verdict]| verdicts.iter().filter(is_kept).count() as u64;
        let first = queued(&self.verdicts) + self.taken() + self.released;
        let known = self.settled.iter().filter(|one| is_known(one));
        known.fold(first as u32, |check, (settled, _)| {
            let fate = match settled.fate {
                Fate::Final => 1,
                Fate::GaveUp => 2,
                Fate::Stale => 3,
                Fate::Requeued { due } => due.as_millis(),
            };
            check
                .wrapping_mul(31)
                .wrapping_add((fate + queued(&settled.verdicts)) as u32)
        })
    }

    fn taken(&self) -> u64 {
        match &self.leasing {
            Leasing::Ready(leases) => leases.len() as u64,
            Leasing::Dropped(dropped) => dropped.len() as u64,
            Leasing::NotUntil(_) | Leasing::AllLeased | Leasing::BudgetSpent | Leasing::Drained => 0,
        }
    }
}

fn is_known((settled, _): &(Settled, Option<Arc<Entry>>)) -> bool {
    settled.fate != Fate::Stale
}

/// Links that are offered together.
#[derive(Debug, Default)]
pub(crate) struct Links<'a> {
    pub(crate) links: Cow<'a, [Link]>,
    /// How many others there were.
    pub(crate) others: Cow<'a, [OtherLinks]>,
    /// If there are any, only links that were queued or are sent are stored, and the others counted.
    verdicts: Option<&'a [Verdict]>,
}

impl<'a> From<&'a [Link]> for Links<'a> {
    fn from(links: &'a [Link]) -> Self {
        Self {
            links: Cow::Borrowed(links),
            others: Cow::Borrowed(&[]),
            verdicts: None,
        }
    }
}

/// Links of the same referrer, as they are stored.
type StoredLinks<T> = Vec<(Option<Arc<str>>, Vec<T>)>;

impl Serialize for Links<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut stored = StoredLinks::<LinkRef<'_>>::new();
        let mut others = self.others.to_vec();
        for (at, link) in self.links.iter().enumerate() {
            let verdict = self.verdicts.and_then(|verdicts| verdicts.get(at));
            match verdict.unwrap_or(&Verdict::Queued) {
                Verdict::Queued | Verdict::Elsewhere => match stored.last_mut() {
                    Some((referrer, of_referrer)) if *referrer == link.referrer => of_referrer.push(LinkRef(link)),
                    _ => stored.push((link.referrer.clone(), vec![LinkRef(link)])),
                },
                Verdict::Seen => OtherLinks::count_one(&mut others, link, None),
                Verdict::Refused(why) => OtherLinks::count_one(&mut others, link, Some(*why)),
            }
        }
        (stored, others).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Links<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (stored, others): (StoredLinks<OwnedLink>, Vec<OtherLinks>) = Deserialize::deserialize(deserializer)?;
        let links = stored.into_iter().flat_map(|(referrer, links)| {
            links.into_iter().map(move |OwnedLink(link)| Link {
                referrer: referrer.clone(),
                ..link
            })
        });
        Ok(Self {
            links: links.collect(),
            others: others.into(),
            verdicts: None,
        })
    }
}

/// A link as it is stored, without its referrer.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Link")]
struct StoredLink {
    #[serde(with = "stored_url")]
    url: CanonicalUrl,
    depth: u32,
    hops: u8,
    has_new_cookies: bool,
    #[serde(skip)]
    referrer: Option<Arc<str>>,
    embedded: u8,
    redirected_from: Option<Arc<str>>,
    seed: bool,
    lastmod: Option<Time>,
    previous: Option<Arc<PreviousFetch>>,
    sitemap_of: Option<Origin>,
    data: Option<OwnData>,
    class: Option<Class>,
}

struct LinkRef<'a>(&'a Link);

impl Serialize for LinkRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredLink::serialize(self.0, serializer)
    }
}

#[derive(Deserialize)]
struct OwnedLink(#[serde(with = "StoredLink")] Link);

/// Settlements that are made together.
#[derive(Debug)]
pub(crate) struct Settlements<'a> {
    pub(crate) all: Cow<'a, [Settlement]>,
    /// The answers, once there are any.
    settled: &'a [(Settled, Option<Arc<Entry>>)],
}

impl<'a> From<&'a [Settlement]> for Settlements<'a> {
    fn from(all: &'a [Settlement]) -> Self {
        Self {
            all: Cow::Borrowed(all),
            settled: &[],
        }
    }
}

/// A settlement as it is stored, without what only the row of its page has.
#[derive(Serialize, Deserialize)]
struct StoredSettlement<'a> {
    lease: LeaseId,
    outcome: Cow<'a, Outcome>,
    links: Links<'a>,
    links_known: u64,
    /// The text of the rules.
    rules: Option<ByteBuf>,
    address: Option<IpAddr>,
    lifetime: Option<Duration>,
    fingerprint: Option<Fingerprint>,
}

impl Serialize for Settlements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = self
            .all
            .iter()
            .zip(self.settled)
            .filter(|(_, settled)| is_known(settled));
        let stored = known.map(|(settlement, (settled, entry))| {
            // The target of a redirect changes more than the queue, and so do the links of a robots.txt.
            let are_all_stored = settlement.outcome == Outcome::Redirected || entry.is_none();
            let text = |rules: &Arc<dyn RobotsRules>| ByteBuf::from(rules.text().unwrap_or_default());
            StoredSettlement {
                lease: settlement.lease,
                outcome: Cow::Borrowed(&settlement.outcome),
                links: Links {
                    links: Cow::Borrowed(&settlement.links),
                    others: Cow::Borrowed(&settlement.other_links),
                    verdicts: (!are_all_stored).then_some(&settled.verdicts),
                },
                links_known: settlement.links_known,
                rules: settlement.rules.as_ref().map(text),
                address: settlement.address,
                lifetime: settlement.lifetime,
                fingerprint: settlement.fingerprint,
            }
        });
        stored.collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settlements<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Vec::<StoredSettlement<'_>>::deserialize(deserializer)?.into_iter();
        let all = stored.map(|stored| Settlement {
            links: stored.links.links.into_owned(),
            other_links: stored.links.others.into_owned(),
            links_known: stored.links_known,
            rules: stored.rules.map(|text| stored_rules::of_text(text.into_vec())),
            address: stored.address,
            lifetime: stored.lifetime,
            fingerprint: stored.fingerprint,
            ..Settlement::new(stored.lease, stored.outcome.into_owned())
        });
        Ok(Self {
            all: all.collect(),
            settled: &[],
        })
    }
}
