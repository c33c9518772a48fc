//! The page budget of one host, and draining its queue.

use std::collections::BTreeMap;

use super::super::origin_queue::{Drained, OriginQueue};
use super::super::{HostConfig, OriginId, counts_as_page};
use super::Host;
use crate::entry::Entry;
use crate::url::HostKey;

/// The pages that may be queued for each page of the budget, and in addition.
const WAITING_PER_PAGE: u64 = 10;
const WAITING_AT_LEAST: u64 = 1000;

impl Host {
    /// Returns whether another page may be queued. More pages are queued than the budget allows, because forbidden pages and redirects
    /// spend nothing.
    pub(crate) fn takes_pages(&self, config: &HostConfig) -> bool {
        self.max_pages(config).is_none_or(|most| {
            let room = most.saturating_mul(WAITING_PER_PAGE).saturating_add(WAITING_AT_LEAST);
            u64::from(self.settled_pages) < most && u64::from(self.queued_pages) + self.postponed() < room
        })
    }

    /// Says whether the pages in flight may spend all that is left of the budget: what waits must wait for them.
    pub(crate) fn holds_pages(&self, config: &HostConfig) -> bool {
        let (settled, leased) = (u64::from(self.settled_pages), u64::from(self.leased_pages));
        let is_held = |most| settled < most && settled + leased >= most;
        self.max_pages(config).is_some_and(is_held)
    }

    /// Counts a page that was fetched. Returns whether pages must be dropped, because the budget is spent now.
    pub(crate) fn count_page(&mut self, config: &HostConfig) -> bool {
        self.settled_pages = self.settled_pages.saturating_add(1);
        self.exceeds_budget(config)
    }

    pub(crate) fn forget_pages(&mut self) {
        self.settled_pages = 0;
    }

    /// Takes back that a page was counted: it is fetched again.
    pub(crate) fn uncount_page(&mut self) {
        self.settled_pages = self.settled_pages.saturating_sub(1);
    }

    pub(crate) fn settled_pages(&self) -> u64 {
        self.settled_pages.into()
    }

    /// How many more pages may be fetched; `None` without a limit.
    pub(crate) fn budget_left(&self, config: &HostConfig) -> Option<u64> {
        Some(self.max_pages(config)?.saturating_sub(self.settled_pages()))
    }

    pub(crate) fn exceeds_budget(&self, config: &HostConfig) -> bool {
        let is_spent = |most| self.settled_pages() >= most;
        self.max_pages(config).is_some_and(is_spent) && self.new_pages() > 0
    }

    /// Returns how many pages wait that were not fetched in this crawl before. Cost: O(origins), and a look at all retries.
    fn new_pages(&self) -> u64 {
        let refreshes: u64 = self.origins.iter().map(OriginQueue::refreshes).sum();
        let delayed = self.rare.iter().flat_map(|rare| &rare.delayed);
        let delayed = delayed.filter(|(_, entry)| entry.is_refresh()).count() as u64;
        (self.queued_pages() + self.postponed()).saturating_sub(refreshes + delayed)
    }

    pub(crate) fn origin_ids(&self) -> Vec<OriginId> {
        self.origins.iter().map(|origin| origin.id).collect()
    }

    /// Drains the queue of an origin, or its new pages only. Robots.txt files of other origins that were redirected here stay.
    pub(crate) fn drain(&mut self, key: &HostKey, id: OriginId, is_all: bool, config: &HostConfig) -> Drained {
        let origin = self.origin(id);
        let postponed = origin.postponed_len();
        let mut drained = origin.drain(key, is_all, config.segments());
        let postponed = postponed - origin.postponed_len();
        if let Some(rare) = &mut self.rare {
            let is_meant = |entry: &Entry| OriginId::of(&entry.url) == id && (is_all || counts_as_page(entry));
            let delayed = std::mem::take(&mut rare.delayed).into_iter();
            let (its, others): (BTreeMap<_, _>, _) = delayed.partition(|(_, entry)| is_meant(entry));
            rare.delayed = others;
            drained.entries.extend(its.into_values());
        }
        let less = |count: u32, by: u64| u32::try_from(u64::from(count).saturating_sub(by)).unwrap_or_default();
        if let Some(rare) = &mut self.rare {
            rare.postponed = less(rare.postponed, postponed);
        }
        let revisits = drained.entries.iter().filter(|entry| entry.is_revisit()).count();
        self.revisits_left(revisits as u32);
        self.queued = less(self.queued, drained.len().saturating_sub(postponed));
        self.queued_pages = less(self.queued_pages, drained.pages().saturating_sub(postponed));
        drained
    }
}
