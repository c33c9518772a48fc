//! What a sieve does past its capacity.

/// What happens once the estimate exceeds the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OnSaturation {
    /// New keys are still accepted, with a growing share wrongly dropped; the log says how many.
    #[default]
    Warn,
    /// A layer is added to the filter; the total false-positive rate stays at or below the one asked for, and the memory grows.
    Grow,
    /// New keys are refused and not marked: nothing is lost silently, and nothing new comes in.
    Refuse,
}
