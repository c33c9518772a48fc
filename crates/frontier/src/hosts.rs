//! Whose turn it is: the queues of all hosts, with their due times, delays, blocks and failures.
//!
//! A host is in exactly one [`Place`]: **due** (in the round of hosts that can be asked now), **waiting** for its time,
//! **held** (as many requests out as it may have, or its robots.txt is asked for), or **idle** with nothing queued. An idle
//! host rests until its next time has passed, so that a new link cannot jump the delay, and is kept for longer when
//! something is known of it that must not be lost: a delay of its own, a page count, that it was given up.
//!
//! Where requests count by address as well, a host whose turn has come first stands **in line** at its address.
//!
//! Handing out goes round the due hosts, one entry each, so that a host with a long queue never delays another.
//!
//! Cost: a hash-map look-up per call, plus O(log hosts) where a host goes to wait.

mod agenda;
mod arrival;
mod round;

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use agenda::Agenda;
pub(crate) use arrival::Arrival;

use crate::addresses::Addresses;
use crate::budgets::Budgets;
use crate::entry::Entry;
use crate::host::{Host, Place};
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;
use crate::url::{HostKey, Origin};

/// The rules that all hosts share.
#[derive(Debug, Clone)]
pub(crate) struct HostRules {
    pub(crate) per_host: u32,
    pub(crate) per_address: bool,
    pub(crate) delay: Duration,
    pub(crate) max_queued: u64,
    pub(crate) max_hosts: usize,
    pub(crate) max_pages_per_host: Option<u64>,
    pub(crate) max_host_failures: u32,
    pub(crate) max_throttles: u32,
    pub(crate) ask_robots: bool,
}

/// The queues of all hosts, as one [`sieve::Queue`].
#[derive(Debug)]
pub(crate) struct HostQueues {
    rules: HostRules,
    hosts: HashMap<HostKey, Host>,
    due: VecDeque<HostKey>,
    addresses: Addresses,
    // A host whose time has changed since leaves its old mark behind in these two; it is known by the time, and dropped when
    // that comes or at the next sweep.
    waiting: Agenda,
    resting: Agenda,
    queued: u64,
    budgets: Budgets,
}

/// An entry that was handed out.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) entry: Entry,
    /// How long after the end of the host's last request.
    pub(crate) gap: Option<Duration>,
    /// When.
    started: Time,
    /// The address that was asked, if that counts.
    address: Option<IpAddr>,
    /// Its links are not followed, because its page is one of too many near-duplicates.
    pub(crate) is_repeat: bool,
}

impl HostQueues {
    pub(crate) fn new(rules: HostRules, budgets: Budgets) -> Self {
        Self {
            budgets,
            addresses: Addresses::new(rules.per_host, rules.delay),
            rules,
            hosts: HashMap::new(),
            due: VecDeque::new(),
            waiting: Agenda::new(),
            resting: Agenda::new(),
            queued: 0,
        }
    }

    /// Says whether a link may be queued, and if not, why.
    pub(crate) fn admit(&self, link: &Link) -> Result<(), Refusal> {
        if self.queued >= self.rules.max_queued {
            return Err(Refusal::QueueFull);
        }
        let Some(host) = self.hosts.get(link.url.host_str()) else {
            if self.hosts.len() >= self.rules.max_hosts {
                return Err(Refusal::TooManyHosts);
            }
            self.budgets.admit_host(link)?;
            return self.budgets.admit(link);
        };
        if host.gave_up(link.url.url().as_str()) {
            return Err(Refusal::HostDead);
        }
        if link.sitemap_of.is_none() && !host.takes_pages(&self.rules) {
            return Err(Refusal::HostBudget);
        }
        self.budgets.admit(link)
    }

    /// Queues an entry with its host. What was admitted, and retries, which were admitted once.
    pub(crate) fn enqueue(&mut self, mut entry: Entry, now: Time) {
        // All entries of a host share one copy of its name.
        if let Some((key, _)) = self.hosts.get_key_value(&entry.queue) {
            entry.queue = key.clone();
        }
        let key = entry.queue.clone();
        self.change(&key, now, |host| host.enqueue(entry, now));
    }

    /// A request has ended, and the host's delay counts from now.
    pub(crate) fn ended(&mut self, taken: &Taken, now: Time) {
        if let Some(address) = taken.address {
            self.addresses.end(address, now);
        }
        self.change(&taken.entry.queue, now, |host| host.ended(&taken.entry, taken.gap, now));
        self.serve(taken.address, now);
    }

