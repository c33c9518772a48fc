//! The bytes of a key.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Returns the bytes of a key: those of `bytes`, or the UTF-8 of a `str`.
#[inline]
pub(crate) fn bytes_of<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = key.cast::<PyString>() {
        return text.to_str().map(str::as_bytes);
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    Err(no_key(key))
}

#[cold]
fn no_key(key: &Bound<'_, PyAny>) -> PyErr {
    match key.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("a key is a str or bytes, not {name}")),
        Err(error) => error,
    }
}
