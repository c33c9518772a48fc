//! What a task that came back means: the settlement for the frontier, and what follows once it is made.

mod failure;
pub(crate) mod sitemaps;

use std::sync::Arc;

use frontier::{
    CanonicalUrl, Canonicalizer, Entry, Fate, FrontierError, Lease, Link, NotFetched, Origin, Outcome, Purpose,
    Settlement, Time, Verdict,
};
use sieve::Filter;
use url::Url;

use crate::capture::Capture;
use crate::clock::Clock;
use crate::config::CrawlConfig;
use crate::edges::{self, Edge};
use crate::engine::Crawl;
use crate::event::{Event, PageRecord, SitemapRecord};
use crate::fetch::{Answer, Cut, Extent, FailureKind, FetchError, Fetcher};
use crate::fingerprint::Fingerprint;
use crate::judge::{Judgement, judge};
use crate::links::FoundLink;
use crate::links::Uncrawlable;
use crate::page::Page;
use crate::robots::{MAX_ROBOTS_HOPS, Policy, ROBOTS_LIFETIME, RobotsRules};
use crate::select::Selected;
use crate::sitemap;
use crate::task::Fetched;
use failure::{Failure, no_target, unusable};

/// What is told to the frontier, and what follows.
pub(crate) type Conclusion = (Settlement, Aftermath);

/// What came of a lease: a value, or the message of a panic.
pub(crate) struct Returned {
    pub(crate) lease: Lease,
    pub(crate) started: Time,
    pub(crate) result: Result<Fetched, String>,
}

/// What is left to do once a settlement is made.
pub(crate) struct Aftermath {
    entry: Entry,
    what: What,
    capture: Option<Arc<Capture>>,
}

enum What {
    Page {
        record: Option<Box<PageRecord>>,
        failure: Option<Failure>,
        /// No request was made after all, for this reason.
        refused: Option<NotFetched>,
        edges: Vec<Edge>,
        dropped: u64,
        nofollow: u64,
        fingerprint: Fingerprint,
        uncrawlable: Uncrawlable,
    },
    Robots(Origin, RobotsNext),
    Sitemap(Box<SitemapRecord>),
}

impl Aftermath {
    /// The page to be written, if there is one, and what it is compared by.
    pub(crate) fn page(&mut self) -> Option<(&mut PageRecord, Fingerprint)> {
        match &mut self.what {
            What::Page {
                record: Some(record),
                fingerprint,
                ..
            } => Some((record, *fingerprint)),
            _ => None,
        }
    }
}

/// What an answer to a robots.txt request says.
enum RobotsNext {
    Known(Policy),
    Follow(CanonicalUrl),
    /// Nothing yet; when the frontier gives up, everything is forbidden.
    Unknown,
}

pub(crate) fn conclude(returned: Returned, config: &CrawlConfig) -> Conclusion {
    let Lease { id, entry, .. } = returned.lease;
    let mut fetched = returned.result.unwrap_or_else(|panic| Fetched {
        result: Err(FetchError::Panicked(panic)),
        page: Page::default(),
        sitemap: None,
    });
    let (judgement, links, what) = match entry.purpose.clone() {
        Purpose::Page => conclude_page(&entry, &mut fetched, returned.started, config),
        Purpose::Robots(origin) => {
            let (judgement, next) = conclude_robots(&entry, &fetched.result, config);
            let links = match &next {
                RobotsNext::Known(Policy::Rules(rules)) => sitemaps::named_by(&entry, &origin, rules, config),
                _ => Vec::new(),
            };
            (judgement, links, What::Robots(origin, next))
        }
        Purpose::Sitemap(origin) => sitemaps::conclude(&entry, &origin, &mut fetched, config),
    };
    let settlement = Settlement {
        lease: id,
        outcome: judgement.outcome,
        links,
    };
    (
        settlement,
        Aftermath {
            capture: Capture::of(&entry.url, returned.started, fetched.result),
            entry,
            what,
        },
    )
}

