//! The class `Sieve`.

use std::io::Cursor;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sieve::{Hashing, OnSaturation, SieveBuilder};

use crate::counted::{Counted, Nothing, united};
use crate::errors::{config_error, os_error, saturated, snapshot_error};
use crate::exclusive::Exclusive;
use crate::file::{self, Loaded, Saved};
use crate::keys::bytes_of;
use crate::many::add_all;
use crate::saturation::Saturation;

/// A set of seen keys that says how full it is, and how many new keys it has wrongly taken for seen.
///
/// It is a Bloom filter. Keys are `str` or `bytes`; a `str` is its UTF-8.
///
/// capacity: how many different keys are expected.
/// rate: the share of new keys that are wrongly taken for seen ones at that capacity.
/// on_saturation: what to do beyond the capacity: "grow" (take more memory), "warn" (take more and more new keys for seen ones, and log how
///     many) or "refuse" (raise SaturatedError for new keys).
/// hash: "murmur3"; "xxh3", which is faster; or "siphash", for keys of an attacker who watches the crawl.
/// seed: an int makes sieves that can be united; without one, it is random and secret. Below 2**64, for "siphash" below 2**128.
///
/// A sieve can be pickled. Threads may share it: one waits while another saves.
///
/// >>> from crawl_sieve import Sieve
/// >>> seen = Sieve(10_000_000, on_saturation="warn")
/// >>> seen.add("https://example.com/")
/// True
/// >>> "https://example.com/" in seen
/// True
#[pyclass(frozen, module = "crawl_sieve")]
pub(crate) struct Sieve {
    // No Python code runs while it is taken.
    counted: Exclusive<Counted>,
    policy: OnSaturation,
    has_secret_seed: bool,
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
        Ok(Self::of((counted, policy, seed.is_none())))
    }

    /// Add all keys, and return how many were new.
    ///
    /// A list is the fastest. Other threads can run in between. If the iterable raises, or has something that is no key, what came before is
    /// added.
    ///
    /// >>> Sieve().update(["a", "b", "a"])
    /// 2
    #[pyo3(signature = (keys, /))]
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut new = 0;
        add_all(&self.counted, keys, |added| {
            new += added.count_new();
            Ok(())
        })?;
        Ok(new)
    }

    /// Add all keys, and return a list of those that were new, in their order. As `update`, but for the answer.
    ///
    /// If something is raised, its attribute `new` has those that were new before.
    ///
    /// >>> seen = Sieve()
    /// >>> seen.new(["a", "b", "a"])
    /// ['a', 'b']
    /// >>> seen.new(["b", "c"])
    /// ['c']
    #[pyo3(name = "new", signature = (keys, /))]
    fn new_keys<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let new = PyList::empty(py);
        let outcome = add_all(&self.counted, keys, |added| {
            added.new_keys().try_for_each(|key| new.append(key?))
        });
        if let Err(error) = outcome {
            // Of an exception that takes no attributes, these keys are lost, but not what it says.
            let _ = error.value(py).setattr("new", new);
            return Err(error);
        }
        Ok(new)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(key)?;
        Ok(self.counted.take(key.py()).contains(bytes))
    }

    /// How full the sieve is, and what that has cost so far. It does not change any more.
    ///
    /// >>> seen = Sieve(1000, on_saturation="warn", seed=1)
    /// >>> seen.update(str(n) for n in range(2000)) < 2000
    /// True
    /// >>> print(seen.saturation.level, seen.saturation.lost_at_least)
    /// 2x 50
    #[getter]
    fn saturation(&self, py: Python<'_>) -> Saturation {
        Saturation(self.counted.take(py).saturation())
    }

    /// Save the sieve to a file. A crash leaves the old file or the new one.
    ///
    /// Owner and permissions stay, but a file with a random seed can be read by its owner only. It has another name at first, such as
    /// ".seen.sieve.new0". A file that cannot be given a new name, such as a mounted one, is written in place.
    ///
    /// >>> Sieve().save("seen.sieve")
    #[pyo3(signature = (path, /))]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let taken = self.counted.take(py);
        let saved = taken.read_detached(|counted| file::save(&self.saved(counted), &path));
        saved.map_err(|error| os_error(&error, &path))
    }

    /// Load a sieve that `save` has saved. It goes on counting, and logs no level twice.
    ///
    /// Raises ValueError if it is damaged or something else.
    ///
    /// >>> seen = Sieve.load("seen.sieve")
    #[staticmethod]
    #[pyo3(signature = (path, /))]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let loaded = py.detach(|| file::load(&path));
        Ok(Self::of(loaded.map_err(|error| snapshot_error(error, Some(&path)))?))
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        // One after the other: two threads that each had one and waited for the other would wait forever.
        let counted = self.counted.take(py).clone();
        let united = united(counted, &other.get().counted.take(py)).map_err(PyValueError::new_err)?;
        let has_secret_seed = self.has_secret_seed || other.get().has_secret_seed;
        Ok(Self::of((
            united.on_saturation(self.policy),
            self.policy,
            has_secret_seed,
        )))
    }

    #[staticmethod]
    fn _from_bytes(bytes: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = bytes.as_bytes();
        let read = file::read(&mut Cursor::new(bytes), bytes.len() as u64);
        Ok(Self::of(read.map_err(|error| snapshot_error(error, None))?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut bytes = Vec::new();
        self.saved(&self.counted.take(py)).write(&mut bytes)?;
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

    fn of((counted, policy, has_secret_seed): Loaded) -> Self {
        Self {
            counted: Exclusive::new(counted),
            policy,
            has_secret_seed,
        }
    }

    fn saved<'s>(&self, counted: &'s Counted) -> Saved<'s> {
        Saved {
            counted,
            policy: self.policy,
            has_secret_seed: self.has_secret_seed,
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
    pub(crate) fn into_answer(self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Self::New => Ok(true),
            Self::Seen => Ok(false),
            Self::Refused => Err(saturated(py)),
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
