//! Opened again with another option: it takes effect, or it is refused with its reason; no host is stuck, and none is asked too soon.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::calls::{Call, End as CallEnd, How, calls, settings};
use super::common::START;
use super::pair::{Step, make, picture, time_of};
use super::settlements::{self, settlement};
use super::stores::{Recorder, open_store, read_store};
use crate::config::{FrontierConfig, SeenSetConfig};
use crate::entry::Purpose;
use crate::settlement::{Fate, Outcome, Settled, Settlement};
use crate::url::HostKey;
use crate::{Frontier, Lease, Leasing, Time};
use proptest::prelude::*;

/// Options that take effect when they are changed; some that belong together have one name.
const OPTIONS: [&str; 16] = [
    "delay",
    "per_host",
    "ask_robots",
    "max_crawl_delay",
    "max_pages",
    "max_pages_per_host",
    "max_queued",
    "max_hosts",
    "max_sitemaps",
    "near_duplicates",
    "max_queries_per_path",
    "max_hosts_per_site",
    "compare_one_of",
    "max_fingerprints",
    "retries",
    "max_depth",
];

/// Changes an option to what follows from a number.
fn change(config: &mut FrontierConfig, option: &str, number: u32) {
    let (is_even, below) = (number.is_multiple_of(2), |end: u32| number % end);
    let millis = |end: u32| Duration::from_millis(below(end).into());
    let nonzero = |most: u32| NonZeroU32::MIN.saturating_add(below(most));
    // One in four has no limit.
    let limit = |end: u32| (!number.is_multiple_of(4)).then_some(number / 4 % end);
    let (politeness, limits, traps) = (&mut config.politeness, &mut config.limits, &mut config.traps);
    match option {
        "delay" => politeness.delay = if is_even { Duration::ZERO } else { millis(5_000) },
        "per_host" => politeness.per_host = nonzero(4),
        "ask_robots" => politeness.ask_robots = is_even,
        "max_crawl_delay" => politeness.max_crawl_delay = millis(90_000),
        "max_pages" => limits.max_pages = limit(20).map(u64::from),
        "max_pages_per_host" => limits.max_pages_per_host = limit(6).map(u64::from),
        "max_queued" => limits.max_queued = below(40).into(),
        "max_hosts" => limits.max_hosts = below(4) as usize,
        "max_sitemaps" => limits.max_sitemaps = below(3) as usize,
        "near_duplicates" => {
            traps.max_near_duplicates = limit(7).and_then(NonZeroU32::new);
            traps.max_near_duplicates_in_all = NonZeroU32::new(number / 100 % 10);
        }
        "max_queries_per_path" => traps.max_queries_per_path = limit(4).and_then(NonZeroU32::new),
        "max_hosts_per_site" => traps.max_hosts_per_site = limit(4).and_then(NonZeroU32::new),
        "compare_one_of" => traps.compare_one_of = nonzero(3),
        "max_fingerprints" => traps.max_fingerprints = below(3) as usize,
        "retries" => {
            config.retries.max_attempts = nonzero(3);
            config.retries.max_throttles = nonzero(5);
            config.retries.retry_wait = millis(9_000);
            config.retries.retry_jitter = below(50) as u8;
        }
        "max_depth" => config.scope.max_depth = Some(below(3)),
        other => panic!("{other} is not changed"),
    }
}

/// A durable frontier, and what its politeness demands.
struct Watched {
    config: FrontierConfig,
    recorder: Recorder,
    frontier: Frontier,
    now: Time,
    out: Vec<Lease>,
    address_of: HashMap<HostKey, IpAddr>,
    /// The address of each lease that is out.
    addresses: HashMap<u64, IpAddr>,
    last_end: HashMap<HostKey, Time>,
    spent: HashMap<HostKey, u64>,
    spent_before: HashMap<HostKey, u64>,
}

impl Watched {
    fn new(config: FrontierConfig) -> Self {
        let recorder = Recorder::default();
        Self {
            frontier: open_store(recorder.clone(), config.clone(), START).unwrap().frontier,
            config,
            recorder,
            now: START,
            out: Vec::new(),
            address_of: HashMap::new(),
            addresses: HashMap::new(),
            last_end: HashMap::new(),
            spent: HashMap::new(),
            spent_before: HashMap::new(),
        }
    }

    fn call(&mut self, call: Call) -> Option<(Step, String)> {
        let leases = self.out.clone();
        // Of policies only the class and whether a host is closed: the checks of this test know no others.
        let call = match call {
            Call::Delay(host, number) => Call::Delay(host, 60 * number + 12),
            Call::Order(number) => Call::Order(15 * number + 3),
            call => call,
        };
        // Pages that are fetched again spend no budget, which this test counts by itself.
        let step = Step::of(call, &mut self.out, &mut self.now)?;
        let answer = match &step {
            Step::Settle(one) => {
                let lease = leases.iter().find(|lease| lease.id == one.lease).unwrap();
                let settled = self.settle(lease, one);
                format!("{:?}", vec![settled])
            }
            step => {
                let (answer, leased) = make(&mut self.frontier, step, self.now);
                leased.into_iter().for_each(|lease| self.started(lease));
                answer
            }
        };
        Some((step, answer))
    }

