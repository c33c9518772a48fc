//! One host: its queue, its times, its robots.txt.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use url::Url;

use crate::entry::{Entry, Metadata, Purpose};
use crate::hosts::HostRules;
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
    /// Waiting for its time.
    Waiting(Time),
    /// Nothing can be handed out until something is settled: all its leases are out, or its robots.txt is being asked for.
    Held,
    /// Nothing is queued, and it can be forgotten after this time.
    Resting(Time),
}

/// What is known of an origin's robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Robots {
    Asking,
    KnownUntil(Time),
}

/// The queue and the politeness state of one host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) place: Place,
    fifo: VecDeque<Entry>,
    later: BinaryHeap<Later>,
    urgent: Vec<Entry>,
    arrivals: u64,
    pub(crate) leased: u32,
    leased_pages: u64,
    pub(crate) settled_pages: u64,
    pub(crate) delay: Option<Duration>,
    last_start: Option<Time>,
    last_end: Option<Time>,
    pub(crate) blocked_until: Time,
    pub(crate) failures: u32,
    pub(crate) given_up: bool,
    robots: HashMap<Box<str>, Robots>,
    pub(crate) requests: u64,
    pub(crate) shortest_gap: Option<Duration>,
}

impl Host {
    pub(crate) fn enqueue(&mut self, entry: Entry, now: Time) {
        match entry.purpose {
            Purpose::Robots(_) => self.urgent.push(entry),
            Purpose::Page if entry.due <= now => self.fifo.push_back(entry),
            Purpose::Page => {
                self.arrivals += 1;
                self.later.push(Later {
                    arrival: self.arrivals,
                    entry,
                });
            }
        }
    }

    pub(crate) fn queued(&self) -> u64 {
        (self.fifo.len() + self.later.len() + self.urgent.len()) as u64
    }

    /// The pages that count against the host's budget.
    pub(crate) fn pages(&self) -> u64 {
        (self.fifo.len() + self.later.len()) as u64 + self.leased_pages + self.settled_pages
    }

    /// Takes out the entry whose turn it is, or the robots.txt that must be asked for before it.
    pub(crate) fn take(&mut self, now: Time, rules: &HostRules) -> Option<Entry> {
        if let Some(at) = self.urgent.iter().position(|entry| entry.due <= now) {
            return Some(self.urgent.remove(at));
        }
        let retry = self
            .later
            .peek()
            .map(|later| &later.entry)
            .filter(|entry| entry.due <= now);
        let retry_is_held = retry.is_some_and(|entry| self.is_held(entry, rules));
        let first = if retry_is_held { None } else { retry };
        let candidate = first.or_else(|| self.fifo.front().filter(|entry| !self.is_held(entry, rules)))?;
        if rules.ask_robots && !self.knows_robots(candidate, now) {
            let robots = robots_of(candidate, now)?;
            self.robots.insert(origin_of(&candidate.url).into(), Robots::Asking);
            return Some(robots);
        }
        if first.is_some() {
            self.later.pop().map(|later| later.entry)
        } else {
            self.fifo.pop_front()
        }
    }

    /// Notes that an entry was handed out; returns how long after the end of the last request.
    pub(crate) fn lease(&mut self, entry: &Entry, now: Time) -> Option<Duration> {
        self.leased += 1;
        self.leased_pages += u64::from(entry.purpose == Purpose::Page);
        self.last_start = Some(now);
        self.last_end.map(|end| now.since(end))
    }

    /// Notes that a request has ended, which had started `gap` after the end of the one before.
    pub(crate) fn ended(&mut self, entry: &Entry, gap: Option<Duration>, now: Time) {
        self.give_back(entry);
        self.last_end = Some(now);
        self.requests += 1;
        self.shortest_gap = [self.shortest_gap, gap].into_iter().flatten().min();
    }

    /// Notes that a lease came back without a request having been made.
    pub(crate) fn unused(&mut self, entry: &Entry, started: Time) {
        self.give_back(entry);
        // Another request may have started since, and starts keep their distance from that.
        self.last_start = self.last_start.filter(|last| *last != started);
    }

