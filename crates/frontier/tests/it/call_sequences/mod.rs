//! Any calls in any order: the frontier never stalls, and every page comes to exactly one end.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ::frontier::{
    self, Dropped, Fate, Frontier, HostPolicy, Lease, LeaseId, Leasing, Link, NotFetched, Notice, Outcome, Purpose,
    Settled, Settlement, Time, Verdict,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::common::{self, Orders as _, START, origin, url};
use crate::shared::calls::{Call, End, Setting, Target, calls, ends, settings};
use crate::shared::settlements::{address, config, crawl_policy, host_url, link, policy, settlement};

/// A frontier, and what must be true of it.
struct Watched {
    setting: Setting,
    frontier: Frontier,
    now: Time,
    out: Vec<Lease>,
    settled: Vec<Settlement>,
    /// What was queued and has not come to its end.
    open: HashSet<(String, bool)>,
    pages_ever: u64,
    away: HashMap<String, Time>,
    given_up: HashSet<String>,
    /// What was leased when its origin was given up, and given back afterwards.
    given_back_too_late: HashSet<(String, bool)>,
    lost: u64,
    dropped_with_host: u64,
}

impl Watched {
    fn new(setting: Setting) -> Self {
        Self {
            frontier: common::frontier(config(&setting)),
            setting,
            now: START,
            out: Vec::new(),
            settled: Vec::new(),
            open: HashSet::new(),
            pages_ever: 0,
            away: HashMap::new(),
            given_up: HashSet::new(),
            given_back_too_late: HashSet::new(),
            lost: 0,
            dropped_with_host: 0,
        }
    }

    fn call(&mut self, call: Call) {
        match call {
            Call::Offer(targets) => {
                let links: Vec<_> = targets.into_iter().map(link).collect();
                let verdicts = self.frontier.offer(&links, self.now).unwrap();
                self.note_links(&links, &verdicts);
            }
            Call::Seed(target) => {
                let seed = Link::seed(url(&address(target)));
                let verdict = self.frontier.add_seed(&seed.url, self.now).unwrap();
                self.note_links(&[seed], &[verdict]);
            }
            Call::Lease(up_to) => {
                self.lease(up_to);
            }
            Call::Settle(which, end) => self.settle(which, &end),
            Call::GiveBack(from) => self.give_back(from),
            Call::Again(which) => self.settle_in_vain(self.settled.get(which).cloned()),
            Call::Wrong(which) => {
                let id = LeaseId::from_u64(which as u64);
                self.settle_in_vain(Some(Settlement::new(id, Outcome::Done)));
            }
            Call::Block(host, seconds) => {
                let until = self.now + Duration::from_secs(seconds);
                self.frontier
                    .block(&url(&host_url(host)).host(), until, self.now)
                    .unwrap();
            }
            Call::Delay(host, millis) => {
                // At most as many at once as the setting says, which the end checks.
                let per_host = NonZeroU32::new(self.setting.per_host.min(millis as u32 % 4));
                let policy = HostPolicy {
                    per_host,
                    ..policy(millis)
                };
                self.frontier
                    .set_policy(&url(&host_url(host)).host(), &policy, self.now)
                    .unwrap();
            }
            Call::Order(number) => {
                let policy = crawl_policy(number);
                self.frontier.set_crawl_policy(&policy, self.now).unwrap();
            }
            Call::Pass(millis) => self.now = self.now + Duration::from_millis(millis),
            Call::Wait => {
                if let Leasing::NotUntil(time) = self.lease(0) {
                    self.now = time;
                }
            }
        }
        let report = self.frontier.report();
        assert_eq!(report.leased, self.out.len() as u64);
        assert!(report.queued_pages <= report.queued, "{report:?}");
    }

