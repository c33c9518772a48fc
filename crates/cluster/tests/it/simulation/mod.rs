//! Random runs of a whole cluster with faults: real frontiers on simulated disks, real members, and a log that forgets.
//!
//! Two to five partitions crawl a synthetic web, while processes are killed, lose power, are paused, cut off from the log, or restored from
//! an old copy of their directory, and the log is flushed, fails over, loses and damages entries, and is away. Then the faults stop, and the
//! crawl must end by itself. A step is a millisecond, in which one process does one small thing.

mod log;
mod process;
mod rng;
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cluster::{End, Limits, MemberError};
use frontier::simulation::Disk;
use frontier::{FrontierConfig, Lease, Partition, Time};

use log::Server;
use process::{CONCURRENCY, DELAY, Process, SILENCE, Shown};
use rng::Rng;
use web::Web;

const START: u64 = 1_700_000_000_000;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    PowerCut,
    /// Of all machines.
    Blackout,
    Stop,
    Pause,
    /// For longer than the others linger at the end.
    Away,
    Flush,
    LoseEntries,
    Damage,
    FailOver,
    Down,
    Split,
    OldCopy,
    Empty,
}

struct World {
    rng: Rng,
    web: Web,
    server: Server,
    now: u64,
    processes: Vec<Process>,
    configs: Vec<FrontierConfig>,
    limits: Limits,
    /// Earlier states of each directory.
    backups: Vec<Vec<Disk>>,
    /// A directory went back, so an operator may have to accept a loss.
    was_tampered: bool,
    tampers_left: usize,
    /// A process was away for so long that others may have ended without it.
    was_away: bool,
    aways_left: usize,
    /// The log has lost what a process has said that has ended.
    has_lost_end: bool,
    /// Whether faults go on after the end.
    is_long: bool,
    was_accepted: bool,
    fetches: BTreeMap<usize, u64>,
    crashes: Vec<u64>,
    /// When the last request to each host has ended, or was last seen in flight.
    last_end: BTreeMap<String, u64>,
    down_until: u64,
    /// Orders that were answered, and how many may follow.
    ordered: BTreeSet<u64>,
    orders_left: u64,
    order_rate: f64,
    faults_until: u64,
    fault_rate: f64,
    /// When another one follows, and of which process the last one was.
    next_fault: u64,
    last_fault: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(4) as u32;
        let web = Web::new(&mut rng);
        let server = Server::new(Rng::new(rng.next()));
        // How seldom the disk is synced.
        let sync_interval = Duration::from_millis(rng.one_of(&[0, 100, 700]));
        let max_outbox = rng.one_of(&[6, 6, 30]);
        let partitions = (0..count).map(|index| Partition::new(index, count).unwrap());
        let configs: Vec<_> = partitions
            .map(|partition| process::config(partition, web.reach, max_outbox, sync_interval))
            .collect();
        let limits = process::limits(rng.one_of(&[1, 2, 3, 3, 8]));
        let now = START;
        let open = |config: &FrontierConfig| {
            let link = server.link(config.partition.unwrap().index());
            Process::open(
                config,
                limits,
                Disk::default(),
                link,
                false,
                &mut rng,
                Time::from_millis(now),
            )
        };
        let processes: Vec<_> = configs.iter().map(open).collect();
        Self {
            web,
            server,
            now,
            backups: processes.iter().map(|process| vec![process.disk.copy()]).collect(),
            processes,
            configs,
            limits,
            was_tampered: false,
            tampers_left: rng.one_of(&[0, 0, 0, 1, 3]),
            was_away: false,
            aways_left: rng.one_of(&[0, 0, 1]),
            has_lost_end: false,
            is_long: rng.chance(0.3),
            was_accepted: false,
            fetches: BTreeMap::new(),
            crashes: vec![0; count as usize],
            last_end: BTreeMap::new(),
            down_until: 0,
            ordered: BTreeSet::new(),
            orders_left: rng.one_of(&[0, 1, 4, 4]),
            order_rate: rng.one_of(&[0.02, 0.002, 0.0005]),
            faults_until: START + rng.one_of(&[0, 3_000, 8_000, 8_000, 16_000]),
            fault_rate: rng.one_of(&[0.002, 0.01, 0.025]),
            next_fault: 0,
            last_fault: 0,
            rng,
        }
    }

    fn time(&self) -> Time {
        Time::from_millis(self.now)
    }

    fn begins(&mut self, at: usize, lease: &Lease) {
        let is_over = self.processes.iter().any(|process| process.member.ended().is_some());
        assert!(!is_over || self.was_tampered, "a request begins after the end");
        let count = self.processes.len() as u32;
        if let Some(page) = self.web.page(&lease.entry.url) {
            assert_eq!(
                self.web.owner(page, count),
                at as u32,
                "fetched by another than its owner"
            );
            let fetches = self.fetches.entry(page).or_default();
            *fetches += 1;
            assert!(*fetches <= 1 + self.crashes[at], "fetched again without a crash");
        }
        let host = lease.entry.queue.to_string();
        if let Some(end) = self.last_end.get(&host) {
            assert!(self.now >= end + DELAY.as_millis() as u64, "{host} is asked too early");
        }
        // In flight: it must not be asked meanwhile.
        self.last_end.insert(host, u64::MAX - 1_000);
    }

    /// Opens a process again, in this directory. Its requests have ended with it.
    fn reopen(&mut self, at: usize, disk: Disk, accepts_loss: bool) {
        for lease in std::mem::take(&mut self.processes[at].in_flight) {
            self.last_end.insert(lease.entry.queue.to_string(), self.now);
        }
        let link = self.server.link(at as u32);
        let now = self.time();
        let mut opened = Process::open(
            &self.configs[at],
            self.limits,
            disk,
            link,
            accepts_loss,
            &mut self.rng,
            now,
        );
        self.was_accepted |= accepts_loss;
        // Its machine may still be starting.
        let started = self.now + DELAY.as_millis() as u64;
        opened.paused_until = self.processes[at].paused_until.min(started);
        self.processes[at] = opened;
    }

    /// Whether a process knows the end, and may leave without a word if it believes that the others know it.
    fn knows_end(&self) -> bool {
        self.processes.iter().any(|process| process.member.ended().is_some())
    }

    fn fault(&mut self) {
        let mut kinds = vec![
            Fault::Kill,
            Fault::PowerCut,
            Fault::PowerCut,
            Fault::Blackout,
            Fault::Pause,
            Fault::Flush,
            Fault::LoseEntries,
            Fault::Damage,
            Fault::FailOver,
            Fault::FailOver,
            Fault::Down,
            Fault::Split,
            Fault::Stop,
        ];
        if self.tampers_left > 0 {
            kinds.extend([Fault::OldCopy, Fault::OldCopy, Fault::Empty]);
        }
        if self.aways_left > 0 {
            kinds.push(Fault::Away);
        }
        let (mut at, mut kind) = (self.rng.below(self.processes.len()), self.rng.one_of(&kinds));
        if self.now == self.next_fault && self.rng.chance(0.5) {
            at = self.last_fault;
            kind = self.rng.one_of(&[kind, Fault::PowerCut]);
        }
        // Faults come together.
        if self.rng.chance(0.4) {
            let soon = self.rng.one_of(&[20, 150]);
            (self.next_fault, self.last_fault) = (self.now + 1 + self.rng.below(soon) as u64, at);
        }
        let longest_pause = 3 * SILENCE.as_millis() as usize;
        let until = self.now + 1 + self.rng.below(longest_pause) as u64;
        let loses_words = matches!(kind, Fault::Flush | Fault::FailOver | Fault::Damage);
        self.has_lost_end |= loses_words && self.knows_end();
        match kind {
            Fault::Pause => {
                self.processes[at].paused_until = until;
                // Perhaps between a look at the state and the write to the log.
                if self.rng.chance(0.7)
                    && let Ok(orders) = self.processes[at].orders(Time::from_millis(self.now))
                {
                    self.processes[at].pending = Some(orders);
                }
            }
            Fault::Away => {
                (self.was_away, self.aways_left) = (true, self.aways_left - 1);
                self.processes[at].paused_until = self.now + 2 * self.limits.linger.as_millis() as u64;
            }
            Fault::Flush => self.server.flush(),
            Fault::LoseEntries => self.server.lose_entries(),
            Fault::Damage => self.server.damage(),
            Fault::Blackout => (0..self.processes.len()).for_each(|at| self.crash(at, Fault::PowerCut)),
            Fault::FailOver => self.server.fail_over(),
            Fault::Down => self.down_until = until,
            Fault::Split => {
                self.processes[at].cut_off_until = until;
            }
            crash => self.crash(at, crash),
        }
    }

    fn crash(&mut self, at: usize, crash: Fault) {
        self.crashes[at] += 1;
        let mut disk = self.processes[at].disk.clone();
        match crash {
            Fault::Stop => {
                let now = self.time();
                self.processes[at].stop(now);
            }
            Fault::PowerCut => disk.cut_power(self.rng.below(disk.unsynced() + 1)),
            Fault::OldCopy => {
                (self.was_tampered, self.tampers_left) = (true, self.tampers_left - 1);
                disk = self.backups[at][self.rng.below(self.backups[at].len())].copy();
            }
            Fault::Empty => {
                (self.was_tampered, self.tampers_left) = (true, self.tampers_left - 1);
                disk = Disk::default();
            }
            _ => {}
        }
        if matches!(crash, Fault::OldCopy | Fault::Empty) && self.rng.chance(0.3) {
            // The log was on that machine.
            self.server.flush();
            self.has_lost_end |= self.knows_end();
        }
        self.reopen(at, disk, false);
        if matches!(crash, Fault::PowerCut | Fault::OldCopy | Fault::Empty) {
            // The directory may not know of the last requests; a machine takes longer to start than the delay.
            self.processes[at].paused_until = self.now + DELAY.as_millis() as u64;
        }
    }

    /// A supervisor starts again what has ended badly. Only the sentence of an old copy needs a person, who accepts the loss.
    fn supervise(&mut self, at: usize) {
        let disk = self.processes[at].disk.clone();
        match self.processes[at].halted.clone() {
            Some(MemberError::OldCopy { .. } | MemberError::OtherHistory { .. } | MemberError::EndedWithout) => {
                assert!(self.was_tampered, "it cries an old copy, and there is none");
                self.crashes[at] += 1;
                self.reopen(at, disk, true);
            }
            Some(error) => panic!("{error}"),
            // Nobody starts what has ended by itself, unless another one was not there, and cannot know.
            None => {
                let is_one_left = self.processes.iter().any(|process| process.member.ended().is_none());
                if is_one_left && self.has_lost_end && (self.was_away || self.was_tampered) {
                    self.reopen(at, disk, false);
                }
            }
        }
    }

    fn check_end(&self, end: End) {
        if self.was_tampered {
            // A directory may have been lost after the true end: judged when all have ended.
            return;
        }
        assert!(
            self.processes
                .iter()
                .all(|process| process.frontier.report().is_drained()),
            "the end is declared too soon"
        );
        for (i, sender) in self.processes.iter().enumerate() {
            for (j, receiver) in self.processes.iter().enumerate().filter(|(j, _)| *j != i) {
                let sent = sender.frontier.peer(j as u32).unwrap().sent;
                let received = receiver.frontier.peer(i as u32).unwrap().received;
                assert_eq!(sent, received, "the end is declared while links are under way");
            }
        }
        let knows_all = |process: &Process| process.saved.orders == self.ordered;
        assert!(
            self.processes.iter().all(knows_all),
            "an order does not hold everywhere at the end"
        );
        if end == End::Complete {
            self.check_complete();
        }
    }

    fn lines(&self) -> Vec<usize> {
        let lines = self.processes.iter().flat_map(|process| &process.saved.lines);
        let mut lines: Vec<_> = lines.map(|page| *page as usize).collect();
        lines.sort_unstable();
        lines
    }

    fn check_complete(&self) {
        let (mut lines, reachable) = (self.lines(), &self.web.reachable);
        if self.was_tampered {
            // With a directory that went back, orders may have gone that nobody else had received.
            let ordered = reachable.difference(&self.web.reachable_from_seeds);
            lines.extend(ordered);
            lines.sort_unstable();
            lines.dedup();
        }
        let reachable: Vec<_> = reachable.iter().copied().collect();
        assert_eq!(lines, reachable, "complete, but pages are missing or have two lines");
    }

    fn step(&mut self) {
        let at = self.rng.below(self.processes.len());
        let now = self.time();
        if self.processes[at].halted.is_some() || self.processes[at].has_exited {
            if self.rng.chance(0.05) {
                self.supervise(at);
            }
            return;
        }
        let process = &mut self.processes[at];
        if self.now < process.paused_until {
            return;
        }
        process.send_pending();
        process.link.cut_off(self.now < process.cut_off_until);
        if self.orders_left > 0
            && self.rng.chance(self.order_rate)
            && let Some(seed) = self.web.seed_to_order(&mut self.rng)
            && process.order(self.orders_left, &self.web.urls[seed], now)
        {
            self.ordered.insert(self.orders_left);
            self.orders_left -= 1;
            self.web.add_seed(seed);
            return;
        }
        let ended_before = process.member.ended();
        match process.step(&self.web, &mut self.rng, now) {
            Shown::Begins(lease) => self.begins(at, &lease),
            Shown::Ends(lease) => drop(self.last_end.insert(lease.entry.queue.to_string(), self.now)),
            Shown::Nothing => {}
        }
        let process = &self.processes[at];
        assert!(
            !process.is_out_of_order || self.was_tampered,
            "an order comes twice, or too early"
        );
        let waiting = process.frontier.report().exchange.waiting;
        let max_outbox = self.configs[at].limits.max_outbox;
        let most = max_outbox + self.web.most_links * CONCURRENCY as u64 + 9 * self.ordered.len() as u64;
        assert!(
            waiting <= most || self.was_accepted,
            "{waiting} links in an outbox of {max_outbox}"
        );
        if let (None, Some(end)) = (ended_before, process.member.ended()) {
            self.check_end(end);
        }
        if self.rng.chance(0.01) {
            let copy = self.processes[at].disk.copy();
            self.backups[at].push(copy);
        }
    }

    /// Runs until all have ended.
    fn run(mut self) {
        let limit = self.faults_until + 40_000 + 10_000 * self.processes.len() as u64;
        let has_ended = |process: &Process| process.has_exited && process.member.ended().is_some();
        while !self.processes.iter().all(has_ended) || self.is_long && self.now < self.faults_until {
            self.now += 1;
            assert!(self.now < limit, "it never ends after the faults have stopped");
            if self.rng.chance(0.01) {
                self.server.replicate();
            }
            let has_fault = self.now == self.next_fault || self.rng.chance(self.fault_rate);
            if self.now < self.faults_until && has_fault {
                self.fault();
            }
            self.server.set_down(self.now < self.down_until);
            self.step();
        }
        let longest = self.server.longest();
        assert!(
            longest <= self.limits.window as usize,
            "the log has {longest} entries of one stream"
        );
        let mut lines = self.lines();
        let all = lines.len();
        lines.dedup();
        assert_eq!(lines.len(), all, "a page has two lines");
        let ends: Vec<_> = self
            .processes
            .iter()
            .filter_map(|process| process.member.ended())
            .collect();
        let are_complete = ends.iter().all(|end| *end == End::Complete);
        assert!(
            are_complete || self.was_accepted,
            "incomplete, though nobody has accepted a loss: {ends:?}"
        );
        if are_complete {
            self.check_complete();
        }
    }
}

/// Runs some seeds, and names those that fail.
fn check(seeds: std::ops::Range<u64>) {
    let mut failed = BTreeMap::<String, Vec<u64>>::new();
    for seed in seeds {
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| World::new(seed).run())) {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
            let first = text.lines().next().unwrap_or_default().to_owned();
            failed.entry(first).or_default().push(seed);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The runs of one test: all with `LONG_TESTS`, as in continuous integration.
fn runs(all: u64) -> u64 {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    seeds.unwrap_or(if std::env::var_os("LONG_TESTS").is_some() {
        all
    } else {
        all / 20
    })
}

#[test]
fn whatever_fails_every_page_is_fetched_once_and_the_end_is_found() {
    check(0..runs(1_000));
}

/// The other half, for a second processor.
#[test]
fn and_with_other_seeds() {
    check(1_000_000..1_000_000 + runs(1_000));
}
