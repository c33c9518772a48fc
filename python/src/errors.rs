//! What is raised.

use std::convert::Infallible;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use sieve::{ConfigError, Refused, RefusedBy, SnapshotError};

create_exception!(
    crawl_sieve,
    SaturatedError,
    PyRuntimeError,
    "The sieve is past its capacity, and refuses new keys.

`new` is a list: what `Sieve.new` had found new before it met the key that was refused. Nothing else has these keys any more."
);

/// The error of a sieve that cannot be made.
pub(crate) fn config_error(error: ConfigError) -> PyErr {
    match error {
        ConfigError::CannotAllocate { .. } => PyMemoryError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// The error of the system, with the path.
pub(crate) fn os_error(error: &std::io::Error, path: &Path) -> PyErr {
    // Rust has the number in the text, as Python has.
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    PyOSError::new_err((error.raw_os_error(), text.to_owned(), path.as_os_str().to_owned()))
}

/// The error of a sieve that refuses.
pub(crate) fn saturated(py: Python<'_>) -> PyErr {
    let refused: Refused<(), Infallible> = Refused {
        item: (),
        by: RefusedBy::Saturation,
    };
    let error = SaturatedError::new_err(refused.to_string());
    match error.value(py).setattr("new", PyList::empty(py)) {
        Ok(()) => error,
        Err(error) => error,
    }
}

/// The error of bytes that are not those of a sieve.
pub(crate) fn snapshot_error(error: SnapshotError, path: Option<&Path>) -> PyErr {
    match (error, path) {
        (SnapshotError::Io(error), Some(path)) if error.raw_os_error().is_some() => os_error(&error, path),
        (SnapshotError::Memory(error), _) => config_error(error),
        (error, Some(path)) => PyValueError::new_err(format!("{}: {error}", path.display())),
        (error, None) => PyValueError::new_err(error.to_string()),
    }
}
