//! The politeness of a host: its delays, its rests, and its requests so far.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Host;
use crate::entry::{Entry, Purpose};
use crate::hosts::{HostConfig, LEAST_TURNS, counts_as_page};
use crate::policy::{HostPolicy, ResolvedPolicy};
use crate::rules::Policy;
use crate::time::Time;
use crate::url::HostKey;

impl Host {
    /// Records a lease, and returns the time since the end of the last request.
    pub(crate) fn lease(&mut self, entry: &Entry, now: Time) -> Option<Duration> {
        self.leased_pages += u32::from(counts_as_page(entry));
        if let Some(rare) = &mut self.rare {
            rare.address_is_fresh &= entry.purpose == Purpose::Address;
            if let Some(turns) = rare.turns.as_mut().filter(|_| entry.purpose == Purpose::Page) {
                turns.classes.count(entry.class);
            }
        }
        self.pace.start(now)
    }

    /// Records the end of a request that started `gap` after the end of the previous one.
    pub(crate) fn request_ended(&mut self, entry: &Entry, gap: Option<Duration>, now: Time) {
        self.give_back(entry);
        self.pace.end(now);
        self.requests = self.requests.saturating_add(1);
        let gap = gap.map(|gap| NonZeroU32::MIN.saturating_add(milliseconds(gap)));
        self.shortest_gap = [self.shortest_gap, gap].into_iter().flatten().min();
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
        let most = self.policy().max_crawl_delay.unwrap_or(most);
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
        let own = self.policy().delay.unwrap_or(config.politeness.delay);
        own.max(self.crawl_delay())
    }

    pub(crate) fn crawl_delay(&self) -> Duration {
        Duration::from_millis(self.crawl_delay.into())
    }

    /// Its policy, with that of the configuration.
    pub(crate) fn policy(&self) -> &HostPolicy {
        let resolved = self.rare.as_ref().and_then(|rare| rare.policy.as_ref());
        resolved.map_or(&HostPolicy::NONE, |resolved| &resolved.all)
    }

    pub(crate) fn own_policy(&self) -> Option<&HostPolicy> {
        let resolved = self.rare.as_ref()?.policy.as_ref()?;
        Some(&resolved.own).filter(|own| **own != HostPolicy::NONE)
    }

    pub(crate) fn set_policy(&mut self, key: &HostKey, own: HostPolicy, config: &HostConfig) {
        let all = own.clone().or(config.policies.of(key.as_str()));
        let has_one = all != HostPolicy::NONE;
        if has_one || self.rare.is_some() {
            self.rare().policy = has_one.then(|| Box::new(ResolvedPolicy { own, all }));
        }
    }

    /// Finds its policy anew, after that of the configuration has changed.
    pub(crate) fn resolve_policy(&mut self, key: &HostKey, config: &HostConfig) {
        let own = self.own_policy().cloned().unwrap_or_default();
        self.set_policy(key, own, config);
    }

    pub(crate) fn per_host(&self, config: &HostConfig) -> u32 {
        self.policy().per_host.unwrap_or(config.politeness.per_host).get()
    }

    pub(crate) fn max_pages(&self, config: &HostConfig) -> Option<u64> {
        self.policy().max_pages.or(config.limits.max_pages_per_host)
    }

    pub(crate) fn blocked_until(&self) -> Time {
        let blocked = self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.blocked_until);
        blocked.max(self.policy().closed_until.unwrap_or_default())
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
        self.shortest_gap
            .map(|gap| Duration::from_millis(u64::from(gap.get()) - 1))
    }

    /// The least time between two revisits, so that they have their share of what politeness allows.
    pub(crate) fn revisit_interval(&self, config: &HostConfig) -> Duration {
        let turns = match self.queued_pages() - self.revisits() {
            new if new == 0 || config.holds_new => config.revisit_turns,
            _ => config.revisit_turns.max(LEAST_TURNS),
        };
        let request = self.delay(config).saturating_add(self.pace.last_took());
        request.saturating_mul(turns)
    }

    /// When the next revisit may be requested.
    pub(crate) fn next_revisit(&self, config: &HostConfig) -> Time {
        let booked = self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.next_revisit);
        booked.max(self.blocked_until()).max(self.free_from(config))
    }

    /// Takes the time of the next revisit, from now on.
    pub(crate) fn book_revisit(&mut self, now: Time, config: &HostConfig) -> Time {
        let interval = self.revisit_interval(config);
        let rare = self.rare();
        let at = rare.next_revisit.max(now);
        rare.next_revisit = at + interval;
        at
    }

    pub(crate) fn free_from(&self, config: &HostConfig) -> Time {
        let most = self.per_host(config);
        self.pace.free_from(self.delay(config), most).max(self.blocked_until())
    }
}

/// A duration in milliseconds, rounded up: no delay is cut short.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}
