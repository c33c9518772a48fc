//! One process: a frontier on a simulated disk, its member, and what crawls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Kept, Limits, Member, MemberError, PartitionStatus, Post, ToSend};
use frontier::exchange::Received;
use frontier::simulation::Disk;
use frontier::{
    CanonicalUrl, Frontier, FrontierConfig, Lease, Leasing, LimitConfig, Link, Outcome, ParseRules, Partition,
    PolitenessConfig, Purpose, Reach, RobotsRules, SaveStatus, SeenSetConfig, Time, TrapConfig,
};

use super::log;
use super::rng::Rng;
use super::web::{Kind, Web};

pub(super) const CONCURRENCY: usize = 2;
pub(super) const DELAY: Duration = Duration::from_millis(30);
pub(super) const SILENCE: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct AllowAll;

impl RobotsRules for AllowAll {
    fn allows(&self, _path: &str) -> bool {
        true
    }
}

/// What a process does not keep from one commit to the next but in the attachment: the lines of its output, too.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Saved {
    pub(super) is_seeded: bool,
    pub(super) lines: Vec<u32>,
    /// The orders that were given here, and those that others told.
    pub(super) orders: BTreeSet<u64>,
    kept: Kept,
}

/// What a step of a process shows.
pub(super) enum Shown {
    Nothing,
    /// A request begins.
    Begins(Box<Lease>),
    /// It has ended.
    Ends(Box<Lease>),
}

pub(super) struct Process {
    pub(super) disk: Disk,
    pub(super) link: log::Link,
    post: Post<log::Link>,
    pub(super) frontier: Frontier,
    pub(super) member: Member,
    pub(super) saved: Saved,
    is_started: bool,
    held: Vec<Lease>,
    pub(super) in_flight: Vec<Lease>,
    /// Orders that were given before a pause.
    pub(super) pending: Option<ToSend>,
    pub(super) halted: Option<MemberError>,
    pub(super) has_exited: bool,
    /// An order came twice, or before one that its giver knew.
    pub(super) is_out_of_order: bool,
    pub(super) paused_until: u64,
    pub(super) cut_off_until: u64,
}

pub(super) fn limits(window: u64) -> Limits {
    Limits {
        window,
        silence: SILENCE,
        linger: SILENCE * 10,
    }
}

pub(super) fn config(partition: Partition, reach: Reach, max_outbox: u64, sync_interval: Duration) -> FrontierConfig {
    let mut config = FrontierConfig {
        partition: Some(partition),
        limits: LimitConfig {
            max_outbox,
            ..LimitConfig::default()
        },
        sync_interval,
        seen_set: SeenSetConfig {
            exact: true,
            capacity: 100,
            hash: sieve::Hashing::Murmur3 { seed: 7 },
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            delay: DELAY,
            ..PolitenessConfig::default()
        },
        traps: TrapConfig {
            max_near_duplicates: None,
            ..TrapConfig::default()
        },
        ..FrontierConfig::default()
    };
    config.scope.reach = reach;
    (config.scope.max_redirects, config.scope.max_url_bytes) = (200, 1 << 16);
    config
}

