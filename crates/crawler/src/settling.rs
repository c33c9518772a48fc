//! What a task that came back means: the settlement for the frontier, and what follows once it is made.

mod attempts;
mod failure;
mod redirects;
mod robots;
pub(crate) mod sitemaps;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

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
use crate::links::{Uncrawlable, Wording};
use crate::page::Page;
use crate::robots::Policy;
use crate::select::Selected;
use crate::sitemap;
use crate::task::Fetched;
pub(crate) use attempts::Attempts;
use failure::{Failure, no_target, unusable};
pub(crate) use redirects::Redirects;
use robots::RobotsNext;

/// How long the address of a host counts before it is looked up again.
const ADDRESS_LIFETIME: Duration = Duration::from_secs(3600);

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
        moved_to: Option<Box<str>>,
        wordings: Vec<Wording>,
        known: usize,
        dropped: u64,
        nofollow: u64,
        fingerprint: Fingerprint,
        uncrawlable: Uncrawlable,
    },
    Robots(Origin, RobotsNext),
    Address(Option<IpAddr>),
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

pub(crate) fn conclude(returned: Returned, config: &CrawlConfig) -> Conclusion {
    let Lease { id, entry, .. } = returned.lease;
    let mut fetched = returned
        .result
        .unwrap_or_else(|panic| Fetched::unread(Err(FetchError::Panicked(panic))));
    let (judgement, links, what) = match entry.purpose.clone() {
        Purpose::Page => conclude_page(&entry, &mut fetched, returned.started, config),
        Purpose::Robots(origin) => {
            let (judgement, next) = robots::conclude(&entry, &fetched.result, config);
            let links = match &next {
                RobotsNext::Known(Policy::Rules(rules)) => sitemaps::named_by(&entry, &origin, rules, config),
                _ => Vec::new(),
            };
            (judgement, links, What::Robots(origin, next))
        }
        Purpose::Sitemap(origin) => sitemaps::conclude(&entry, &origin, &mut fetched, config),
        Purpose::Address => {
            let judgement = Judgement { outcome: Outcome::Done };
            (judgement, Vec::new(), What::Address(fetched.address))
        }
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
    let (found, known) = (fetched.page.links.len(), fetched.page.known);
    let mut edges = Vec::new();
    let (links, wordings): (Vec<_>, Vec<_>) = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => redirect_target(entry, answer, canonicalizer)
            .map(|target| (entry.redirected(target), Wording::NONE))
            .into_iter()
            .unzip(),
        _ => {
            if tells_edges {
                edges = edges::of_page(&fetched.page, canonicalizer);
            }
            page_links(entry, &mut fetched.page, canonicalizer)
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
        uncrawlable.unresolvable += found - links.len();
    }
    let page = std::mem::take(&mut fetched.page);
    let (record, failure) = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => (None, links.is_empty().then(|| no_target(answer))),
        Ok(answer) => {
            let failure = judgement.asks_again().then(|| unusable(answer));
            let mut record = record(entry, answer, page, started);
            record.links_found += found + known;
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
    let moved_to = links
        .first()
        .filter(|_| judgement.outcome == Outcome::Moved)
        .map(|target| target.url.url().as_str().into());
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
            moved_to,
            wordings,
            known,
            dropped,
            nofollow,
            fingerprint,
            uncrawlable,
        },
    )
}

/// The links of a page that can be crawled, and how each is written.
fn page_links(entry: &Entry, page: &mut Page, canonicalizer: &Canonicalizer) -> (Vec<Link>, Vec<Wording>) {
    let referrer: Arc<str> = (*entry.url).into();
    let depth = entry.depth.saturating_add(1);
    let written = std::mem::take(&mut page.links).into_iter().zip(&page.wordings);
    let links = written.filter_map(|(link, wording)| {
        let url = canonicalizer.canonicalize(link.url).ok()?;
        Some((Link::found(url, depth, Arc::clone(&referrer)), *wording))
    });
    links.unzip()
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
            What::Address(address) => {
                let until = now + ADDRESS_LIFETIME;
                self.frontier_mut().address_known(&entry.queue, address, until, now)
            }
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
                moved_to,
                wordings,
                known,
                dropped,
                nofollow,
                fingerprint: _,
                uncrawlable,
            } => {
                self.remember(&wordings, verdicts, known);
                edges::judge(&mut edges, verdicts);
                let is_over = matches!(fate, Fate::Final | Fate::GaveUp);
                let new = self.attempts.new_links(&entry.url, is_over, verdicts, &mut edges);
                if is_over {
                    self.count_uncrawlable(uncrawlable);
                    self.count_links(dropped, nofollow);
                    if !edges.is_empty() {
                        self.tell(&Event::Edges {
                            from: &entry,
                            edges: &edges,
                        });
                    }
                }
                if let Some(target) = moved_to {
                    self.follow_up_redirect(&entry, target, verdicts);
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
                if let Some(mut record) = record.filter(|_| is_over) {
                    record.links_new = new;
                    self.tell(&Event::Page(&record));
                }
                Ok(())
            }
        }
    }

    /// What the frontier has seen need not be offered again.
    fn remember(&mut self, wordings: &[Wording], verdicts: &[Verdict], known: usize) {
        self.frontier_mut().count_seen(known as u64);
        for (wording, verdict) in wordings.iter().zip(verdicts) {
            if matches!(verdict, Verdict::Queued | Verdict::Seen) {
                self.known().remember(*wording);
            }
        }
    }

    /// An entry was taken out of the queue because its host is down.
    pub(crate) fn give_up(&mut self, entry: &Entry, now: Time) -> Result<(), FrontierError> {
        match &entry.purpose {
            Purpose::Robots(origin) => self.close(origin, now),
            // It never waits in a queue.
            Purpose::Address => Ok(()),
            Purpose::Sitemap(_) => {
                self.tell(&Event::Sitemap(&sitemaps::lost(
                    entry,
                    "its host was given up".to_owned(),
                )));
                Ok(())
            }
            Purpose::Page => {
                self.attempts.forget(&entry.url);
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
            Purpose::Page | Purpose::Robots(_) | Purpose::Address => self.tell(&Event::NotFetched {
                url: &entry.url,
                why,
                entry,
            }),
        }
    }
}
