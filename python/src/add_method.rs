//! The method `add`, without what PyO3 does at each call.
//!
//! It unpacks arguments, and counts the thread as one that has the GIL, which takes 8 of the 40 ns of an `add`. The interpreter can pass a
//! single argument as it is, by the convention `METH_O`, but PyO3 has no such methods.

use std::ffi::CStr;
use std::ptr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};

use crate::keys::bytes_of;
use crate::log_lines;
use crate::sieve::{Outcome, Sieve};

const DOC: &CStr = c"add($self, key, /)
--

Add a key: True if it was new, False if it was seen.

A new key is wrongly taken for a seen one at the rate `saturation.rate`.
Raises SaturatedError if the sieve refuses the key, which is not added then.
If a handler of the log raises, the key is added, and the exception's attribute
`new` has it if it was new.

>>> seen = Sieve()
>>> seen.add(\"https://example.com/\")
True
>>> seen.add(b\"https://example.com/\")  # a str is its UTF-8
False
";

/// Gives the class its method `add`.
#[expect(unsafe_code, reason = "PyO3 has no such methods")]
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<Sieve>();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: add },
        ml_flags: ffi::METH_O,
        ml_doc: DOC.as_ptr(),
    }));
    // SAFETY: the definition is never dropped, and `add` is a function of this convention. The object is new.
    let add = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition)) }?;
    class.setattr("add", add)
}

/// Adds a key. A panic ends the process.
///
/// # Safety
///
/// The caller has the GIL, a `Sieve` and an object, until this returns.
#[expect(unsafe_code, reason = "the interpreter calls it")]
unsafe extern "C" fn add(sieve: *mut PyObject, key: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller has the GIL and both objects. It calls a method of a class with objects of the class only.
    let (py, sieve, key) = unsafe {
        let py = Python::assume_attached();
        let sieve = Borrowed::from_ptr(py, sieve).cast_unchecked::<Sieve>();
        (py, sieve, Borrowed::from_ptr(py, key))
    };
    // SAFETY: the object is a `str`.
    if unsafe { ffi::PyUnicode_CheckExact(key.as_ptr()) } == 0 {
        return finish(&key, |py| Ok(sieve.get().add(py, bytes_of(&key)?)));
    }
    let object = key;
    let mut size = 0;
    // SAFETY: the object is a `str`, which owns its UTF-8 as long as it lives.
    let key = unsafe {
        let utf8 = ffi::PyUnicode_AsUTF8AndSize(key.as_ptr(), &raw mut size);
        if utf8.is_null() {
            // The interpreter has the exception.
            return ptr::null_mut();
        }
        std::slice::from_raw_parts(utf8.cast::<u8>(), size as usize)
    };
    match sieve.get().add(py, key) {
        Outcome::New if !log_lines::are_there() => to_object(py, true),
        Outcome::Seen => to_object(py, false),
        outcome => finish(&object, |_| Ok(outcome)),
    }
}

/// Logs and raises what is due. PyO3 needs to know that this thread has the GIL.
#[cold]
fn finish(key: &Bound<'_, PyAny>, add: impl FnOnce(Python<'_>) -> PyResult<Outcome>) -> *mut PyObject {
    Python::attach(|py| {
        let answer = add(py).and_then(|outcome| {
            log_lines::pass_on(py).inspect_err(|error| {
                let new = matches!(outcome, Outcome::New).then_some(key);
                // An exception that takes no attributes says at least what it says.
                let _ = PyList::new(py, new).and_then(|new| error.value(py).setattr("new", new));
            })?;
            outcome.into_answer(py)
        });
        match answer {
            Ok(is_new) => to_object(py, is_new),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    })
}

fn to_object(py: Python<'_>, truth: bool) -> *mut PyObject {
    PyBool::new(py, truth).to_owned().into_ptr().cast()
}
