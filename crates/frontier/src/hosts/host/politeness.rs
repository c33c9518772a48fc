//! The politeness of a host: its delays, its rests, and its requests so far.

use std::time::Duration;

use super::Host;
use crate::entry::{Entry, Purpose};
use crate::hosts::{HostConfig, counts_as_page};
use crate::rules::Policy;
use crate::time::Time;

impl Host {
    /// Records a lease, and returns the time since the end of the last request.
    pub(crate) fn lease(&mut self, entry: &Entry, now: Time) -> Option<Duration> {
        self.leased_pages += u32::from(counts_as_page(entry));
        if let Some(rare) = &mut self.rare {
            rare.address_is_fresh &= entry.purpose == Purpose::Address;
        }
        self.pace.start(now)
    }

    /// Records the end of a request that started `gap` after the end of the previous one.
    pub(crate) fn request_ended(&mut self, entry: &Entry, gap: Option<Duration>, now: Time) {
        self.give_back(entry);
        self.pace.end(now);
        self.requests = self.requests.saturating_add(1);
        let gaps = [self.shortest_gap, gap.map(milliseconds)];
        self.shortest_gap = gaps.into_iter().flatten().min();
    }

    /// Records the end of a lease for which no request was made.
    pub(crate) fn request_not_made(&mut self, entry: &Entry, started: Time) {
        self.give_back(entry);
        self.pace.take_back(started);
    }

    fn give_back(&mut self, entry: &Entry) {
        if counts_as_page(entry) {
            self.leased_pages = self.leased_pages.saturating_sub(1);
        }
    }

    /// Sets the `Crawl-delay` of the host: the longest of its robots.txt files.
    pub(crate) fn update_crawl_delay(&mut self, most: Duration) {
        let asked = self.origins.iter().map(|origin| origin.known.as_ref());
        let longest = asked.clone().flatten().map(|known| known.policy.crawl_delay()).max();
        let longest = milliseconds(longest.unwrap_or_default().min(most));
        // Rules that were dropped for lack of memory may have had a longer delay.
        let are_all_known = asked.into_iter().all(|known| known.is_some());
        self.crawl_delay = if are_all_known {
            longest
        } else {
            longest.max(self.crawl_delay.min(milliseconds(most)))
        };
    }

    pub(crate) fn robots_at(&self) -> Option<Time> {
        let known = self.origins.iter().filter_map(|origin| origin.known.as_ref());
        let read = known.filter(|known| !matches!(known.policy, Policy::Closed(..)));
        read.map(|known| known.since).min()
    }

    pub(crate) fn delay(&self, config: &HostConfig) -> Duration {
        let own = self.rare.as_ref().map_or(Duration::ZERO, |rare| rare.own_delay);
        config.politeness.delay.max(own).max(self.crawl_delay())
    }

    pub(crate) fn crawl_delay(&self) -> Duration {
        Duration::from_millis(self.crawl_delay.into())
    }

    /// Zero for none.
    pub(crate) fn set_own_delay(&mut self, delay: Duration) {
        if !delay.is_zero() || self.rare.is_some() {
            self.rare().own_delay = delay;
        }
    }

    pub(crate) fn blocked_until(&self) -> Time {
        self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.blocked_until)
    }

    /// Blocks it until a time. A longer block stays.
    pub(crate) fn block(&mut self, until: Time) {
        let rare = self.rare();
        rare.blocked_until = rare.blocked_until.max(until);
    }

    /// Returns whether its robots.txt was its only request so far. If that was just now, the connection is still open, and a page needs no
    /// handshake.
    pub(crate) fn is_just_met(&self) -> bool {
        self.requests == 1 && self.origins.iter().any(|origin| origin.rules_are_fresh)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.into()
    }

    pub(crate) fn shortest_gap(&self) -> Option<Duration> {
        self.shortest_gap.map(|gap| Duration::from_millis(gap.into()))
    }

    pub(crate) fn free_from(&self, config: &HostConfig) -> Time {
        let most = config.politeness.per_host.get();
        self.pace.free_from(self.delay(config), most).max(self.blocked_until())
    }
}

/// A duration in milliseconds, rounded up: no delay is cut short.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}
