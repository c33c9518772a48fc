//! The class `Sieve`.

use std::convert::Infallible;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList};
use sieve::{
    Accepts, ConfigError, Hashing, OnSaturation, Queue, Refused, RefusedBy, SeenSet, SieveBuilder, SnapshotError,
};

use crate::keys::bytes_of;
use crate::saturation::Saturation;
use crate::{file, log_lines};

/// The number of keys that are taken from an iterable before the lock is taken.
const BATCH: usize = 1024;

create_exception!(
    crawl_sieve,
    SaturatedError,
    PyRuntimeError,
    "The sieve is past its capacity, and refuses new keys."
);

/// A queue that keeps nothing: the caller has the key.
#[derive(Clone, Copy)]
pub(crate) struct Nothing;

impl Queue for Nothing {
    fn len(&self) -> usize {
        0
    }
}

impl Accepts<&[u8]> for Nothing {
    type Refusal = Infallible;

    fn admit(&self, _: &&[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn push(&mut self, _: &[u8]) {}

    fn admits_next(&self, _: usize) -> bool {
        true
    }
}

/// A filter with its counts.
pub(crate) type Counted = sieve::Sieve<SeenSet, Nothing>;

/// A set of seen keys that says when it is full and how many keys that has cost.
#[pyclass(frozen, module = "crawl_sieve")]
pub(crate) struct Sieve {
    // No Python code runs while it is locked.
    counted: Mutex<Counted>,
    policy: OnSaturation,
}

#[pymethods]
impl Sieve {
    #[new]
    #[pyo3(signature = (capacity=1_000_000, *, rate=0.01, on_saturation="grow", hash="murmur3", seed=None))]
    fn new(capacity: u64, rate: f64, on_saturation: &str, hash: &str, seed: Option<u128>) -> PyResult<Self> {
        let policy = policy_of(on_saturation)?;
        let builder = SieveBuilder::default()
            .capacity(capacity)
            .false_positive_rate(rate)
            .on_saturation(policy)
            .hashing(hashing_of(hash, seed)?);
        let counted = builder.build_with(Nothing).map_err(config_error)?;
        Ok(Self::of(counted, policy))
    }

    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        let bytes = bytes_of(key)?;
        let mut counted = self.lock(py);
        let is_new = counted.push(bytes);
        let is_refused = !is_new && counted.is_refusing() && !counted.contains(bytes);
        drop(counted);
        log_lines::pass_on(py);
        if is_refused { Err(saturated(py, None)) } else { Ok(is_new) }
    }

    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut new = 0;
        self.add_all(keys, |batch, is_new| {
            debug_assert_eq!(batch.len(), is_new.len());
            new += is_new.iter().filter(|&&is_new| is_new).count();
            Ok(())
        })?;
        Ok(new)
    }

    #[pyo3(name = "new")]
    fn new_keys<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let list = PyList::empty(py);
        let added = self.add_all(keys, |batch, is_new| {
            let new = batch.iter().zip(is_new).filter(|(_, is_new)| **is_new);
            new.into_iter().try_for_each(|(key, _)| list.append(key))
        });
        match added {
            Err(error) if error.is_instance_of::<SaturatedError>(py) => Err(saturated(py, Some(&list))),
            added => added.map(|()| list),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(key)?;
        Ok(self.lock(key.py()).contains(bytes))
    }

    #[getter]
    fn saturation(&self, py: Python<'_>) -> Saturation {
        Saturation(self.lock(py).saturation())
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| file::save(&lock(&self.counted), self.policy, &path))
            .map_err(|error| os_error(error, path))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        match py.detach(|| file::load(&path)) {
            Ok((counted, policy)) => Ok(Self::of(counted, policy)),
            Err(SnapshotError::Io(error)) if error.raw_os_error().is_some() => Err(os_error(error, path)),
            Err(error) => Err(PyValueError::new_err(format!("{}: {error}", path.display()))),
        }
    }

    #[staticmethod]
    fn _from_bytes(bytes: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = bytes.as_bytes();
        let (counted, policy) = file::read(&mut Cursor::new(bytes), bytes.len() as u64)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self::of(counted, policy))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut bytes = Vec::new();
        file::write(&self.lock(py), self.policy, &mut bytes)?;
        let from_bytes = py.get_type::<Self>().getattr("_from_bytes")?;
        Ok((from_bytes, (PyBytes::new(py, &bytes),)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Sieve: {}>", self.lock(py).saturation())
    }
}

