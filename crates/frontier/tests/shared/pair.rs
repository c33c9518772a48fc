//! A durable frontier that is killed and opened again, beside one in memory that is not.

use std::time::Duration;

use proptest::prelude::*;
use sieve::OnSaturation;

use super::calls::{Call, calls};
use super::common::{self, Orders as _, START, url};
use super::frontier::{
    CanonicalUrl, Frontier, FrontierConfig, FrontierError, HostKey, Lease, LeaseId, Leasing, Link, Opened,
    SeenSetConfig, Settlement, Time,
};
use super::settlements::{address, crawl_policy, host_url, link, policy, settlement};

/// Where a durable frontier lies.
pub(crate) trait Place {
    /// Opens it, or makes it.
    fn open(&self, config: FrontierConfig, now: Time) -> Opened;
}

/// A call with all that it needs.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Offer(Vec<Link>),
    Seed(CanonicalUrl),
    Lease(usize),
    Settle(Settlement),
    GiveBack(Vec<LeaseId>),
    Block(HostKey, Duration),
    Delay(HostKey, Duration),
    Order(u64),
    Release,
}

impl Step {
    /// Returns the step of a call, if any: it takes leases of those that are out, and may let time pass.
    pub(crate) fn of(call: Call, out: &mut Vec<Lease>, now: &mut Time) -> Option<Self> {
        let host = |host| url(&host_url(host)).host();
        Some(match call {
            Call::Offer(targets) => Step::Offer(targets.into_iter().map(link).collect()),
            Call::Seed(target) => Step::Seed(url(&address(target))),
            Call::Lease(up_to) => Step::Lease(up_to),
            Call::Settle(which, end) => {
                if out.is_empty() {
                    return None;
                }
                let lease = out.remove(which % out.len());
                Step::Settle(settlement(&lease, &end))
            }
            Call::GiveBack(which) => {
                let unsent = out.split_off(which.min(out.len()));
                Step::GiveBack(unsent.iter().map(|lease| lease.id).collect())
            }
            Call::Again(_) | Call::Wrong(_) => return None,
            Call::Block(to, seconds) => Step::Block(host(to), Duration::from_secs(seconds)),
            Call::Delay(to, millis) => Step::Delay(host(to), Duration::from_millis(millis)),
            Call::Order(number) => Step::Order(number),
            Call::Pass(millis) => {
                *now = *now + Duration::from_millis(millis);
                return None;
            }
            Call::Wait => Step::Lease(0),
        })
    }

    /// Whether it asks when to come back.
    fn is_wait(&self) -> bool {
        matches!(self, Self::Lease(0))
    }
}

/// Returns the time of an answer that says when to come back.
pub(crate) fn time_of(answer: &str) -> Option<Time> {
    let millis = answer.strip_prefix("NotUntil(Time(")?.strip_suffix("))")?;
    millis.parse().ok().map(Time::from_millis)
}

/// Makes a call, and returns the answer as text.
pub(crate) fn make(frontier: &mut Frontier, step: &Step, now: Time) -> (String, Vec<Lease>) {
    try_make(frontier, step, now).unwrap()
}

/// Makes a call of a frontier whose store may fail.
pub(crate) fn try_make(frontier: &mut Frontier, step: &Step, now: Time) -> Result<(String, Vec<Lease>), FrontierError> {
    let mut leased = Vec::new();
    let answer = match step {
        Step::Offer(links) => format!("{:?}", frontier.offer(links, now)?),
        Step::Seed(seed) => format!("{:?}", frontier.add_seed(seed, now)?),
        Step::Lease(up_to) => {
            let answer = frontier.lease(now, *up_to)?;
            let text = format!("{answer:?}");
            if let Leasing::Ready(leases) = answer {
                leased = leases;
            }
            text
        }
        Step::Settle(settlement) => format!("{:?}", frontier.settle(std::slice::from_ref(settlement), now)?),
        Step::GiveBack(leases) => format!("{:?}", frontier.give_back(leases, now)?),
        Step::Block(host, time) => format!("{:?}", frontier.block(host, now + *time, now)?),
        Step::Delay(host, delay) => {
            let millis = delay.as_millis() as u64;
            format!("{:?}", frontier.set_policy(host, &policy(millis), now)?)
        }
        Step::Order(number) => format!("{:?}", frontier.set_crawl_policy(&crawl_policy(*number), now)?),
        Step::Release => format!("{:?}", frontier.release_leases(now)?),
    };
    Ok((answer, leased))
}

/// All that a frontier says of itself, except where it lies. The memory of an exact seen-set is another one in a directory.
pub(crate) fn picture(frontier: &Frontier) -> String {
    let mut report = frontier.report();
    report.memory = None;
    let mut hosts: Vec<_> = frontier
        .host_reports(Time::from_millis(u64::MAX))
        .map(|host| format!("{host:?}"))
        .collect();
    hosts.sort();
    if report.saturation.capacity.is_none() {
        report.saturation.load.memory_bytes = 0;
    }
    format!("{report:?}\n{}", hosts.join("\n"))
}

fn grows(config: &FrontierConfig) -> bool {
    config.seen_set.on_saturation == OnSaturation::Grow && !config.seen_set.exact
}