    /// A lease came back without a request having been made: it spends no delay.
    pub(crate) fn unused(&mut self, taken: &Taken, now: Time) {
        if let Some(address) = taken.address {
            self.addresses.take_back(address, taken.started);
        }
        self.change(&taken.entry.queue, now, |host| {
            host.unused(&taken.entry, taken.started);
        });
        self.serve(taken.address, now);
    }

    /// Counts a page as settled, for its host's budget. Returns what waited and will not be had, if that is spent now.
    pub(crate) fn count_page(&mut self, key: &HostKey, now: Time) -> Vec<Entry> {
        let (most, mut over) = (self.rules.max_pages_per_host, Vec::new());
        if self.hosts.contains_key(key) {
            self.change(key, now, |host| over = host.count_page(most));
        }
        over
    }

    /// The origin that was asked answered: its failures are forgotten.
    pub(crate) fn answered(&mut self, entry: &Entry) {
        if let Some(host) = self.hosts.get_mut(&entry.queue) {
            host.answered(&entry.url);
        }
    }

    /// The origin that was asked failed. Returns how often in a row; at the most that is allowed it is given up.
    pub(crate) fn failed(&mut self, entry: &Entry) -> u32 {
        let most = self.rules.max_host_failures;
        self.hosts
            .get_mut(&entry.queue)
            .map_or(1, |host| host.failed(&entry.url, most))
    }

    /// The origin that was asked wants less traffic. Returns how often in a row; at the most that is allowed it is given up.
    pub(crate) fn throttled(&mut self, entry: &Entry, now: Time) -> u32 {
        let most = self.rules.max_throttles;
        self.hosts
            .get_mut(&entry.queue)
            .map_or(1, |host| host.throttled(&entry.url, most, now))
    }

    /// Says whether the origin of an entry was given up.
    pub(crate) fn gave_up(&self, entry: &Entry) -> bool {
        self.hosts
            .get(&entry.queue)
            .is_some_and(|host| host.gave_up(&entry.url))
    }

    /// Takes out everything that waits for the origin of a URL, if it was given up.
    pub(crate) fn take_given_up(&mut self, key: &HostKey, url: &str, now: Time) -> Vec<Entry> {
        let mut left = Vec::new();
        if self.hosts.get(key).is_some_and(|host| host.gave_up(url)) {
            self.change(key, now, |host| left = host.drain_origin(url));
        }
        left
    }

    /// Sets the delay of one host; it counts where it is longer than the delay of all.
    pub(crate) fn set_delay(&mut self, key: &HostKey, delay: Duration, now: Time) {
        // One that does not count is not worth remembering a host for.
        let own = Some(delay).filter(|own| *own > self.rules.delay);
        self.change(key, now, |host| host.delay = own);
    }

    /// Lets a host rest until a time; a block that lasts longer stays.
    pub(crate) fn block(&mut self, key: &HostKey, until: Time, now: Time) {
        self.change(key, now, |host| host.blocked_until = host.blocked_until.max(until));
    }

    /// The robots.txt of an origin is known until a time: its pages may be handed out.
    pub(crate) fn robots_known(&mut self, origin: &Origin, until: Time, now: Time) {
        self.change(origin.host(), now, |host| host.robots_known(origin, until));
    }

