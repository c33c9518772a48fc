//! Pages are fetched again: those that come of age, and those that got no answer.

mod budgets;
mod due;
mod going_back;
mod planned;
mod random;
mod refresh;
mod retry;
mod settings;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

use super::super::pages;
use super::Sizes;
use super::common::{START, config, failure, url};
use super::stores::{Recorder, SMALL, open_sized};
use crate::config::{FrontierConfig, PolitenessConfig, RetryPolicy};
use crate::durable::QueuedAgain;
use crate::{
    FailureKind, Frontier, Lease, Leasing, Link, NotFetched, Outcome, PageEnd, Purpose, Refetch, StoredPage, Time,
    Validators, Verdict,
};

const DAY: Duration = Duration::from_secs(86_400);

/// One attempt for each page, and half a minute for each origin.
fn impatient() -> FrontierConfig {
    FrontierConfig {
        retries: RetryPolicy {
            max_attempts: NonZeroU32::MIN,
            max_robots_attempts: NonZeroU32::MIN,
            max_host_downtime: Duration::from_secs(30),
            retry_jitter: 0,
            ..RetryPolicy::default()
        },
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(8).unwrap(),
            ..config().politeness
        },
        ..config()
    }
}

fn asking_robots() -> FrontierConfig {
    let mut config = impatient();
    config.politeness.ask_robots = true;
    config
}

fn page(host: usize, n: usize) -> String {
    format!("http://host{host}.example/{n}")
}

fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| &*lease.entry.url).collect()
}

fn sorted(leases: &[Lease]) -> Vec<&str> {
    let mut urls = urls(leases);
    urls.sort_unstable();
    urls
}

/// A frontier with its store, and the time.
struct Crawl {
    recorder: Recorder,
    config: FrontierConfig,
    sizes: Sizes,
    frontier: Frontier,
    now: Time,
}

impl Crawl {
    fn new(config: FrontierConfig) -> Self {
        Self::sized(config, SMALL)
    }

    fn sized(config: FrontierConfig, sizes: Sizes) -> Self {
        Self::sized_in(Recorder::default(), config, sizes)
    }

    fn sized_in(recorder: Recorder, config: FrontierConfig, sizes: Sizes) -> Self {
        let opened = open_sized(recorder.clone(), config.clone(), START, sizes).unwrap();
        Self {
            recorder,
            config,
            sizes,
            frontier: opened.frontier,
            now: START,
        }
    }

