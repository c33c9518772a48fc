//! Random crawls against the invariants: no host is requested early or twice at a time, no page is lost or fetched twice, even while
//! origins are away.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Canonicalizer, Class, FailureKind, Fate, Frontier, Lease, Leasing, Link, Notice, Origin, Outcome, Purpose,
    RetryPolicy, Settled, Time, Verdict, Wait, Why,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::common::{self, Forbid, START, commit, end, failing};

/// Requests that are answered are answered sooner.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Origins may be away for longer than all outages together.
const PATIENCE: Duration = Duration::from_secs(1_000);

#[derive(Debug, Clone)]
struct World {
    per_host: u32,
    delay_ms: u64,
    slots: usize,
    ask_robots: bool,
    /// Of how many addresses the hosts are, if that counts; and for how long an address is known.
    addresses: Option<(usize, u64)>,
    /// What each URL links to, and how its first requests end: 0 done, 1 failed, 2 refused, 3 redirect, 4 rejected.
    pages: Vec<(Vec<usize>, Vec<u8>)>,
    /// How long each request takes, in turn.
    milliseconds: Vec<u64>,
    outages: Vec<Outage>,
}

/// A time in which an origin refuses connections, or is silent.
#[derive(Debug, Clone)]
struct Outage {
    /// The number of some URL of the origin.
    of: usize,
    from: Time,
    to: Time,
    kind: FailureKind,
}

fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let outage = (0_usize..15, 0_u64..60_000, 1_u64..200_000, any::<bool>());
    prop::collection::vec(outage, 0..8).prop_map(|outages| {
        let mut silent = HashSet::new();
        let outages = outages.into_iter().map(|(of, start, length, is_silent)| {
            let from = START + Duration::from_millis(start);
            // Of a page that was asked for in several times of silence, the attempts may be spent.
            let is_silent = is_silent && silent.insert(of);
            Outage {
                of,
                from,
                to: from + Duration::from_millis(length),
                kind: if is_silent {
                    FailureKind::Timeout
                } else {
                    FailureKind::Connect
                },
            }
        });
        outages.collect()
    })
}

fn worlds_with_outages() -> impl Strategy<Value = World> {
    (worlds(), outages()).prop_map(|(mut world, outages)| {
        // A failure of the page's own, together with the silence, may be as many as it has attempts.
        let is_silent = outages.iter().any(|outage| outage.kind == FailureKind::Timeout);
        for end in world.pages.iter_mut().flat_map(|(_, ends)| ends) {
            *end = if is_silent && *end == 1 { 0 } else { *end };
        }
        World { outages, ..world }
    })
}

fn worlds() -> impl Strategy<Value = World> {
    (2_usize..60).prop_flat_map(|count| {
        let page = (
            prop::collection::vec(0..count, 0..6),
            prop::collection::vec(0_u8..5, 0..3),
        );
        (
            (
                1_u32..4,
                prop_oneof![Just(0_u64), 1_u64..3000],
                1_usize..9,
                any::<bool>(),
                prop::option::of((1_usize..4, 1_u64..20_000)),
            ),
            prop::collection::vec(page, count),
            prop::collection::vec(0_u64..900, 1..20),
        )
            .prop_map(
                |((per_host, delay_ms, slots, ask_robots, addresses), pages, milliseconds)| World {
                    per_host,
                    delay_ms,
                    slots,
                    ask_robots,
                    addresses,
                    pages,
                    milliseconds,
                    outages: Vec::new(),
                },
            )
    })
}

/// Five hosts, each with several origins.
fn url(n: usize) -> String {
    format!("https://host{}.example:{}/{n}", n % 5, 443 + n % 3)
}

fn number(url: &str) -> usize {
    url.rsplit('/').next().unwrap().parse().unwrap()
}

/// The address of a host; one of them has none.
fn address(host: &str, addresses: usize) -> Option<IpAddr> {
    let n: usize = host.strip_prefix("host")?.strip_suffix(".example")?.parse().unwrap();
    (n != 3).then(|| [192, 0, 2, u8::try_from(n % addresses).unwrap()].into())
}