    /// The address of a host is known until a time, if it has one: what waits for it may be handed out.
    pub(crate) fn address_known(&mut self, key: &HostKey, address: Option<IpAddr>, until: Time, now: Time) {
        self.change(key, now, |host| host.address_known(address, until));
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    pub(crate) fn budgets_mut(&mut self) -> &mut Budgets {
        &mut self.budgets
    }

    pub(crate) fn rules(&self) -> &HostRules {
        &self.rules
    }

    pub(crate) fn get(&self, key: &HostKey) -> Option<&Host> {
        self.hosts.get(key)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&HostKey, &Host)> {
        self.hosts.iter()
    }

    /// Changes a host and puts it where it belongs then: the one door through which queues and times change.
    fn change(&mut self, key: &HostKey, now: Time, change: impl FnOnce(&mut Host)) {
        let host = self.hosts.entry(key.clone()).or_default();
        let before = host.queued();
        change(host);
        self.queued = self.queued + host.queued() - before;
        self.place(key, now);
    }

    fn place(&mut self, key: &HostKey, now: Time) {
        let Some(host) = self.hosts.get_mut(key) else { return };
        if matches!(host.place, Place::Due | Place::InLine) {
            // It is looked at anew when its turn comes.
            return;
        }
        let mut place = host.next_place(now, &self.rules);
        let address = host.shared_address(now).filter(|_| place == Place::Due);
        if address.is_some() {
            place = Place::InLine;
        }
        if place == host.place {
            return;
        }
        host.place = place;
        match place {
            Place::Due => self.due.push_back(key.clone()),
            Place::Waiting(time) => self.waiting.push(Reverse((time, key.clone()))),
            Place::Resting(time) => self.resting.push(Reverse((time, key.clone()))),
            Place::Held | Place::Idle | Place::InLine => {}
        }
        if let Some(address) = address {
            self.addresses.line_up(address, key.clone());
            self.serve(Some(address), now);
        }
        self.sweep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::admit;
    use crate::canonical::Canonicalizer;
    use crate::config::FrontierConfig;
    use crate::scope::{Reach, Scope, ScopeConfig};

    const DAY: Duration = Duration::from_secs(86_400);

    fn entry(url: &str) -> Entry {
        let config = ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        };
        let link = Link::seed(Canonicalizer::default().parse(url).unwrap());
        admit(&link, &Scope::new(config).unwrap()).unwrap()
    }

    fn queues(per_host: u32, delay: Duration) -> HostQueues {
        let rules = HostRules {
            per_host,
            per_address: false,
            delay,
            max_queued: 1000,
            max_hosts: 1000,
            max_pages_per_host: None,
            max_host_failures: 2,
            max_throttles: 2,
            ask_robots: true,
        };
        HostQueues::new(rules, Budgets::new(&FrontierConfig::default()))
    }

    #[test]
    fn a_host_that_runs_empty_again_and_again_leaves_no_marks_behind() {
        let mut hosts = queues(1, Duration::ZERO);
        hosts.rules.max_hosts = 1;
        let start = Time::from_millis(1_000);
        let origin = Origin::of(&"http://a.example/".parse().unwrap()).unwrap();
        let page_entry = entry("http://a.example/");
        for page in 0..20_000_u64 {
            let now = start + Duration::from_millis(page);
            hosts.enqueue(page_entry.clone(), now);
            let mut taken = hosts.take(now).unwrap();
            if page == 0 {
                hosts.ended(&taken, now);
                hosts.robots_known(&origin, start + DAY, now);
                taken = hosts.take(now).unwrap();
            }
            hosts.ended(&taken, now);
        }
        let marks = hosts.waiting.len() + hosts.resting.len();
        assert!(marks < 500, "{marks} marks for one host");
        assert_eq!(hosts.hosts.len(), 1);
        assert!(hosts.take(start + DAY * 2).is_none());
        assert_eq!(hosts.hosts.len(), 0, "it is forgotten when its robots.txt has expired");
    }

    #[test]
    fn a_lease_without_a_request_does_not_forget_when_another_request_started() {
        let delay = Duration::from_secs(2);
        let mut hosts = queues(3, delay);
        hosts.rules.ask_robots = false;
        let start = Time::from_millis(1_000_000);
        for page in 0..3 {
            hosts.enqueue(entry(&format!("http://a.example/{page}")), start);
        }
        let first = hosts.take(start).unwrap();
        let second_start = start + delay;
        assert!(hosts.take(second_start).is_some());
        hosts.unused(&first, second_start);
        assert!(
            hosts.take(second_start).is_none(),
            "the second request has just started"
        );
        assert_eq!(hosts.next_time(), Some(second_start + delay));
        assert!(hosts.take(second_start + delay).is_some());
    }

    #[test]
    fn the_entries_of_a_host_share_one_copy_of_its_name() {
        let mut hosts = queues(2, Duration::ZERO);
        hosts.rules.ask_robots = false;
        let now = Time::from_millis(1_000);
        for page in ["http://a.example/1", "http://a.example/2"] {
            hosts.enqueue(entry(page), now);
        }
        let names = [(); 2].map(|()| hosts.take(now).unwrap().entry.queue.as_str().as_ptr());
        assert_eq!(names[0], names[1]);
    }
}
