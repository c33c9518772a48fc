//! The saturation lines, as records of Python's `logging`.
//!
//! The sieve logs while it is locked. A handler in Python may use the same sieve, so the lines wait until the lock is free.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use log::kv::{Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3_log::{Caching, Logger};

static PYTHON: OnceLock<Logger> = OnceLock::new();
static HAS_LINES: AtomicBool = AtomicBool::new(false);
static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

struct Line {
    level: Level,
    target: String,
    text: String,
    values: Vec<(String, String)>,
}

/// Keeps lines until [`pass_on`] is called.
struct Waiting;

impl Log for Waiting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut values = Values::default();
        let _ = record.key_values().visit(&mut values);
        let line = Line {
            level: record.level(),
            target: record.target().to_owned(),
            text: record.args().to_string(),
            values: values.0,
        };
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        HAS_LINES.store(true, Ordering::Release);
    }

    fn flush(&self) {}
}

#[derive(Default)]
struct Values(Vec<(String, String)>);

impl<'kvs> VisitSource<'kvs> for Values {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), log::kv::Error> {
        self.0.push((key.to_string(), value.to_string()));
        Ok(())
    }
}

/// Makes the lines of this library records of Python.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    // Levels are not cached: a program may change them at any time, and there are few lines.
    let python = Logger::new(py, Caching::Nothing)?;
    if PYTHON.set(python).is_ok() {
        log::set_logger(&Waiting).map_err(|error| PyImportError::new_err(error.to_string()))?;
        log::set_max_level(LevelFilter::Info);
    }
    Ok(())
}

/// Returns whether lines wait.
#[inline]
pub(crate) fn are_there() -> bool {
    HAS_LINES.load(Ordering::Acquire)
}

/// Gives the lines that wait to Python. No sieve may be locked.
///
/// # Errors
///
/// What a filter or handler raised first, such as `KeyboardInterrupt`. All lines were passed on.
#[inline]
pub(crate) fn pass_on(py: Python<'_>) -> PyResult<()> {
    if are_there() { pass_on_all(py) } else { Ok(()) }
}

#[cold]
fn pass_on_all(py: Python<'_>) -> PyResult<()> {
    let mut raised = Ok(());
    HAS_LINES.store(false, Ordering::Release);
    let lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
    for Line {
        level,
        target,
        text,
        values,
    } in lines
    {
        if let Some(python) = PYTHON.get() {
            python.log(
                &Record::builder()
                    .level(level)
                    .target(&target)
                    .args(format_args!("{text}"))
                    .key_values(&values)
                    .build(),
            );
        }
        if let Some(error) = PyErr::take(py) {
            match raised {
                Ok(()) => raised = Err(error),
                Err(_) => error.write_unraisable(py, None),
            }
        }
    }
    raised
}
