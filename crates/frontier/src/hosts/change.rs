//! The one way to change a host: its state follows from the change, and its place from its state.

use super::host::{Host, HostState};
use super::origin_id::OriginId;
use super::{HostConfig, HostQueues, timers};
use crate::config::MAX_ORIGINS_PER_HOST;
use crate::time::Time;
use crate::url::HostKey;

impl HostQueues {
    /// Changes an origin, and updates its state and that of its host.
    pub(super) fn change_origin<T>(
        &mut self,
        key: &HostKey,
        id: OriginId,
        now: Time,
        change: impl FnOnce(&mut Host) -> T,
    ) -> Option<T> {
        let mut result = None;
        self.change(key, now, |host, config| {
            result = Some(change(host));
            host.refresh(id, now, config);
        });
        result
    }

    /// Changes a host, which is inserted if it is not known, and updates its state. All changes of queues and times go through this function.
    pub(super) fn change(&mut self, key: &HostKey, now: Time, change: impl FnOnce(&mut Host, &HostConfig)) {
        let moved = self.hosts.change_or_insert(key, |host| {
            let before = host.waiting();
            change(host, &self.config);
            self.has_crowded_hosts |= host.origins().len() >= MAX_ORIGINS_PER_HOST / 2;
            self.waiting.update(before, host.waiting());
            host.update_state(now, &self.config)
        });
        if let Some(needs_place) = moved.flatten() {
            self.place(key, needs_place, now);
        }
    }

    /// Updates the state of a host.
    pub(super) fn update_state(&mut self, key: &HostKey, now: Time) {
        let host = self.hosts.get_mut(key);
        if let Some(needs_place) = host.and_then(|host| host.update_state(now, &self.config)) {
            self.place(key, needs_place, now);
        }
    }

    /// Puts a host in the place of its new state.
    fn place(&mut self, key: &HostKey, needs_place: bool, now: Time) {
        // All references to a host share one copy of its name.
        let key = &self.hosts.shared_name(key);
        let found = self.get(key);
        let Some((state, address, is_just_met)) =
            found.map(|host| (host.state, host.shared_address(now), host.is_just_met()))
        else {
            return;
        };
        match (state, address) {
            (HostState::Due(class), _) if needs_place => self.due.join(class, key.clone(), is_just_met),
            (HostState::Waiting(time), _) => timers::add(&mut self.timers.waiting, time, key.clone()),
            (HostState::Resting(time), _) => timers::add(&mut self.timers.resting, time, key.clone()),
            (HostState::WaitingForAddress(class), Some(address)) => {
                if needs_place {
                    self.addresses.waiting(address).join(class, key.clone(), is_just_met);
                }
                self.admit_waiting(Some(address), now);
            }
            (
                HostState::Due(_) | HostState::WaitingForSettlement | HostState::Idle | HostState::WaitingForAddress(_),
                _,
            ) => {}
        }
        self.sweep();
    }
}