/// The configuration of a frontier in memory that answers alike. A seen-set that grows has layers of its own, and so low a rate that an
/// exact one answers like it.
pub(crate) fn oracle(config: &FrontierConfig) -> FrontierConfig {
    FrontierConfig {
        seen_set: SeenSetConfig {
            exact: config.seen_set.exact || grows(config),
            ..config.clone().seen_set
        },
        ..config.clone()
    }
}

/// The picture that both have.
pub(crate) fn common_picture(frontier: &Frontier, config: &FrontierConfig) -> String {
    let picture = picture(frontier);
    let Some((report, seen_set)) = picture.split_once(", saturation: ").filter(|_| grows(config)) else {
        return picture;
    };
    let (_, hosts) = seen_set.split_once('\n').unwrap();
    format!("{report}, {} accepted\n{hosts}", frontier.report().saturation.accepted)
}

/// The seen-set itself, which a kill must not change.
fn seen_set(frontier: &Frontier) -> String {
    let seen = frontier.report().saturation;
    let shape = (seen.bits, seen.ones, seen.hashes, seen.layers, seen.memory_bytes);
    format!("{shape:?} {:?} {} {}", seen.capacity, seen.accepted, seen.lost)
}

/// A durable frontier, and what was called since the beginning.
pub(crate) struct Pair<P> {
    config: FrontierConfig,
    place: P,
    durable: Option<Frontier>,
    memory: Frontier,
    steps: Vec<(Step, Time)>,
    /// How many of the steps are saved.
    saved: usize,
    pub(crate) out: Vec<Lease>,
    now: Time,
}

impl<P: Place> Pair<P> {
    pub(crate) fn new(config: FrontierConfig, place: P) -> Self {
        Self {
            durable: Some(place.open(config.clone(), START).frontier),
            place,
            memory: common::frontier(oracle(&config)),
            config,
            steps: Vec::new(),
            saved: 0,
            out: Vec::new(),
            now: START,
        }
    }

    pub(crate) fn call(&mut self, call: Call) {
        if let Some(step) = Step::of(call, &mut self.out, &mut self.now) {
            self.make(step);
        }
    }

    /// Makes a call of both frontiers, which must answer alike.
    pub(crate) fn make(&mut self, step: Step) {
        let is_wait = step.is_wait();
        let durable = self.durable.as_mut().unwrap();
        let (of_durable, leased) = make(durable, &step, self.now);
        let (of_memory, _) = make(&mut self.memory, &step, self.now);
        assert_eq!(of_durable, of_memory, "the answer to {step:?}");
        self.out.extend(leased);
        self.steps.push((step, self.now));
        self.compare();
        if is_wait && let Some(time) = time_of(&of_durable) {
            self.now = time;
        }
    }

    fn compare(&self) {
        let durable = common_picture(self.durable.as_ref().unwrap(), &self.config);
        assert_eq!(durable, common_picture(&self.memory, &self.config));
    }

    pub(crate) fn persist(&mut self, is_checkpoint: bool) {
        let durable = self.durable.as_mut().unwrap();
        let attachment = self.steps.len().to_string();
        durable.persist(attachment.as_bytes(), self.now).unwrap();
        if is_checkpoint {
            durable.checkpoint(attachment.as_bytes(), self.now).unwrap();
        }
        self.saved = self.steps.len();
    }

    /// Drops the durable frontier as it is, and opens it again. What was not saved is lost.
    pub(crate) fn kill(&mut self) {
        let before = self.durable.take().map(|durable| seen_set(&durable));
        let before = before.filter(|_| self.saved == self.steps.len());
        if self.saved < self.steps.len() {
            self.steps.truncate(self.saved);
            self.memory = common::frontier(oracle(&self.config));
            for (step, now) in &self.steps {
                make(&mut self.memory, step, *now);
            }
        }
        let opened = self.place.open(self.config.clone(), self.now);
        if let Some(before) = before {
            assert_eq!(seen_set(&opened.frontier), before, "the seen-set after a kill");
        }
        let released = make(&mut self.memory, &Step::Release, self.now).0;
        assert_eq!(opened.released.to_string(), released);
        if self.saved > 0 {
            assert_eq!(opened.attachment.unwrap(), self.saved.to_string().into_bytes());
        }
        self.steps.push((Step::Release, self.now));
        // It was saved when it was opened.
        self.saved = self.steps.len();
        self.durable = Some(opened.frontier);
        self.out.clear();
        self.compare();
        self.persist(false);
    }

    /// Lets all happen, and a kill at the end.
    pub(crate) fn run(&mut self, events: Vec<Event>) {
        for event in events.into_iter().chain([Event::Kill]) {
            match event {
                Event::Call(call) => self.call(call),
                Event::Persist => self.persist(false),
                Event::Checkpoint => self.persist(true),
                Event::Kill => self.kill(),
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    Call(Call),
    Persist,
    Checkpoint,
    Kill,
}

pub(crate) fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        30 => calls().prop_map(Event::Call),
        6 => Just(Event::Persist),
        1 => Just(Event::Checkpoint),
        2 => Just(Event::Kill),
    ]
}