/// What a host, or an address, has out, and when its last request started and ended.
#[derive(Default)]
struct Watched {
    out: u32,
    last_start: Option<Time>,
    last_end: Option<Time>,
}

struct Walk {
    world: World,
    frontier: Frontier,
    canonical: Canonicalizer,
    now: Time,
    /// When each will come back, and how it fails if it was sent during an outage.
    out: Vec<(Time, Lease, Option<FailureKind>)>,
    away: HashMap<String, Time>,
    hosts: HashMap<String, Watched>,
    offered: HashSet<usize>,
    ended: HashSet<usize>,
    asked: HashMap<usize, usize>,
    requests: usize,
    /// Those that are queued or out.
    sitemaps: usize,
}

impl Walk {
    fn new(world: World) -> Self {
        let mut config = common::config();
        config.retries = RetryPolicy {
            max_host_downtime: PATIENCE,
            max_first_downtime: PATIENCE,
            ..RetryPolicy::default()
        };
        config.politeness.per_host = NonZeroU32::new(world.per_host).unwrap();
        config.politeness.delay = Duration::from_millis(world.delay_ms);
        config.politeness.ask_robots = world.ask_robots;
        config.politeness.per_address = world.addresses.is_some();
        Self {
            world,
            frontier: common::frontier(config),
            canonical: Canonicalizer::default(),
            now: START,
            out: Vec::new(),
            away: HashMap::new(),
            hosts: HashMap::new(),
            offered: HashSet::new(),
            ended: HashSet::new(),
            asked: HashMap::new(),
            requests: 0,
            sitemaps: 0,
        }
    }

    fn run(mut self) {
        self.frontier
            .add_seed(&self.canonical.parse(&url(0)).unwrap(), self.now)
            .unwrap();
        self.offered.insert(0);
        loop {
            let free = self.world.slots - self.out.len();
            let before = self.waits();
            let answer = if free > 0 {
                self.frontier.lease(self.now, free).unwrap()
            } else {
                Leasing::AllLeased
            };
            self.compare(&before, &answer, free);
            match answer {
                Leasing::Ready(leases) => leases.into_iter().for_each(|lease| self.started(lease)),
                Leasing::NotUntil(time) => {
                    assert!(time > self.now, "it says to come back in the past");
                    self.wait_until(Some(time));
                }
                Leasing::AllLeased => self.wait_until(None),
                Leasing::Drained => break,
                other => panic!("no budget is spent and no origin given up: {other:?}"),
            }
        }
        assert!(self.away.is_empty(), "it ended while origins are away");
        assert!(self.out.is_empty(), "drained with leases out");
        assert_eq!(self.sitemaps, 0, "a sitemap never came to an end");
        assert_eq!(
            self.ended, self.offered,
            "what was offered and what came to an end differ"
        );
    }

    /// What each page waits for.
    fn waits(&self) -> HashMap<usize, Wait> {
        let waiting = self.offered.iter().filter_map(|n| {
            let url = self.canonical.parse(&url(*n)).unwrap();
            match self.frontier.why(&url, self.now) {
                Why::Queued { wait, .. } => Some((*n, wait)),
                _ => None,
            }
        });
        waiting.collect()
    }

    /// Compares what pages waited for with what was leased, and what they wait for now with when to come back.
    fn compare(&self, before: &HashMap<usize, Wait>, answer: &Leasing, free: usize) {
        let leased = match answer {
            Leasing::Ready(leases) => leases.as_slice(),
            _ => &[],
        };
        for lease in leased.iter().filter(|lease| lease.entry.purpose == Purpose::Page) {
            let wait = &before[&number(&lease.entry.url)];
            // A probe, or a page behind another one of its address that was leased in this call.
            let is_next = matches!(wait, Wait::Turn | Wait::Away { .. } | Wait::SharedAddress);
            assert!(is_next, "{} was leased: {wait}", lease.entry.url);
        }
        if leased.len() >= free {
            return;
        }
        for (page, wait) in self.waits() {
            match (&wait, answer) {
                (Wait::Turn, _) => panic!("page {page} was not leased: {wait}"),
                (Wait::Until(time), Leasing::NotUntil(next)) => assert!(next <= time, "page {page}: {wait}"),
                (Wait::Until(_), Leasing::AllLeased) => panic!("nobody comes back for page {page}: {wait}"),
                _ => {}
            }
        }
    }