impl Sieve {
    fn of(counted: Counted, policy: OnSaturation) -> Self {
        Self {
            counted: Mutex::new(counted),
            policy,
        }
    }

    /// Locks the sieve. While another thread has it, this one lets go of the interpreter.
    #[inline]
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Counted> {
        self.counted
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds keys in batches, and calls `each` with each batch and which of it were new.
    fn add_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        mut each: impl FnMut(&[Bound<'py, PyAny>], &[bool]) -> PyResult<()>,
    ) -> PyResult<()> {
        let py = keys.py();
        let mut keys = keys.try_iter()?;
        let mut batch = Vec::new();
        let mut is_new = Vec::new();
        loop {
            batch.clear();
            is_new.clear();
            let mut failure = None;
            for key in keys.by_ref().take(BATCH) {
                match key {
                    Ok(key) => batch.push(key),
                    Err(error) => failure = Some(error),
                }
                if failure.is_some() {
                    break;
                }
            }
            let is_last = batch.len() < BATCH;
            let mut bytes = Vec::with_capacity(batch.len());
            for key in &batch {
                match bytes_of(key) {
                    Ok(key) => bytes.push(key),
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            let mut is_refused = false;
            py.detach(|| {
                lock(&self.counted).try_push_all(bytes.iter().copied(), |outcome| {
                    is_refused |= outcome.is_err();
                    is_new.push(outcome.unwrap_or(false));
                });
            });
            log_lines::pass_on(py);
            let count = is_new.len();
            each(&batch[..count], &is_new)?;
            if is_refused {
                return Err(saturated(py, None));
            }
            if let Some(failure) = failure {
                return Err(failure);
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

fn lock(counted: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

fn policy_of(name: &str) -> PyResult<OnSaturation> {
    match name {
        "grow" => Ok(OnSaturation::Grow),
        "warn" => Ok(OnSaturation::Warn),
        "refuse" => Ok(OnSaturation::Refuse),
        _ => Err(PyValueError::new_err(format!(
            "on_saturation is \"grow\", \"warn\" or \"refuse\", not {name:?}"
        ))),
    }
}

fn hashing_of(name: &str, seed: Option<u128>) -> PyResult<Hashing> {
    let is_known = seed.is_some();
    let seed = match seed {
        Some(seed) => seed,
        None => {
            let mut secret = [0; 16];
            getrandom::fill(&mut secret).map_err(|error| PyOSError::new_err(error.to_string()))?;
            u128::from_le_bytes(secret)
        }
    };
    if name != "siphash" && is_known && seed > u128::from(u64::MAX) {
        return Err(PyValueError::new_err(format!("the seed of {name} is below 2**64")));
    }
    match name {
        "murmur3" => Ok(Hashing::Murmur3 { seed: seed as u64 }),
        "xxh3" => Ok(Hashing::Xxh3 { seed: seed as u64 }),
        "siphash" => Ok(Hashing::Hardened {
            key: seed.to_le_bytes(),
        }),
        _ => Err(PyValueError::new_err(format!(
            "hash is \"murmur3\", \"xxh3\" or \"siphash\", not {name:?}"
        ))),
    }
}

fn config_error(error: ConfigError) -> PyErr {
    match error {
        ConfigError::CannotAllocate { .. } => PyMemoryError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

fn os_error(error: std::io::Error, path: PathBuf) -> PyErr {
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
fn saturated(py: Python<'_>, new: Option<&Bound<'_, PyList>>) -> PyErr {
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
