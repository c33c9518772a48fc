//! The crate `sieve` as the Python module `crawl_sieve._crawl_sieve`.
//!
//! The package in Python, its stubs and its tests are in `python` and `tests`.

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

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// What the package `crawl_sieve` exports.
#[pymodule(gil_used = true)]
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
        let py = module.py();
        expect_gil(py)?;
        expect_one_interpreter()?;
        add_method::install(py)?;
        log_lines::install(py)
    }
}

/// Refuses an interpreter without the GIL: see `exclusive.rs`. One that can have it has switched it on for this module.
fn expect_gil(py: Python<'_>) -> PyResult<()> {
    match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(is_enabled) if !is_enabled.call0()?.is_truthy()? => Err(PyImportError::new_err(
            "crawl_sieve needs the GIL: start Python without -X gil=0 and PYTHON_GIL=0",
        )),
        _ => Ok(()),
    }
}

/// Refuses a second interpreter: classes and loggers are objects of the first.
fn expect_one_interpreter() -> PyResult<()> {
    static FIRST: OnceLock<i64> = OnceLock::new();

    #[expect(unsafe_code, reason = "there is no other interface")]
    // SAFETY: called with the GIL.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if *FIRST.get_or_init(|| this) == this {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "crawl_sieve works in one interpreter of a process: import it in the first one only",
    ))
}
