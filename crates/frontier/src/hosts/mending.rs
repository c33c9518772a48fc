//! Queues that have lost a part: what is missing is dropped, and all sums are made anew.

use super::HostQueues;
use super::host::Host;
use super::packed_entries::OriginRef;
use super::robots::RulesMemory;
use crate::entry::Entry;
use crate::url::HostKey;

/// What was lost with segments of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostPages {
    pub(crate) host: HostKey,
    pub(crate) pages: u64,
}

impl HostQueues {
    /// Visits the numbers of all segments that lie on the shelf, after the rows of evicted hosts. Segments of hosts whose row is missing are
    /// not visited.
    pub(crate) fn visit_segments(&self, visit: &mut dyn FnMut(u64)) {
        self.hosts.visit_rows(visit);
        for (_, host) in self.hosts.iter() {
            let packed = host.origins().iter().flat_map(|origin| origin.packed());
            packed.for_each(|packed| packed.visit_segments(visit));
        }
        self.dropped.visit_segments(visit);
    }

    /// Visits the entries that were dropped and not returned yet.
    pub(crate) fn visit_dropped(&self, visit: &mut dyn FnMut(Entry)) {
        self.dropped.visit(self.rules.shelf(), visit);
    }

    /// Drops the hosts whose rows are missing on the shelf. Returns their number. The caller makes the sums anew.
    pub(crate) fn drop_rows(&mut self, is_missing: &dyn Fn(u64) -> bool) -> u64 {
        self.hosts.drop_rows(is_missing)
    }

    /// Lets all origins ask for their robots.txt again that wait for its answer: the host may be lost to which it was redirected. The caller
    /// places the hosts anew.
    pub(crate) fn ask_for_robots_again(&mut self) {
        let is_asking = |host: &Host| host.origins().iter().any(|origin| origin.is_asking || origin.is_away());
        let asking = self.hosts.iter().filter(|(_, host)| is_asking(host));
        let keys: Vec<_> = asking.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            for id in host.origin_ids() {
                let origin = host.origin(id);
                origin.is_asking = false;
                if let Some(outage) = origin.health().and_then(|health| health.outage.as_mut()) {
                    outage.is_probing = false;
                }
            }
        }
    }

    /// Drops the segments that are missing on the shelf. Returns what that costs, by host. The caller makes the sums anew.
    pub(crate) fn drop_segments(&mut self, is_missing: &dyn Fn(u64) -> bool) -> Vec<LostPages> {
        let rules = &self.rules;
        let mut lost = Vec::new();
        let lacks_any = |host: &Host| {
            let mut is_any_missing = false;
            for packed in host.origins().iter().flat_map(|origin| origin.packed()) {
                packed.visit_segments(&mut |number| is_any_missing |= is_missing(number));
            }
            is_any_missing
        };
        let damaged = self.hosts.iter().filter(|(_, host)| lacks_any(host));
        let keys: Vec<_> = damaged.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            let pages = host.drop_segments(&key, is_missing, rules.shelf());
            if pages > 0 {
                lost.push(LostPages { host: key, pages });
            }
        }
        self.dropped.drop_segments(is_missing, rules.shelf(), &mut lost);
        lost.sort_unstable_by(|one, other| one.host.cmp(&other.host));
        lost
    }

    /// Sums up all hosts again, after some were lost or have lost a part of their queue. Returns how many pages less there are.
    pub(crate) fn sum_up(&mut self) -> u64 {
        let before = self.queued_pages();
        (self.queued, self.queued_pages, self.postponed, self.given_up) = (0, 0, 0, 0);
        self.rules_memory = RulesMemory::default();
        for (_, host) in self.hosts.iter() {
            self.queued += host.queued();
            self.queued_pages += host.queued_pages();
            self.postponed += host.postponed();
            self.given_up += host.origins().iter().filter(|origin| origin.is_given_up).count() as u64;
            let known = host.origins().iter().filter_map(|origin| origin.known.as_ref());
            known.for_each(|known| self.rules_memory.add(known));
        }
        before.saturating_sub(self.queued_pages())
    }
}

impl Host {
    fn drop_segments(
        &mut self,
        key: &HostKey,
        is_missing: &dyn Fn(u64) -> bool,
        shelf: Option<&dyn super::Shelf>,
    ) -> u64 {
        let (mut lost, mut lost_postponed) = (0, 0);
        for id in self.origin_ids() {
            let text = id.text(key);
            let origin_ref = OriginRef {
                host: key,
                origin: &text,
                shelf,
            };
            let (pages, postponed) = self.origin(id).packed_mut();
            lost += pages.drop_segments(is_missing, origin_ref);
            lost_postponed += postponed.map_or(0, |postponed| postponed.drop_segments(is_missing, origin_ref));
        }
        self.lost(lost, lost_postponed);
        lost + lost_postponed
    }
}
