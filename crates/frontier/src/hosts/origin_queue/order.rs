//! The order in which the entries of an origin are leased: sitemaps and pages take turns, pages by their [class](crate::Class), those of a class
//! in turn with revisits whose time has come (one turn in [`LEAST_TURNS`]) and before its retries, as `take_entry` takes them and `find_queued` counts them. Postponed pages come last: they are queued anew when nothing
//! else is left (`HostQueues::release_postponed`).

use std::collections::{BTreeMap, VecDeque};

use super::OriginQueue;
use crate::class::{Class, Turns};
use crate::entry::{Entry, Purpose};
use crate::hosts::packed_entries::OriginRef;
use crate::hosts::packed_entries::closed::SegmentStore;
use crate::hosts::{HostConfig, LEAST_TURNS};
use crate::url::HostKey;

impl OriginQueue {
    /// Takes a sitemap, or a page of a class.
    pub(super) fn take_entry(&mut self, host: &HostKey, class: Class, config: &HostConfig) -> Option<Entry> {
        let first = match self.page_is_next {
            true => self.take_page(host, class, config).or_else(|| self.take_sitemap()),
            false => self.take_sitemap().or_else(|| self.take_page(host, class, config)),
        }?;
        self.page_is_next = matches!(first.purpose, Purpose::Sitemap(_));
        Some(first)
    }

    fn take_sitemap(&mut self) -> Option<Entry> {
        take_first(&mut self.rare.as_mut()?.sitemaps)
    }

    /// Takes a page of a class; while new pages are held, a revisit.
    fn take_page(&mut self, host: &HostKey, class: Class, config: &HostConfig) -> Option<Entry> {
        if config.holds_new {
            let retries = self.rare.as_mut()?.retries.get_mut(class)?;
            return retries.remove(retries.iter().position(Entry::is_revisit)?);
        }
        let segments = config.segments();
        if let Some(revisit) = self.take_revisit(class) {
            return Some(revisit);
        }
        let origin = &self.id.text(host);
        let origin_ref = OriginRef::new(host, origin, segments).of_class(class);
        let is_usual = class == Class::default();
        if is_usual && let Some(entry) = self.pages.pop(origin_ref) {
            return Some(entry);
        }
        let rare = self.rare.as_mut()?;
        if !is_usual && let Some(pages) = rare.pages.get_mut(class) {
            let entry = pages.pop(origin_ref);
            if pages.is_empty() {
                rare.pages.remove(class);
            }
            if entry.is_some() {
                return entry;
            }
        }
        take_first(rare.retries.get_mut(class)?)
    }

    /// Takes a revisit whose time has come, if it is its turn, or no new page waits.
    fn take_revisit(&mut self, class: Class) -> Option<Entry> {
        let rare = self.rare.as_mut()?;
        rare.since_revisit = rare.since_revisit.saturating_add(1);
        let is_turn = rare.since_revisit >= LEAST_TURNS;
        rare.retries
            .get_mut(class)?
            .front()
            .filter(|entry| !entry.was_asked_for())?;
        if !is_turn && self.queues().any(|(of, pages)| of == class && !pages.is_empty()) {
            return None;
        }
        let rare = self.rare.as_mut()?;
        rare.since_revisit = 0;
        take_first(rare.retries.get_mut(class)?)
    }

    /// Finds the entry with a key. Returns it with how many entries come before it, and whether it is postponed. Cost: a copy of each of
    /// these.
    pub(crate) fn find_queued(
        &self,
        host: &HostKey,
        key: &str,
        turns: Option<&Turns>,
        segments: Option<&dyn SegmentStore>,
    ) -> Option<(Entry, u64, bool)> {
        let origin = &self.id.text(host);
        let origin_ref = OriginRef::new(host, origin, segments);
        let rare = self.rare.as_deref();
        let sitemaps = || rare.into_iter().flat_map(|rare| rare.sitemaps.iter().cloned());
        let of_sitemaps = rare.map_or(0, |rare| rare.sitemaps.len() as u64);
        let counts = self.counts();
        let of_pages: u64 = counts.values().sum();
        for class in counts.keys().copied() {
            let pages = self.queues().filter(|(of, _)| *of == class);
            let pages = pages.flat_map(|(_, pages)| pages.iter(origin_ref.of_class(class)));
            let retries = rare.into_iter().flat_map(|rare| rare.retries.iter());
            let retries = retries.filter(|(of, _)| *of == class);
            let retries = retries.flat_map(|(_, retries)| retries);
            let (retries, revisits): (Vec<_>, Vec<_>) = retries.partition(|entry| entry.was_asked_for());
            let all = revisits
                .into_iter()
                .cloned()
                .chain(pages)
                .chain(retries.into_iter().cloned());
            if let Some((at, entry)) = find(all, key) {
                let at = ahead(counts, turns, class, at);
                let before = of_sitemaps.min(at + u64::from(!self.page_is_next));
                return Some((entry, at + before, false));
            }
        }
        if let Some((at, entry)) = find(sitemaps(), key) {
            let before = of_pages.min(at + u64::from(self.page_is_next));
            return Some((entry, at + before, false));
        }
        let (at, entry) = find(rare?.postponed.iter(origin_ref), key)?;
        Some((entry, of_pages + of_sitemaps + at, true))
    }

    /// How many entries wait that come before those of a worse class.
    pub(crate) fn len_up_to(&self, class: Class) -> u64 {
        let sitemaps = self.rare.as_ref().map_or(0, |rare| rare.sitemaps.len() as u64);
        self.counts().range(..=class).map(|(_, count)| count).sum::<u64>() + sitemaps
    }

    /// How many pages of each class wait that are not postponed.
    fn counts(&self) -> BTreeMap<Class, u64> {
        let retries = self.rare.iter().flat_map(|rare| rare.retries.iter());
        let retries = retries.map(|(class, retries)| (class, retries.len() as u64));
        let mut counts = BTreeMap::new();
        for (class, count) in self.queues().map(|(class, pages)| (class, pages.len())).chain(retries) {
            *counts.entry(class).or_default() += count;
        }
        counts.retain(|_, count| *count > 0);
        counts
    }
}

fn take_first(queue: &mut VecDeque<Entry>) -> Option<Entry> {
    let entry = queue.pop_front();
    if queue.len() < queue.capacity() / 4 {
        queue.shrink_to(queue.capacity() / 2);
    }
    entry
}

fn find(entries: impl Iterator<Item = Entry>, key: &str) -> Option<(u64, Entry)> {
    (0..).zip(entries).find(|(_, entry)| entry.key() == key)
}

/// How many pages come before the one at a place in its class. Cost: a step for each, if there are several classes.
fn ahead(mut left: BTreeMap<Class, u64>, turns: Option<&Turns>, wanted: Class, mut at: u64) -> u64 {
    let mut turns = turns.cloned().unwrap_or_default();
    let mut ahead = 0;
    while left.len() > 1
        && let Some(class) = turns.next(left.keys().copied().collect())
        && (class, at) != (wanted, 0)
    {
        turns.count(class);
        ahead += 1;
        at -= u64::from(class == wanted);
        let of_class = left.entry(class).or_default();
        *of_class -= 1;
        if *of_class == 0 {
            left.remove(&class);
        }
    }
    ahead + if left.len() > 1 { 0 } else { at }
}
