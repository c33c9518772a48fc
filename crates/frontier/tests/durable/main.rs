//! A durable frontier that is killed and opened again, beside one in memory that is not.

#![cfg(feature = "durable")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "../call_sequences/calls.rs"]
#[expect(dead_code, reason = "some calls are of the other test only")]
mod calls;
#[path = "../common/mod.rs"]
mod common;
#[path = "../call_sequences/settlements.rs"]
mod settlements;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use frontier::{
    CanonicalUrl, Frontier, FrontierConfig, HostKey, Lease, Leasing, Link, Opened, RobotsRules, Settlement, Time,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use calls::{Call, calls, settings};
use common::{Forbid, START, url};
use settlements::{address, config, host_url, link, settlement};

/// A directory that is removed at the end.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("frontier-{}-{number}", std::process::id())))
    }

    fn open(&self, config: FrontierConfig, now: Time) -> Opened {
        Frontier::open(&self.0, config, now, Arc::new(parse)).unwrap()
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn parse(text: &[u8]) -> Arc<dyn RobotsRules> {
    Arc::new(Forbid::of_text(text))
}

/// A call with all that it needs.
#[derive(Debug, Clone)]
enum Step {
    Offer(Vec<Link>),
    Seed(CanonicalUrl),
    Lease(usize),
    Settle(Settlement),
    Block(HostKey, Duration),
    Delay(HostKey, Duration),
    Release,
}

/// Makes a call, and returns the answer as text.
fn make(frontier: &mut Frontier, step: &Step, now: Time) -> (String, Vec<Lease>) {
    let mut leased = Vec::new();
    let answer = match step {
        Step::Offer(links) => format!("{:?}", frontier.offer(links, now).unwrap()),
        Step::Seed(seed) => format!("{:?}", frontier.add_seed(seed, now).unwrap()),
        Step::Lease(up_to) => {
            let answer = frontier.lease(now, *up_to).unwrap();
            let text = format!("{answer:?}");
            if let Leasing::Ready(leases) = answer {
                leased = leases;
            }
            text
        }
        Step::Settle(settlement) => format!("{:?}", frontier.settle(std::slice::from_ref(settlement), now).unwrap()),
        Step::Block(host, time) => format!("{:?}", frontier.block(host, now + *time, now)),
        Step::Delay(host, delay) => format!("{:?}", frontier.set_delay(host, *delay, now)),
        Step::Release => format!("{:?}", frontier.release_leases(now)),
    };
    (answer, leased)
}

/// All that a frontier says of itself.
fn picture(frontier: &Frontier) -> String {
    let mut hosts: Vec<_> = frontier.host_reports().map(|host| format!("{host:?}")).collect();
    hosts.sort();
    format!("{:?}\n{}", frontier.report(), hosts.join("\n"))
}

/// A durable frontier, and what was called since the beginning.
struct Pair {
    config: FrontierConfig,
    dir: TemporaryDir,
    durable: Option<Frontier>,
    memory: Frontier,
    steps: Vec<(Step, Time)>,
    /// How many of the steps are saved.
    saved: usize,
    out: Vec<Lease>,
    now: Time,
}

impl Pair {
    fn new(config: FrontierConfig) -> Self {
        let dir = TemporaryDir::new();
        Self {
            durable: Some(dir.open(config.clone(), START).frontier),
            dir,
            memory: common::frontier(config.clone()),
            config,
            steps: Vec::new(),
            saved: 0,
            out: Vec::new(),
            now: START,
        }
    }

    fn call(&mut self, call: Call) {
        let host = |host| url(&host_url(host)).host();
        let step = match call {
            Call::Offer(targets) => Step::Offer(targets.into_iter().map(link).collect()),
            Call::Seed(target) => Step::Seed(url(&address(target))),
            Call::Lease(up_to) => Step::Lease(up_to),
            Call::Settle(which, end) => {
                if self.out.is_empty() {
                    return;
                }
                let lease = self.out.remove(which % self.out.len());
                Step::Settle(settlement(&lease, &end))
            }
            Call::Again(_) | Call::Wrong(_) => return,
            Call::Block(to, seconds) => Step::Block(host(to), Duration::from_secs(seconds)),
            Call::Delay(to, millis) => Step::Delay(host(to), Duration::from_millis(millis)),
            Call::Pass(millis) => {
                self.now = self.now + Duration::from_millis(millis);
                return;
            }
            Call::Wait => Step::Lease(0),
        };
        let is_wait = matches!(step, Step::Lease(0));
        let durable = self.durable.as_mut().unwrap();
        let (of_durable, leased) = make(durable, &step, self.now);
        let (of_memory, _) = make(&mut self.memory, &step, self.now);
        assert_eq!(of_durable, of_memory, "the answer to {step:?}");
        self.out.extend(leased);
        self.steps.push((step, self.now));
        assert_eq!(picture(self.durable.as_ref().unwrap()), picture(&self.memory));
        if is_wait
            && let Some(millis) = of_durable
                .strip_prefix("NotUntil(Time(")
                .and_then(|text| text.strip_suffix("))"))
        {
            self.now = Time::from_millis(millis.parse().unwrap());
        }
    }

    fn persist(&mut self, is_checkpoint: bool) {
        let durable = self.durable.as_mut().unwrap();
        let attachment = self.steps.len().to_string();
        durable.persist(attachment.as_bytes(), self.now).unwrap();
        if is_checkpoint {
            durable.checkpoint(attachment.as_bytes(), self.now).unwrap();
        }
        self.saved = self.steps.len();
    }

    /// Drops the durable frontier as it is, and opens it again. What was not saved is lost.
    fn kill(&mut self) {
        drop(self.durable.take());
        if self.saved < self.steps.len() {
            self.steps.truncate(self.saved);
            self.memory = common::frontier(self.config.clone());
            for (step, now) in &self.steps {
                make(&mut self.memory, step, *now);
            }
        }
        let opened = self.dir.open(self.config.clone(), self.now);
        let released = make(&mut self.memory, &Step::Release, self.now).0;
        assert_eq!(format!("Ok({})", opened.released), released);
        if self.saved > 0 {
            assert_eq!(opened.attachment.unwrap(), self.saved.to_string().into_bytes());
        }
        self.steps.push((Step::Release, self.now));
        // It was saved when it was opened.
        self.saved = self.steps.len();
        self.durable = Some(opened.frontier);
        self.out.clear();
        assert_eq!(picture(self.durable.as_ref().unwrap()), picture(&self.memory));
        self.persist(false);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Call(Call),
    Persist,
    Checkpoint,
    Kill,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        30 => calls().prop_map(Event::Call),
        6 => Just(Event::Persist),
        1 => Just(Event::Checkpoint),
        2 => Just(Event::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn a_frontier_that_is_killed_and_opened_again_answers_as_one_that_was_not(
        setting in settings(),
        is_exact in any::<bool>(),
        events in prop::collection::vec(events(), 1..160),
    ) {
        let config = FrontierConfig { exact: is_exact, capacity: 100, ..config(&setting) };
        let mut pair = Pair::new(config);
        for event in events {
            match event {
                Event::Call(call) => pair.call(call),
                Event::Persist => pair.persist(false),
                Event::Checkpoint => pair.persist(true),
                Event::Kill => pair.kill(),
            }
        }
        pair.kill();
    }
}
