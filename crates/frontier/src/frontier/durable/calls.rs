//! The calls that change a frontier, as the journal stores them.
//!
//! A frontier depends on nothing but its configuration and the calls so far. So the calls since a checkpoint restore it. Of the links of
//! a page only the new ones are stored; for the others their number is enough.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::super::again::{LastEnd, RecordsRead, ShutOrigin};
use crate::appended::append;
use crate::failure::Failure;
use crate::fingerprint::Fingerprint;
use crate::lease::{LeaseId, NotFetched};
use crate::link::{Link, PreviousFetch, Validators};
use crate::rules::{ParseRules, RobotsRules};
use crate::scope::Refusal;
use crate::settlement::{End, Fate, Outcome, RobotsOutcome, Settled, Settlement, Verdict};
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey, Origin};

/// Returns a row of the journal.
pub(super) fn row(attachment: &[u8], calls: &[u8]) -> Result<Vec<u8>, postcard::Error> {
    let mut row = Vec::with_capacity(attachment.len() + calls.len() + 8);
    append(serde_bytes::Bytes::new(attachment), &mut row)?;
    row.extend_from_slice(calls);
    Ok(row)
}

/// Returns the attachment of a row, and its calls.
pub(super) fn split(row: &[u8]) -> Result<(&[u8], &[u8]), postcard::Error> {
    let (attachment, calls): (&serde_bytes::Bytes, _) = postcard::take_from_bytes(row)?;
    Ok((attachment, calls))
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Call<'a> {
    AddSeed {
        #[serde(borrow)]
        url: StoredUrl<'a>,
        now: Time,
        is_new: bool,
    },
    Offer {
        #[serde(borrow)]
        links: StoredLinks<'a>,
        now: Time,
    },
    Lease {
        now: Time,
        up_to: u64,
        /// How many entries were leased or dropped.
        taken: u64,
    },
    Settle {
        #[serde(borrow)]
        settlements: Vec<StoredSettlement<'a>>,
        now: Time,
    },
    SetDelay {
        host: HostKey,
        delay: Duration,
        now: Time,
    },
    Block {
        host: HostKey,
        until: Time,
        now: Time,
    },
    ReleaseLeases {
        now: Time,
    },
    /// A retry of pages without an answer begins, which ends before this row of records.
    BeginRetry {
        end: u64,
        now: Time,
    },
    QueueAgain {
        #[serde(borrow)]
        pages: StoredLinks<'a>,
        /// How the last fetch of each has ended.
        ends: Vec<LastEnd>,
        shut: ShutOrigin,
        read: RecordsRead,
        now: Time,
    },
    GiveBack {
        leases: Vec<LeaseId>,
        now: Time,
        /// How many of them ended.
        ended: u64,
    },
}

/// A URL with its key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct StoredUrl<'a> {
    url: &'a str,
    key: Option<&'a str>,
}

impl<'a> StoredUrl<'a> {
    pub(super) fn of(url: &'a CanonicalUrl) -> Self {
        let text = url.url().as_str();
        let key = url.key();
        Self {
            url: text,
            key: (key != text).then_some(key),
        }
    }

    /// Returns the URL, unless the text is none.
    pub(super) fn read(self) -> Option<CanonicalUrl> {
        Some(CanonicalUrl::new(Url::parse(self.url).ok()?, self.key.map(Into::into)))
    }
}

/// Links that were offered together: those that were queued, or all, and how many others there were.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredLinks<'a> {
    #[serde(borrow)]
    links: Vec<StoredLink<'a>>,
    /// Whether these are all links.
    are_all: bool,
    others: Vec<OtherLinks>,
}

/// Links that changed nothing but a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OtherLinks {
    pub(crate) are_sitemaps: bool,
    /// Why they were refused; `None` for links that were seen.
    pub(crate) refused: Option<Refusal>,
    pub(crate) count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredLink<'a> {
    #[serde(borrow)]
    url: StoredUrl<'a>,
    depth: u32,
    hops: u8,
    embedded: u8,
    is_seed: bool,
    #[serde(borrow)]
    referrer: Referrer<'a>,
    redirected_from: Option<&'a str>,
    lastmod: Option<Time>,
    previous: Option<Cow<'a, PreviousFetch>>,
    sitemap_of: Option<Origin>,
}