impl Process {
    pub(super) fn open(
        config: &FrontierConfig,
        limits: Limits,
        disk: Disk,
        link: log::Link,
        accepts_loss: bool,
        rng: &mut Rng,
        now: Time,
    ) -> Self {
        let partition = config.partition.unwrap();
        let parse: ParseRules = Arc::new(|_: &[u8]| Arc::new(AllowAll) as Arc<dyn RobotsRules>);
        let opened = disk.open(config.clone(), now, &parse).unwrap();
        let attachment = opened.attachment.unwrap_or_default();
        let saved: Saved = postcard::from_bytes(&attachment).unwrap_or_default();
        Self {
            post: Post::new(link.clone(), partition, limits.window),
            disk,
            link,
            frontier: opened.frontier,
            member: Member::new(partition, limits, saved.kept.clone(), accepts_loss, rng.next()),
            saved,
            is_started: false,
            held: Vec::new(),
            in_flight: Vec::new(),
            pending: None,
            halted: None,
            has_exited: false,
            is_out_of_order: false,
            paused_until: 0,
            cut_off_until: 0,
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.saved.is_seeded && self.frontier.report().is_drained()
    }

    /// Does one small thing. What needs the log does nothing while that is away.
    pub(super) fn step(&mut self, web: &Web, rng: &mut Rng, now: Time) -> Shown {
        if !self.is_started {
            let Ok(last) = self.post.last_sent() else {
                return Shown::Nothing;
            };
            self.member.start(last);
            self.is_started = true;
            return Shown::Nothing;
        }
        let done = match rng.below(12) {
            0 if rng.chance(web.seeding) => self.seed(web, now),
            0 => Ok(()),
            1 => self.lease(now),
            2 | 3 => return self.settle(web, rng, now),
            4 => self.commit(now),
            5 => return self.begin(),
            6 | 7 => self.give_orders(now),
            // Links may be in reach of seeds only.
            8 | 9 if self.saved.is_seeded => self.read(now),
            8 | 9 => Ok(()),
            10 => self.hear(now),
            _ => {
                let _ = self.post.say();
                Ok(())
            }
        };
        match done {
            Ok(()) if rng.below(12) == 0 && self.member.finished(now).is_some() => self.has_exited = true,
            Ok(()) => {}
            Err(error) => self.halted = Some(error),
        }
        Shown::Nothing
    }

    fn seed(&mut self, web: &Web, now: Time) -> Result<(), MemberError> {
        if !self.saved.is_seeded {
            for seed in &web.seeds {
                self.frontier.add_seed(&web.urls[*seed], now)?;
            }
            self.saved.is_seeded = true;
        }
        Ok(())
    }

    fn lease(&mut self, now: Time) -> Result<(), MemberError> {
        if self.held.len() + self.in_flight.len() < CONCURRENCY
            && let Leasing::Ready(leases) = self.frontier.lease(now, 1)?
        {
            self.held.extend(leases);
        }
        Ok(())
    }

    /// Begins a request whose lease is committed.
    fn begin(&mut self) -> Shown {
        let has_unsaved = self.frontier.save_status().is_some_and(|status| status.has_unsaved);
        match self.held.pop_if(|_| !has_unsaved) {
            Some(lease) => {
                self.in_flight.push(lease.clone());
                Shown::Begins(Box::new(lease))
            }
            None => Shown::Nothing,
        }
    }

    fn settle(&mut self, web: &Web, rng: &mut Rng, now: Time) -> Shown {
        if self.in_flight.is_empty() {
            return Shown::Nothing;
        }
        let lease = self.in_flight.swap_remove(rng.below(self.in_flight.len()));
        let page = web.page(&lease.entry.url);
        let mut targets = match page {
            Some(page) => web.links[page].clone(),
            None => web.sitemaps_of_host(lease.entry.queue.as_str()).collect(),
        };
        // Asked again, a page answers otherwise.
        let first = rng.below(targets.len() + 1);
        targets.rotate_left(first);
        let referrer: Arc<str> = lease.entry.url.as_ref().into();
        let is_redirect = page.is_some_and(|page| web.kinds[page] == Kind::Redirect);
        let link = |to: usize| match web.kinds[to] {
            _ if is_redirect => lease.entry.redirected(web.urls[to].clone()),
            Kind::Sitemap => {
                let of = lease.entry.canonical_url().unwrap().origin();
                Link::sitemap(web.urls[to].clone(), of, 0, Some(Arc::clone(&referrer)))
            }
            _ => Link::found(web.urls[to].clone(), 1, Arc::clone(&referrer)),
        };
        let links = targets.into_iter().map(link).collect();
        let settlement = lease.settle(match &lease.entry.purpose {
            Purpose::Page if is_redirect => Outcome::Redirected,
            Purpose::Page | Purpose::Sitemap(_) => Outcome::Done,
            Purpose::Robots(_) => Outcome::Rejected,
            Purpose::Address => panic!("no address is asked for"),
        });
        self.frontier.settle(&[settlement.with_links(links)], now).unwrap();
        self.saved.lines.extend(page.map(|page| page as u32));
        Shown::Ends(Box::new(lease))
    }

    fn commit(&mut self, now: Time) -> Result<(), MemberError> {
        let is_sync_due = self
            .frontier
            .save_status()
            .is_some_and(|status: SaveStatus| status.is_sync_due(now));
        self.saved.kept = self.member.kept().clone();
        let attachment = postcard::to_allocvec(&self.saved).unwrap();
        self.frontier.persist(&attachment, now)?;
        self.member.saved();
        if is_sync_due {
            self.member
                .synced(&self.frontier, self.is_drained(), PartitionStatus::default(), now);
        }
        Ok(())
    }

    /// Ends as by SIGTERM.
    pub(super) fn stop(&mut self, now: Time) {
        self.saved.kept = self.member.kept().clone();
        let attachment = postcard::to_allocvec(&self.saved).unwrap();
        self.frontier.checkpoint(&attachment, now).unwrap();
    }

    pub(super) fn orders(&mut self, now: Time) -> Result<ToSend, MemberError> {
        self.member.orders(&self.frontier, now)
    }

    fn give_orders(&mut self, now: Time) -> Result<(), MemberError> {
        let orders = self.orders(now)?;
        let _ = self.post.send(orders);
        Ok(())
    }

    pub(super) fn send_pending(&mut self) {
        if let Some(orders) = self.pending.take() {
            let _ = self.post.send(orders);
        }
    }

    fn read(&mut self, now: Time) -> Result<(), MemberError> {
        for entry in self.post.read().unwrap_or_default() {
            if let Received::Told(order) = self.member.receive(&entry, &mut self.frontier, now)? {
                let (order, known): (u64, BTreeSet<u64>) = postcard::from_bytes(&order).unwrap();
                // Whoever gave it knew others, which are obeyed before it.
                self.is_out_of_order |= !known.is_subset(&self.saved.orders) || !self.saved.orders.insert(order);
            }
        }
        Ok(())
    }

    /// Takes an order, with a seed: all partitions get to know both. Returns whether it did: then it is synced.
    pub(super) fn order(&mut self, order: u64, seed: &CanonicalUrl, now: Time) -> bool {
        let is_refused = !self.is_started || !self.saved.is_seeded || self.frontier.report().waits_for_others();
        if !is_refused {
            let text = postcard::to_allocvec(&(order, &self.saved.orders)).unwrap();
            self.saved.orders.insert(order);
            self.frontier.tell(&text, now).unwrap();
            self.frontier.offer(&[Link::seed(seed.clone())], now).unwrap();
            self.frontier.sync_next();
            self.commit(now).unwrap();
        }
        !is_refused
    }

    fn hear(&mut self, now: Time) -> Result<(), MemberError> {
        match self.post.words() {
            Ok((words, _)) => self.member.hear(&words, &mut self.frontier, now),
            Err(_) => Ok(()),
        }
    }
}
