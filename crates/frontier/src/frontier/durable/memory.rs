//! How the memory of a durable frontier is shared out, and what its parts take.

use sieve::Filter as _;

use super::super::Frontier;
use super::sizes::Sizes;
use crate::config::{ConfigError, FrontierConfig};
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
    pub fn least_memory(&self) -> Result<u64, ConfigError> {
        Ok(STORE_BYTES + self.key_bytes() + LEAST_HOST_BYTES + 2 * self.seen_set_bytes()?)
    }

    /// Checks the bound of the memory, and gives the seen-set its share: a quarter, and what it takes at its capacity at least.
    pub(super) fn with_shares(self) -> Result<Self, ConfigError> {
        let Some(most) = self.max_memory else { return Ok(self) };
        let least = self.least_memory()?;
        if most < least {
            return Err(ConfigError::TooLittleMemory { most, least });
        }
        let share = (most / 4).max(self.seen_set_bytes()?);
        Ok(Self {
            max_seen_set_bytes: Some(self.max_seen_set_bytes.map_or(share, |bytes| bytes.min(share))),
            ..self
        })
    }

    /// Returns the bytes of the digests of keys.
    fn key_bytes(&self) -> u64 {
        if self.exact { KEY_BYTES } else { 0 }
    }

    /// Returns the bytes of the seen-set at its capacity.
    fn seen_set_bytes(&self) -> Result<u64, ConfigError> {
        let sizing = sieve::Sizing::for_rate(self.capacity, self.false_positive_rate).map_err(ConfigError::SeenSet)?;
        Ok(sizing.memory_bytes())
    }

    /// Returns what decides.
    pub(super) fn without_memory(&self) -> Self {
        Self {
            max_memory: None,
            ..self.clone()
        }
    }
}

impl Frontier {
    /// Shares the memory out: hosts get what the other parts leave.
    pub(super) fn share_memory(&mut self, config: &FrontierConfig, sizes: Sizes) {
        let most_resident = match config.max_memory {
            None => sizes.resident_bytes,
            Some(most) => {
                let report = self.memory_report_of(Some(most));
                // A checkpoint copies the seen-set.
                let others = report.total() - report.hosts + report.seen_set;
                // What an allocator loses between blocks of many sizes: measured, up to a quarter.
                (most.saturating_sub(others) / 5 * 4).max(LEAST_HOST_BYTES)
            }
        };
        self.hosts().table_mut().set_most_resident(most_resident);
    }

    /// Returns what the parts of a durable frontier take.
    pub(in super::super) fn memory_report(&self) -> Option<MemoryReport> {
        let bound = self.durable.as_ref().and_then(|durable| durable.config.max_memory);
        let is_on_disk = self.sieve.queue().hosts().may_be_on_disk();
        is_on_disk.then(|| self.memory_report_of(bound))
    }

    fn memory_report_of(&self, bound: Option<u64>) -> MemoryReport {
        let hosts = self.sieve.queue().hosts().memory();
        MemoryReport {
            bound,
            seen_set: self.sieve.filter().load().memory_bytes,
            hosts: hosts.residents,
            host_names: hosts.names,
            fingerprints: self.clusters.bytes(),
            store: STORE_BYTES + self.sieve.filter().keys().map_or(0, |_| KEY_BYTES),
            hosts_on_disk: hosts.evicted,
        }
    }
}
