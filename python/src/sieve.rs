//! The class `Sieve`.

use std::io::Cursor;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sieve::{Hashing, OnSaturation, SieveBuilder, SnapshotError};

use crate::counted::{Counted, Nothing};
use crate::errors::{SaturatedError, config_error, os_error, saturated};
use crate::exclusive::Exclusive;
use crate::keys::bytes_of;
use crate::many::add_all;
use crate::saturation::Saturation;
use crate::{file, log_lines};

/// A set of seen keys that says when it is full and how many keys that has cost.
#[pyclass(frozen, module = "crawl_sieve")]
pub(crate) struct Sieve {
    // No Python code runs while it is taken.
    counted: Exclusive<Counted>,
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

    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut new = 0;
        add_all(&self.counted, keys, |added| {
            new += added.count_new();
            Ok(())
        })?;
        Ok(new)
    }

    #[pyo3(name = "new")]
    fn new_keys<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let new = PyList::empty(py);
        let outcome = add_all(&self.counted, keys, |added| {
            added.new_keys().try_for_each(|key| new.append(key?))
        });
        match outcome {
            Err(error) if error.is_instance_of::<SaturatedError>(py) => Err(saturated(py, Some(&new))),
            outcome => outcome.map(|()| new),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(key)?;
        Ok(self.counted.take(key.py()).contains(bytes))
    }

    #[getter]
    fn saturation(&self, py: Python<'_>) -> Saturation {
        Saturation(self.counted.take(py).saturation())
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let counted = self.counted.take(py);
        let counted: &Counted = &counted;
        py.detach(|| file::save(counted, self.policy, &path))
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
        file::write(&self.counted.take(py), self.policy, &mut bytes)?;
        let from_bytes = py.get_type::<Self>().getattr("_from_bytes")?;
        Ok((from_bytes, (PyBytes::new(py, &bytes),)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Sieve: {}>", self.counted.take(py).saturation())
    }
}

impl Sieve {
    /// Adds a key. It runs no Python code and makes no Python object.
    #[inline]
    pub(crate) fn add(&self, py: Python<'_>, key: &[u8]) -> Outcome {
        let mut counted = self.counted.take(py);
        if counted.push(key) {
            Outcome::New
        } else if counted.is_refusing() && !counted.contains(key) {
            Outcome::Refused
        } else {
            Outcome::Seen
        }
    }

    fn of(counted: Counted, policy: OnSaturation) -> Self {
        Self {
            counted: Exclusive::new(counted),
            policy,
        }
    }
}

/// What became of a key.
pub(crate) enum Outcome {
    New,
    Seen,
    Refused,
}

impl Outcome {
    /// Returns whether the key was new.
    ///
    /// # Errors
    ///
    /// A key that was refused.
    pub(crate) fn is_new(self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Self::New => Ok(true),
            Self::Seen => Ok(false),
            Self::Refused => Err(saturated(py, None)),
        }
    }
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
