//! One host: its queue, its times, its robots.txt.

mod budget;
mod later;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use later::Later;

use crate::addresses::Address;
use crate::entry::{Entry, Metadata, Purpose};
use crate::hosts::HostRules;
use crate::lane::{Lane, Robots};
use crate::pace::Pace;
use crate::time::Time;
use crate::url::Origin;

/// Where a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Place {
    /// Nothing is queued, and it is kept for what is known of it.
    #[default]
    Idle,
    /// In the round of hosts that can be asked now.
    Due,
    /// In line at its address, which other hosts share.
    InLine,
    /// Waiting for its time.
    Waiting(Time),
    /// Nothing can be handed out until something is settled: all its leases are out, or its robots.txt is being asked for.
    Held,
    /// Nothing is queued, and it can be forgotten after this time.
    Resting(Time),
}

/// The queue and the politeness state of one host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) place: Place,
    /// What may be handed out, by origin.
    lanes: HashMap<Arc<str>, Box<Lane>>,
    /// The lanes that have something to hand out, or to ask robots.txt for. One that waits for its robots.txt is not among
    /// them, and so holds up no other.
    round: VecDeque<Arc<str>>,
    /// What is to be asked for again, and not yet.
    later: BinaryHeap<Later>,
    /// Requests for a robots.txt, of this host's origins or of others that were redirected here.
    urgent: Vec<Entry>,
    queued: u64,
    queued_pages: u64,
    arrivals: u64,
    pub(crate) pace: Pace,
    address: Address,
    /// Nothing was asked for since the address was looked up. However long it has to wait for its turn, it is used once: else a
    /// host whose turns are far apart would be looked up again and again and never be asked for anything.
    address_is_fresh: bool,
    /// The address that let it into the round, until its turn comes.
    pub(crate) let_in_by: Option<IpAddr>,
    leased_pages: u64,
    settled_pages: u64,
    pub(crate) delay: Option<Duration>,
    pub(crate) blocked_until: Time,
    origins_given_up: u32,
    pub(crate) requests: u64,
    pub(crate) shortest_gap: Option<Duration>,
}

impl Host {
    pub(crate) fn enqueue(&mut self, entry: Entry, now: Time) {
        self.queued += 1;
        self.queued_pages += u64::from(entry.purpose == Purpose::Page);
        if let Purpose::Robots(_) = entry.purpose {
            self.urgent.push(entry);
        } else if entry.due > now {
            self.arrivals += 1;
            self.later.push(Later {
                arrival: self.arrivals,
                entry,
            });
        } else {
            self.put_in_lane(entry, Lane::push);
        }
    }

    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Takes out the entry whose turn it is, or the robots.txt that must be asked for before it. The origins of the host take
    /// turns.
    pub(crate) fn take(&mut self, now: Time, rules: &HostRules) -> Option<Entry> {
        self.bring_due(now);
        if rules.per_address && !self.knows_address(now) {
            let look_up = self.waiting().next().and_then(|entry| look_up_for(entry, now));
            if look_up.is_some() {
                self.address = Address::Asking;
                return look_up;
            }
        }
        if let Some(at) = self.urgent.iter().position(|entry| entry.due <= now) {
            self.queued = self.queued.saturating_sub(1);
            return Some(self.urgent.remove(at));
        }
        if self.holds_pages(rules) {
            return None;
        }
        while let Some(origin) = self.round.pop_front() {
            let Some(lane) = self.lanes.get_mut(&origin) else {
                continue;
            };
            lane.in_round = false;
            if rules.ask_robots && !lane.knows_robots(now) {
                let robots = lane.waiting().next().and_then(|entry| robots_of(entry, now));
                if robots.is_some() {
                    lane.robots = Robots::Asking;
                    return robots;
                }
            }
            let entry = lane.take();
            self.after_turn(origin);
            if let Some(entry) = entry {
                self.queued = self.queued.saturating_sub(1);
                self.queued_pages -= u64::from(entry.purpose == Purpose::Page);
                return Some(entry);
            }
        }
        None
    }

    /// Puts a lane at the end of the round if something is left in it, and forgets it if nothing is left to know of it.
    fn after_turn(&mut self, origin: Arc<str>) {
        let Some(lane) = self.lanes.get_mut(&origin) else {
            return;
        };
        if !lane.is_empty() {
            lane.in_round = true;
            self.round.push_back(origin);
        } else if lane.is_forgettable() {
            self.lanes.remove(&origin);
        }
    }

    /// Puts an entry into the lane of its origin, and the lane into the round unless it waits for its robots.txt.
    fn put_in_lane(&mut self, entry: Entry, push: fn(&mut Lane, Entry)) {
        let origin = self.lane_of(origin_of(&entry.url));
        if let Some(lane) = self.lanes.get_mut(&origin) {
            push(lane, entry);
        }
        self.put_in_round(origin);
    }