    /// Asks for leases, and checks the answer.
    fn lease(&mut self, up_to: usize) -> Leasing {
        let answer = self.frontier.lease(self.now, up_to).unwrap();
        match answer.clone() {
            Leasing::Ready(leases) => leases.into_iter().for_each(|lease| self.started(lease)),
            Leasing::Dropped(dropped) => dropped.iter().for_each(|one| self.dropped(one)),
            Leasing::NotUntil(time) => {
                assert!(
                    time > self.now,
                    "it says to come back at {time}, and it is {}",
                    self.now
                );
            }
            Leasing::AllLeased => assert!(!self.out.is_empty(), "it stalls: {:?}", self.frontier.report()),
            Leasing::BudgetSpent => assert!(self.out.is_empty() && self.setting.max_pages.is_some()),
            Leasing::Drained => {
                assert!(self.out.is_empty() && self.frontier.report().is_drained());
                assert_eq!(self.open, HashSet::new(), "drained, and these have come to no end");
            }
        }
        answer
    }

    fn started(&mut self, lease: Lease) {
        let in_flight = self
            .out
            .iter()
            .filter(|other| other.entry.queue == lease.entry.queue)
            .count();
        assert!(
            in_flight < self.setting.per_host as usize,
            "{} is asked too often at once",
            lease.entry.queue
        );
        // Delays are set at any time, and robots.txt files ask for others.
        assert!(
            lease.pause.is_none_or(|pause| pause >= lease.delay),
            "{lease:?} is early"
        );
        let is_out = |other: &Lease| other.entry.purpose == lease.entry.purpose && other.entry.url == lease.entry.url;
        assert!(!self.out.iter().any(is_out), "{lease:?} is out already");
        if let Some(key) = key_of(&lease.entry) {
            assert!(self.open.contains(&key), "{key:?} had come to its end");
        }
        self.out.push(lease);
    }

    fn dropped(&mut self, dropped: &Dropped) {
        let key = key_of(&dropped.entry).expect("only pages and sitemaps are dropped");
        assert!(self.open.remove(&key), "{key:?} had come to its end");
        let is_with_host = dropped.why == NotFetched::HostDown;
        assert!(!is_with_host || dropped.cause.is_some() || self.given_back_too_late.remove(&key));
        self.dropped_with_host += u64::from(is_with_host && !key.1);
    }

    fn note_links(&mut self, links: &[Link], verdicts: &[Verdict]) {
        assert_eq!(links.len(), verdicts.len());
        for (link, verdict) in links.iter().zip(verdicts) {
            let is_sitemap = link.sitemap_of.is_some();
            if *verdict == Verdict::Queued {
                self.pages_ever += u64::from(!is_sitemap);
                assert!(
                    self.open.insert((link.url.key().to_owned(), is_sitemap)),
                    "{} is queued twice",
                    link.url
                );
            }
        }
    }

    fn settle(&mut self, which: usize, end: &End) {
        if self.out.is_empty() {
            return;
        }
        let lease = self.out.remove(which % self.out.len());
        let settlement = settlement(&lease, end);
        let settled = common::commit(&mut self.frontier, settlement.clone(), self.now);
        assert_ne!(settled.fate, Fate::Stale);
        self.note(&settled);
        if let (Fate::Final | Fate::GaveUp, Some(key)) = (settled.fate, key_of(&lease.entry)) {
            assert!(self.open.remove(&key), "{key:?} came to an end twice");
        }
        // The target of a robots.txt is not offered.
        if !common::is_robots(&lease) {
            self.note_links(settlement.links(), &settled.verdicts);
        }
        self.settled.push(settlement);
    }

    /// Gives leases back. Each entry stays open until it is leased again, or dropped with its origin. No host has one more request.
    fn give_back(&mut self, from: usize) {
        let before = (self.frontier.report().pages, self.requests());
        for lease in self.out.split_off(from.min(self.out.len())) {
            let ids = [lease.id, lease.id, LeaseId::from_u64(7)];
            let ended = self.frontier.give_back(&ids, self.now).unwrap();
            assert_eq!(ended, 1, "each lease ends once");
            let is_given_up = self.given_up.contains(origin(&lease.entry.url).as_str());
            if let Some(key) = key_of(&lease.entry).filter(|_| is_given_up) {
                // The frontier gives no notice for it, and does not name the cause.
                self.lost += u64::from(!key.1);
                self.given_back_too_late.insert(key);
            }
        }
        let after = self.frontier.report().pages;
        assert_eq!((after.retries, after.gave_up), (before.0.retries, before.0.gave_up));
        assert_eq!(self.requests(), before.1);
    }

