//! How the memory of a durable frontier is shared out, and what its parts take.

use sieve::Filter as _;

use super::State;
use crate::config::{FrontierConfig, FrontierConfigError};
use crate::report::MemoryReport;

/// What the store takes: its caches, the calls and rows of one commit, a slice of a checkpoint.
const STORE_BYTES: u64 = 24 << 20;
/// The digests of the last keys of an exact seen-set, those that were looked up last, and where the others lie.
const KEY_BYTES: u64 = 64 << 20;
/// The fewest bytes for hosts in memory.
const LEAST_HOST_BYTES: u64 = 8 << 20;

impl FrontierConfig {
    /// Returns the least [`max_memory`](Self::max_memory) in bytes: for the store, some hosts, and the seen-set at its capacity with the
    /// copy that a checkpoint makes of it.
    ///
    /// # Errors
    ///
    /// A seen-set that cannot be built.
    pub fn least_memory(&self) -> Result<u64, FrontierConfigError> {
        Ok(STORE_BYTES + self.key_bytes() + LEAST_HOST_BYTES + 2 * self.seen_set_bytes()?)
    }

    /// Checks the bound of the memory, and gives the seen-set its share: a quarter, and what it takes at its capacity at least.
    pub(crate) fn with_shares(mut self) -> Result<Self, FrontierConfigError> {
        let Some(most) = self.max_memory else { return Ok(self) };
        let least = self.least_memory()?;
        if most < least {
            return Err(FrontierConfigError::TooLittleMemory { most, least });
        }
        let share = (most / 4).max(self.seen_set_bytes()?);
        let bytes = &mut self.seen_set.max_seen_set_bytes;
        *bytes = Some(bytes.map_or(share, |bytes| bytes.min(share)));
        Ok(self)
    }

    fn key_bytes(&self) -> u64 {
        if self.seen_set.exact { KEY_BYTES } else { 0 }
    }

    fn seen_set_bytes(&self) -> Result<u64, FrontierConfigError> {
        let sizing = sieve::Sizing::for_rate(self.seen_set.capacity, self.seen_set.false_positive_rate)
            .map_err(FrontierConfigError::SeenSet)?;
        Ok(sizing.memory_bytes())
    }

    pub(crate) fn what_decides(&self) -> Self {
        Self {
            max_memory: None,
            sync_interval: Self::default().sync_interval,
            ..self.clone()
        }
    }
}

impl State {
    /// Shares the memory out: hosts get what the other parts leave, or these bytes if there is no bound.
    pub(crate) fn share_memory(&mut self, without_bound: u64) {
        let most_resident = match self.config.max_memory {
            None => without_bound,
            Some(most) => {
                let report = self.memory_report_of_parts();
                // A checkpoint copies the seen-set.
                let others = report.total() - report.hosts + report.seen_set;
                // What an allocator loses between blocks of many sizes: measured, up to a quarter.
                (most.saturating_sub(others) / 5 * 4).max(LEAST_HOST_BYTES)
            }
        };
        self.host_table().set_most_resident(most_resident);
    }

    pub(super) fn memory_report(&self) -> Option<MemoryReport> {
        let is_on_disk = self.queues().hosts().may_be_on_disk();
        is_on_disk.then(|| self.memory_report_of_parts())
    }

    fn memory_report_of_parts(&self) -> MemoryReport {
        let hosts = self.queues().hosts();
        MemoryReport {
            bound: self.config.max_memory,
            seen_set: self.seen().load().memory_bytes,
            hosts: hosts.resident_bytes(),
            host_names: hosts.name_bytes(),
            sent_links: self.exchange_bytes(),
            fingerprints: self.tables.clusters.bytes(),
            store: STORE_BYTES + if self.seen().has_keys() { KEY_BYTES } else { 0 },
            hosts_on_disk: hosts.evicted() as u64,
        }
    }
}
