//! The sizes of a store: of a journal, of the parts of a checkpoint, of the digests of keys, and of what is in memory.

use crate::config::DEFAULT_HOST_MEMORY;

/// What tests make smaller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// The journal is never shorter than this when a checkpoint is due, in bytes. It bounds the work of opening a small frontier.
    pub(crate) min_journal_bytes: u64,
    /// The size of a part, in bytes.
    pub(crate) part_bytes: usize,
    /// The parts that are written with one row: of a checkpoint, and of each run of digests at least.
    pub(crate) parts_at_once: usize,
    /// The digests of a part of a run.
    pub(crate) digests_of_part: usize,
    /// The fresh digests that freeze.
    pub(crate) fresh_digests: usize,
    /// The digests that are known to be there without a look-up, the last of each slot: those of many links are asked for again and again.
    pub(crate) verified: usize,
    /// The size of a group of evicted hosts, in bytes, unless fewer are evicted at once.
    pub(crate) group_bytes: usize,
    /// The segments that no checkpoint has and that are no longer needed, before they are removed together: neighbours share pages.
    pub(crate) young_at_once: usize,
    /// The bytes of hosts in memory, if the configuration has no bound.
    pub(crate) resident_bytes: u64,
    /// The bytes of new segments that wait in memory while the calls of the journal are made again.
    pub(crate) fresh_bytes: usize,
}

pub(crate) const SIZES: Sizes = Sizes {
    min_journal_bytes: 20 << 20,
    part_bytes: 256 << 10,
    parts_at_once: 8,
    digests_of_part: 1024,
    fresh_digests: 1 << 19,
    // 16 MiB.
    verified: 1 << 20,
    group_bytes: 32 << 10,
    young_at_once: 32,
    resident_bytes: DEFAULT_HOST_MEMORY,
    fresh_bytes: 8 << 20,
};
