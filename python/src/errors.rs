//! What is raised.

use std::convert::Infallible;
use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use sieve::{ConfigError, Refused, RefusedBy};

create_exception!(
    crawl_sieve,
    SaturatedError,
    PyRuntimeError,
    "The sieve is past its capacity, and refuses new keys."
);

pub(crate) fn config_error(error: ConfigError) -> PyErr {
    match error {
        ConfigError::CannotAllocate { .. } => PyMemoryError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn os_error(error: std::io::Error, path: PathBuf) -> PyErr {
    match error.raw_os_error() {
        Some(code) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((code, text, path))
        }
        None => error.into(),
    }
}

/// The error of a sieve that refuses. `new` are the keys that the call has added before.
pub(crate) fn saturated(py: Python<'_>, new: Option<&Bound<'_, PyList>>) -> PyErr {
    let refused: Refused<(), Infallible> = Refused {
        item: (),
        by: RefusedBy::Saturation,
    };
    let error = SaturatedError::new_err(refused.to_string());
    if let Some(new) = new {
        let _ = error.value(py).setattr("new", new);
    }
    error
}
