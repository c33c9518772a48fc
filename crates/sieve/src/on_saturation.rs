//! The policy of a sieve beyond its capacity.

/// What a sieve does when the estimated number of keys exceeds its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OnSaturation {
    /// New keys are still accepted, but more and more of them are wrongly dropped. The log says how many.
    #[default]
    Warn,
    /// The filter adds a layer. The total false-positive rate stays at or below the configured one, and the memory grows.
    Grow,
    /// New keys are refused and not marked: nothing is lost silently, but nothing new is queued.
    Refuse,
}
