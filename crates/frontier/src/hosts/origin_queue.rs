//! The queue of one origin, with its rules of robots.txt and its outages.

mod drained;
mod order;

use std::collections::VecDeque;
use std::iter::once;
use std::sync::Arc;

pub(crate) use drained::Drained;

use super::HostConfig;
use super::origin_id::OriginId;
use super::outage::{OriginHealth, Outage, Trouble};
use super::packed_entries::closed::SegmentStore;
use super::packed_entries::{OriginRef, PackedEntries};
use crate::class::{ByClass, Class, Classes};
use crate::entry::{Entry, Purpose, origin_text};
use crate::failure::Failure;
use crate::lease::NotFetched;
use crate::report::Health;
use crate::rules::{KnownRules, Policy};
use crate::time::Time;
use crate::url::HostKey;

/// The queue and the state of one origin.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct OriginQueue {
    pub(crate) id: OriginId,
    /// Its rules of robots.txt, with their lifetime.
    pub(crate) known: Option<KnownRules>,
    /// Whether its robots.txt is in flight.
    pub(crate) is_asking: bool,
    /// Whether no page was leased since its robots.txt was read. Rules are used once, even if they have expired. Otherwise robots.txt
    /// might be fetched again and again, and never a page.
    pub(crate) rules_are_fresh: bool,
    /// Failed requests for its robots.txt in a row.
    pub(crate) robots_attempts: u8,
    /// Whether it has answered in this crawl.
    pub(crate) has_answered: bool,
    pub(crate) is_given_up: bool,
    /// Whether it is in the round of its host's origins, which have something to lease. One that waits for its robots.txt does not
    /// delay the others.
    pub(crate) in_round: bool,
    /// Whether a sitemap was leased last: sitemaps and pages take turns.
    page_is_next: bool,
    /// The pages of the class that most have.
    pages: PackedEntries,
    rare: Option<Box<Rare>>,
}

/// State that most origins do not have.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Rare {
    /// The earliest time of the next request for its robots.txt.
    robots_due: Time,
    /// The time at which its host checks it next.
    timer: Time,
    sitemaps: VecDeque<Entry>,
    /// The pages of the other classes.
    pages: ByClass<PackedEntries>,
    /// Revisits whose time has come, and then retries.
    retries: ByClass<VecDeque<Entry>>,
    /// Turns of other pages since the last revisit.
    since_revisit: u32,
    /// Pages that wait behind everything else of the crawl.
    postponed: PackedEntries,
    health: OriginHealth,
}

impl Rare {
    /// The retries of all classes.
    fn retries(&self) -> impl Iterator<Item = &Entry> {
        self.retries.iter().flat_map(|(_, retries)| retries)
    }

    fn bytes(&self) -> usize {
        let queues = self
            .retries
            .iter()
            .map(|(_, retries)| retries)
            .chain(once(&self.sitemaps));
        let entry =
            |queue: &VecDeque<Entry>| queue.capacity() * size_of::<Entry>() + queue.len() * Entry::BYTES_OF_TEXTS;
        let entries: usize = queues.map(entry).sum();
        let packed = self.pages.iter().map(|(_, pages)| pages).chain(once(&self.postponed));
        let packed: usize = packed.map(PackedEntries::heap_bytes).sum();
        size_of::<Self>() + entries + packed + self.pages.heap_bytes() + self.retries.heap_bytes()
    }
}

/// What an origin is asked for next, if anything waits there. All that leases, sets timers or says why an entry waits decides by it.
#[derive(Debug)]
pub(crate) enum Turn<'o> {
    /// A probe, because it is away.
    Probe(&'o Outage),
    /// Its robots.txt, which comes before all others.
    Robots,
    /// The first of its queue.
    Entry,
}

impl OriginQueue {
    pub(crate) fn new(id: OriginId) -> Self {
        Self { id, ..Self::default() }
    }

    /// Queues an entry behind all others of its kind. Retries of pages wait behind pages that were never requested, revisits before these.
    pub(crate) fn push(&mut self, entry: Entry, segments: Option<&dyn SegmentStore>) {
        if let Purpose::Sitemap(_) = entry.purpose {
            self.rare().sitemaps.push_back(entry);
        } else if entry.was_asked_for() {
            self.rare().retries.of(entry.class).push_back(entry);
        } else if entry.is_revisit() {
            let retries = self.rare().retries.of(entry.class);
            let at = retries.iter().take_while(|entry| !entry.was_asked_for()).count();
            retries.insert(at, entry);
        } else {
            let origin_ref = OriginRef::new(&entry.queue, origin_text(&entry.url), segments).of_class(entry.class);
            self.pages_of(entry.class).push(&entry, origin_ref);
        }
    }