    /// Those that a request counts for: the host, and its address if that counts. Looking up an address is no request.
    fn counted(&self, lease: &Lease) -> Vec<String> {
        if lease.entry.purpose == Purpose::Address {
            return Vec::new();
        }
        let host = lease.entry.queue.as_str();
        let address = self.world.addresses.and_then(|(addresses, _)| address(host, addresses));
        address
            .map(|address| address.to_string())
            .into_iter()
            .chain([host.to_owned()])
            .collect()
    }

    fn started(&mut self, lease: Lease) {
        let delay = Duration::from_millis(self.world.delay_ms);
        let last_end = self
            .hosts
            .get(lease.entry.queue.as_str())
            .and_then(|host| host.last_end);
        assert_eq!(lease.pause, last_end.map(|end| self.now.since(end)));
        assert_eq!(lease.delay, delay);
        for counted in self.counted(&lease) {
            let host = self.hosts.entry(counted.clone()).or_default();
            host.out += 1;
            assert!(host.out <= self.world.per_host, "{counted} is asked too often at once");
            let early = |since: Option<Time>| since.is_some_and(|since| self.now.since(since) < delay);
            assert!(!early(host.last_end), "{counted} is asked too early after an end");
            assert!(
                self.world.per_host == 1 || !early(host.last_start),
                "{counted} is asked too early"
            );
            host.last_start = Some(self.now);
        }
        self.requests += 1;
        let takes = self.world.milliseconds[self.requests % self.world.milliseconds.len()];
        let failure = self.failure_of(&lease);
        let takes = match failure {
            Some(FailureKind::Timeout) => TIMEOUT,
            _ => Duration::from_millis(takes),
        };
        self.out.push((self.now + takes, lease, failure));
    }

    /// How a request fails that is sent now.
    fn failure_of(&self, lease: &Lease) -> Option<FailureKind> {
        let origin = self.canonical.parse(&lease.entry.url).unwrap().origin();
        let ongoing = self.world.outages.iter().filter(|outage| {
            let of = self.canonical.parse(&url(outage.of)).unwrap().origin();
            of == origin && (outage.from..outage.to).contains(&self.now) && lease.entry.purpose != Purpose::Address
        });
        ongoing.map(|outage| outage.kind).min()
    }

    /// Lets time pass to the next end of a request, or to `time` if that is earlier.
    fn wait_until(&mut self, time: Option<Time>) {
        let next = self.out.iter().map(|(end, ..)| *end).min();
        let until = [time, next]
            .into_iter()
            .flatten()
            .min()
            .expect("it waits for nothing: a deadlock");
        self.now = self.now.max(until);
        let (back, out): (Vec<_>, Vec<_>) = self.out.drain(..).partition(|(end, ..)| *end <= self.now);
        self.out = out;
        for (_, lease, failure) in back {
            self.came_back(lease, failure);
        }
    }

