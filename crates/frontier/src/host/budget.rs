//! How many pages of one host may be had.

use super::Host;
use crate::entry::{Entry, Purpose};
use crate::hosts::HostRules;

/// How many pages may wait for each that a host's budget allows, and how many may in any case.
const WAITING_PER_PAGE: u64 = 10;
const WAITING_AT_LEAST: u64 = 1000;

impl Host {
    /// Says whether a further page may be queued. More may wait than may be had: what robots.txt forbids and what has moved
    /// spends nothing.
    pub(crate) fn takes_pages(&self, rules: &HostRules) -> bool {
        rules.max_pages_per_host.is_none_or(|most| {
            let room = most.saturating_mul(WAITING_PER_PAGE).saturating_add(WAITING_AT_LEAST);
            self.settled_pages < most && self.queued_pages < room
        })
    }

    /// Says whether the pages that are out may spend all that is left of the budget: what waits must wait for them.
    pub(super) fn holds_pages(&self, rules: &HostRules) -> bool {
        let is_held = |most| self.settled_pages < most && self.settled_pages + self.leased_pages >= most;
        rules.max_pages_per_host.is_some_and(is_held)
    }

    /// Counts a page that was had. Takes out all that wait, if the budget is spent by it.
    pub(crate) fn count_page(&mut self, most: Option<u64>) -> Vec<Entry> {
        self.settled_pages += 1;
        if self.queued_pages == 0 || most.is_none_or(|most| self.settled_pages < most) {
            return Vec::new();
        }
        let mut pages: Vec<_> = self.lanes.values_mut().flat_map(|lane| lane.drain_pages()).collect();
        let (later, others) = std::mem::take(&mut self.later)
            .into_iter()
            .partition::<Vec<_>, _>(|later| later.entry.purpose == Purpose::Page);
        self.later = others.into();
        pages.extend(later.into_iter().map(|later| later.entry));
        self.queued = self.queued.saturating_sub(pages.len() as u64);
        self.queued_pages = 0;
        pages
    }
}
