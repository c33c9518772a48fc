//! The state of a host, which follows from its queue and its times. Who takes a host out of the round, a queue of an address or a timer makes it
//! idle first, so that [`Host::update_state`] finds its new place (`round_robin.rs`, `timers.rs`, `stored.rs`).

use super::super::HostConfig;
use super::super::addresses::Address;
use super::super::origin_queue::OriginQueue;
use super::Host;
use crate::class::Class;
use crate::time::Time;

/// The state of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum HostState {
    /// Nothing is queued, but it is kept, because something about it must not be lost.
    #[default]
    Idle,
    /// In the round of hosts that can be requested now, among those of its class.
    Due(Class),
    /// Waiting in the round of its address, which other hosts share.
    WaitingForAddress(Class),
    /// Waiting for its time.
    Waiting(Time),
    /// Nothing can be leased before a settlement: all its requests are in flight, or its robots.txt is.
    WaitingForSettlement,
    /// Nothing is queued, and it can be forgotten after this time.
    Resting(Time),
}

impl Host {
    /// Updates its state after a change. If it is another now, returns whether that needs a place in a round.
    pub(crate) fn update_state(&mut self, now: Time, config: &HostConfig) -> Option<bool> {
        let state = match self.state {
            // It stays there until its turn, when `round_robin.rs` looks at it again, unless a page of a better class has come.
            HostState::Due(class) => HostState::Due(class.min(self.class(config))),
            HostState::WaitingForAddress(class) if class <= self.class(config) => self.state,
            _ => match self.next_state(now, config) {
                HostState::Due(class) if self.shared_address(now).is_some() => HostState::WaitingForAddress(class),
                state => state,
            },
        };
        let is_other = std::mem::replace(&mut self.state, state) != state;
        is_other.then(|| self.takes_place(self.shared_address(now)))
    }

    /// Brings what is due into the queues of its origins, and returns the state that follows.
    pub(crate) fn next_state(&mut self, now: Time, config: &HostConfig) -> HostState {
        if self.queued() == 0 && self.pace.in_flight() == 0 {
            return self.idle_state(now, config);
        }
        self.bring_due(now, config);
        let free = self.free_at(config);
        match free.and_then(|free| Some(free.max(self.first_due(now, config)?))) {
            None => HostState::WaitingForSettlement,
            Some(time) if time <= now => HostState::Due(self.class(config)),
            Some(time) => HostState::Waiting(time),
        }
    }

    /// When the host may be asked next, whatever waits there; `None` if that needs a settlement first. Leases and `why` both decide by it.
    pub(crate) fn free_at(&self, config: &HostConfig) -> Option<Time> {
        let is_asking = config.politeness.per_address && self.address() == Address::Asking;
        (self.pace.in_flight() < self.per_host(config) && !is_asking).then(|| self.free_from(config))
    }

    fn idle_state(&self, now: Time, config: &HostConfig) -> HostState {
        let must_be_kept = self.own_policy().is_some()
            || self.gave_up_any()
            || self.postponed() > 0
            || self.has_places()
            || self.origins.iter().any(OriginQueue::must_be_kept)
            || (self.max_pages(config).is_some() && self.settled_pages > 0);
        if must_be_kept {
            return HostState::Idle;
        }
        let known = self.origins.iter().filter_map(|origin| origin.known.as_ref());
        let until = known.map(|known| known.until).max().unwrap_or_default();
        HostState::Resting(until.max(self.free_from(config)).max(now))
    }
}