    fn started(&mut self, lease: Lease) {
        let host = &lease.entry.queue;
        let most = self.config.politeness.per_host.get() as usize;
        let in_flight = self.out.iter().filter(|other| other.entry.queue == *host).count();
        assert!(in_flight < most, "{host} is asked too often at once");
        if lease.entry.purpose != Purpose::Address {
            if let Some(end) = self.last_end.get(host) {
                let gap = self.now.since(*end);
                assert!(gap >= self.config.politeness.delay, "{host} is asked after {gap:?}");
            }
            if let Some(address) = self.address_of.get(host).filter(|_| self.config.politeness.per_address) {
                let in_flight = self
                    .out
                    .iter()
                    .filter(|out| self.addresses.get(&out.id.as_u64()) == Some(address));
                assert!(in_flight.count() < most, "{address} is asked too often at once");
                self.addresses.insert(lease.id.as_u64(), *address);
            }
        }
        self.out.push(lease);
    }

    fn settle(&mut self, lease: &Lease, one: &Settlement) -> Settled {
        let host = &lease.entry.queue;
        let settled = self
            .frontier
            .settle(std::slice::from_ref(one), self.now)
            .unwrap()
            .remove(0);
        match (&lease.entry.purpose, one.address) {
            (Purpose::Page, _) => {
                let is_spent = settled.fate == Fate::GaveUp || matches!(one.outcome, Outcome::Done | Outcome::Rejected);
                *self.spent.entry(host.clone()).or_default() += u64::from(is_spent);
            }
            (Purpose::Address, Some(address)) => {
                self.address_of.insert(host.clone(), address);
            }
            (Purpose::Address, None) => {
                self.address_of.remove(host);
            }
            _ => {}
        }
        let was_answered = matches!(one.outcome, Outcome::Done | Outcome::Rejected | Outcome::Redirected);
        if was_answered && lease.entry.purpose != Purpose::Address {
            self.last_end.insert(host.clone(), self.now);
        }
        settled
    }

    /// Persists, kills, and opens again with another configuration.
    fn reopen(&mut self, config: FrontierConfig) {
        self.frontier.persist(b"", self.now).unwrap();
        self.config = config.clone();
        self.frontier = open_store(self.recorder.clone(), config, self.now).unwrap().frontier;
        for lease in self.out.drain(..) {
            if lease.entry.purpose != Purpose::Address {
                self.last_end.insert(lease.entry.queue.clone(), self.now);
            }
        }
        self.spent_before = self.spent.clone();
    }

    /// Ends everything well, until nothing is left to do.
    fn drive(&mut self, end: &CallEnd) {
        for _ in 0..20_000 {
            let leasing = self.frontier.lease(self.now, 3).unwrap();
            match leasing {
                Leasing::Ready(leases) => leases.into_iter().for_each(|lease| self.started(lease)),
                Leasing::Dropped(_) => {}
                Leasing::BudgetSpent => {
                    assert!(self.config.limits.max_pages.is_some() && self.out.is_empty());
                    return;
                }
                Leasing::Drained => {
                    self.check_budgets();
                    return;
                }
                Leasing::NotUntil(time) if self.out.is_empty() => {
                    assert!(time > self.now, "back at {time} when it is {}", self.now);
                    self.now = time;
                }
                Leasing::NotUntil(_) | Leasing::AllLeased => {
                    assert!(!self.out.is_empty(), "it stalls: {:?}", self.frontier.report());
                    let lease = self.out.remove(0);
                    let one = settlement(&lease, end);
                    self.settle(&lease, &one);
                }
            }
        }
        panic!("it comes to no end: {:?}", self.frontier.report());
    }

    fn check_budgets(&self) {
        let Some(most) = self.config.limits.max_pages_per_host else {
            return;
        };
        for (host, spent) in &self.spent {
            let before = self.spent_before.get(host).copied().unwrap_or_default();
            assert!(
                *spent <= most.max(before),
                "{host}: {spent} pages, {before} before, {most} allowed"
            );
        }
    }
}

pub(super) fn good() -> CallEnd {
    CallEnd {
        how: How::Good,
        retry_after: None,
        links: Vec::new(),
        links_known: 0,
        content: None,
        text: Some(1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_a_changed_option_the_frontier_goes_on_to_its_end(
        setting in settings(),
        is_exact in any::<bool>(),
        before in prop::collection::vec(calls(), 1..100),
        changes in prop::collection::vec((prop::sample::select(&OPTIONS[..]), any::<u32>()), 1..3),
        after in prop::collection::vec(calls(), 0..30),
    ) {
        let mut config = FrontierConfig { seen_set: SeenSetConfig { exact: is_exact, capacity: 100, ..settlements::config(&setting).seen_set }, ..settlements::config(&setting) };
        let mut watched = Watched::new(config.clone());
        for call in before {
            watched.call(call);
        }
        changes.into_iter().for_each(|(option, number)| change(&mut config, option, number));
        watched.reopen(config.clone());
        let mut after = after;
        let saved = after.split_off(after.len() / 2);
        for call in after {
            watched.call(call);
        }
        // The first commit has all calls since the opening. What a reader sees continues as the crawl does, also after another kill.
        watched.frontier.persist(b"", watched.now).unwrap();
        let mut twin = read_store(watched.recorder.image()).unwrap().frontier;
        prop_assert_eq!(picture(&watched.frontier), picture(&twin));
        for call in saved {
            if let Some((step, answer)) = watched.call(call) {
                prop_assert_eq!(&answer, &make(&mut twin, &step, watched.now).0);
                if matches!(step, Step::Lease(0)) {
                    watched.now = time_of(&answer).unwrap_or(watched.now);
                }
            }
        }
        prop_assert_eq!(picture(&watched.frontier), picture(&twin));
        let spent_before = watched.spent_before.clone();
        watched.reopen(config);
        watched.spent_before = spent_before;
        twin.release_leases(watched.now).unwrap();
        prop_assert_eq!(picture(&watched.frontier), picture(&twin));
        watched.drive(&good());
    }
}
