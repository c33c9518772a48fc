//! The crate `sieve` as the Python module `crawl_sieve._crawl_sieve`.

mod add_method;
mod counted;
mod errors;
mod exclusive;
mod file;
mod keys;
mod log_lines;
mod many;
mod saturation;
mod sieve;

use pyo3::prelude::*;

/// What the package `crawl_sieve` exports.
#[pymodule]
mod _crawl_sieve {
    use super::*;

    #[pymodule_export]
    use crate::errors::SaturatedError;
    #[pymodule_export]
    use crate::saturation::Saturation;
    #[pymodule_export]
    use crate::sieve::Sieve;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        add_method::install(module.py())?;
        log_lines::install(module.py())
    }
}
