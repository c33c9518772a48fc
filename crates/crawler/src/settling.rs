//! What a task that came back means: the settlement for the frontier, and what follows once it is made.

mod attempts;
mod failure;
mod pages;
mod redirects;
mod robots;
pub(crate) mod sitemaps;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use frontier::{
    CanonicalUrl, Canonicalizer, Entry, Fate, Fingerprint, FrontierError, Lease, Origin, Outcome, Purpose, Settlement,
    Time, Verdict,
};
use sieve::Filter;
use url::Url;

use crate::capture::Capture;
use crate::config::CrawlConfig;
use crate::engine::Crawl;
use crate::event::{Event, PageRecord, SitemapRecord};
use crate::fetch::{Answer, FailureKind, FetchError, Fetcher};
use crate::judge::Judgement;
use crate::robots::Policy;
use crate::task::Fetched;
pub(crate) use attempts::Attempts;
use pages::PageEnd;
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
    cookies_dropped: usize,
    capture: Option<Arc<Capture>>,
}

enum What {
    Page(Box<PageEnd>),
    Robots(Origin, RobotsNext),
    Address(Option<IpAddr>),
    Sitemap(Box<SitemapRecord>),
}

impl Aftermath {
    /// What was asked for.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The page to be written, if there is one, and what it is compared by.
    pub(crate) fn page(&mut self) -> Option<(&mut PageRecord, Fingerprint)> {
        match &mut self.what {
            What::Page(end) => end.page(),
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
        Purpose::Page => {
            let (judgement, links, end) = pages::conclude(&entry, &mut fetched, returned.started, config);
            (judgement, links, What::Page(Box::new(end)))
        }
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
            cookies_dropped: fetched.result.as_ref().map_or(0, |answer| answer.cookies_dropped),
            capture: Capture::of(&entry.url, returned.started, fetched.result),
            entry,
            what,
        },
    )
}

/// Resolves a `Location` (RFC 9110, section 10.2.2).
fn redirect_target(entry: &Entry, answer: &Answer, canonicalizer: &Canonicalizer) -> Option<CanonicalUrl> {
    let from = Url::parse(&entry.url).ok()?;
    let to = from.join(answer.location.as_deref()?).ok()?;
    canonicalizer.canonicalize(to).ok()
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
        let Aftermath {
            entry,
            what,
            cookies_dropped,
            capture,
        } = aftermath;
        self.count_cookies(cookies_dropped);
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
            What::Page(end) => {
                self.follow_up_page(&entry, *end, fate, verdicts);
                Ok(())
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
        self.attempts.forget(&entry.url);
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
