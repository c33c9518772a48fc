//! One host: its origins, its times, its budget.

mod budget;
mod memory;
mod origins;
mod politeness;
mod state;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

pub(crate) use state::HostState;

use super::addresses::Address;
use super::origin_id::OriginId;
use super::origin_queue::OriginQueue;
use super::pace::Pace;
use super::packed_entries::OriginRef;
use super::{HostConfig, Waiting, is_page};
use crate::class::{Class, Classes, Turns};
use crate::entry::{Entry, Purpose};
use crate::policy::ResolvedPolicy;
use crate::time::Time;
use crate::url::HostKey;

/// The queue and the politeness state of one host.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Host {
    pub(crate) state: HostState,
    /// The classes of the round in which it has a place.
    places: Classes,
    /// Sorted by id.
    // Most hosts have one.
    origins: Box<[OriginQueue]>,
    rare: Option<Box<Rare>>,
    queued: u32,
    queued_pages: u32,
    pub(crate) pace: Pace,
    leased_pages: u32,
    settled_pages: u32,
    /// The position in the round of origins.
    next_origin: u16,
    /// The `Crawl-delay` of its robots.txt files, in milliseconds; zero for none.
    crawl_delay: u32,
    requests: u32,
    /// The shortest time between the end of a request and the start of the next, in milliseconds, and one more; `None` is not known.
    shortest_gap: Option<NonZeroU32>,
    /// Whether a page or a sitemap was ever queued: it counts among the hosts of its site.
    pub(crate) is_counted: bool,
}

/// State that most hosts do not have.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Rare {
    policy: Option<Box<ResolvedPolicy>>,
    blocked_until: Time,
    /// When the next revisit may be requested: see [`book_revisit`](Host::book_revisit).
    next_revisit: Time,
    /// How many revisits wait.
    revisits: u32,
    origins_given_up: u32,
    postponed: u32,
    /// Whether a postponed page was queued.
    has_released: bool,
    /// Retries and revisits that are not due yet, by when they are, and by their arrival.
    delayed: BTreeMap<(Time, u64), Entry>,
    arrivals: u64,
    /// The timers of origins.
    timed: BinaryHeap<Reverse<(Time, OriginId)>>,
    /// Requests for robots.txt files that were redirected to this host.
    urgent: Vec<Entry>,
    address: Address,
    /// Whether nothing was requested since the address was looked up. A look-up is used once, even if it has expired. Otherwise a host
    /// whose turns are far apart would be looked up again and again, and never requested.
    address_is_fresh: bool,
    /// The address at which it has waited last.
    waited_at: Option<IpAddr>,
    /// The classes in which it has a place there.
    places_there: Classes,
    /// Whether that address has admitted it to the round, until its turn.
    is_admitted: bool,
    /// Whose turn it is, once it had pages of several classes.
    turns: Option<Box<HostTurns>>,
}

/// Whose turn it is at a host with pages of several classes.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct HostTurns {
    classes: Turns,
    /// The position in the round of origins, for each class.
    next_origins: [u16; 8],
}

impl Host {
    pub(crate) fn enqueue(&mut self, entry: Entry, now: Time, config: &HostConfig) {
        self.queued += 1;
        self.queued_pages += u32::from(entry.purpose == Purpose::Page);
        self.is_counted |= is_page(&entry);
        if entry.postponed {
            self.rare().has_released = true;
        }
        if entry.is_revisit() {
            self.rare().revisits += 1;
        }
        if let Purpose::Robots(_) = entry.purpose {
            self.rare().urgent.push(entry);
        } else if entry.due > now {
            let rare = self.rare();
            rare.arrivals += 1;
            rare.delayed.insert((entry.due, rare.arrivals), entry);
        } else {
            self.put_in_queue(entry, now, config);
        }
    }