fn conclude_page(
    entry: &Entry,
    fetched: &mut Fetched,
    started: Time,
    config: &CrawlConfig,
) -> (Judgement, Vec<Link>, What) {
    let judgement = judge(&fetched.result);
    let canonicalizer = &config.options().canonicalizer;
    let tells_edges = config.options().tell_edges;
    let followed = fetched.page.links.len();
    let mut edges = Vec::new();
    let links: Vec<_> = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => redirect_target(entry, answer, canonicalizer)
            .map(|target| entry.redirected(target))
            .into_iter()
            .collect(),
        _ => {
            if tells_edges {
                edges = edges::of_page(&fetched.page, canonicalizer);
            }
            page_links(entry, std::mem::take(&mut fetched.page.links), canonicalizer)
        }
    };
    if tells_edges && judgement.outcome == Outcome::Moved {
        edges = links.iter().map(edges::redirect).collect();
    }
    let (dropped, nofollow) = (fetched.page.links_dropped as u64, fetched.page.links_nofollow as u64);
    let fingerprint = fetched.page.fingerprint;
    let mut uncrawlable = fetched.page.uncrawlable;
    if judgement.outcome == Outcome::Moved {
        uncrawlable.unresolvable += usize::from(links.is_empty());
    } else {
        // Such as those to http://../, a host that is nothing but dots.
        uncrawlable.unresolvable += followed - links.len();
    }
    let page = std::mem::take(&mut fetched.page);
    let (record, failure) = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => (None, links.is_empty().then(|| no_target(answer))),
        Ok(answer) => {
            let failure = judgement.asks_again().then(|| unusable(answer));
            let mut record = record(entry, answer, page, started);
            record.links_found += followed;
            if record.selected.is_none() && !config.options().fields.is_empty() {
                record.selected = Some(Selected::nothing(&config.options().fields));
            }
            (Some(Box::new(record)), failure)
        }
        Err(error) => {
            let (kind, why) = (error.kind(), error.to_string());
            (None, Some(Failure { kind, why }))
        }
    };
    let refused = match judgement.outcome {
        Outcome::NotFetched(why) => Some(why),
        _ => None,
    };
    (
        judgement,
        links,
        What::Page {
            record,
            failure,
            refused,
            edges,
            dropped,
            nofollow,
            fingerprint,
            uncrawlable,
        },
    )
}

fn page_links(entry: &Entry, found: Vec<FoundLink>, canonicalizer: &Canonicalizer) -> Vec<Link> {
    let referrer: Arc<str> = (*entry.url).into();
    let depth = entry.depth.saturating_add(1);
    let urls = found
        .into_iter()
        .filter_map(|link| canonicalizer.canonicalize(link.url).ok());
    urls.map(|url| Link::found(url, depth, Arc::clone(&referrer))).collect()
}

/// Resolves a `Location` (RFC 9110, section 10.2.2).
fn redirect_target(entry: &Entry, answer: &Answer, canonicalizer: &Canonicalizer) -> Option<CanonicalUrl> {
    let from = Url::parse(&entry.url).ok()?;
    let to = from.join(answer.location.as_deref()?).ok()?;
    canonicalizer.canonicalize(to).ok()
}

fn record(entry: &Entry, answer: &Answer, page: Page, started: Time) -> PageRecord {
    PageRecord {
        url: entry.url.to_string(),
        redirected_from: entry.metadata.redirected_from.as_deref().map(str::to_owned),
        status: answer.status,
        depth: entry.depth,
        referrer: entry.metadata.referrer.as_deref().map(str::to_owned),
        content_type: answer.content_type.clone(),
        bytes: answer.body.len() as u64,
        body: if page.cut { Extent::Truncated } else { answer.extent },
        body_cut: answer.cut.or(page.cut.then_some(Cut::Markup)),
        fetched_at: Clock::rfc3339(started),
        milliseconds: u64::try_from(answer.elapsed.as_millis()).unwrap_or(u64::MAX),
        links_found: page.links_nofollow + page.links_dropped,
        links_new: 0,
        noindex: page.noindex,
        content_hash: page.fingerprint.content.map(|hash| hash.to_string()),
        simhash: page.fingerprint.text.map(|hash| hash.to_string()),
        duplicate_of: None,
        near_duplicate_of: None,
        title: page.title,
        lastmod: entry.metadata.lastmod.and_then(sitemap::rfc3339),
        selected: page.selected,
    }
}