    /// Postpones a page: it waits behind everything else of the crawl.
    pub(crate) fn postpone(&mut self, entry: &Entry, segments: Option<&dyn SegmentStore>) {
        let origin = origin_text(&entry.url);
        let origin_ref = OriginRef::new(&entry.queue, origin, segments);
        self.rare().postponed.push(entry, origin_ref);
    }

    /// Removes the oldest postponed page and returns it.
    pub(crate) fn take_postponed(&mut self, host: &HostKey, segments: Option<&dyn SegmentStore>) -> Option<Entry> {
        let origin = &self.id.text(host);
        self.rare
            .as_mut()?
            .postponed
            .pop(OriginRef::new(host, origin, segments))
    }

    pub(crate) fn turn(&self, now: Time, ask_robots: bool) -> Turn<'_> {
        match self.outage() {
            Some(outage) => Turn::Probe(outage),
            None if ask_robots && !self.knows_robots(now) => Turn::Robots,
            None => Turn::Entry,
        }
    }

    /// When its turn may come; `None` if that needs a settlement first.
    pub(crate) fn ready_at(&self, now: Time, config: &HostConfig) -> Option<Time> {
        if self.is_given_up || self.is_empty(config) {
            return None;
        }
        match self.turn(now, config.politeness.ask_robots) {
            Turn::Probe(outage) => (!outage.is_probing && !self.is_asking).then_some(outage.next),
            Turn::Robots => (!self.is_asking).then(|| self.robots_due()),
            Turn::Entry => Some(Time::EPOCH),
        }
    }

    /// Takes what its turn is for: its robots.txt, or the next entry: sitemaps and pages of a class take turns, then retries of that. Says
    /// whether it is a probe, too.
    pub(crate) fn take(
        &mut self,
        host: &HostKey,
        class: Class,
        now: Time,
        config: &HostConfig,
    ) -> Option<(Entry, bool)> {
        let (is_probe, is_of_robots) = match self.turn(now, config.politeness.ask_robots) {
            Turn::Probe(_) => (true, config.politeness.ask_robots),
            Turn::Robots => (false, true),
            Turn::Entry => (false, false),
        };
        if is_probe && let Some(outage) = &mut self.health_mut().outage {
            outage.is_probing = true;
        }
        if is_of_robots {
            self.is_asking = true;
            let origin = self.id.origin(host)?;
            let url = origin.robots_url().as_str().into();
            let mut entry = Entry::new(host.clone(), url, Purpose::Robots(origin));
            entry.attempts = u32::from(self.robots_attempts);
            return Some((entry, is_probe));
        }
        let entry = self.take_entry(host, class, config)?;
        self.rules_are_fresh = false;
        Some((entry, is_probe))
    }

    /// Why its rules of robots.txt forbid an entry, if they do.
    pub(crate) fn forbids(&self, entry: &Entry, config: &HostConfig) -> Option<(NotFetched, Option<Arc<Failure>>)> {
        let known = self.known.as_ref().filter(|_| config.politeness.ask_robots)?;
        known.policy.forbids(entry.path())
    }

    /// Iterates over all queued entries, in no particular order. Cost: a copy of each.
    pub(crate) fn waiting<'a>(&'a self, origin_ref: OriginRef<'a>) -> impl Iterator<Item = Entry> + 'a {
        let rare = self.rare.iter();
        let pages = self
            .queues()
            .flat_map(move |(class, pages)| pages.iter(origin_ref.of_class(class)));
        let postponed = rare.clone().flat_map(move |rare| rare.postponed.iter(origin_ref));
        let others = rare.flat_map(|rare| rare.sitemaps.iter().chain(rare.retries()).cloned());
        pages.chain(postponed).chain(others)
    }

    /// The pages of each class, without those asked for before.
    fn queues(&self) -> impl Iterator<Item = (Class, &PackedEntries)> {
        let others = self.rare.iter().flat_map(|rare| rare.pages.iter());
        once((Class::default(), &self.pages)).chain(others)
    }

    fn pages_of(&mut self, class: Class) -> &mut PackedEntries {
        match class == Class::default() {
            true => &mut self.pages,
            false => self.rare().pages.of(class),
        }
    }

    /// The classes of its pages that are not postponed or [held](HostConfig::holds_new).
    pub(crate) fn classes(&self, config: &HostConfig) -> Classes {
        let is_meant = |pages: &PackedEntries| !pages.is_empty() && !config.holds_new;
        let usual = is_meant(&self.pages).then_some(Class::default());
        let Some(rare) = &self.rare else {
            return usual.into_iter().collect();
        };
        let pages = rare.pages.iter().filter(|(_, pages)| is_meant(pages));
        let is_meant = |entry: &Entry| !config.holds_new || entry.is_revisit();
        let retries = rare.retries.iter().filter(|(_, retries)| retries.iter().any(is_meant));
        let others = pages.map(|(class, _)| class).chain(retries.map(|(class, _)| class));
        usual.into_iter().chain(others).collect()
    }

    pub(crate) fn has_sitemaps(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| !rare.sitemaps.is_empty())
    }

    /// The number of postponed pages.
    pub(crate) fn postponed_len(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.postponed.len())
    }

    /// The number of queued entries, postponed ones included.
    pub(crate) fn waiting_len(&self) -> u64 {
        let retries = |rare: &Rare| rare.retries.iter().map(|(_, retries)| retries.len()).sum::<usize>();
        let others = |rare: &Rare| (rare.sitemaps.len() + retries(rare)) as u64 + rare.postponed.len();
        let pages: u64 = self.queues().map(|(_, pages)| pages.len()).sum();
        pages + self.rare.as_deref().map_or(0, others)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let rules = self.known.as_ref().map_or(0, |known| known.policy.bytes());
        self.pages.heap_bytes() + rules + self.rare.as_deref().map_or(0, Rare::bytes)
    }

    /// Whether nothing is queued, except what is postponed or held.
    pub(crate) fn is_empty(&self, config: &HostConfig) -> bool {
        self.classes(config).is_empty() && !self.has_sitemaps()
    }

    /// Returns whether it has state, other than its robots.txt, that must not be forgotten.
    pub(crate) fn must_be_kept(&self) -> bool {
        let is_over = |rare: &Rare| rare.postponed.is_empty() && rare.health.is_over();
        self.is_given_up || self.is_asking || !self.rare.as_deref().is_none_or(is_over)
    }

    pub(crate) fn outage(&self) -> Option<&Outage> {
        self.rare.as_ref()?.health.outage.as_ref()
    }

    /// Whether an answer changes nothing: it has answered before, and all that a failure or a retry leaves is in `rare`.
    pub(crate) fn is_answering(&self) -> bool {
        self.has_answered && self.rare.is_none()
    }

    pub(crate) fn health(&mut self) -> Option<&mut OriginHealth> {
        self.rare.as_mut().map(|rare| &mut rare.health)
    }

    pub(crate) fn health_mut(&mut self) -> &mut OriginHealth {
        &mut self.rare().health
    }

    pub(crate) fn throttles(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.health.throttles)
    }

    pub(crate) fn trouble(&self) -> Option<&Trouble> {
        self.rare.as_ref()?.health.trouble.as_deref()
    }

    /// What it does, as far as that does not depend on the time.
    pub(crate) fn state(&self) -> Health {
        // Until a probe fails, too, it may be its pages alone that are silent.
        let hangs = self.trouble().is_some_and(|trouble| trouble.state == Health::Hanging);
        let is_away = |outage: &Outage| outage.is_certain() || !hangs;
        match self.trouble() {
            _ if self.is_given_up => Health::GivenUp,
            _ if self.outage().is_some_and(is_away) => Health::Away,
            _ if self.is_closed() => Health::Closed,
            trouble => trouble.map_or(Health::Asked, |trouble| trouble.state),
        }
    }

    /// Returns the earliest time of the next request for its robots.txt.
    pub(crate) fn robots_due(&self) -> Time {
        self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.robots_due)
    }

    /// Sets the earliest time of the next request for its robots.txt.
    pub(crate) fn set_robots_due(&mut self, due: Time) {
        self.rare().robots_due = due;
    }

    /// The epoch for no time.
    pub(crate) fn timer(&self) -> Time {
        self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.timer)
    }

    pub(crate) fn set_timer(&mut self, time: Time) {
        if time > Time::EPOCH || self.rare.is_some() {
            self.rare().timer = time;
        }
    }

    pub(crate) fn knows_robots(&self, now: Time) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.until > now || self.rules_are_fresh)
    }

    /// Whether it is probed. [`state`](Self::state) calls it hanging all the same until that is certain.
    pub(crate) fn is_away(&self) -> bool {
        self.outage().is_some()
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns whether nothing of it is requested: it was given up, or its robots.txt could not be fetched.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_given_up || self.is_closed()
    }

    /// Returns whether its robots.txt could not be fetched, which forbids everything.
    fn is_closed(&self) -> bool {
        let policy = self.known.as_ref().map(|known| &known.policy);
        matches!(policy, Some(Policy::Closed(NotFetched::RobotsUnreachable, _)))
    }

    /// Makes it askable again: its failures are forgotten, and so is that its robots.txt could not be fetched. Returns whether it was
    /// given up.
    pub(crate) fn reopen(&mut self) -> bool {
        if self.is_closed() {
            self.known = None;
            self.rules_are_fresh = false;
        }
        if let Some(rare) = &mut self.rare {
            rare.health = OriginHealth::default();
        }
        std::mem::take(&mut self.is_given_up)
    }
}