/// The links of one page have the same referrer.
#[derive(Debug, Serialize, Deserialize)]
enum Referrer<'a> {
    None,
    OfLinkBefore,
    Url(&'a str),
}

impl<'a> StoredLinks<'a> {
    /// Stores the links that were queued, and counts the others.
    pub(super) fn new(links: &'a [Link], verdicts: &[Verdict]) -> Self {
        let mut others: Vec<OtherLinks> = Vec::new();
        let mut stored = Vec::new();
        let mut last = None;
        for (link, verdict) in links.iter().zip(verdicts) {
            let refused = match verdict {
                Verdict::Queued => {
                    stored.push(StoredLink::of(link, &mut last));
                    continue;
                }
                Verdict::Seen => None,
                Verdict::Refused(why) => Some(*why),
            };
            let are_sitemaps = link.sitemap_of.is_some();
            let same = others
                .iter_mut()
                .find(|one| one.are_sitemaps == are_sitemaps && one.refused == refused);
            match same {
                Some(same) => same.count += 1,
                None => others.push(OtherLinks {
                    are_sitemaps,
                    refused,
                    count: 1,
                }),
            }
        }
        Self {
            links: stored,
            are_all: false,
            others,
        }
    }

    /// Stores all links, for settlements that look at each of them.
    fn all(links: &'a [Link]) -> Self {
        let mut last = None;
        Self {
            links: links.iter().map(|link| StoredLink::of(link, &mut last)).collect(),
            are_all: true,
            others: Vec::new(),
        }
    }

    /// Returns the stored links and the counts of the others, unless a URL is none.
    pub(super) fn read(&self) -> Option<(Vec<Link>, &[OtherLinks])> {
        let mut last = None;
        let links = self.links.iter().map(|link| link.read(&mut last));
        Some((links.collect::<Option<_>>()?, &self.others))
    }

    /// Returns whether verdicts can be those of the first time.
    pub(super) fn agree_with(&self, verdicts: &[Verdict]) -> bool {
        self.are_all || verdicts.iter().all(|verdict| *verdict == Verdict::Queued)
    }
}

impl<'a> StoredLink<'a> {
    fn of(link: &'a Link, last: &mut Option<&'a str>) -> Self {
        let referrer = match link.referrer.as_deref() {
            None => Referrer::None,
            Some(referrer) if *last == Some(referrer) => Referrer::OfLinkBefore,
            Some(referrer) => {
                *last = Some(referrer);
                Referrer::Url(referrer)
            }
        };
        Self {
            url: StoredUrl::of(&link.url),
            depth: link.depth,
            hops: link.hops,
            embedded: link.embedded,
            is_seed: link.seed,
            referrer,
            redirected_from: link.redirected_from.as_deref(),
            lastmod: link.lastmod,
            previous: link.previous.as_deref().map(Cow::Borrowed),
            sitemap_of: link.sitemap_of.clone(),
        }
    }

    fn read(&self, last: &mut Option<Arc<str>>) -> Option<Link> {
        let referrer = match self.referrer {
            Referrer::None => None,
            Referrer::OfLinkBefore => Some(last.clone()?),
            Referrer::Url(url) => {
                *last = Some(url.into());
                last.clone()
            }
        };
        Some(Link {
            url: self.url.read()?,
            depth: self.depth,
            hops: self.hops,
            referrer,
            embedded: self.embedded,
            redirected_from: self.redirected_from.map(Into::into),
            seed: self.is_seed,
            lastmod: self.lastmod,
            previous: self.previous.as_deref().cloned().map(Arc::new),
            sitemap_of: self.sitemap_of.clone(),
        })
    }
}

/// A settlement, and what became of the lease.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredSettlement<'a> {
    lease: u64,
    #[serde(borrow)]
    end: StoredEnd<'a>,
    #[serde(borrow)]
    pub(super) links: StoredLinks<'a>,
    links_known: u64,
    links_out_of_reach: u64,
    fingerprint: Option<Fingerprint>,
    pub(super) fate: Fate,
}