/// What the answer to a robots.txt request means (RFC 9309, section 2.3.1). 429 counts as a server error, as it does for
/// Google's crawlers: a server that asks for less traffic has not said that everything may be fetched.
fn conclude_robots(
    entry: &Entry,
    result: &Result<Answer, FetchError>,
    config: &CrawlConfig,
) -> (Judgement, RobotsNext) {
    let final_answer = |outcome, next| (Judgement { outcome }, next);
    let allow_all = || RobotsNext::Known(Policy::Rules(RobotsRules::allow_all()));
    match result {
        Ok(answer) => match answer.status {
            // Rules that did not arrive may be those that forbid.
            200..=299 if answer.cut.is_some_and(|cut| cut != Cut::Size) => {
                final_answer(Outcome::Retry { after: None }, RobotsNext::Unknown)
            }
            200..=299 => {
                let rules = RobotsRules::parse(&answer.body, config.product_token());
                final_answer(Outcome::Done, RobotsNext::Known(Policy::Rules(rules)))
            }
            300..=399 => {
                let target = redirect_target(entry, answer, &config.options().canonicalizer);
                let next = target
                    .filter(|_| entry.hops < MAX_ROBOTS_HOPS)
                    .map_or_else(allow_all, RobotsNext::Follow);
                final_answer(Outcome::Moved, next)
            }
            429 | 500.. => (judge(result), RobotsNext::Unknown),
            _ => final_answer(Outcome::Gone, allow_all()),
        },
        Err(FetchError::AddressForbidden) => (
            judge(result),
            RobotsNext::Known(Policy::Closed(NotFetched::AddressForbidden)),
        ),
        Err(_) => (judge(result), RobotsNext::Unknown),
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Does what is left to do once a settlement is made.
    pub(crate) fn follow_up(
        &mut self,
        aftermath: Aftermath,
        fate: Fate,
        verdicts: &[Verdict],
        now: Time,
    ) -> Result<(), FrontierError> {
        let Aftermath { entry, what, capture } = aftermath;
        if let Some(capture) = &capture {
            self.tell(&Event::Captured(capture));
        }
        match what {
            What::Robots(origin, next) => self.follow_up_robots(&entry, origin, next, fate, now),
            What::Sitemap(record) => {
                if matches!(fate, Fate::Final | Fate::GaveUp) {
                    self.tell(&Event::Sitemap(&record));
                }
                Ok(())
            }
            What::Page {
                record,
                failure,
                refused,
                mut edges,
                dropped,
                nofollow,
                fingerprint: _,
                uncrawlable,
            } => {
                self.count_uncrawlable(uncrawlable);
                self.count_links(dropped, nofollow);
                if !edges.is_empty() {
                    edges::judge(&mut edges, verdicts);
                    self.tell(&Event::Edges {
                        from: &entry,
                        edges: &edges,
                    });
                }
                if let Some(why) = refused {
                    self.tell(&Event::NotFetched {
                        url: &entry.url,
                        why,
                        entry: &entry,
                    });
                } else if let Some(Failure { kind, why }) = &failure {
                    self.tell(&Event::Failed {
                        url: &entry.url,
                        why,
                        kind: *kind,
                        fate,
                        entry: &entry,
                    });
                }
                if let Some(mut record) = record.filter(|_| matches!(fate, Fate::Final | Fate::GaveUp)) {
                    record.links_new = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued).count();
                    self.tell(&Event::Page(&record));
                }
                Ok(())
            }
        }
    }

    fn follow_up_robots(
        &mut self,
        entry: &Entry,
        origin: Origin,
        next: RobotsNext,
        fate: Fate,
        now: Time,
    ) -> Result<(), FrontierError> {
        match (fate, next) {
            (Fate::Final, RobotsNext::Known(policy)) => self.know(origin, policy, ROBOTS_LIFETIME, now),
            (Fate::Final, RobotsNext::Follow(target)) => {
                self.frontier_mut()
                    .follow_robots(&origin, &target, entry.hops.saturating_add(1), now)
            }
            (Fate::Requeued { .. } | Fate::Stale, _) => Ok(()),
            (Fate::Final | Fate::GaveUp, _) => self.close(&origin, now),
        }
    }

    /// The robots.txt of an origin could not be had: what was known of it holds on, or nothing of it may be fetched, until it is
    /// time to ask again.
    pub(crate) fn close(&mut self, origin: &Origin, now: Time) -> Result<(), FrontierError> {
        let (policy, rest) = self.policies().without_robots(origin);
        match &policy {
            Policy::Rules(_) => log::warn!("the robots.txt of {origin} cannot be had, so its last one holds on"),
            Policy::Closed(why) => {
                log::warn!("nothing of {origin} is fetched for {} s: {why}", rest.as_secs());
            }
        }
        self.know(origin.clone(), policy, rest, now)
    }

    /// An entry was taken out of the queue because its host is down.
    pub(crate) fn give_up(&mut self, entry: &Entry, now: Time) -> Result<(), FrontierError> {
        match &entry.purpose {
            Purpose::Robots(origin) => self.close(origin, now),
            Purpose::Sitemap(_) => {
                self.tell(&Event::Sitemap(&sitemaps::lost(
                    entry,
                    "its host was given up".to_owned(),
                )));
                Ok(())
            }
            Purpose::Page => {
                let why = "its host failed too often and was given up";
                self.tell(&Event::Failed {
                    url: &entry.url,
                    why,
                    kind: FailureKind::HostDown,
                    fate: Fate::GaveUp,
                    entry,
                });
                Ok(())
            }
        }
    }

    pub(crate) fn tell_not_fetched(&mut self, entry: &Entry, outcome: Outcome) {
        let Outcome::NotFetched(why) = outcome else { return };
        match entry.purpose {
            Purpose::Sitemap(_) => self.tell(&Event::Sitemap(&sitemaps::lost(entry, why.to_string()))),
            Purpose::Page | Purpose::Robots(_) => self.tell(&Event::NotFetched {
                url: &entry.url,
                why,
                entry,
            }),
        }
    }
}
