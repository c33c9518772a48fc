//! The state as bytes: what a checkpoint holds, but for the seen-set and the hosts, which are large and stored apart.
//!
//! It is written by postcard, field after field, so it can be read by the same version of the format only. It contains nothing of the
//! configuration.

use sieve::{SeenSet, Sieve};

use super::{Seen, State, Tables};
use crate::config::{FrontierConfig, FrontierConfigError};
use crate::error::OpenError;
use crate::hosts::{HostConfig, HostQueues, HostTable, HostsOnDisk};
use crate::scope::Reached;

/// What is stored of a state.
type Stored = (sieve::Counters, HostQueues, Reached, Tables);

impl State {
    /// Returns the state as bytes, without the hosts and the seen-set. Cost: a copy of it.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let (sieve, reached) = (&self.sieve, self.scope.reached());
        postcard::to_allocvec(&(sieve.counters(), sieve.queue(), reached, &self.tables))
    }

    pub(crate) fn into_seen_set(self) -> SeenSet {
        self.sieve.into_parts().0.into_filter()
    }

    pub(crate) fn decode(
        state: &[u8],
        seen_set: Seen,
        hosts: HostTable,
        config: &FrontierConfig,
        on_disk: HostsOnDisk,
    ) -> Result<Self, OpenError> {
        let damaged = |error| OpenError::damaged(format_args!("its state cannot be read: {error}"));
        let (counters, queues, reached, mut tables): Stored = postcard::from_bytes(state).map_err(damaged)?;
        let mut state = Self::new(config, SeenSet::exact())?;
        tables.clusters.set_room(config.traps.max_fingerprints);
        state.sieve = Sieve::from_parts(seen_set, queues)
            .on_saturation(config.seen_set.on_saturation)
            .with_counters(counters);
        state.scope.set_reached(reached);
        state.tables = tables;
        state.lie_on_disk(config, hosts, on_disk)?;
        state.obey_orders()?;
        Ok(state)
    }

    pub(crate) fn lie_on_disk(
        &mut self,
        config: &FrontierConfig,
        hosts: HostTable,
        on_disk: HostsOnDisk,
    ) -> Result<(), FrontierConfigError> {
        let queues = HostConfig::of(config, &[])?;
        self.hosts().configure(queues, config.traps.clone(), hosts, on_disk);
        Ok(())
    }
}