    /// Checks that one notice says that an origin is away, and one that it is back; a new outage much later is told again.
    fn note(&mut self, settled: &Settled) {
        for notice in &settled.notices {
            match notice {
                Notice::Away { origin, .. } => {
                    // A new outage is told again if the last one ended long before, though only its robots.txt was answered since.
                    let told = self.away.insert(origin.to_string(), self.now);
                    assert!(
                        told.is_none_or(|told| self.now.since(told) > Duration::from_secs(60)),
                        "{origin} went away twice"
                    );
                }
                Notice::Back { origin, .. } => {
                    assert!(self.away.remove(origin.as_str()).is_some(), "{origin} was not away");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// A robots.txt names a sitemap beside it, and one on another host.
    fn robots_came_back(&mut self, lease: &Lease, origin: &Origin, failure: Option<FailureKind>) {
        if let Some(kind) = failure {
            let failed = lease.failed(common::failure(kind));
            let settled = commit(&mut self.frontier, failed, self.now);
            return self.note(&settled);
        }
        let links = ["sitemap.xml".to_owned(), url(self.requests) + ".xml"].map(|place| {
            let address = origin.robots_url().join(&place).unwrap();
            Link::sitemap(self.canonical.canonicalize(address).unwrap(), origin.clone(), 0, None)
        });
        let known = lease.settle(Outcome::Done).with_rules(Forbid::nothing());
        let settled = commit(&mut self.frontier, known.with_links(links.to_vec()), self.now);
        self.note(&settled);
        self.sitemaps += settled
            .verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Queued)
            .count();
    }

    /// Every third request for a sitemap fails.
    fn sitemap_came_back(&mut self, lease: &Lease, failure: Option<FailureKind>) {
        let own = self.requests.is_multiple_of(3).then_some(FailureKind::Status);
        let outcome = failure.or(own).map_or(Outcome::Done, failing);
        let settled = commit(&mut self.frontier, end(lease, outcome), self.now);
        self.note(&settled);
        self.sitemaps -= usize::from(!matches!(settled.fate, Fate::Requeued { .. }));
    }

    fn address_came_back(&mut self, lease: &Lease) {
        let (addresses, milliseconds) = self.world.addresses.expect("nobody wants to know an address");
        let address = address(lease.entry.queue.as_str(), addresses);
        let known = lease.settle(Outcome::Done).with_address(address);
        commit(
            &mut self.frontier,
            known.valid_for(Duration::from_millis(milliseconds)),
            self.now,
        );
    }

    fn came_back(&mut self, lease: Lease, failure: Option<FailureKind>) {
        for counted in self.counted(&lease) {
            let host = self.hosts.get_mut(&counted).unwrap();
            host.out -= 1;
            host.last_end = Some(self.now);
        }
        match &lease.entry.purpose {
            Purpose::Robots(origin) => return self.robots_came_back(&lease, origin, failure),
            Purpose::Sitemap(_) => return self.sitemap_came_back(&lease, failure),
            Purpose::Address => return self.address_came_back(&lease),
            Purpose::Page => {}
        }
        let n = number(&lease.entry.url);
        let (targets, script) = &self.world.pages[n];
        let (outcome, targets) = if let Some(kind) = failure {
            (failing(kind), Vec::new())
        } else {
            let attempt = self.asked.entry(n).or_default();
            *attempt += 1;
            match script.get(*attempt - 1) {
                Some(1) => (failing(FailureKind::Status), Vec::new()),
                Some(2) => (failing(FailureKind::Connect), Vec::new()),
                Some(3) => (Outcome::Redirected, targets.iter().take(1).copied().collect()),
                Some(4) => (Outcome::Rejected, Vec::new()),
                _ => (Outcome::Done, targets.clone()),
            }
        };
        let class = |n: usize| Class::try_from((n % 12) as u8).ok();
        let link = |n: usize| Link {
            class: class(n),
            ..Link::found(self.canonical.parse(&url(n)).unwrap(), 1, "".into())
        };
        let links: Vec<_> = targets.iter().map(|&n| link(n)).collect();
        let settled = commit(&mut self.frontier, end(&lease, outcome).with_links(links), self.now);
        self.note(&settled);
        for (target, verdict) in targets.into_iter().zip(&settled.verdicts) {
            assert_eq!(
                *verdict == Verdict::Queued,
                self.offered.insert(target),
                "page {target}: {verdict:?}"
            );
        }
        match settled.fate {
            Fate::Requeued { .. } => {}
            Fate::Final => assert!(self.ended.insert(n), "page {n} came to an end twice"),
            other => panic!("page {n} is lost: {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(400), failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn every_page_comes_to_an_end_once_and_every_host_is_asked_politely(world in worlds()) {
        Walk::new(world).run();
    }

    #[test]
    fn no_page_is_lost_by_an_outage_below_the_limit(world in worlds_with_outages()) {
        Walk::new(world).run();
    }
}
