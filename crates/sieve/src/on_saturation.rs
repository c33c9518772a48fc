//! The policy of a sieve beyond its capacity.

/// What happens once the estimate exceeds the capacity. Under each policy the log has one warning per level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OnSaturation {
    /// Accept new keys, and wrongly drop a growing share of them. The log says at least how many were dropped. The memory stays.
    #[default]
    Warn,
    /// Add a layer to the filter, three times as large as the one before. The total false-positive rate stays at or below the one asked
    /// for. Each layer costs its memory, and one cache line per key that is looked up.
    Grow,
    /// Refuse new keys, and do not mark them: nothing is dropped silently, and nothing new comes in. The memory stays.
    Refuse,
}
