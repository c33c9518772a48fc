//! The page budget of one host, and draining its queue.

use std::sync::Arc;

use super::super::origin_queue::OriginQueue;
use super::super::packed_entries::PackedEntries;
use super::super::{HostConfig, OriginId, counts_as_page};
use super::Host;
use crate::entry::{Entry, Purpose};
use crate::failure::Failure;
use crate::url::HostKey;

/// The pages that may be queued for each page of the budget, and in addition.
const WAITING_PER_PAGE: u64 = 10;
const WAITING_AT_LEAST: u64 = 1000;

/// What is drained from the queue of one origin.
#[derive(Debug)]
pub(crate) enum Leaving {
    /// All, because the origin was given up after this failure.
    All(Arc<Failure>),
    /// Pages that were not fetched in this crawl before, because the budget is spent.
    NewPages,
}

/// The entries that were drained from the queue of one origin.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct TakenOut {
    pub(crate) packed: Vec<PackedEntries>,
    pub(crate) entries: Vec<Entry>,
}

impl TakenOut {
    pub(crate) fn pages(&self) -> u64 {
        let packed: u64 = self.packed.iter().map(PackedEntries::len).sum();
        let others = self.entries.iter().filter(|entry| entry.purpose == Purpose::Page);
        packed + others.count() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> u64 {
        self.packed.iter().map(PackedEntries::len).sum::<u64>() + self.entries.len() as u64
    }
}

impl Host {
    /// Returns whether another page may be queued. More pages are queued than the budget allows, because forbidden pages and redirects
    /// spend nothing.
    pub(crate) fn takes_pages(&self, rules: &HostConfig) -> bool {
        rules.limits.max_pages_per_host.is_none_or(|most| {
            let room = most.saturating_mul(WAITING_PER_PAGE).saturating_add(WAITING_AT_LEAST);
            u64::from(self.settled_pages) < most && u64::from(self.queued_pages) + self.postponed() < room
        })
    }

    /// Says whether the pages in flight may spend all that is left of the budget: what waits must wait for them.
    pub(crate) fn holds_pages(&self, rules: &HostConfig) -> bool {
        let (settled, leased) = (u64::from(self.settled_pages), u64::from(self.leased_pages));
        let is_held = |most| settled < most && settled + leased >= most;
        rules.limits.max_pages_per_host.is_some_and(is_held)
    }

    /// Counts a page that was fetched. Returns whether pages must be dropped, because the budget is spent now.
    pub(crate) fn count_page(&mut self, rules: &HostConfig) -> bool {
        self.settled_pages = self.settled_pages.saturating_add(1);
        self.exceeds_budget(rules)
    }

    /// Takes back that a page was counted: it is fetched again.
    pub(crate) fn uncount_page(&mut self) {
        self.settled_pages = self.settled_pages.saturating_sub(1);
    }

    pub(crate) fn settled_pages(&self) -> u64 {
        self.settled_pages.into()
    }

    pub(crate) fn exceeds_budget(&self, rules: &HostConfig) -> bool {
        let is_spent = |most| self.settled_pages() >= most;
        rules.limits.max_pages_per_host.is_some_and(is_spent) && self.new_pages() > 0
    }

    /// Returns how many pages wait that were not fetched in this crawl before. Cost: O(origins), and a look at all retries.
    fn new_pages(&self) -> u64 {
        let refreshes: u64 = self.origins.iter().map(OriginQueue::refreshes).sum();
        let delayed = self.rare.iter().flat_map(|rare| &rare.delayed);
        let delayed = delayed.filter(|delayed| delayed.entry.is_refresh()).count() as u64;
        (self.queued_pages() + self.postponed()).saturating_sub(refreshes + delayed)
    }

    pub(crate) fn origin_ids(&self) -> Vec<OriginId> {
        self.origins.iter().map(|origin| origin.id).collect()
    }

    /// Drains the queue of an origin, or its new pages only. Robots.txt files of other origins that were redirected here stay.
    pub(crate) fn take_out(&mut self, key: &HostKey, id: OriginId, leaving: &Leaving, rules: &HostConfig) -> TakenOut {
        let is_all = matches!(leaving, Leaving::All(_));
        let origin = self.origin(id);
        let postponed = origin.postponed_len();
        let (packed, mut entries) = if is_all {
            origin.drain_pages()
        } else {
            origin.drain_new_pages(key, rules.segments())
        };
        let postponed = postponed - origin.postponed_len();
        if is_all {
            entries.extend(origin.drain_sitemaps());
        }
        if let Some(rare) = &mut self.rare {
            let is_meant = |entry: &Entry| OriginId::of(&entry.url) == id && (is_all || counts_as_page(entry));
            let (its, others): (Vec<_>, Vec<_>) = std::mem::take(&mut rare.delayed)
                .into_iter()
                .partition(|delayed| is_meant(&delayed.entry));
            rare.delayed = others.into();
            entries.extend(its.into_iter().map(|delayed| delayed.entry));
        }
        let taken = TakenOut { packed, entries };
        let less = |count: u32, by: u64| u32::try_from(u64::from(count).saturating_sub(by)).unwrap_or_default();
        if let Some(rare) = &mut self.rare {
            rare.postponed = less(rare.postponed, postponed);
        }
        self.queued = less(self.queued, taken.len().saturating_sub(postponed));
        self.queued_pages = less(self.queued_pages, taken.pages().saturating_sub(postponed));
        taken
    }
}