    fn give_back(&mut self, entry: &Entry) {
        self.leased = self.leased.saturating_sub(1);
        if entry.purpose == Purpose::Page {
            self.leased_pages = self.leased_pages.saturating_sub(1);
        }
    }

    pub(crate) fn robots_known(&mut self, origin: &Origin, until: Time) {
        self.robots.insert(origin.to_string().into(), Robots::KnownUntil(until));
    }

    /// Takes out everything that is queued.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        let later = std::mem::take(&mut self.later).into_iter().map(|later| later.entry);
        self.urgent.drain(..).chain(self.fifo.drain(..)).chain(later).collect()
    }

    /// Goes through everything that is queued, in no particular order beyond the first-come queue.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.urgent
            .iter()
            .chain(&self.fifo)
            .chain(self.later.iter().map(|later| &later.entry))
    }

    /// Returns from when on the next request may start.
    pub(crate) fn free_from(&self, rules: &HostRules) -> Time {
        let delay = self.delay.map_or(rules.delay, |own| own.max(rules.delay));
        if delay.is_zero() {
            return self.blocked_until;
        }
        let after_end = self.last_end.map_or(Time::EPOCH, |end| end + delay);
        // With one request at a time the end of the last is after its start; with several, starts keep the delay too.
        let after_start = self
            .last_start
            .filter(|_| rules.per_host > 1)
            .map_or(Time::EPOCH, |start| start + delay);
        after_end.max(after_start).max(self.blocked_until)
    }

    /// Returns where the host belongs, now that something has changed.
    pub(crate) fn next_place(&self, now: Time, rules: &HostRules) -> Place {
        if self.queued() == 0 && self.leased == 0 {
            return self.idle_place(now, rules);
        }
        if self.leased >= rules.per_host {
            return Place::Held;
        }
        match self.first_due(now, rules) {
            None => Place::Held,
            Some(due) => match due.max(self.free_from(rules)) {
                time if time <= now => Place::Due,
                time => Place::Waiting(time),
            },
        }
    }

    /// Returns when the first entry is due that nothing but time holds back.
    fn first_due(&self, now: Time, rules: &HostRules) -> Option<Time> {
        let urgent = self.urgent.iter().map(|entry| entry.due).min();
        let retry = self.later.peek().map(|later| &later.entry);
        let retry = retry
            .filter(|entry| entry.due > now || !self.is_held(entry, rules))
            .map(|entry| entry.due);
        let first = self
            .fifo
            .front()
            .filter(|entry| !self.is_held(entry, rules))
            .map(|_| Time::EPOCH);
        [urgent, retry, first].into_iter().flatten().min()
    }

    fn idle_place(&self, now: Time, rules: &HostRules) -> Place {
        let must_be_kept = self.delay.is_some()
            || self.given_up
            || self.failures > 0
            || (rules.max_pages_per_host.is_some() && self.settled_pages > 0);
        if must_be_kept {
            return Place::Idle;
        }
        let robots = self.robots.values().map(|robots| match robots {
            Robots::Asking => Time::from_millis(u64::MAX),
            Robots::KnownUntil(until) => *until,
        });
        Place::Resting(robots.max().unwrap_or_default().max(self.free_from(rules)).max(now))
    }

    /// Says whether a page must wait for the robots.txt of its origin, which is being asked for.
    fn is_held(&self, entry: &Entry, rules: &HostRules) -> bool {
        rules.ask_robots && self.robots.get(origin_of(&entry.url)) == Some(&Robots::Asking)
    }

    fn knows_robots(&self, entry: &Entry, now: Time) -> bool {
        match self.robots.get(origin_of(&entry.url)) {
            Some(Robots::KnownUntil(until)) => *until > now,
            Some(Robots::Asking) | None => false,
        }
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
    Some(Entry {
        queue: page.queue.clone(),
        url: origin.robots_url().as_str().into(),
        key: None,
        due: now,
        depth: 0,
        hops: 0,
        attempts: 0,
        purpose: Purpose::Robots(origin),
        metadata: Metadata::default(),
    })
}

/// An entry that waits for its time; the earliest is the greatest, as a heap wants it.
#[derive(Debug)]
struct Later {
    arrival: u64,
    entry: Entry,
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.entry.due, other.arrival).cmp(&(self.entry.due, self.arrival))
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Later {}
