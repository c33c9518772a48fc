//! Random use against the invariants: nobody asked early or twice at a time, nothing lost, nothing twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Canonicalizer, Fate, Frontier, FrontierConfig, Lease, Leasing, Link, Origin, Outcome, Purpose, Reach, RetryPolicy,
    ScopeConfig, Settlement, Time, Verdict,
};
use proptest::prelude::*;
use sieve::ExactFilter;

const START: Time = Time::from_millis(1_000_000_000);

#[derive(Debug, Clone)]
struct World {
    per_host: u32,
    delay_ms: u64,
    slots: usize,
    ask_robots: bool,
    /// Of how many addresses the hosts are, if that counts; and for how long an address is known.
    addresses: Option<(usize, u64)>,
    /// What each URL links to, and how its first requests end: 0 done, 1 retry, 2 host down, 3 redirect, 4 gone.
    pages: Vec<(Vec<usize>, Vec<u8>)>,
    /// How long each request takes, in turn.
    milliseconds: Vec<u64>,
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
    frontier: Frontier<ExactFilter>,
    canonical: Canonicalizer,
    now: Time,
    out: Vec<(Time, Lease)>,
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
        let config = FrontierConfig {
            per_host: NonZeroU32::new(world.per_host).unwrap(),
            delay: Duration::from_millis(world.delay_ms),
            scope: ScopeConfig {
                reach: Reach::Any,
                ..ScopeConfig::default()
            },
            ask_robots: world.ask_robots,
            per_address: world.addresses.is_some(),
            retries: RetryPolicy {
                max_host_failures: NonZeroU32::MAX,
                ..RetryPolicy::default()
            },
            ..FrontierConfig::default()
        };
        Self {
            world,
            frontier: Frontier::with_filter(config, ExactFilter::new()).unwrap(),
            canonical: Canonicalizer::default(),
            now: START,
            out: Vec::new(),
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
            let answer = if free > 0 {
                self.frontier.lease(self.now, free).unwrap()
            } else {
                Leasing::AllLeased
            };
            match answer {
                Leasing::Ready(leases) => leases.into_iter().for_each(|lease| self.started(lease)),
                Leasing::NotUntil(time) => {
                    assert!(time > self.now, "it says to come back in the past");
                    self.wait_until(Some(time));
                }
                Leasing::AllLeased => self.wait_until(None),
                Leasing::Drained => break,
                Leasing::BudgetSpent => panic!("there is no budget"),
            }
        }
        assert!(self.out.is_empty(), "drained with leases out");
        assert_eq!(self.sitemaps, 0, "a sitemap never came to an end");
        assert_eq!(
            self.ended, self.offered,
            "what was offered and what came to an end differ"
        );
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
        self.out.push((self.now + Duration::from_millis(takes), lease));
    }

    /// Lets time pass to the next end of a request, or to `time` if that is earlier.
    fn wait_until(&mut self, time: Option<Time>) {
        let next = self.out.iter().map(|(end, _)| *end).min();
        let until = [time, next]
            .into_iter()
            .flatten()
            .min()
            .expect("it waits for nothing: a deadlock");
        self.now = self.now.max(until);
        let (back, out): (Vec<_>, Vec<_>) = self.out.drain(..).partition(|(end, _)| *end <= self.now);
        self.out = out;
        for (_, lease) in back {
            self.came_back(lease);
        }
    }

    /// A robots.txt names a sitemap beside it, and one on another host.
    fn robots_came_back(&mut self, lease: &Lease, origin: &Origin) {
        let links = ["sitemap.xml".to_owned(), url(self.requests) + ".xml"].map(|place| {
            let address = origin.robots_url().join(&place).unwrap();
            Link::sitemap(self.canonical.canonicalize(address).unwrap(), origin.clone(), 0, None)
        });
        let done = Settlement {
            lease: lease.id,
            outcome: Outcome::Done,
            links: links.to_vec(),
        };
        let settled = self.frontier.settle(&[done], self.now).unwrap().remove(0);
        self.sitemaps += settled
            .verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Queued)
            .count();
        self.frontier
            .robots_known(origin, self.now + Duration::from_secs(86_400), self.now)
            .unwrap();
    }

    /// Every third request for a sitemap fails.
    fn sitemap_came_back(&mut self, lease: &Lease) {
        let outcome = match self.requests % 3 {
            0 => Outcome::Retry { after: None },
            _ => Outcome::Done,
        };
        let settlement = Settlement {
            lease: lease.id,
            outcome,
            links: Vec::new(),
        };
        let settled = self.frontier.settle(&[settlement], self.now).unwrap().remove(0);
        self.sitemaps -= usize::from(!matches!(settled.fate, Fate::Requeued { .. }));
    }

    fn address_came_back(&mut self, lease: &Lease) {
        let (addresses, milliseconds) = self.world.addresses.expect("nobody wants to know an address");
        let done = Settlement {
            lease: lease.id,
            outcome: Outcome::Done,
            links: Vec::new(),
        };
        self.frontier.settle(&[done], self.now).unwrap();
        let (host, until) = (&lease.entry.queue, self.now + Duration::from_millis(milliseconds));
        let address = address(host.as_str(), addresses);
        self.frontier.address_known(host, address, until, self.now).unwrap();
    }

    fn came_back(&mut self, lease: Lease) {
        for counted in self.counted(&lease) {
            let host = self.hosts.get_mut(&counted).unwrap();
            host.out -= 1;
            host.last_end = Some(self.now);
        }
        match &lease.entry.purpose {
            Purpose::Robots(origin) => return self.robots_came_back(&lease, origin),
            Purpose::Sitemap(_) => return self.sitemap_came_back(&lease),
            Purpose::Address => return self.address_came_back(&lease),
            Purpose::Page => {}
        }
        let n = number(&lease.entry.url);
        let attempt = self.asked.entry(n).or_default();
        let (targets, script) = &self.world.pages[n];
        let ends = script.get(*attempt).copied().unwrap_or(0);
        *attempt += 1;
        let targets = if ends == 0 {
            targets.clone()
        } else {
            targets.iter().take(1).copied().collect()
        };
        let link = |n: usize| Link::found(self.canonical.parse(&url(n)).unwrap(), 1, "".into());
        let (outcome, targets) = match ends {
            1 => (Outcome::Retry { after: None }, Vec::new()),
            2 => (Outcome::HostDown { until: None }, Vec::new()),
            3 => (Outcome::Moved, targets),
            4 => (Outcome::Gone, Vec::new()),
            _ => (Outcome::Done, targets),
        };
        let links: Vec<_> = targets.iter().map(|&n| link(n)).collect();
        let settled = self
            .frontier
            .settle(
                &[Settlement {
                    lease: lease.id,
                    outcome,
                    links,
                }],
                self.now,
            )
            .unwrap()
            .remove(0);
        for (target, verdict) in targets.into_iter().zip(&settled.verdicts) {
            assert_eq!(
                *verdict == Verdict::Queued,
                self.offered.insert(target),
                "page {target}: {verdict:?}"
            );
        }
        if !matches!(settled.fate, Fate::Requeued { .. }) {
            assert!(self.ended.insert(n), "page {n} came to an end twice");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_page_comes_to_an_end_once_and_every_host_is_asked_politely(world in worlds()) {
        Walk::new(world).run();
    }
}