#[derive(Debug, Serialize, Deserialize)]
enum StoredEnd<'a> {
    Page(Cow<'a, Outcome>),
    Sitemap(Cow<'a, Outcome>),
    Address(Option<IpAddr>, Duration),
    #[serde(borrow)]
    Robots(StoredRobots<'a>),
}

#[derive(Debug, Serialize, Deserialize)]
enum StoredRobots<'a> {
    Known {
        #[serde(with = "serde_bytes")]
        text: &'a [u8],
        lifetime: Duration,
    },
    #[serde(borrow)]
    Redirected(StoredUrl<'a>),
    Unavailable,
    Failed(Cow<'a, Failure>, Option<Duration>),
    NotFetched(NotFetched),
}

/// Returns the text of rules. Rules without a text are not accepted by a durable frontier.
fn text_of(rules: &dyn RobotsRules) -> &[u8] {
    rules.text().unwrap_or_default()
}

impl<'a> StoredSettlement<'a> {
    pub(super) fn new(settlement: &'a Settlement, settled: &Settled) -> Self {
        let links = match &settlement.end {
            End::Page(Outcome::Redirected) | End::Robots(_) => StoredLinks::all(&settlement.links),
            _ => StoredLinks::new(&settlement.links, &settled.verdicts),
        };
        Self {
            lease: settlement.lease.0,
            end: match &settlement.end {
                End::Page(outcome) => StoredEnd::Page(Cow::Borrowed(outcome)),
                End::Sitemap(outcome) => StoredEnd::Sitemap(Cow::Borrowed(outcome)),
                End::Address(address, lifetime) => StoredEnd::Address(*address, *lifetime),
                End::Robots(outcome) => StoredEnd::Robots(match outcome {
                    RobotsOutcome::Known { rules, lifetime } => StoredRobots::Known {
                        text: text_of(&**rules),
                        lifetime: *lifetime,
                    },
                    RobotsOutcome::Redirected(target) => StoredRobots::Redirected(StoredUrl::of(target)),
                    RobotsOutcome::Unavailable => StoredRobots::Unavailable,
                    RobotsOutcome::Failed { failure, retry_after } => {
                        StoredRobots::Failed(Cow::Borrowed(failure), *retry_after)
                    }
                    RobotsOutcome::NotFetched(why) => StoredRobots::NotFetched(*why),
                }),
            },
            links,
            links_known: settlement.links_known,
            links_out_of_reach: settlement.links_out_of_reach,
            fingerprint: settlement.fingerprint,
            fate: settled.fate,
        }
    }

    /// Returns the settlement with the stored links only, unless a URL is none.
    pub(super) fn read(&self, parse: &ParseRules) -> Option<(Settlement, &[OtherLinks])> {
        let end = match &self.end {
            StoredEnd::Page(outcome) => End::Page(outcome.clone().into_owned()),
            StoredEnd::Sitemap(outcome) => End::Sitemap(outcome.clone().into_owned()),
            StoredEnd::Address(address, lifetime) => End::Address(*address, *lifetime),
            StoredEnd::Robots(robots) => End::Robots(match robots {
                StoredRobots::Known { text, lifetime } => RobotsOutcome::Known {
                    rules: parse(text),
                    lifetime: *lifetime,
                },
                StoredRobots::Redirected(target) => RobotsOutcome::Redirected(target.read()?),
                StoredRobots::Unavailable => RobotsOutcome::Unavailable,
                StoredRobots::Failed(failure, retry_after) => RobotsOutcome::Failed {
                    failure: failure.clone().into_owned(),
                    retry_after: *retry_after,
                },
                StoredRobots::NotFetched(why) => RobotsOutcome::NotFetched(*why),
            }),
        };
        let (links, others) = self.links.read()?;
        let settlement = Settlement {
            lease: LeaseId(self.lease),
            end,
            links,
            links_known: self.links_known,
            links_out_of_reach: self.links_out_of_reach,
            had_other_links: !others.is_empty(),
            fingerprint: self.fingerprint,
            status: None,
            validators: Validators::default(),
            content: None,
        };
        Some((settlement, others))
    }
}
