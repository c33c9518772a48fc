//! A measurement, as a Python object.

use pyo3::prelude::*;
use sieve::SelfCheck;

/// How full a sieve was, and what that had cost. It does not change.
///
/// As a `str`, it is a sentence.
#[pyclass(frozen, module = "crawl_sieve")]
pub(crate) struct Saturation(pub(crate) sieve::Saturation);

#[pymethods]
impl Saturation {
    /// "healthy", "filling" (above 0.8 of the capacity), "full" (above it), "1.5x", "2x", "3x", "5x", "10x" and so on.
    #[getter]
    fn level(&self) -> String {
        self.0.level.to_string()
    }

    /// About how many different keys were offered.
    #[getter]
    fn estimated(&self) -> f64 {
        self.0.estimated
    }

    /// The capacity that was asked for.
    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.0.capacity
    }

    /// How many keys a sieve holds that has grown; else None.
    #[getter]
    fn grown_capacity(&self) -> Option<u64> {
        self.0.grown_capacity
    }

    /// How many keys were new.
    #[getter]
    fn accepted(&self) -> u64 {
        self.0.accepted
    }

    /// The chance that the next new key is taken for a seen one, from 0 to 1.
    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate
    }

    /// About how many new keys were taken for seen ones.
    #[getter]
    fn lost(&self) -> f64 {
        self.0.lost
    }

    /// How many new keys were taken for seen ones at least, with a confidence of 97 %.
    #[getter]
    fn lost_at_least(&self) -> u64 {
        self.0.lost_at_least()
    }

    /// The share of bits that are set, from 0 to 1.
    #[getter]
    fn fill(&self) -> f64 {
        self.0.fill
    }

    /// How many layers the sieve has: 1, until it grows.
    #[getter]
    fn layers(&self) -> u32 {
        self.0.layers
    }

    /// The memory of the sieve, in bytes.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes
    }

    /// False if the bits and the counts contradict each other: crafted keys, or damage.
    #[getter]
    fn consistent(&self) -> bool {
        !matches!(self.0.check, SelfCheck::Suspicious { .. })
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Saturation: {}>", self.0)
    }
}