    fn requests(&self) -> u64 {
        self.frontier.host_reports(Time::EPOCH).map(|host| host.requests).sum()
    }

    /// What was settled before, or never leased, changes nothing.
    fn settle_in_vain(&mut self, settlement: Option<Settlement>) {
        let Some(settlement) = settlement else { return };
        let before = format!("{:?}", self.frontier.report());
        let settled = common::commit(&mut self.frontier, settlement, self.now);
        assert_eq!(settled, Settled::new(Fate::Stale));
        assert_eq!(format!("{:?}", self.frontier.report()), before);
    }

    fn note(&mut self, settled: &Settled) {
        for notice in &settled.notices {
            match notice {
                Notice::Away { origin, .. } => {
                    let name = origin.to_string();
                    assert!(
                        !self.given_up.contains(&name),
                        "{name} was given up before it went away"
                    );
                    // A new outage is told again if the last one ended long before, though only its robots.txt was answered since.
                    let told = self.away.insert(name, self.now);
                    assert!(
                        told.is_none_or(|told| self.now.since(told) > Duration::from_secs(60)),
                        "{origin} went away twice"
                    );
                }
                Notice::Back { origin, .. } => {
                    assert!(self.away.remove(origin.as_str()).is_some(), "{origin} was not away");
                }
                Notice::GivenUp { origin, lost, .. } => {
                    self.away.remove(origin.as_str());
                    assert!(self.given_up.insert(origin.to_string()), "{origin} is given up twice");
                    self.lost += lost;
                }
                _ => {}
            }
        }
    }

    /// Goes on with one and the same end for everything until nothing is left to do.
    fn drive(mut self, end: &End) {
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 40_000, "it comes to no end: {:?}", self.frontier.report());
            match self.lease(4) {
                Leasing::Drained => break,
                Leasing::BudgetSpent => return,
                Leasing::NotUntil(time) if self.out.is_empty() => self.now = time,
                _ => self.settle(steps, end),
            }
        }
        assert_eq!(
            self.lost, self.dropped_with_host,
            "the notices do not tell how many were lost"
        );
        let report = self.frontier.report();
        assert_eq!((report.queued, report.queued_pages), (0, 0));
        let pages = report.pages;
        let ends =
            pages.refreshed + pages.done + pages.redirected + pages.rejected + pages.gave_up + pages.lost_with_host;
        let all = ends + report.not_fetched.values().sum::<u64>();
        assert_eq!(all, self.pages_ever, "not every page has come to one end: {report:?}");
        assert_eq!(report.origins_given_up, self.given_up.len() as u64);
    }
}

/// What is queued and comes to an end: pages, and sitemaps.
fn key_of(entry: &frontier::Entry) -> Option<(String, bool)> {
    match &entry.purpose {
        Purpose::Page => Some((entry.key().to_owned(), false)),
        Purpose::Sitemap(_) => Some((entry.key().to_owned(), true)),
        Purpose::Robots(_) | Purpose::Address => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(600), failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn in_any_sequence_of_calls_the_frontier_never_stalls_and_every_page_ends_once(
        setting in settings(),
        calls in prop::collection::vec(calls(), 1..120),
        mut end in ends(),
    ) {
        let mut watched = Watched::new(setting);
        for call in calls {
            watched.call(call);
        }
        end.links.clear();
        watched.drive(&end);
    }
}

#[test]
fn the_hosts_of_this_test_have_two_origins_each() {
    let target = |port| Target {
        host: 1,
        port,
        path: 3,
        is_sitemap: false,
    };
    assert_ne!(origin(&address(target(0))), origin(&address(target(1))));
    assert_eq!(url(&address(target(0))).host(), url(&host_url(1)).host());
}