    /// Whether something waits, and pages of it wait behind everything else of the crawl, or did.
    pub(crate) fn has_postponed(&self) -> bool {
        let waits = self.queued > 0 || self.pace.in_flight() > 0;
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.postponed > 0 || rare.has_released && waits)
    }

    pub(super) fn put_in_queue(&mut self, entry: Entry, now: Time, config: &HostConfig) {
        let id = OriginId::of(&entry.url);
        self.origin(id).push(entry, config.segments());
        self.refresh(id, now, config);
    }

    /// Postpones a page: it waits behind everything else of the crawl.
    pub(crate) fn postpone(&mut self, entry: &Entry, config: &HostConfig) {
        self.rare().postponed += 1;
        self.is_counted = true;
        self.origin(OriginId::of(&entry.url)).postpone(entry, config.segments());
    }

    /// Queues up to `most` postponed pages, and returns their number. They will not be postponed again.
    pub(crate) fn release(
        &mut self,
        host: &HostKey,
        id: OriginId,
        most: usize,
        now: Time,
        config: &HostConfig,
    ) -> usize {
        let mut released = 0;
        while released < most {
            let Some(mut entry) = self.origin(id).take_postponed(host, config.segments()) else {
                break;
            };
            released += 1;
            self.rare().postponed -= 1;
            entry.postponed = true;
            self.enqueue(entry, now, config);
        }
        released
    }

    /// The number of queued entries, without postponed ones.
    pub(crate) fn queued(&self) -> u64 {
        u64::from(self.queued)
    }

    pub(super) fn waiting(&self) -> Waiting {
        Waiting {
            queued: self.queued(),
            queued_pages: self.queued_pages(),
            revisits: self.revisits(),
            postponed: self.postponed(),
        }
    }

    pub(crate) fn queued_pages(&self) -> u64 {
        u64::from(self.queued_pages)
    }

    /// The number of revisits among them.
    pub(crate) fn revisits(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| u64::from(rare.revisits))
    }

    pub(crate) fn postponed(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| u64::from(rare.postponed))
    }

    /// Returns the next entry to lease, or the address or robots.txt that it needs first, and whether it is the probe of an origin that is
    /// away. The origins of the host take turns.
    pub(crate) fn take(&mut self, key: &HostKey, now: Time, config: &HostConfig) -> Option<(Entry, bool)> {
        self.bring_due(now, config);
        if config.politeness.per_address
            && !self.knows_address(now)
            && let Some(look_up) = self.look_up(key, config)
        {
            self.rare().address = Address::Asking;
            return Some((look_up, false));
        }
        if let Some(rare) = &mut self.rare
            && let Some(at) = rare.urgent.iter().position(|entry| entry.due <= now)
        {
            self.queued = self.queued.saturating_sub(1);
            return Some((rare.urgent.remove(at), false));
        }
        if self.holds_pages(config) {
            return None;
        }
        while let Some((at, class)) = self.next_in_round(config) {
            self.leave_round(at, class);
            let origin = &mut self.origins[at];
            let id = origin.id;
            let is_ready = origin.ready_at(now, config).is_some_and(|time| time <= now);
            let taken = if is_ready {
                origin.take(key, class, now, config)
            } else {
                None
            };
            self.refresh(id, now, config);
            if let Some((entry, _)) = &taken {
                self.left(entry);
            }
            // If a queue cannot be read, the origin would be ready again.
            if taken.is_some() || config.is_broken() {
                return taken;
            }
        }
        None
    }

    fn left(&mut self, entry: &Entry) {
        self.queued = self.queued.saturating_sub(u32::from(is_page(entry)));
        self.queued_pages -= u32::from(entry.purpose == Purpose::Page).min(self.queued_pages);
        self.revisits_left(u32::from(entry.is_revisit()));
    }

    fn revisits_left(&mut self, left: u32) {
        if let Some(rare) = &mut self.rare {
            rare.revisits = rare.revisits.saturating_sub(left);
        }
    }

    pub(crate) fn gave_up(&self, url: &str) -> bool {
        self.gave_up_any() && self.find(OriginId::of(url)).is_some_and(|origin| origin.is_given_up)
    }

    pub(crate) fn gave_up_any(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.origins_given_up > 0)
    }

    /// Gives up an origin. Returns false if it was given up before. The caller drops its queue.
    pub(crate) fn give_up(&mut self, id: OriginId) -> bool {
        let origin = self.origin(id);
        if std::mem::replace(&mut origin.is_given_up, true) {
            return false;
        }
        let health = origin.health_mut();
        (health.outage, health.reported_away) = (None, None);
        self.rare().origins_given_up += 1;
        true
    }

    /// Makes an origin askable again. Returns whether it was given up.
    pub(crate) fn reopen(&mut self, id: OriginId) -> bool {
        let was_given_up = self.origin(id).reopen();
        if was_given_up && let Some(rare) = &mut self.rare {
            rare.origins_given_up = rare.origins_given_up.saturating_sub(1);
        }
        was_given_up
    }

    /// Finds the entry of a URL with this key. Returns it with how many come before it, and whether it is postponed. Cost: a scan of the
    /// whole queue.
    pub(crate) fn find_queued(
        &self,
        key: &HostKey,
        id: OriginId,
        wanted: &str,
        config: &HostConfig,
    ) -> Option<(Entry, u64, bool)> {
        let mut origins = self.origins.iter();
        let turns = self.rare.as_ref().and_then(|rare| rare.turns.as_ref());
        let turns = turns.map(|turns| &turns.classes);
        let queued = origins.find_map(|origin| origin.find_queued(key, wanted, turns, config.segments()));
        queued.or_else(|| {
            let entry = self.in_no_queue().find(|entry| entry.key() == wanted)?.clone();
            // It is behind all of its class that wait.
            let ahead = self.find(id).map(|origin| origin.len_up_to(entry.class));
            Some((entry, ahead.unwrap_or(0), false))
        })
    }

    /// Retries and revisits that are not due yet, and robots.txt files of other origins.
    fn in_no_queue(&self) -> impl Iterator<Item = &Entry> {
        let urgent = self.rare.iter().flat_map(|rare| &rare.urgent);
        self.delayed().chain(urgent)
    }

    /// Visits all its entries, the postponed ones included. Cost: a copy of each.
    pub(crate) fn visit_waiting(
        &self,
        key: &HostKey,
        config: &HostConfig,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for origin in &self.origins {
            let text = origin.id.text(key);
            let origin_ref = OriginRef::new(key, &text, config.segments());
            origin.waiting(origin_ref).try_for_each(&mut *visit)?;
        }
        self.in_no_queue().cloned().try_for_each(visit)
    }

    pub(crate) fn shared_address(&self, now: Time) -> Option<IpAddr> {
        match self.address() {
            Address::Known(address, _) if self.knows_address(now) => address,
            _ => None,
        }
    }

    fn address(&self) -> Address {
        self.rare.as_ref().map_or(Address::Unknown, |rare| rare.address)
    }

    pub(crate) fn knows_address(&self, now: Time) -> bool {
        let is_fresh = |rare: &Rare| rare.address_is_fresh;
        match self.address() {
            Address::Known(_, until) => until > now || self.rare.as_deref().is_some_and(is_fresh),
            _ => false,
        }
    }

    pub(crate) fn set_address(&mut self, address: Address) {
        let rare = self.rare();
        rare.address = address;
        rare.address_is_fresh |= matches!(address, Address::Known(..));
    }

    /// The address that admitted it to the round, until its turn.
    pub(crate) fn admitted_by(&self) -> Option<IpAddr> {
        self.rare.as_ref().filter(|rare| rare.is_admitted)?.waited_at
    }

    /// Notes whether the address at which it waited has admitted it to the round; not when it leaves the round.
    pub(crate) fn set_admitted(&mut self, is_admitted: bool) {
        if let Some(rare) = &mut self.rare {
            rare.is_admitted = is_admitted;
        }
    }

    /// Returns whether it needs a place in the round, or in that of its address, for its state: there is none of its class yet.
    pub(crate) fn takes_place(&mut self, address: Option<IpAddr>) -> bool {
        match self.state {
            HostState::Due(class) => self.places.insert(class),
            HostState::WaitingForAddress(class) => {
                let rare = self.rare();
                if std::mem::replace(&mut rare.waited_at, address) != address {
                    rare.places_there = Classes::default();
                }
                rare.places_there.insert(class)
            }
            _ => false,
        }
    }

    /// Whether it has a place in a round, where it would be taken for another host of its name.
    pub(crate) fn has_places(&self) -> bool {
        let there = self.rare.as_ref().map_or(Classes::default(), |rare| rare.places_there);
        !(self.places | there).is_empty()
    }

    /// Its place of a class was removed: in the round, or in that of an address.
    pub(crate) fn left_place(&mut self, class: Class, address: Option<IpAddr>) {
        if address.is_none() {
            self.places.remove(class);
        } else if let Some(rare) = &mut self.rare
            && rare.waited_at == address
        {
            rare.places_there.remove(class);
        }
    }

    fn look_up(&self, key: &HostKey, config: &HostConfig) -> Option<Entry> {
        let waiting = self
            .origins
            .iter()
            .find(|origin| !origin.is_empty(config))
            .map(|origin| origin.id.text(key));
        let url = waiting.or_else(|| {
            let urgent = self.rare.as_ref()?.urgent.first()?;
            Some(crate::entry::origin_text(&urgent.url).to_owned())
        })?;
        Some(Entry::new(key.clone(), url.into(), Purpose::Address))
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}