    fn put_in_round(&mut self, origin: Arc<str>) {
        let Some(lane) = self.lanes.get_mut(&origin) else {
            return;
        };
        if !lane.in_round && !lane.is_empty() && lane.robots != Robots::Asking {
            lane.in_round = true;
            self.round.push_back(origin);
        }
    }

    /// Finds the lane of an origin, or makes it; returns its key.
    fn lane_of(&mut self, origin: &str) -> Arc<str> {
        if let Some((key, _)) = self.lanes.get_key_value(origin) {
            return Arc::clone(key);
        }
        let key: Arc<str> = origin.into();
        self.lanes.insert(Arc::clone(&key), Box::default());
        key
    }

    /// Brings what is to be asked for again into the lanes, as far as its time has come.
    fn bring_due(&mut self, now: Time) {
        while self.later.peek().is_some_and(|later| later.entry.due <= now) {
            if let Some(later) = self.later.pop() {
                self.put_in_lane(later.entry, Lane::push_again);
            }
        }
    }

    /// Notes that an entry was handed out; returns how long after the end of the last request.
    pub(crate) fn lease(&mut self, entry: &Entry, now: Time) -> Option<Duration> {
        self.leased_pages += u64::from(entry.purpose == Purpose::Page);
        self.address_is_fresh &= entry.purpose == Purpose::Address;
        self.pace.start(now)
    }

    /// Notes that a request has ended, which had started `gap` after the end of the one before.
    pub(crate) fn ended(&mut self, entry: &Entry, gap: Option<Duration>, now: Time) {
        self.give_back(entry);
        self.pace.end(now);
        self.requests += 1;
        self.shortest_gap = [self.shortest_gap, gap].into_iter().flatten().min();
    }

    /// Notes that a lease came back without a request having been made.
    pub(crate) fn unused(&mut self, entry: &Entry, started: Time) {
        self.give_back(entry);
        self.pace.take_back(started);
    }

    fn give_back(&mut self, entry: &Entry) {
        if entry.purpose == Purpose::Page {
            self.leased_pages = self.leased_pages.saturating_sub(1);
        }
    }

    pub(crate) fn robots_known(&mut self, origin: &Origin, until: Time) {
        let origin = self.lane_of(&origin.to_string());
        if let Some(lane) = self.lanes.get_mut(&origin) {
            lane.robots = Robots::KnownUntil(until);
        }
        self.put_in_round(origin);
    }

    /// The origin of a URL answered: its failures are forgotten.
    pub(crate) fn answered(&mut self, url: &str) {
        let origin = origin_of(url);
        let Some(lane) = self.lanes.get_mut(origin) else {
            return;
        };
        lane.failures = 0;
        lane.throttles = 0;
        if lane.is_forgettable() {
            self.lanes.remove(origin);
        }
    }

    /// The origin of a URL failed. Returns how often in a row; with `most` it is given up.
    pub(crate) fn failed(&mut self, url: &str, most: u32) -> u32 {
        let origin = self.lane_of(origin_of(url));
        let Some(lane) = self.lanes.get_mut(&origin) else {
            return 1;
        };
        lane.failures = lane.failures.saturating_add(1);
        self.origins_given_up += lane.give_up_if(lane.failures >= most);
        lane.failures
    }

    /// The origin of a URL asks for less traffic. Returns how often in a row; with `most` it is given up.
    ///
    /// Answers to what was out when the host began to rest are no further reason.
    pub(crate) fn throttled(&mut self, url: &str, most: u32, now: Time) -> u32 {
        let is_resting = self.blocked_until > now;
        let origin = self.lane_of(origin_of(url));
        let Some(lane) = self.lanes.get_mut(&origin) else {
            return 1;
        };
        if !is_resting || lane.throttles == 0 {
            lane.throttles = lane.throttles.saturating_add(1);
        }
        self.origins_given_up += lane.give_up_if(lane.throttles >= most);
        lane.throttles
    }

    /// Says whether the origin of a URL was given up.
    pub(crate) fn gave_up(&self, url: &str) -> bool {
        self.gave_up_any() && self.lanes.get(origin_of(url)).is_some_and(|lane| lane.given_up)
    }

    /// Says whether any of its origins was given up.
    pub(crate) fn gave_up_any(&self) -> bool {
        self.origins_given_up > 0
    }