    /// Opens the store again: what was not saved is lost.
    fn kill(&mut self) {
        let opened = open_sized(self.recorder.clone(), self.config.clone(), self.now, self.sizes);
        self.frontier = opened.unwrap().frontier;
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn save(&mut self) {
        self.frontier.persist(b"", self.now).unwrap();
    }

    fn offer(&mut self, urls: &[String]) -> Vec<Verdict> {
        let link = |text: &String| Link::found(url(text), 2, "http://host0.example/".into());
        let links: Vec<_> = urls.iter().map(link).collect();
        self.frontier.offer(&links, self.now).unwrap()
    }

    fn again(&mut self, which: Refetch, up_to: usize) -> QueuedAgain {
        self.frontier.queue_again(which, up_to, self.now).unwrap()
    }

    /// Queues pages that are a day old. Returns how many, and when the next ones are.
    fn refresh(&mut self, up_to: usize) -> (u64, Option<Time>) {
        let again = self.again(Refetch::OlderThan(DAY), up_to);
        assert_eq!(again.refused, 0);
        (again.pages.len() as u64, again.next)
    }

    /// Returns whether a retry has begun, or continues.
    fn begins_retry(&mut self) -> bool {
        self.again(Refetch::Unanswered, 0).next.is_some()
    }

    /// Queues all pages that have no answer, in small steps. Returns how many, and the causes of those whose origin was given up.
    fn retry(&mut self) -> (u64, BTreeMap<FailureKind, u64>) {
        let (mut queued, mut dropped) = (0, BTreeMap::new());
        self.begins_retry();
        loop {
            let again = self.again(Refetch::Unanswered, 3);
            queued += again.pages.len() as u64;
            for page in again.pages {
                if page.end == PageEnd::NotFetched(NotFetched::HostDown) {
                    *dropped.entry(page.cause.unwrap_or(FailureKind::HostDown)).or_default() += 1;
                }
            }
            self.save();
            if again.next.is_none() {
                return (queued, dropped);
            }
        }
    }

    /// Leases what is ready, if anything is.
    fn leases(&mut self, up_to: usize) -> Vec<Lease> {
        match self.frontier.lease(self.now, up_to).unwrap() {
            Leasing::Ready(leases) => leases,
            _ => Vec::new(),
        }
    }

    /// Leases what is ready.
    fn lease(&mut self, up_to: usize) -> Vec<Lease> {
        match self.frontier.lease(self.now, up_to).unwrap() {
            Leasing::Ready(leases) => leases,
            other => panic!("something should be ready, not {other:?}"),
        }
    }

    fn settle(&mut self, lease: &Lease, kind: Option<FailureKind>) {
        let failed = |kind| Outcome::failed(failure(kind));
        let validators = Validators {
            etag: Some(lease.entry.url.to_string()),
            last_modified: None,
        };
        let done = match &lease.entry.purpose {
            Purpose::Page | Purpose::Sitemap(_) => Outcome::Done,
            Purpose::Robots(_) => Outcome::Rejected,
            Purpose::Address => panic!("no address is asked for"),
        };
        let settlement = lease.settle(kind.map_or(done, failed));
        let settlement = settlement.with_version(validators, Some(7.into()));
        self.frontier.settle(&[settlement], self.now).unwrap();
    }

    /// Fetches everything, each request with the failure that `failure_of` says. Returns the requests for pages.
    fn fetch(&mut self, mut failure_of: impl FnMut(&Lease) -> Option<FailureKind>) -> Vec<Lease> {
        let mut leased = Vec::new();
        loop {
            match self.frontier.lease(self.now, 8).unwrap() {
                Leasing::Ready(leases) => {
                    for lease in leases {
                        self.settle(&lease, failure_of(&lease));
                        leased.extend((lease.entry.purpose == Purpose::Page).then_some(lease));
                    }
                }
                Leasing::Dropped(_) => {}
                Leasing::NotUntil(time) => self.now = time,
                Leasing::Drained => break,
                other => panic!("{other:?}"),
            }
        }
        self.save();
        leased
    }

    /// All pages, by their URLs.
    fn pages(&self) -> BTreeMap<String, StoredPage> {
        let mut found = BTreeMap::new();
        pages::visit(&self.recorder.image(), false, &mut |page| {
            let url = page.url.to_string();
            assert!(found.insert(url, page).is_none(), "a page has one row");
        })
        .unwrap();
        found
    }

    fn unanswered(&self) -> Vec<String> {
        let pages = self.pages().into_iter();
        pages
            .filter(|(_, page)| page.end.is_unanswered())
            .map(|(url, _)| url)
            .collect()
    }

    fn waiting(&self) -> Vec<String> {
        let mut urls = Vec::new();
        let visited = self.frontier.visit_waiting(&mut |entry| {
            urls.push(entry.url.to_string());
            ControlFlow::Continue(())
        });
        visited.unwrap();
        urls
    }

    /// What a report says of pages must be what the last records say.
    fn check_counts(&self) {
        let (mut done, mut gave_up, mut lost, mut closed) = (0, 0, 0, 0);
        for page in self.pages().values() {
            match page.end {
                PageEnd::Done => done += 1,
                PageEnd::GaveUp(_) => gave_up += 1,
                PageEnd::NotFetched(NotFetched::HostDown) => lost += 1,
                PageEnd::NotFetched(NotFetched::RobotsUnreachable) => closed += 1,
                other => panic!("{other:?}"),
            }
        }
        let report = self.frontier.report();
        let pages = report.pages;
        assert_eq!((pages.gave_up, pages.lost_with_host), (gave_up, lost));
        let closed_then = report.not_fetched.get(&NotFetched::RobotsUnreachable);
        assert_eq!(closed_then.copied().unwrap_or_default(), closed);
        // A page that was fetched and failed later counts as both.
        let most = done + gave_up + lost + closed;
        assert!(pages.done >= done && pages.done <= most, "{pages:?}");
    }
}
