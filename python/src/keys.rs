//! The bytes of a key.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Returns the bytes of a key: those of `bytes`, or the UTF-8 of a `str`.
///
/// # Errors
///
/// Another type; a `str` with a lone surrogate, which has no UTF-8.
#[inline]
pub(crate) fn bytes_of<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    bytes_if_key(key)?.ok_or_else(|| not_a_key(key))
}

/// Returns the bytes of a key; `None` for another type. It runs no Python code, unless it makes an error and the garbage collector starts.
#[inline]
pub(crate) fn bytes_if_key<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
    // Most keys are of this very type, which takes one comparison; whether they are of a derived one takes a call.
    if let Ok(text) = key.cast_exact::<PyString>() {
        return text.to_str().map(|text| Some(text.as_bytes()));
    }
    bytes_of_others(key)
}

#[inline(never)]
fn bytes_of_others<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes()));
    }
    match key.cast::<PyString>() {
        Ok(text) => text.to_str().map(|text| Some(text.as_bytes())),
        Err(_) => Ok(None),
    }
}

#[cold]
fn not_a_key(key: &Bound<'_, PyAny>) -> PyErr {
    match key.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("a key is a str or bytes, not {name}")),
        Err(error) => error,
    }
}