    /// Takes out everything that is queued for the origin of a URL.
    pub(crate) fn drain_origin(&mut self, url: &str) -> Vec<Entry> {
        let origin = origin_of(url);
        let is_of_it = |entry: &Entry| origin_of(&entry.url) == origin;
        let mut all: Vec<Entry> = self.urgent.extract_if(.., |entry| is_of_it(entry)).collect();
        if let Some(lane) = self.lanes.get_mut(origin) {
            lane.in_round = false;
            all.extend(lane.drain());
        }
        self.round.retain(|other| **other != *origin);
        let (its, others) = std::mem::take(&mut self.later)
            .into_iter()
            .partition::<Vec<_>, _>(|later| is_of_it(&later.entry));
        self.later = others.into();
        all.extend(its.into_iter().map(|later| later.entry));
        self.queued = self.queued.saturating_sub(all.len() as u64);
        let pages = all.iter().filter(|entry| entry.purpose == Purpose::Page).count();
        self.queued_pages = self.queued_pages.saturating_sub(pages as u64);
        all
    }

    /// Goes through everything that is queued, in no particular order of its origins.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Entry> {
        let in_lanes = self.lanes.values().flat_map(|lane| lane.waiting());
        let later = self.later.iter().map(|later| &later.entry);
        self.urgent.iter().chain(in_lanes).chain(later)
    }

    /// Returns from when on the next request may start.
    pub(crate) fn free_from(&self, rules: &HostRules) -> Time {
        let delay = self.delay.map_or(rules.delay, |own| own.max(rules.delay));
        self.pace.free_from(delay, rules.per_host).max(self.blocked_until)
    }

    /// Returns where the host belongs, now that something has changed.
    pub(crate) fn next_place(&mut self, now: Time, rules: &HostRules) -> Place {
        if self.queued() == 0 && self.pace.out == 0 {
            return self.idle_place(now, rules);
        }
        if self.pace.out >= rules.per_host || (rules.per_address && self.address == Address::Asking) {
            return Place::Held;
        }
        self.bring_due(now);
        match self.first_due(rules) {
            None => Place::Held,
            Some(due) => match due.max(self.free_from(rules)) {
                time if time <= now => Place::Due,
                time => Place::Waiting(time),
            },
        }
    }

    /// Returns the address that it shares with others, as far as that is known.
    pub(crate) fn shared_address(&self, now: Time) -> Option<IpAddr> {
        match self.address {
            Address::Known(address, _) if self.knows_address(now) => address,
            _ => None,
        }
    }

    fn knows_address(&self, now: Time) -> bool {
        matches!(self.address, Address::Known(_, until) if until > now || self.address_is_fresh)
    }

    pub(crate) fn address_known(&mut self, address: Option<IpAddr>, until: Time) {
        self.address = Address::Known(address, until);
        self.address_is_fresh = true;
    }

    /// Returns when the first entry is due that nothing but time holds back.
    fn first_due(&self, rules: &HostRules) -> Option<Time> {
        let urgent = self.urgent.iter().map(|entry| entry.due).min();
        if self.holds_pages(rules) {
            return urgent;
        }
        let later = self.later.peek().map(|later| later.entry.due);
        let now = self.round.front().map(|_| Time::EPOCH);
        [urgent, later, now].into_iter().flatten().min()
    }

    fn idle_place(&self, now: Time, rules: &HostRules) -> Place {
        let must_be_kept = self.delay.is_some()
            || self.gave_up_any()
            || self.lanes.values().any(|lane| !lane.is_well())
            || (rules.max_pages_per_host.is_some() && self.settled_pages > 0);
        if must_be_kept {
            return Place::Idle;
        }
        let robots = self.lanes.values().map(|lane| match lane.robots {
            Robots::Unknown => Time::EPOCH,
            Robots::Asking => Time::from_millis(u64::MAX),
            Robots::KnownUntil(until) => until,
        });
        Place::Resting(robots.max().unwrap_or_default().max(self.free_from(rules)).max(now))
    }
}

/// The origin of a URL as the WHATWG serialises it: all before the path.
fn origin_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    &url[..end]
}

fn robots_of(page: &Entry, now: Time) -> Option<Entry> {
    let origin = Origin::of(&Url::parse(&page.url).ok()?)?;
    let url = origin.robots_url().as_str().into();
    Some(ahead_of(page, url, Purpose::Robots(origin), now))
}

fn look_up_for(page: &Entry, now: Time) -> Option<Entry> {
    let origin = Origin::of(&Url::parse(&page.url).ok()?)?;
    Some(ahead_of(page, origin.to_string().into(), Purpose::Address, now))
}

/// What must be known before a page can be asked for.
fn ahead_of(page: &Entry, url: Box<str>, purpose: Purpose, now: Time) -> Entry {
    Entry {
        queue: page.queue.clone(),
        url,
        key: None,
        due: now,
        depth: 0,
        hops: 0,
        attempts: 0,
        put_off: 0,
        purpose,
        metadata: Metadata::default(),
    }
}
