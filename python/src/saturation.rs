//! A measurement, as a Python object.

use pyo3::prelude::*;
use sieve::SelfCheck;

/// How full a sieve is, and what that has cost.
#[pyclass(frozen, module = "crawl_sieve")]
pub(crate) struct Saturation(pub(crate) sieve::Saturation);

#[pymethods]
impl Saturation {
    #[getter]
    fn level(&self) -> String {
        self.0.level.to_string()
    }
    #[getter]
    fn estimated(&self) -> f64 {
        self.0.estimated
    }
    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.0.capacity
    }
    #[getter]
    fn grown_capacity(&self) -> Option<u64> {
        self.0.grown_capacity
    }
    #[getter]
    fn accepted(&self) -> u64 {
        self.0.accepted
    }
    #[getter]
    fn fill(&self) -> f64 {
        self.0.fill
    }
    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate
    }
    #[getter]
    fn lost(&self) -> f64 {
        self.0.lost
    }
    #[getter]
    fn lost_at_least(&self) -> u64 {
        self.0.lost_at_least()
    }
    #[getter]
    fn layers(&self) -> u32 {
        self.0.layers
    }
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes
    }
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
