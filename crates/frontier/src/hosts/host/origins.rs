//! The origins of a host: their round, and when they are ready.

use std::cmp::Reverse;

use super::super::origin_id::OriginId;
use super::super::origin_queue::OriginQueue;
use super::Host;
use crate::class::{Class, Classes};
use crate::entry::Entry;
use crate::hosts::HostConfig;
use crate::time::Time;

impl Host {
    /// Finds or creates an origin.
    pub(crate) fn origin(&mut self, id: OriginId) -> &mut OriginQueue {
        let at = match self.origins.binary_search_by_key(&id, |origin| origin.id) {
            Ok(at) => at,
            Err(at) => {
                let mut origins = std::mem::take(&mut self.origins).into_vec();
                origins.reserve_exact(1);
                origins.insert(at, OriginQueue::new(id));
                self.origins = origins.into_boxed_slice();
                at
            }
        };
        &mut self.origins[at]
    }

    /// Finds an origin.
    pub(crate) fn find(&self, id: OriginId) -> Option<&OriginQueue> {
        let at = self.origins.binary_search_by_key(&id, |origin| origin.id).ok()?;
        self.origins.get(at)
    }

    pub(crate) fn origins(&self) -> &[OriginQueue] {
        &self.origins
    }

    pub(crate) fn delayed(&self) -> impl Iterator<Item = &Entry> {
        self.rare.iter().flat_map(|rare| rare.delayed.values())
    }

    /// Parses the rules of its origins that were read from a store.
    pub(crate) fn parse_rules(&mut self, parse: &crate::rules::ParseRules) {
        let known = self.origins.iter_mut().filter_map(|origin| origin.known.as_mut());
        known.for_each(|known| known.policy.parse(parse));
    }

    /// Applies a changed configuration: the longest `Crawl-delay`, and whether robots.txt is asked for, on which its round depends.
    pub(crate) fn apply_config(&mut self, now: Time, config: &HostConfig) {
        self.set_admitted(false);
        self.places = Classes::default();
        self.update_crawl_delay(config.politeness.max_crawl_delay);
        if let Some(rare) = &mut self.rare {
            rare.timed.clear();
            rare.places_there = Classes::default();
        }
        for origin in &mut self.origins {
            origin.in_round = false;
            origin.set_timer(Time::EPOCH);
        }
        for id in self.origin_ids() {
            self.refresh(id, now, config);
        }
    }

    /// Updates an origin after a change: adds it to the round, or sets its timer.
    pub(crate) fn refresh(&mut self, id: OriginId, now: Time, config: &HostConfig) {
        let origin = self.origin(id);
        let Some(time) = origin.ready_at(now, config) else {
            return;
        };
        if time <= now {
            origin.in_round = true;
        } else if origin.timer() != time {
            origin.set_timer(time);
            self.rare().timed.push(Reverse((time, id)));
        }
    }

    /// Returns the next origin of the round with pages of the class whose turn it is. Sitemaps go with the best class. Returns its
    /// position. Cost: a scan of all origins.
    pub(super) fn next_in_round(&mut self, config: &HostConfig) -> Option<(usize, Class)> {
        let in_use = self.classes(config);
        let class = match in_use.are_several() {
            true => self.rare().turns.get_or_insert_default().classes.next(in_use),
            false => in_use.best(),
        };
        let class = class.unwrap_or_default();
        let next = usize::from(*self.next_origin(class)).min(self.origins.len());
        let (before, after) = self.origins.split_at(next);
        let is_best = in_use.best().is_none_or(|best| best == class);
        let is_meant =
            |origin: &OriginQueue| origin.classes(config).contains(class) || is_best && origin.has_sitemaps();
        let is_next = |origin: &OriginQueue| origin.in_round && is_meant(origin);
        let at = after.iter().chain(before).position(is_next)?;
        let at = (next + at) % self.origins.len();
        *self.next_origin(class) = u16::try_from(at).unwrap_or_default();
        Some((at, class))
    }

    /// The place in the round of the origins with pages of a class.
    fn next_origin(&mut self, class: Class) -> &mut u16 {
        let turns = self.rare.as_mut().and_then(|rare| rare.turns.as_mut());
        turns.map_or(&mut self.next_origin, |turns| {
            &mut turns.next_origins[usize::from(class.number())]
        })
    }

    /// The classes of the pages in its round.
    fn classes(&self, config: &HostConfig) -> Classes {
        let in_round = self.origins.iter().filter(|origin| origin.in_round);
        in_round.fold(Classes::default(), |classes, origin| classes | origin.classes(config))
    }

    /// The best of these, which decides about its place among other hosts.
    pub(crate) fn class(&self, config: &HostConfig) -> Class {
        // A robots.txt that was redirected to it is for another host, whose pages wait.
        let is_urgent = self.rare.as_ref().is_some_and(|rare| !rare.urgent.is_empty());
        if is_urgent {
            return Class::FIRST;
        }
        self.classes(config).best().unwrap_or_default()
    }

    /// Removes an origin from the round, which continues after it for its class.
    pub(super) fn leave_round(&mut self, at: usize, class: Class) {
        self.origins[at].in_round = false;
        let next = self.next_origin(class);
        *next = next.saturating_add(1);
    }

    /// Queues the retries that are due, and adds the origins to the round whose timers are due.
    pub(super) fn bring_due(&mut self, now: Time, config: &HostConfig) {
        while let Some(rare) = &mut self.rare {
            if let Some(delayed) = rare.delayed.first_entry().filter(|delayed| delayed.key().0 <= now) {
                let entry = delayed.remove();
                self.put_in_queue(entry, now, config);
                continue;
            }
            match rare.timed.peek() {
                Some(Reverse((time, id))) if *time <= now => {
                    let (time, id) = (*time, *id);
                    rare.timed.pop();
                    let origin = self.origin(id);
                    if origin.timer() == time {
                        origin.set_timer(Time::EPOCH);
                        self.refresh(id, now, config);
                    }
                }
                _ => break,
            }
        }
    }

    pub(super) fn first_due(&mut self, now: Time, config: &HostConfig) -> Option<Time> {
        let urgent = self
            .rare
            .as_ref()
            .and_then(|rare| rare.urgent.iter().map(|entry| entry.due).min());
        if self.holds_pages(config) {
            return urgent;
        }
        while let Some((at, class)) = self.next_in_round(config) {
            let origin = &self.origins[at];
            let id = origin.id;
            let ready = origin.ready_at(now, config);
            if ready.is_some_and(|time| time <= now) {
                return Some(Time::EPOCH);
            }
            // It is not ready any more.
            self.leave_round(at, class);
            self.refresh(id, now, config);
        }
        let rare = self.rare.as_mut()?;
        while let Some(Reverse((time, id))) = rare.timed.peek().copied() {
            let at = self.origins.binary_search_by_key(&id, |origin| origin.id).ok();
            let origin = at.and_then(|at| self.origins.get(at));
            let is_meant = |origin: &OriginQueue| origin.timer() == time && origin.ready_at(now, config) == Some(time);
            if origin.is_some_and(is_meant) {
                break;
            }
            rare.timed.pop();
            if let Some(origin) = at
                .and_then(|at| self.origins.get_mut(at))
                .filter(|origin| origin.timer() == time)
            {
                origin.set_timer(Time::EPOCH);
            }
        }
        let timed = rare.timed.peek().map(|Reverse((time, _))| *time);
        let delayed = rare.delayed.first_key_value().map(|((due, _), _)| *due);
        [urgent, timed, delayed].into_iter().flatten().min()
    }
}
